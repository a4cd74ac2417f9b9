"""The closed lists of words that conditions and events use; documentation and tests are checked against them."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why Ready, Reconciling or Stalled is what it is."""

    HEALTHY = "Healthy"
    ADOPTING = "Adopting"
    NATIVE_ROLL = "NativeRollInProgress"
    WAITING_FOR_LWS = "WaitingForLeaderWorkerSet"
    PREPARING = "Preparing"
    LOADING = "Loading"
    ROUTING = "Routing"
    DRAINING = "Draining"
    WAITING_FOR_ACCELERATORS = "WaitingForAccelerators"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    AWAITING_APPROVAL = "AwaitingApproval"
    PAUSING = "Pausing"
    PAUSED = "Paused"
    PROMOTING = "Promoting"
    GOING_BACK = "GoingBack"
    WAITING_FOR_STABLE = "WaitingForStable"
    CLEANING_UP = "CleaningUp"
    HOLD_RELEASED = "HoldReleased"
    DISABLED = "Disabled"
    TERMINATING = "Terminating"
    # Stalled
    ABORTED = "Aborted"
    WORKLOAD_NOT_FOUND = "WorkloadNotFound"
    WRONG_WORKLOAD_KIND = "WrongWorkloadKind"
    WORKLOAD_OWNED = "WorkloadOwned"
    SECOND_ROLLOUT = "SecondRollout"
    HASH_IDENTITY = "HashIdentity"
    LWS_TOO_OLD = "LeaderWorkerSetTooOld"
    NAME_TOO_LONG = "NameTooLong"
    INVALID_SPEC = "InvalidSpec"
    CLAIMS_CHANGED = "VolumeClaimTemplatesChanged"
    UNSAFE_PENDING = "UnsafePending"
    NAME_TAKEN = "CanaryNameTaken"
    SERVICE_PROBLEM = "ServiceNotUsable"
    POOL_PROBLEM = "PoolNotUsable"
    ROUTE_PROBLEM = "RouteNotUsable"
    ROUTE_CONTESTED = "RouteContested"
    PARTITION_IN_USE = "PartitionInUse"
    REVISION_MISSING = "StableRevisionMissing"
    HOLD_CONTESTED = "HoldContested"
    DEADLINE = "ProgressDeadlineExceeded"
    CAPACITY_DEADLINE = "CapacityDeadlineExceeded"
    APPROVAL_TIMEOUT = "ApprovalTimeout"
    CHURN = "GroupKeepsRestarting"
    LWS_SILENT = "LeaderWorkerSetNotActing"
    MULTIKUEUE = "ManagedByMultiKueue"
    SCALED_TO_ZERO = "ScaledToZero"
    WRITE_REFUSED = "WriteRefused"


class EventReason(StrEnum):
    """Reasons of the Events that are recorded on the Rollout or on the LeaderWorkerSet."""

    ADOPTED = "Adopted"
    HOLD_RESET = "HoldReset"
    ROUTE_RESET = "RouteReset"
    GIVEN_BACK = "GivenBack"
    UNLISTED_BACKEND = "UnlistedBackend"
    HOLD_CONTESTED = "HoldContested"
    HOLD_RELEASED = "HoldReleased"
    VERSION_WAITS = "VersionWaits"
    RELEASE_STARTED = "ReleaseStarted"
    RELEASE_REFUSED = "ReleaseRefused"
    ROLLOUT_ID_REUSED = "RolloutIDReused"
    REVISION_RENAMED = "RevisionRenamed"
    BATCH_READY = "BatchReady"
    STEP_LEFT = "StepLeft"
    SUPERSEDED = "Superseded"
    STALLED = "Stalled"
    GOING_BACK = "GoingBack"
    PROMOTING = "Promoting"
    PROMOTED = "Promoted"
    ROLLED_NATIVELY = "RolledNatively"
    COMPLETED = "Completed"
    ABORTED = "Aborted"
    ROLLED_BACK = "RolledBack"
    ACTION = "ActionTaken"
    ACTION_REFUSED = "ActionRefused"
    LEFT = "Left"


class Ending(StrEnum):
    """Why a release is being finished (``status.finalising.reason``)."""

    SUCCESS = "Success"
    ROLLBACK = "Rollback"
    ABORTED = "Aborted"
    CONTINUOUS = "Continuous"
    DISABLED = "RolloutDisabled"
    DELETED = "RolloutDeleting"
    ROLLED_NATIVELY = "RolledNatively"


class Task(StrEnum):
    """What a finishing release is doing (``status.finalising.task``); each can be repeated without harm."""

    PROMOTE = "Promote"
    GO_BACK = "GoBack"
    CLEAN_UP = "CleanUp"
