"""Startup time of groups: from the creation of a leader pod until its group is ready for the first time.

Measured from the watches, per group. A group that was not ready when the controller started is left out, since it may
be starting up or have failed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from rollout_lws.clock import Clock
from rollout_lws.controller.informers import OF_LWS, Informers, place
from rollout_lws.objects.workloads import Pod, StatefulSet
from rollout_lws.workload.groups import group_of


class StartupMetrics:
    """Calls ``observe`` with the seconds of each startup of a group whose LWS, or canary, a Rollout manages."""

    def __init__(self, informers: Informers, clock: Clock, observe: Callable[[float], None]) -> None:
        self._informers = informers
        self._clock = clock
        self._observe = observe
        #: UIDs of leaders whose groups have not been ready yet; groups that fail later are not included.
        self._loading: set[str] = set()
        informers.leaders.on_change(self._leader_changed)
        informers.stateful_sets.on_change(self._workers_changed)

    def _leader_changed(self, before: Pod | None, after: Pod | None) -> None:
        if before is not None and (after is None or after.metadata.uid != before.metadata.uid):
            self._loading.discard(before.metadata.uid)
            before = None
        if after is None:
            return
        if before is None and self._informers.leaders.is_synced:
            self._loading.add(after.metadata.uid)
        meta = after.metadata
        self._look(after, self._informers.stateful_sets.get(meta.namespace, meta.name), after.ready_since)

    def _workers_changed(self, _: StatefulSet | None, after: StatefulSet | None) -> None:
        if after is None:
            return
        meta = after.metadata
        leader = self._informers.leaders.get(meta.namespace, meta.name)
        if leader is not None:
            self._look(leader, after, self._clock.now())

    def _look(self, leader: Pod, workers: StatefulSet | None, moment: datetime | None) -> None:
        meta = leader.metadata
        if meta.uid not in self._loading or moment is None or meta.creation_timestamp is None:
            return
        if group_of(leader, workers).ready_since is None:
            return
        self._loading.discard(meta.uid)
        if self._is_cared_for(place(meta.namespace, leader.workload)):
            self._observe(max(0.0, (moment - meta.creation_timestamp).total_seconds()))

    def _is_cared_for(self, lws: str) -> bool:
        known = self._informers
        return bool(known.rollouts.by_index(OF_LWS, lws)) or any(
            known.rollouts.by_index(OF_LWS, place(each.metadata.namespace, each.metadata.name))
            for each in known.stable_of(lws)
        )
