"""Volumes that outlive a release: its claims are named, for they cost, and a later version gets their data."""

from __future__ import annotations

from collections.abc import Sequence

from rollout_lws.api import Capacity
from rollout_lws.objects.resources import LWS_NAME
from rollout_lws.release.batches import wanted_groups
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.workload.claims import kept
from rollout_lws.workload.template import version_of

#: Claims that an Event names.
_NAMED = 6


def told_of_canary(d: Draft) -> None:
    """In the decision that takes the groups of the canary away."""
    canary = d.o.canary
    if canary is None or canary.lws.metadata.terminating or not canary.lws.spec.replicas:
        return
    meta = canary.lws.metadata
    names = kept(version_of(canary.lws.spec), by_scaling=False).of(meta.name, range(canary.lws.spec.replicas))
    _tell(d, names, f"kubectl delete pvc -n {meta.namespace} -l {LWS_NAME}={meta.name}")


def told_of_surge(d: Draft) -> None:
    """At the end of a release, of the groups that were beyond the number of the LWS's own."""
    if d.o.rollout.spec.strategy.style is None or d.capacity is not Capacity.SURGE:
        return
    meta, steps = d.stable.lws.metadata, len(d.strategy.steps)
    made = wanted_groups(d.strategy, max(1, min(d.sub.current_step_index, steps)), d.replicas)
    names = kept(d.version, by_scaling=True).of(meta.name, range(d.replicas, d.replicas + made))
    _tell(d, names, f"kubectl delete pvc -n {meta.namespace} {' '.join(names[:_NAMED])}")


def _tell(d: Draft, names: Sequence[str], command: str) -> None:
    if not names:
        return
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    d.notice(
        EventReason.VOLUME_CLAIMS_KEPT,
        f"{len(names)} PersistentVolumeClaim{'s' if len(names) > 1 else ''} of the release's groups stay by their"
        f" retention policy, and groups of a later version would get what is in them: {', '.join(names[:_NAMED])}"
        f"{more}. To remove them: {command}",
        warning=True,
    )
