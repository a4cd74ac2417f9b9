"""Words that thousands of cached objects share, kept once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from msgspec.structs import force_setattr

from rollout_lws.objects.meta import Meta

#: kubectl's copy of the whole manifest, which nobody here reads.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_NONE: dict[str, str] = {}


@lru_cache(maxsize=16_384)
def word(text: str) -> str:
    """The same string for equal ones. Python's own ``intern`` would keep the name of every pod that ever was: in 3.12
    it never lets go.
    """
    return text


def share(meta: Meta, labels: Collection[str] | None = None, annotations: Collection[str] | None = None) -> None:
    """Keep ``labels`` and ``annotations``, all by default, in the metadata of an object that was just made and nobody
    has seen yet. kubectl's copy of the manifest goes anyhow.
    """
    force_setattr(meta, "namespace", word(meta.namespace))
    force_setattr(meta, "labels", _shared(meta.labels, labels))
    meta.annotations.pop(LAST_APPLIED, None)
    force_setattr(meta, "annotations", _shared(meta.annotations, annotations))
    for owner in meta.owner_references:
        force_setattr(owner, "kind", word(owner.kind))
        force_setattr(owner, "name", word(owner.name))


def _shared(marks: Mapping[str, str], kept: Collection[str] | None) -> dict[str, str]:
    """Of no marks there is one dictionary, which nobody changes."""
    if kept is not None:
        return {word(key): word(marks[key]) for key in kept if key in marks} or _NONE
    return dict(zip(map(word, marks), map(word, marks.values()), strict=True)) or _NONE
