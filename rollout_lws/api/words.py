"""The closed sets of words on the wire. Kruise's literals are kept letter by letter; its tools compare them."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never


class Phase(StrEnum):
    INITIAL = "Initial"
    HEALTHY = "Healthy"
    PROGRESSING = "Progressing"
    TERMINATING = "Terminating"
    DISABLING = "Disabling"
    DISABLED = "Disabled"
    ABORTED = "Aborted"


class StepState(StrEnum):
    BEFORE_STEP_UPGRADE = "BeforeStepUpgrade"
    STEP_UPGRADE = "StepUpgrade"
    STEP_TRAFFIC_ROUTING = "StepTrafficRouting"
    STEP_METRICS_ANALYSIS = "StepMetricsAnalysis"
    STEP_PAUSED = "StepPaused"
    STEP_READY = "StepReady"
    COMPLETED = "Completed"


class ConditionType(StrEnum):
    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    HELD = "Held"
    PAUSED = "Paused"
    PROGRESSING = "Progressing"
    SUCCEEDED = "Succeeded"
    TERMINATING = "Terminating"
    READY_TO_RETIRE = "ReadyToRetire"


class ProgressingReason(StrEnum):
    """Reasons of the Progressing condition, as Kruise has them."""

    INITIALIZING = "Initializing"
    IN_ROLLING = "InRolling"
    PAUSED = "Paused"
    FINALISING = "Finalising"
    CANCELLING = "Cancelling"
    COMPLETED = "Completed"


class FinalisingStep(StrEnum):
    ROUTE_TRAFFIC_TO_NEW = "FinalisingStepRouteTrafficToNew"
    ROUTE_TRAFFIC_TO_STABLE = "FinalisingStepRouteTrafficToStable"
    RESTORE_STABLE_SERVICE = "RestoreStableService"
    REMOVE_CANARY_SERVICE = "RemoveCanaryService"
    RESUME_WORKLOAD = "ResumeWorkload"
    RELEASE_WORKLOAD_CONTROL = "ReleaseWorkloadControl"
    END = "END"


class Capacity(StrEnum):
    """How groups of the new version are made before the promotion."""

    EXTRA_WORKLOAD = "ExtraWorkload"
    IN_PLACE = "InPlace"
    SURGE = "Surge"
    SHIFT = "Shift"
    PAIR = "Pair"

    @property
    def makes_workload(self) -> bool:
        """Whether new groups come in a second LeaderWorkerSet, an extra workload in OpenKruise's words."""
        match self:
            case Capacity.EXTRA_WORKLOAD | Capacity.SHIFT:
                return True
            case Capacity.IN_PLACE | Capacity.SURGE | Capacity.PAIR:
                return False
            case _:
                assert_never(self)


class Touch(StrEnum):
    """What of the objects that a Rollout names its releases write."""

    ROUTE_ONLY = "RouteOnly"
    """The route. Both workloads belong to another controller, or to the user alone."""


class Promotion(StrEnum):
    IN_PLACE = "InPlace"
    SWAP = "Swap"


class DrainUntil(StrEnum):
    """What ends the time of requests that run on groups which leave."""

    TIME = "Time"
    IDLE = "Idle"


class OnFailure(StrEnum):
    PAUSE = "Pause"
    ABORT = "Abort"


class ActionType(StrEnum):
    APPROVE = "Approve"
    JUMP = "Jump"
    ABORT = "Abort"
    RETRY = "Retry"
    PROMOTE_FULL = "PromoteFull"
    PAUSE = "Pause"
    RESUME = "Resume"
    SKIP_GATE = "SkipGate"
    START = "Start"


class FigureSource(StrEnum):
    """Where figures of model servers come from."""

    PODS = "Pods"
    PROMETHEUS = "Prometheus"


class ScalingWait(StrEnum):
    """What a number of groups waits for."""

    RELEASE_END = "ReleaseEnd"
    """An autoscaler asked for it, and it would work against the release that is on."""
    NOTHING_PENDING = "NothingPending"
    """It is 0, and a pending version would take effect by itself."""


class GateStage(StrEnum):
    """When in a step a gate is asked."""

    BEFORE_TRAFFIC = "BeforeTraffic"
    DURING_STEP = "DuringStep"


class GateResult(StrEnum):
    """How a gate ended. Only Failed is the version's fault, and only Passed and Skipped let a step go on."""

    PASSED = "Passed"
    FAILED = "Failed"
    INCONCLUSIVE = "Inconclusive"
    ERROR = "Error"
    SKIPPED = "Skipped"


class SummaryState(StrEnum):
    """What ``kubectl get`` shows under STATUS."""

    HEALTHY = "Healthy"
    ADOPTING = "Adopting"
    PREPARING = "Preparing"
    LOADING = "Loading"
    ROUTING = "Routing"
    AWAITING_APPROVAL = "AwaitingApproval"
    ANALYZING = "Analyzing"
    PAUSING = "Pausing"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    WAITING_FOR_ACCELERATORS = "WaitingForAccelerators"
    PROMOTING = "Promoting"
    ROLLING_BACK = "RollingBack"
    ABORTED = "Aborted"
    STALLED = "Stalled"
    PAUSED = "Paused"
    HOLD_RELEASED = "HoldReleased"
    DISABLED = "Disabled"
    TERMINATING = "Terminating"


class AnsweredBy(StrEnum):
    """Whose ready leaders requests can reach, while no group of either version is ready as a whole."""

    STABLE = "Stable"
    NEW = "New"
    BOTH = "Both"
    NEITHER = "Neither"


class BatchReleasePhase(StrEnum):
    PREPARING = "Preparing"
    PROGRESSING = "Progressing"
    FINALIZING = "Finalizing"
    COMPLETED = "Completed"


class BatchState(StrEnum):
    UPGRADING = "Upgrading"
    VERIFYING = "Verifying"
    READY = "Ready"
