"""The closed lists of reasons in conditions and events; documentation and tests are checked against them."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Reasons of the conditions Ready, Reconciling and Stalled.

    One that lasts until the user acts has the command line's verbs that end it, the usual one first; () if the user has
    to change another object or the spec, which the message names. All other reasons resolve by themselves.
    """

    _value_: str
    needs_person: bool
    verbs: tuple[str, ...]

    def __new__(cls, word: str, verbs: tuple[str, ...] | None = None) -> Reason:
        reason = str.__new__(cls, word)
        reason._value_, reason.needs_person, reason.verbs = word, verbs is not None, verbs or ()
        return reason

    HEALTHY = "Healthy"
    ADOPTING = "Adopting"
    NATIVE_ROLLOUT = "NativeRolloutInProgress"
    WAITING_FOR_WORKLOAD = "WaitingForWorkload"
    SCALING_TO_ZERO = "ScalingToZero"
    PREPARING = "Preparing"
    LOADING = "Loading"
    ROUTING = "Routing"
    DRAINING = "Draining"
    WAITING_FOR_ACCELERATORS = "WaitingForAccelerators"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    AWAITING_APPROVAL = "AwaitingApproval", ("promote", "abort")
    ANALYZING = "Analyzing"
    PAUSING = "Pausing"
    PAUSED = "Paused", ("resume",)
    PROMOTING = "Promoting"
    ROLLING_BACK = "RollingBack"
    WAITING_FOR_STABLE = "WaitingForStable"
    CLEANING_UP = "CleaningUp"
    HOLD_RELEASED = "HoldReleased", ()
    DISABLED = "Disabled"
    TERMINATING = "Terminating"
    # Stalled
    ABORTED = "Aborted", ("retry", "undo")
    WORKLOAD_NOT_FOUND = "WorkloadNotFound", ()
    WRONG_WORKLOAD_KIND = "WrongWorkloadKind", ()
    WORKLOAD_OWNED = "WorkloadOwned", ()
    SECOND_ROLLOUT = "SecondRollout", ()
    HASH_IDENTITY = "HashIdentity", ()
    LWS_TOO_OLD = "LeaderWorkerSetTooOld", ()
    NAME_TOO_LONG = "NameTooLong", ()
    INVALID_SPEC = "InvalidSpec", ()
    CLAIMS_CHANGED = "VolumeClaimTemplatesChanged", ()
    UNSAFE_PENDING = "UnsafePending", ()
    TOO_FEW_GROUPS = "TooFewGroups", ()
    SURGE_UNDER_KUEUE = "SurgeUnderKueue", ()
    NAME_TAKEN = "CanaryNameTaken", ()
    SERVICE_PROBLEM = "ServiceNotUsable", ()
    POOL_PROBLEM = "PoolNotUsable", ()
    ROUTE_PROBLEM = "RouteNotUsable", ()
    ROUTE_CONFLICT = "RouteConflict", ()
    AUTOSCALER_PROBLEM = "AutoscalerNotUsable", ()
    PARTITION_IN_USE = "PartitionInUse", ()
    REVISION_MISSING = "StableRevisionMissing", ()
    HOLD_CONFLICT = "HoldConflict", ()
    DEADLINE = "ProgressDeadlineExceeded", ("abort", "retry")
    CAPACITY_DEADLINE = "CapacityDeadlineExceeded", ("abort", "retry")
    APPROVAL_TIMEOUT = "ApprovalTimeout", ("promote", "abort")
    CHURN = "GroupKeepsRestarting", ("abort", "retry")
    RESTARTS_EXHAUSTED = "GroupRestartsExhausted", ("abort", "retry")
    GATE_FAILED = "GateFailed", ("abort", "retry", "skip")
    GATE_INCONCLUSIVE = "GateInconclusive", ("retry", "skip", "abort")
    WORKLOAD_UNRESPONSIVE = "WorkloadUnresponsive", ()
    POD_STUCK_TERMINATING = "PodStuckTerminating", ()
    COUNTERPART_MISSING = "CounterpartMissing", ()
    COMPANION_MISSING = "CompanionMissing", ()
    VERSION_INCOMPLETE = "VersionIncomplete", ("start",)
    ACTIVE_SIDE_EDITED = "ActiveSideEdited", ()
    LEFT_BEHIND = "SelectedByName", ()
    STANDS_IN = "StandInServes", ("home",)
    REPLICAS_APPLIED = "ReplicasApplied", ()
    ACTIVE_SIDE_UNKNOWN = "ActiveSideUnknown", ()
    MULTIKUEUE = "ManagedByMultiKueue", ()
    SCALED_TO_ZERO = "ScaledToZero", ()
    WRITE_REFUSED = "WriteRefused"


class EventReason(StrEnum):
    """Reasons of Events on the Rollout or the LeaderWorkerSet."""

    ADOPTED = "Adopted"
    HOLD_RESET = "HoldReset"
    ROUTE_RESET = "RouteReset"
    AUTOSCALER_RESET = "AutoscalerReset"
    SCALED = "Scaled"
    REPLICAS_RESET = "ReplicasReset"
    RESTORED = "Restored"
    UNMANAGED_BACKEND = "UnmanagedBackend"
    SHARED_BACKEND = "SharedBackend"
    HOLD_CONFLICT = "HoldConflict"
    HOLD_RELEASED = "HoldReleased"
    UPDATE_HELD = "UpdateHeld"
    RELEASE_STARTED = "ReleaseStarted"
    RELEASE_REFUSED = "ReleaseRefused"
    ROLLOUT_ID_REUSED = "RolloutIDReused"
    REVISION_RENAMED = "RevisionRenamed"
    BATCH_READY = "BatchReady"
    GATE_PASSED = "GatePassed"
    GATE_FAILED = "GateFailed"
    GATE_INCONCLUSIVE = "GateInconclusive"
    GATE_SKIPPED = "GateSkipped"
    STEP_CHANGED = "StepChanged"
    SUPERSEDED = "Superseded"
    STALLED = "Stalled"
    ROLLING_BACK = "RollingBack"
    PROMOTING = "Promoting"
    PROMOTED = "Promoted"
    ROLLED_OUT_NATIVELY = "RolledOutNatively"
    VOLUME_CLAIMS_KEPT = "VolumeClaimsKept"
    COMPLETED = "Completed"
    ABORTED = "Aborted"
    ROLLED_BACK = "RolledBack"
    ACTION = "ActionTaken"
    ACTION_REFUSED = "ActionRefused"
    DETACHED = "Detached"
    NOT_ADMITTED_BY_KUEUE = "NotAdmittedByKueue"
    PODS_ON_MANAGER_CLUSTER = "PodsOnManagerCluster"


class Ending(StrEnum):
    """Why a release ends (``status.finalising.reason``)."""

    SUCCESS = "Success"
    ROLLBACK = "Rollback"
    ABORTED = "Aborted"
    CONTINUOUS = "Continuous"
    DISABLED = "RolloutDisabled"
    DELETED = "RolloutDeleting"
    ROLLED_OUT_NATIVELY = "RolledOutNatively"


class Task(StrEnum):
    """The current task of an ending release (``status.finalising.task``); each is idempotent."""

    PROMOTE = "Promote"
    ROLL_BACK_STEPS = "RollBackSteps"
    ROLL_BACK_PROMOTION = "RollBackPromotion"
    CLEAN_UP = "CleanUp"


class Outcome(StrEnum):
    """The result of a requested action (``status.lastAction.outcome``)."""

    DONE = "Done"
    REFUSED = "Refused"
