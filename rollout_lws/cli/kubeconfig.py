"""Which server, with whose credentials: kubeconfig files read with nothing but PyYAML, because start-up counts.

Understood are what kubectl understands of clusters and users: certificate files and data, tokens and token files, basic
authentication, exec plugins, a user to impersonate, several files in $KUBECONFIG; inside a pod without any, its
service account. What is not understood is refused.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.errors import UsageError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: What decides where requests go or as whom they are made, so that it must not be passed over.
_NOT_UNDERSTOOD = ("proxy-url", "tls-server-name", "as-groups", "as-uid", "as-user-extra", "auth-provider")
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Access:
    """A resolved context. ``tls`` is None for plain HTTP; ``headers`` carry the authentication."""

    server: str
    namespace: str
    headers: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None


def load(path: str | None, context: str | None, environment: Mapping[str, str] = os.environ) -> Access:
    """Access by the named context, else the current one. UsageError says which file or entry is missing."""
    files = _files(path, environment)
    if not files:
        return _service_account(environment)
    config = _merge(files)
    name = context or config["current-context"]
    if not name:
        raise UsageError("no context is current: run kubectl config use-context NAME, or give --context")
    chosen = _entry(config, "contexts", name)
    cluster = _entry(config, "clusters", str(chosen.get("cluster", "")))
    user = _entry(config, "users", str(chosen["user"])) if chosen.get("user") else {}
    server = str(cluster.get("server", ""))
    if not server.startswith(("http://", "https://")):
        raise UsageError(f"cluster {chosen.get('cluster')!r} has no http:// or https:// server: correct the kubeconfig")
    for key in _NOT_UNDERSTOOD:
        if cluster.get(key) or user.get(key):
            raise UsageError(
                f"context {name!r} has a {key}, which rollout-lws cannot use: run kubectl proxy and point to it"
            )
    credentials = _credentials(user, cluster)
    try:
        headers = _headers(credentials)
        tls = _tls(cluster, credentials) if server.startswith("https://") else None
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the certificates or the token of context {name!r} cannot be read: {error}; correct the kubeconfig"
        ) from error
    if user.get("as"):
        headers["Impersonate-User"] = str(user["as"])
    return Access(server.rstrip("/"), str(chosen.get("namespace") or "default"), headers, tls)


def _files(path: str | None, environment: Mapping[str, str]) -> list[Path]:
    if path:
        if not Path(path).is_file():
            raise UsageError(f"kubeconfig {path} does not exist: give the right --kubeconfig")
        return [Path(path)]
    listed = [Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    candidates = listed or [Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"]
    return [file for file in candidates if file.is_file()]


def _merge(files: list[Path]) -> dict[str, Any]:
    """kubectl's rule: the first file that names an entry wins. Relative paths are relative to their own file."""
    merged: dict[str, Any] = {"current-context": "", "contexts": {}, "clusters": {}, "users": {}}
    for file in files:
        try:
            content = yaml.load(file.read_text(), _LOADER) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise UsageError(f"kubeconfig {file} cannot be read: {' '.join(str(error).split())}") from error
        if not isinstance(content, dict):
            raise UsageError(f"{file} is no kubeconfig: give the right --kubeconfig")
        merged["current-context"] = merged["current-context"] or content.get("current-context") or ""
        for kind, member in (("contexts", "context"), ("clusters", "cluster"), ("users", "user")):
            for item in content.get(kind) or ():
                entry = dict(item.get(member) or {})
                for key in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
                    if entry.get(key):
                        entry[key] = str(file.parent / Path(entry[key]).expanduser())
                merged[kind].setdefault(item.get("name"), entry)
    return merged


def _entry(config: Mapping[str, Any], kind: str, name: str) -> dict[str, Any]:
    if name not in config[kind]:
        known = ", ".join(sorted(map(str, config[kind]))) or "none"
        raise UsageError(f"the kubeconfig has no {kind[:-1]} {name!r} (known: {known})")
    entry: dict[str, Any] = config[kind][name]
    return entry


def _credentials(user: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, Any]:
    if not user.get("exec"):
        return dict(user)
    plugin = user["exec"]
    command = [str(plugin.get("command", "")), *map(str, plugin.get("args") or ())]
    info: dict[str, Any] = {"interactive": os.isatty(0)}
    if plugin.get("provideClusterInfo"):
        info["cluster"] = {
            "server": cluster.get("server"),
            "certificate-authority-data": cluster.get("certificate-authority-data"),
        }
    request = {"apiVersion": plugin.get("apiVersion"), "kind": "ExecCredential", "spec": info}
    extra = {str(pair["name"]): str(pair["value"]) for pair in plugin.get("env") or ()}
    try:
        answer = subprocess.run(
            command,
            env={**os.environ, **extra, "KUBERNETES_EXEC_INFO": json.dumps(request)},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        status = json.loads(answer).get("status") or {}
    except FileNotFoundError as error:
        hint = str(plugin.get("installHint") or "install it").strip()
        raise UsageError(f"the kubeconfig's login program {command[0]!r} is not installed: {hint}") from error
    except (subprocess.CalledProcessError, ValueError, OSError) as error:
        raise UsageError(
            f"the kubeconfig's login program failed: {error}; run it by hand: {' '.join(command)}"
        ) from error
    return {
        "token": status.get("token"),
        "client-certificate-data": _encoded(status.get("clientCertificateData")),
        "client-key-data": _encoded(status.get("clientKeyData")),
    }


def _encoded(pem: str | None) -> str | None:
    return base64.b64encode(pem.encode()).decode() if pem else None


def _headers(user: Mapping[str, Any]) -> dict[str, str]:
    token = user.get("token")
    if not token and user.get("tokenFile"):
        token = Path(user["tokenFile"]).read_text().strip()
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password') or ''}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    authority = cluster.get("certificate-authority-data")
    context = ssl.create_default_context(
        cafile=None if authority else cluster.get("certificate-authority"),
        cadata=base64.b64decode(authority).decode() if authority else None,
    )
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if user.get("client-certificate-data"):
        pem = b"\n".join(
            base64.b64decode(user[key]) for key in ("client-certificate-data", "client-key-data") if user.get(key)
        )
        # The ssl module reads certificates from files only; mkstemp's are readable by their owner alone.
        with tempfile.NamedTemporaryFile() as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(file.name, user.get("client-key") if not user.get("client-key-data") else None)
    elif user.get("client-certificate"):
        context.load_cert_chain(user["client-certificate"], user.get("client-key"))
    return context


def _service_account(environment: Mapping[str, str]) -> Access:
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (_SERVICE_ACCOUNT / "token").is_file():
        looked = environment.get("KUBECONFIG") or "~/.kube/config"
        raise UsageError(f"no kubeconfig found at {looked}: give --kubeconfig, or set KUBECONFIG")
    tls = ssl.create_default_context(cafile=str(_SERVICE_ACCOUNT / "ca.crt"))
    headers = {"Authorization": f"Bearer {(_SERVICE_ACCOUNT / 'token').read_text().strip()}"}
    address = f"[{host}]" if ":" in host else host
    return Access(f"https://{address}:{port}", (_SERVICE_ACCOUNT / "namespace").read_text().strip(), headers, tls)
