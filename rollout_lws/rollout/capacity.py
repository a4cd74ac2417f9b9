"""Groups of the new version: as many as a step, or a promotion, asks for."""

from __future__ import annotations

from rollout_lws.api import batch_releases
from rollout_lws.release.canary import scale
from rollout_lws.release.record import owner_reference
from rollout_lws.release.turn import Turn
from rollout_lws.rollout.draft import Draft


def scale_new(d: Draft, wanted: int) -> Turn:
    """Have ``wanted`` groups in the new version's own LWS; done when that many are asked for."""
    record = d.o.batch_release
    if record is None:
        return Turn(message="the BatchRelease is made first")
    resource = batch_releases(d.keys.group)
    patch = d.strategy.metadata_patch
    return scale(
        d.stable.lws,
        d.o.canary,
        d.o.remains,
        d.keys,
        owner=owner_reference(record, resource.kind, resource.api_version),
        wanted=wanted,
        metadata_patch=patch.to_json_dict() if patch else None,
    )
