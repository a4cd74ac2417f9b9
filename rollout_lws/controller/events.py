"""Turns events of a decision into Events on their object, the Rollout or the LWS that its users look at, and into
notifications.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from pydantic import ValidationError

from rollout_lws.api import Rollout
from rollout_lws.api.resources import rollouts
from rollout_lws.clock import Clock
from rollout_lws.kube.events import EventRecorder
from rollout_lws.logs import fields
from rollout_lws.notifications.outbox import Notifications
from rollout_lws.notifications.transition import Transition
from rollout_lws.rollout.decision import ReleaseEvent, Verdict
from rollout_lws.rollout.observation import Observation

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Published:
    """An event of a decision that was carried out as far as it tells. ``seen`` is what was decided on, ``verdict`` what
    the decision came to, ``body`` the Rollout as it stands since, as JSON.
    """

    event: ReleaseEvent
    seen: Observation
    verdict: Verdict | None
    body: bytes


@dataclass(frozen=True, slots=True)
class Events:
    """``notifications`` are of the Events that are news: a reader of Events and a receiver are told the same."""

    recorder: EventRecorder
    clock: Clock
    notifications: Notifications

    def record(self, published: Published) -> None:
        """Queue an Event; one about an LWS that does not exist goes to the Rollout instead."""
        event, seen = published.event, published.seen
        workload = seen.stable.workload if seen.stable is not None else None
        told = {"type": event.type, "reason": event.reason, "note": event.note}
        if workload is not None and event.about == workload.resource.kind:
            about, news = workload.metadata.name, self.recorder.record(workload.resource, workload.metadata, **told)
        else:
            meta = seen.rollout.metadata
            about, news = meta.name, self.recorder.record(rollouts(seen.keys.group), meta, **told)
        if news and self.notifications.outboxes:
            self._notify(published, about)

    def _notify(self, published: Published, about: str) -> None:
        seen = published.seen
        try:
            rollout = Rollout.model_validate_json(published.body)
        except ValidationError:
            # The API server answered our write with what its CRD lets pass; the next reconcile reports that.
            rollout = seen.rollout
        transition = Transition(
            published.event,
            about,
            rollout,
            seen.rollout.metadata.resource_version,
            published.verdict,
            self.clock.now(),
            seen.keys.group,
            self.notifications.cluster,
        )
        try:
            self.notifications.tell(transition)
        except Exception:
            # Whatever is wrong with what is told, the release goes on.
            place = {"namespace": rollout.metadata.namespace, "rollout": rollout.metadata.name}
            log.exception("notification failed", extra=fields(**place, reason=published.event.reason))

    async def close(self) -> None:
        await asyncio.gather(self.recorder.close(), self.notifications.close())
