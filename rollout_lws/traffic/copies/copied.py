"""What copies of the user's objects have in common, of whichever kind: their metadata, and what another writer changed.

A copy carries a digest of what the release wrote, to tell an edit by another writer from a change of the user's object,
which the copy follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rollout_lws.api.resources import Keys
from rollout_lws.objects.resources import ObjectRef
from rollout_lws.targets.version import short_hash
from rollout_lws.traffic import marks
from rollout_lws.traffic.copy_names import written_name
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.registry import RouterSpec
from rollout_lws.traffic.router import NAME_TAKEN, Problem
from rollout_lws.traffic.split import Object
from rollout_lws.workload.canary import copied_marks


def metadata(main: Object, keys: Keys, *, name: str, owner: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a copy named ``name``: labels and annotations of the user's object, and the owner."""
    found = main["metadata"]
    return {
        "name": name,
        "namespace": found.get("namespace", ""),
        "labels": copied_marks(found.get("labels") or {}, keys),
        "annotations": copied_marks(found.get("annotations") or {}, keys),
        "ownerReferences": [dict(owner)],
    }


def annotated(made: Object, by: str, keys: Keys, written: object) -> Object:
    """The manifest with our annotation: a digest of what is ``written``, and that the release created it."""
    return marks.put_made(made, by, keys, {"written": _digest(written)})


def updated(live: Object, made: Object, dropped: str = "") -> dict[str, Any]:
    """The metadata of a live copy with labels and annotations of ``made``, without its annotations that begin with
    ``dropped`` ("": none is dropped); all else stays.
    """
    head, said = live["metadata"], made["metadata"]
    kept = {
        key: value
        for key, value in (head.get("annotations") or {}).items()
        if not (dropped and key.startswith(dropped))
    }
    both = {
        "labels": (head.get("labels") or {}) | (said.get("labels") or {}),
        "annotations": kept | (said.get("annotations") or {}),
    }
    # The API server keeps no empty maps.
    return {**head, **{member: found for member, found in both.items() if found}}


def drifted(live: Object, by: str, keys: Keys, written: object) -> bool:
    """Whether another writer has changed what a release wrote, which now is ``written``."""
    mark = marks.read(live, by, keys)
    return mark is None or mark.get("written") != _digest(written)


def own(facts: RoutingFacts, spec: RouterSpec, name: str) -> Object | None:
    """The copy of the user's object ``name``; None without one, and for an object that only has its name."""
    found = facts.find(spec.resource, written_name(spec, name))
    return found if found is not None and facts.is_ours(found) else None


def taken(facts: RoutingFacts, spec: RouterSpec, name: str) -> Problem | None:
    """That another object has the name of the copy of the user's object ``name``; None when none has."""
    ref = ObjectRef(spec.resource.kind, written_name(spec, name))
    if facts.find(spec.resource, ref.name) is None or own(facts, spec, name) is not None:
        return None
    return Problem(
        f"{ref} exists and is not ours, but the new version's needs its name: delete it, or make it anew under another"
        " name",
        ref,
        NAME_TAKEN,
    )


def _digest(written: object) -> str:
    return short_hash(msgspec.json.encode(written, order="sorted").decode(), 12)
