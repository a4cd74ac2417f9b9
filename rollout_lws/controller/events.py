"""Turns notices into Events on the object that they are about: the Rollout, or the LWS that its users look at."""

from __future__ import annotations

from dataclasses import dataclass

from rollout_lws.api.resources import rollouts
from rollout_lws.kube.events import EventRecorder
from rollout_lws.rollout.decision import Notice
from rollout_lws.rollout.observation import Observation


@dataclass(frozen=True, slots=True)
class Events:
    recorder: EventRecorder

    def record(self, notice: Notice, seen: Observation) -> None:
        """Queue an Event; one about an LWS that does not exist goes to the Rollout instead."""
        workload = seen.stable.workload if seen.stable is not None else None
        if workload is not None and notice.about == workload.resource.kind:
            resource, meta = workload.resource, workload.metadata
            self.recorder.record(resource, meta, type=notice.type, reason=notice.reason, note=notice.note)
            return
        self.recorder.record(
            rollouts(seen.keys.group), seen.rollout.metadata, type=notice.type, reason=notice.reason, note=notice.note
        )

    async def close(self) -> None:
        await self.recorder.close()
