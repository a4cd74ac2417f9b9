"""Detects Argo CD and Flux, which would revert changes to an object."""

from __future__ import annotations

from typing import Any

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
