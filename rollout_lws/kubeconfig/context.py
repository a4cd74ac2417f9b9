"""Loads a context from kubeconfig files and kubectl's global flags, using only PyYAML."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.errors import NoCluster, UsageError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.kubeconfig.urls import is_address
from rollout_lws.objects.codec.yaml_nodes import NotPlain, values

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: Entries that name a file, relative to their kubeconfig.
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")

#: Entries that kubectl rejects together.
_EITHER = (
    ("certificate-authority", "certificate-authority-data"),
    ("certificate-authority", "insecure-skip-tls-verify"),
    ("certificate-authority-data", "insecure-skip-tls-verify"),
    ("client-certificate", "client-certificate-data"),
    ("client-key", "client-key-data"),
    ("token", "username"),
)


@dataclass(frozen=True, slots=True)
class Context:
    """A context, flags included: ``cluster`` and ``user`` as in a kubeconfig, with absolute paths."""

    name: str
    server: str
    namespace: str
    cluster: Mapping[str, Any] = field(default_factory=dict)
    user: Mapping[str, Any] = field(default_factory=dict)


def load(target: Target, environment: Mapping[str, str] = os.environ) -> Context:
    """The context that ``target`` names, else the current one; without any kubeconfig the one from the flags, else the
    service account of this pod. UsageError names the missing file or entry.
    """
    files = _files(target.kubeconfig, environment)
    if not files and not (target.server or target.context or target.cluster or target.user):
        return _flagged(_service_account(environment), target)
    config = _merge(files)
    name = target.context or config["current-context"]
    chosen: Mapping[str, Any] = {}
    if name:
        chosen = _entry(config, "contexts", name)
    elif not (target.cluster or target.server):
        raise NoCluster("no context is current: run kubectl config use-context NAME, or give --context")
    cluster_name, user_name = target.cluster or chosen.get("cluster"), target.user or chosen.get("user")
    cluster = _entry(config, "clusters", str(cluster_name)) if cluster_name else {}
    user = _entry(config, "users", str(user_name)) if user_name else {}
    found = Context(
        str(name or "of the flags"), str(cluster.get("server", "")), chosen.get("namespace") or "default", cluster, user
    )
    context = _flagged(found, target)
    _check(context)
    if not is_address(context.server, ("http", "https")):
        raise UsageError(
            f"cluster {cluster_name!r} has no http:// or https:// server with a host and, if any, a port: correct the"
            " kubeconfig"
        )
    return context


def _flagged(context: Context, target: Target) -> Context:
    """Flags override the kubeconfig. As in client-go, CA flags replace all of its CA settings."""
    cluster, user = dict(context.cluster), dict(context.user)
    if target.certificate_authority or target.insecure_skip_tls_verify:
        for name in ("insecure-skip-tls-verify", "certificate-authority", "certificate-authority-data"):
            cluster.pop(name, None)
    if target.server or target.tls_server_name:
        cluster.pop("tls-server-name", None)
    cluster |= _given(
        {
            "certificate-authority": _path(target.certificate_authority),
            "insecure-skip-tls-verify": target.insecure_skip_tls_verify,
            "tls-server-name": target.tls_server_name,
        }
    )
    if target.client_certificate:
        user.pop("client-certificate-data", None)
    if target.client_key:
        user.pop("client-key-data", None)
    if target.token:
        # A token given by flag takes precedence over a token file.
        user.pop("tokenFile", None)
    user |= _given(
        {
            "token": target.token,
            "username": target.username,
            "password": target.password,
            "client-certificate": _path(target.client_certificate),
            "client-key": _path(target.client_key),
            "as": target.impersonate,
            "as-groups": list(target.impersonate_groups),
            "as-uid": target.impersonate_uid,
        }
    )
    server = (target.server or context.server).rstrip("/")
    if target.server and "://" not in server:
        server = f"https://{server}"
    return Context(context.name, server, target.namespace or context.namespace, cluster, user)


def _check(context: Context) -> None:
    """UsageError for what kubectl rejects, and for logins that Kubernetes no longer supports."""
    if context.user.get("auth-provider"):
        raise UsageError(
            f"the user of context {context.name!r} has an auth-provider, which Kubernetes has removed or is about to:"
            " use an exec plugin of your provider"
        )
    for entries in (context.cluster, context.user):
        for one, other in _EITHER:
            if entries.get(one) and entries.get(other):
                raise UsageError(f"context {context.name!r} has both {one} and {other}: remove either, as kubectl asks")
    program = context.user.get("exec")
    missing = [name for name in ("command", "apiVersion") if program and not program.get(name)]
    if missing:
        raise UsageError(f"the login program of context {context.name!r} has no {missing[0]}: correct the kubeconfig")


def _given(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value}


def _path(text: str | None) -> str | None:
    return str(Path(text).expanduser()) if text else None


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
            content: Any = next(iter(values(file.read_text())), {})
        except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
            raise UsageError(f"kubeconfig {file} cannot be read: {_why(error)}") from error
        if not isinstance(content, dict):
            raise UsageError(f"{file} is no kubeconfig: give the right --kubeconfig")
        merged["current-context"] = merged["current-context"] or content.get("current-context") or ""
        for kind, member in (("contexts", "context"), ("clusters", "cluster"), ("users", "user")):
            for item in content.get(kind) or ():
                merged[kind].setdefault(item.get("name"), _absolute(dict(item.get(member) or {}), file.parent))
    return merged


def _why(error: Exception) -> str:
    """The position of the error, not the content: that may be a token."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if isinstance(error, NotPlain):
        return f"line {error.mark.line} has a value that no kubeconfig has"
    mark = error.problem_mark or error.context_mark if isinstance(error, yaml.MarkedYAMLError) else None
    return f"line {mark.line + 1} is no YAML" if mark else "it is no YAML"


def _absolute(entry: dict[str, Any], directory: Path) -> dict[str, Any]:
    for key in _FILES:
        if entry.get(key):
            entry[key] = str(directory / Path(entry[key]).expanduser())
    program = entry.get("exec") or {}
    if os.sep in str(program.get("command") or ""):
        # A bare name is looked up in $PATH.
        entry["exec"] = {**program, "command": str(directory / Path(program["command"]).expanduser())}
    return entry


def _entry(config: Mapping[str, Any], kind: str, name: str) -> dict[str, Any]:
    if name not in config[kind]:
        known = ", ".join(sorted(map(str, config[kind]))) or "none"
        raise UsageError(f"the kubeconfig has no {kind[:-1]} {name!r} (known: {known})")
    entry: dict[str, Any] = config[kind][name]
    return entry


def _service_account(environment: Mapping[str, str]) -> Context:
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (_SERVICE_ACCOUNT / "token").is_file():
        looked = environment.get("KUBECONFIG") or "~/.kube/config"
        raise NoCluster(f"no kubeconfig found at {looked}: give --kubeconfig, or set KUBECONFIG")
    address = f"[{host}]" if ":" in host else host
    return Context(
        "of the service account",
        f"https://{address}:{port}",
        (_SERVICE_ACCOUNT / "namespace").read_text().strip(),
        {"certificate-authority": str(_SERVICE_ACCOUNT / "ca.crt")},
        {"tokenFile": str(_SERVICE_ACCOUNT / "token")},
    )
