"""What the controller's own rules complain of, and at which link of the chain."""

from __future__ import annotations

from dataclasses import dataclass

from rollout_lws.cli.doctor.links import Name
from rollout_lws.rollout.decision import FieldRef
from rollout_lws.rollout.reasons import Reason

#: The link of the chain for each reason of a stalled Rollout.
PLACE: dict[Reason, Name] = {
    Reason.WRONG_WORKLOAD_KIND: Name.ROLLOUT,
    Reason.NAME_TOO_LONG: Name.ROLLOUT,
    Reason.SECOND_ROLLOUT: Name.ROLLOUT,
    Reason.INVALID_SPEC: Name.ROLLOUT,
    Reason.WRITE_REFUSED: Name.CONTROLLER,
    Reason.ACTIVE_SIDE_UNKNOWN: Name.ROLLOUT,
    Reason.STANDS_IN: Name.ROLLOUT,
    Reason.WORKLOAD_NOT_FOUND: Name.WORKLOAD,
    Reason.COUNTERPART_MISSING: Name.WORKLOAD,
    Reason.COMPANION_MISSING: Name.WORKLOAD,
    Reason.VERSION_INCOMPLETE: Name.WORKLOAD,
    Reason.ACTIVE_SIDE_EDITED: Name.WORKLOAD,
    Reason.REPLICAS_APPLIED: Name.WORKLOAD,
    Reason.LEFT_BEHIND: Name.WORKLOAD,
    Reason.WORKLOAD_OWNED: Name.WORKLOAD,
    Reason.HASH_IDENTITY: Name.WORKLOAD,
    Reason.LWS_TOO_OLD: Name.WORKLOAD,
    Reason.WORKLOAD_UNRESPONSIVE: Name.LEADER_SET,
    Reason.MULTIKUEUE: Name.WORKLOAD,
    Reason.CLAIMS_CHANGED: Name.WORKLOAD,
    Reason.UNSAFE_PENDING: Name.WORKLOAD,
    Reason.TOO_FEW_GROUPS: Name.WORKLOAD,
    Reason.SURGE_UNDER_KUEUE: Name.WORKLOAD,
    Reason.NAME_TAKEN: Name.WORKLOAD,
    Reason.PARTITION_IN_USE: Name.HOLD,
    Reason.HOLD_CONFLICT: Name.HOLD,
    Reason.REVISION_MISSING: Name.HISTORY,
    Reason.SCALED_TO_ZERO: Name.GROUPS,
    Reason.POD_STUCK_TERMINATING: Name.GROUPS,
    Reason.CHURN: Name.CONTAINERS,
    Reason.RESTARTS_EXHAUSTED: Name.CONTAINERS,
    Reason.SERVICE_PROBLEM: Name.SERVICE,
    Reason.POOL_PROBLEM: Name.SERVICE,
    Reason.ROUTE_PROBLEM: Name.ROUTE,
    Reason.ROUTE_CONFLICT: Name.ROUTE,
    Reason.AUTOSCALER_PROBLEM: Name.AUTOSCALER,
    Reason.DEADLINE: Name.RELEASE,
    Reason.CAPACITY_DEADLINE: Name.RELEASE,
    Reason.APPROVAL_TIMEOUT: Name.RELEASE,
    Reason.GATE_FAILED: Name.GATES,
    Reason.GATE_INCONCLUSIVE: Name.GATES,
    Reason.ABORTED: Name.RELEASE,
}


@dataclass(frozen=True)
class Complaint:
    """Why the controller needs a person: its reason and message, and ``field``, the one to change. ``goes_on``: the
    controller recovers by itself. ``verbs`` are our commands that resolve it.
    """

    reason: Reason
    message: str
    field: FieldRef | None = None
    goes_on: bool = False
    verbs: tuple[str, ...] = ()

    @property
    def place(self) -> Name:
        """The link of the chain."""
        return PLACE[self.reason]

    @property
    def of_strategy(self) -> bool:
        """Whether the controller rejects the Rollout's strategy."""
        return self.field is not None and not self.field.kind and self.field.path.startswith("spec.strategy")
