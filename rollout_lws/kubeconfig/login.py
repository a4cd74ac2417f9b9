"""Authentication: tokens, token files, passwords, certificates, exec plugins (login programs), and impersonation.

A gate waits for hours, and most logins expire within one: credentials of a file or a program are read again when they
have expired, and once more when the server refuses them.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig.context import Context

#: Headers; a name may occur more than once.
Headers = list[tuple[str, str]]
#: Cluster fields that a login program gets if its entry asks for them.
_TOLD_OF_CLUSTER = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
#: Fields that take precedence over a login program.
_INSTEAD_OF_PROGRAMS = ("token", "tokenFile", "username", "client-certificate", "client-certificate-data")
#: Characters that a header's name may have.
_PLAIN = "!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
_EXTENSION = "client.authentication.k8s.io/exec"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client's certificate and key, each as the path of a PEM file or its content; both may be in one file."""

    path: str = ""
    key_path: str = ""
    pem: str = ""
    key_pem: str = ""


class Login:
    """The login of ``context``'s user. UsageError when it fails.

    With ``patience``, in seconds, a login program may not be interactive, and is killed when it takes longer.
    """

    def __init__(self, context: Context, patience: float | None = None) -> None:
        self._context = context
        self._patience = patience
        self._given: Mapping[str, Any] | None = None
        self._expires: datetime | None = None
        self._asking = threading.Lock()

    @property
    def headers(self) -> Headers:
        """The authentication headers for a request made now."""
        user = self._context.user
        return [*self._authentication(), *impersonation(user)]

    @property
    def certificate(self) -> Certificate | None:
        """The client's certificate, if the user authenticates with one."""
        user = {**self._context.user, **self._told()}
        found = Certificate(
            path=user.get("client-certificate") or "",
            key_path=user.get("client-key") or "",
            pem=_decoded(user.get("client-certificate-data")),
            key_pem=_decoded(user.get("client-key-data")),
        )
        return found if found.path or found.pem else None

    def refused(self) -> bool:
        """The server refused the login. Returns whether reading the login again may help."""
        self._given = self._expires = None
        return bool(program_of(self._context.user) or self._context.user.get("tokenFile"))

    def _authentication(self) -> Headers:
        user = {**self._context.user, **self._told()}
        # Tokens from a kubeconfig's block scalar, a file or a program end with a newline.
        token = str(_of_file(user.get("tokenFile"), user.get("token")) or user.get("token") or "").strip()
        if token:
            return [("Authorization", f"Bearer {token}")]
        if user.get("username"):
            pair = f"{user['username']}:{user.get('password') or ''}"
            return [("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")]
        return []

    def _told(self) -> Mapping[str, Any]:
        """The login program's answer; runs the program if it has not run yet, or its answer has expired."""
        program = program_of(self._context.user)
        if not program:
            return {}
        with self._asking:
            return self._asked(program)

    def _asked(self, program: Mapping[str, Any]) -> Mapping[str, Any]:
        given = self._given
        if given is None or (self._expires is not None and self._expires <= datetime.now(UTC)):
            status = _run(program, self._context, self._patience)
            self._expires = _moment(status.get("expirationTimestamp"))
            self._given = given = {
                "token": status.get("token"),
                "client-certificate-data": _encoded(status.get("clientCertificateData")),
                "client-key-data": _encoded(status.get("clientKeyData")),
            }
        return given


def _of_file(path: str | None, instead: str | None) -> str | None:
    if not path:
        return None
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError):
        if instead:
            return None
        raise


def program_of(user: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The login program of a user, which runs only if the kubeconfig has no other credentials (client-go's rule)."""
    found: Mapping[str, Any] | None = user.get("exec")
    return None if any(user.get(name) for name in _INSTEAD_OF_PROGRAMS) else found


def impersonation(user: Mapping[str, Any]) -> Headers:
    """The impersonation headers. UsageError for groups or a UID without a user."""
    if not user.get("as"):
        if any(user.get(name) for name in ("as-uid", "as-groups", "as-user-extra")):
            raise UsageError("a group or UID is impersonated, and no user: give --as as well")
        return []
    headers = [("Impersonate-User", str(user["as"]))]
    if user.get("as-uid"):
        headers.append(("Impersonate-Uid", str(user["as-uid"])))
    headers += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for name, values in (user.get("as-user-extra") or {}).items():
        headers += [(f"Impersonate-Extra-{_escaped(name)}", str(value)) for value in values]
    return headers


def _escaped(name: str) -> str:
    """A key as part of a header's name: lower case, with invalid characters as %XX."""
    return "".join(each if each in _PLAIN else "".join(f"%{b:02X}" for b in each.encode()) for each in name.lower())


def _run(program: Mapping[str, Any], context: Context, patience: float | None) -> Mapping[str, Any]:
    """The status of the ExecCredential that the login program prints."""
    # Most kubeconfigs have no program.
    import subprocess

    command = [str(program.get("command", "")), *map(str, program.get("args") or ())]
    # An argument may be a secret, and this text ends up in the logs of pipelines.
    by_hand = command[0] + (", with the arguments that the kubeconfig gives it" if command[1:] else "")
    mode = program.get("interactiveMode") or "IfAvailable"
    interactive = patience is None and mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not interactive:
        raise UsageError(f"the login program {command[0]!r} has to ask you something: run this on a terminal")
    extra = {str(pair["name"]): str(pair["value"]) for pair in program.get("env") or ()}
    try:
        answer = subprocess.run(
            command,
            env={**os.environ, **extra, "KUBERNETES_EXEC_INFO": exec_info(program, context, interactive)},
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if patience is None else subprocess.DEVNULL,
            timeout=patience,
            check=True,
        ).stdout
        said = json.loads(answer)
        status = said.get("status") if isinstance(said, dict) else None
    except FileNotFoundError as error:
        hint = str(program.get("installHint") or "install it").strip()
        raise UsageError(f"the kubeconfig's login program {command[0]!r} is not installed: {hint}") from error
    except (subprocess.SubprocessError, ValueError, OSError) as error:
        raise UsageError(f"the kubeconfig's login program failed: {_why(error)}; run it by hand: {by_hand}") from error
    if isinstance(said, dict) and said.get("apiVersion") != program.get("apiVersion"):
        raise UsageError(
            f"the kubeconfig's login program answered by apiVersion {said.get('apiVersion')!r} instead of"
            f" {program.get('apiVersion')!r}; run it by hand: {by_hand}"
        )
    if not isinstance(status, dict) or not (status.get("token") or status.get("clientCertificateData")):
        raise UsageError(
            f"the kubeconfig's login program gave neither a token nor a certificate; run it by hand: {by_hand}"
        )
    return status


def _why(error: Exception) -> str:
    """Without the arguments, which the standard library would include."""
    import subprocess

    if isinstance(error, subprocess.CalledProcessError):
        return f"exit status {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it timed out after {error.timeout:g} s"
    return str(error)


def exec_info(program: Mapping[str, Any], context: Context, interactive: bool) -> str:
    """The JSON that a login program gets in $KUBERNETES_EXEC_INFO."""
    told: dict[str, Any] = {"interactive": interactive}
    if program.get("provideClusterInfo"):
        told["cluster"] = _cluster_info(context)
    return json.dumps({"apiVersion": program.get("apiVersion"), "kind": "ExecCredential", "spec": told})


def _cluster_info(context: Context) -> dict[str, Any]:
    told = {name: context.cluster[name] for name in _TOLD_OF_CLUSTER if context.cluster.get(name)}
    told["server"] = context.server
    if context.cluster.get("certificate-authority") and "certificate-authority-data" not in told:
        told["certificate-authority-data"] = base64.b64encode(
            Path(context.cluster["certificate-authority"]).read_bytes()
        ).decode()
    for each in context.cluster.get("extensions") or ():
        if each.get("name") == _EXTENSION:
            told["config"] = each.get("extension")
    return told


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _encoded(pem: str | None) -> str | None:
    return base64.b64encode(pem.encode()).decode() if pem else None


def _decoded(data: str | None) -> str:
    return base64.b64decode(data).decode() if data else ""
