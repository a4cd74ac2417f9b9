"""Turns events of a decision into Events on their object: the Rollout, or the LWS that its users look at."""

from __future__ import annotations

from dataclasses import dataclass

from rollout_lws.api.resources import rollouts
from rollout_lws.kube.events import EventRecorder
from rollout_lws.rollout.decision import ReleaseEvent
from rollout_lws.rollout.observation import Observation


@dataclass(frozen=True, slots=True)
class Events:
    recorder: EventRecorder

    def record(self, event: ReleaseEvent, seen: Observation) -> None:
        """Queue an Event; one about an LWS that does not exist goes to the Rollout instead."""
        workload = seen.stable.workload if seen.stable is not None else None
        if workload is not None and event.about == workload.resource.kind:
            resource, meta = workload.resource, workload.metadata
            self.recorder.record(resource, meta, type=event.type, reason=event.reason, note=event.note)
            return
        self.recorder.record(
            rollouts(seen.keys.group), seen.rollout.metadata, type=event.type, reason=event.reason, note=event.note
        )

    async def close(self) -> None:
        await self.recorder.close()
