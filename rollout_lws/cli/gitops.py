"""Detects Argo CD and Flux, which would revert changes to an object, and renders their rules to ignore fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rollout_lws.objects.resources import Resource

Object = dict[str, Any]
#: Argo CD's tracking annotation, and its tracking label.
_ARGO_ID, _ARGO_LABEL = "argocd.argoproj.io/tracking-id", "argocd.argoproj.io/instance"
_FLUX = (("Kustomization", "kustomize.toolkit.fluxcd.io"), ("HelmRelease", "helm.toolkit.fluxcd.io"))
#: Field managers of GitOps controllers.
_MANAGERS = {
    "argocd-controller": "an Argo CD Application",
    "argocd-application-controller": "an Argo CD Application",
    "kustomize-controller": "a Flux Kustomization",
    "helm-controller": "a Flux HelmRelease",
}


def owner(obj: Object) -> str:
    """The GitOps owner in words, such as ``Argo CD Application chat``; "" when none is known."""
    meta = obj["metadata"]
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    tracked = str(annotations.get(_ARGO_ID) or "").partition(":")[0] or labels.get(_ARGO_LABEL)
    if tracked:
        return f"Argo CD Application {tracked}"
    for kind, group in _FLUX:
        if labels.get(f"{group}/name"):
            return f"Flux {kind} {labels.get(f'{group}/namespace') or meta.get('namespace')}/{labels[f'{group}/name']}"
    for entry in meta.get("managedFields") or ():
        if entry.get("manager") in _MANAGERS and "f:spec" in (entry.get("fieldsV1") or {}):
            return _MANAGERS[entry["manager"]]
    return ""


@dataclass(frozen=True, slots=True)
class Ignored:
    """Fields of one object, as JSON Pointers, that a release writes."""

    resource: Resource
    name: str
    pointers: tuple[str, ...]


def argo_rules(ignored: Iterable[Ignored]) -> Object:
    """For the spec of Argo CD's Application; RespectIgnoreDifferences keeps the live values on other syncs."""
    rules: list[Object] = []
    for each in ignored:
        group = {"group": each.resource.group} if each.resource.group else {}
        rules.append({**group, "kind": each.resource.kind, "name": each.name, "jsonPointers": list(each.pointers)})
    return {"spec": {"syncPolicy": {"syncOptions": ["RespectIgnoreDifferences=true"]}, "ignoreDifferences": rules}}


def flux_rules(ignored: Iterable[Ignored], *, helm: bool = False) -> Object:
    """For the spec of Flux's Kustomization, or of its HelmRelease."""
    rules: Sequence[Object] = [
        {"target": {"kind": each.resource.kind, "name": each.name}, "paths": list(each.pointers)} for each in ignored
    ]
    return {"spec": {"driftDetection": {"ignore": rules}} if helm else {"ignore": rules}}
