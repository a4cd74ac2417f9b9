"""Write conflicts on a selector or route: restored once, then backed off and reported with the field manager."""

from __future__ import annotations

from rollout_lws.api import TrafficRecord
from rollout_lws.objects.resources import ObjectRef
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.rollout.refusal import FieldRef
from rollout_lws.rollout.routing.route_result import Routed
from rollout_lws.rollout.write_conflicts import Managed, judged
from rollout_lws.traffic.registry import SPECS
from rollout_lws.traffic.split import Object

_MANAGED = Managed(
    ("selector", *(member for spec in SPECS for member in spec.members)),
    tuple(spec.annotations for spec in SPECS if spec.annotations),
)


def answer(d: Draft, live: Object | None, ref: ObjectRef, advice: str) -> tuple[Draft, Routed | None]:
    """Records that the object was overwritten or deleted (``live`` is None then); None to restore it now, else why that
    waits.
    """
    record = d.status.traffic or TrafficRecord()
    d, conflicts, wait = judged(d, record.conflicts, live, ref, _MANAGED, advice, EventReason.ROUTE_RESET)
    if wait is not None:
        return d, Routed(False, wait.message, contested=True, field=FieldRef("spec", ref.kind, ref.name))
    return d.set(traffic=record.model_copy(update={"conflicts": conflicts})), None
