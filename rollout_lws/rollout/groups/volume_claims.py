"""Reports PersistentVolumeClaims that outlive a release: they cost money, and a later version gets their data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.targets.target import Target
from rollout_lws.traffic.selectors import of_workload
from rollout_lws.workload.claims import kept

#: Claims that an Event names at most; if there are more, how many it names, to leave room for their command.
_NAMED, _FIRST = 6, 3


def told_of_canary(d: Draft) -> Draft:
    """Reports the claims of the LWS whose groups are removed, in the decision that does so."""
    canary = d.o.canary if d.swapped else d.made
    if canary is None or canary.workload.metadata.terminating or not canary.workload.replicas:
        return d
    meta = canary.workload.metadata
    stay, groups = kept(canary.workload, canary.workload.version, by_scaling=d.swapped), range(canary.workload.replicas)
    names = [*islice(stay.of(meta.name, groups), _NAMED)]
    return _tell(d, names, stay.count(len(groups)), _selecting(canary.workload, d))


def _selecting(workload: Target, d: Draft) -> str:
    """Which claims are those of a workload, for kubectl."""
    # A StatefulSet gives its claims the labels of its selector; that of a LeaderWorkerSet has its name.
    labels = workload.selector or of_workload(d.labels, workload.metadata.name, d.keys)
    return "-l " + ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def told_of_surge(d: Draft) -> Draft:
    """Reports the claims of surge groups at the end of a release."""
    if d.o.rollout.spec.strategy.style is None or not d.capacity.surges:
        return d
    meta, steps = d.stable.workload.metadata, len(d.strategy.steps)
    made = d.wanted(max(1, min(d.sub.current_step_index, steps)))
    stay, groups = kept(d.stable.workload, d.version, by_scaling=True), range(d.replicas, d.replicas + made)
    count = stay.count(made)
    names = [*islice(stay.of(meta.name, groups), _NAMED if count <= _NAMED else _FIRST)]
    if count == len(names):
        d = _tell(d, names, count, " ".join(names))
    else:
        d = _tell(d, names, count, " ".join(stay.patterns(meta.name, groups)), how=", in bash or zsh")
    return d


def _tell(d: Draft, names: Sequence[str], count: int, which: str, how: str = "") -> Draft:
    """``names`` are the first of ``count`` claims, ``which`` selects all of them for kubectl."""
    if not names:
        return d
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return d.event(
        EventReason.VOLUME_CLAIMS_KEPT,
        f"{count} PersistentVolumeClaim{'s' if count > 1 else ''} of the release's groups stay by their"
        f" retention policy, and groups of a later version would get what is in them: {', '.join(names)}"
        f"{more}. To remove them{how}: kubectl delete pvc -n {d.stable.workload.metadata.namespace} {which}",
        warning=True,
    )
