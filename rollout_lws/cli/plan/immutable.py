"""Manifests of StatefulSets that an API server would not apply, since they change what cannot change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from rollout_lws.cli.plan.merging import merged
from rollout_lws.objects.resources import STATEFUL_SETS
from rollout_lws.observe.snapshot import Object, Snapshot
from rollout_lws.sandbox.admission.kinds import STATEFUL_SET_MUTABLE
from rollout_lws.workload.applied import LAST_APPLIED

#: What the API server fills in where a manifest does not state it.
_DEFAULTS: Mapping[str, Any] = {"podManagementPolicy": "OrderedReady"}
_OF_CLAIMS = ("metadata", "spec")


def refusals(found: Snapshot, manifests: Iterable[Object], namespace: str, names: Iterable[str]) -> Iterator[str]:
    """Why manifests of the StatefulSets of these ``names`` in ``namespace`` would not be applied to those there."""
    wanted = {*names}
    for each in manifests:
        name, kind = each["metadata"]["name"], (each["apiVersion"], each["kind"])
        is_there = (each["metadata"].get("namespace") or namespace) == namespace
        if kind != (STATEFUL_SETS.api_version, STATEFUL_SETS.kind) or name not in wanted or not is_there:
            continue
        live = found.find(STATEFUL_SETS, name)
        changed = sorted(_changed(live, each)) if live is not None else []
        if changed:
            yield (
                f"the API server would refuse the manifest of StatefulSet {name}, which changes"
                f" {' and '.join(changed)}: of one that exists they stay as they are; restore them, or give the version"
                " a StatefulSet of another name"
            )


def _changed(live: Object, manifest: Object) -> Iterator[str]:
    """Members of the spec that an update may not change, and this one would."""
    stated, there = manifest.get("spec") or {}, live.get("spec") or {}
    for member in (*stated, *(_applied_before(live) - {*stated})):
        if member in STATEFUL_SET_MUTABLE:
            continue
        before, after = (_stored(member, spec.get(member, _DEFAULTS.get(member))) for spec in (there, stated))
        if before != after:
            yield member


def _applied_before(live: Object) -> set[str]:
    """Members of the spec that the manifest has had before: an apply without one removes it."""
    copied = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        manifest = msgspec.json.decode(copied or "{}")
    except msgspec.DecodeError:
        return set()
    return {*(manifest.get("spec") or {})} if isinstance(manifest, dict) else set()


def _stored(member: str, value: Any) -> Any:
    """The value without what an API server fills in, which manifests may state or not."""
    if member != "volumeClaimTemplates":
        return value or None
    return [_claim(each) for each in value or ()]


def _claim(claim: Mapping[str, Any]) -> Object:
    # With itself: quantities are spelled as an API server spells them.
    named = {name: merged(claim.get(name) or {}, claim.get(name) or {}) for name in _OF_CLAIMS}
    meta = {name: value for name, value in named["metadata"].items() if value is not None}
    return {"metadata": meta, "spec": {"volumeMode": "Filesystem", **named["spec"]}}
