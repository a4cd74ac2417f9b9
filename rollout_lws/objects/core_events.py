"""Event (v1) of a StatefulSet that cannot create a pod: only these Events say why."""

from __future__ import annotations

from datetime import UTC, datetime

from rollout_lws.objects.meta import Meta, Struct

#: Reason of Events of a StatefulSet that cannot create its pods.
FAILED_CREATE = "FailedCreate"


class InvolvedObject(Struct, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Series(Struct, frozen=True):
    last_observed_time: datetime | None = None


class CoreEvent(Struct, frozen=True):
    metadata: Meta
    reason: str = ""
    message: str = ""
    involved_object: InvolvedObject = InvolvedObject()
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: Series | None = None

    @property
    def moment(self) -> datetime:
        """The last occurrence, whichever client recorded it."""
        series = self.series.last_observed_time if self.series else None
        moments = (series, self.last_timestamp, self.event_time, self.metadata.creation_timestamp)
        return max((each for each in moments if each is not None), default=datetime.min.replace(tzinfo=UTC))
