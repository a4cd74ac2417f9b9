"""Validation of Ingresses with kube-apiserver's messages: rules, paths and backends, but not hosts, TLS and classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


def violations(ingress: Mapping[str, Any]) -> Iterator[str]:
    spec = ingress.get("spec") or {}
    rules, default = spec.get("rules") or (), spec.get("defaultBackend")
    if default is not None:
        yield from _backend(default, "spec.defaultBackend")
    elif not rules:
        yield "spec: Invalid value: []: either `defaultBackend` or `rules` must be specified"
    for at, rule in enumerate(rules):
        http = rule.get("http")
        if http is None:
            continue
        where = f"spec.rules[{at}].http.paths"
        if not http.get("paths"):
            yield f"{where}: Required value"
        for number, path in enumerate(http.get("paths") or ()):
            yield from _path(path, f"{where}[{number}]")


def _path(path: Mapping[str, Any], where: str) -> Iterator[str]:
    kind, value = path.get("pathType"), path.get("path") or ""
    if kind is None:
        yield f"{where}.pathType: Required value: pathType must be specified"
    elif kind not in _PATH_TYPES:
        listed = ", ".join(f'"{each}"' for each in _PATH_TYPES)
        yield f'{where}.pathType: Unsupported value: "{kind}": supported values: {listed}'
    elif not value.startswith("/") and (value or kind != "ImplementationSpecific"):
        yield f'{where}.path: Invalid value: "{value}": must be an absolute path'
    yield from _backend(path.get("backend") or {}, f"{where}.backend")


def _backend(backend: Mapping[str, Any], where: str) -> Iterator[str]:
    service = backend.get("service")
    if service is None:
        if backend.get("resource") is None:
            yield f'{where}: Invalid value: "": resource or service backend is required'
        return
    if backend.get("resource") is not None:
        yield f'{where}: Invalid value: "": cannot set both resource and service backends'
    if not service.get("name"):
        yield f"{where}.service.name: Required value"
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        yield f'{where}: Invalid value: "": cannot set both port name & port number'
    elif not port.get("name") and not port.get("number"):
        yield f"{where}: Required value: port name or number is required"
