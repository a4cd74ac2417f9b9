"""What we tell: Rollout.status, Kruise's fields and literals counted in groups, and what a release must remember.

Nothing that has to survive a restart of the controller lives anywhere else.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from rollout_lws.api.base import Metadata, MicroTime, Model, Percent, Tally, Time
from rollout_lws.api.rollout_spec import RolloutSpec
from rollout_lws.api.words import ActionType, Capacity, GateResult, Phase, ScalingWait, StepState
from rollout_lws.objects.scaling import weight_text


class Condition(Model):
    """One aspect of the state; conditions are a map-list keyed by type."""

    always: ClassVar[frozenset[str]] = frozenset({"type", "status", "reason", "message"})

    type: str
    """Ready, Reconciling, Stalled, Held, Paused, Progressing, Succeeded or Terminating."""
    status: str
    """True, False or Unknown."""
    reason: str = ""
    """One word of a closed list."""
    message: str = ""
    """One sentence: what, who is affected, what happens by itself, the next command."""
    observed_generation: int | None = None
    """The Rollout's generation that this was judged at."""
    last_transition_time: Time | None = None
    """When status changed last."""
    last_update_time: Time | None = None
    """When anything of this condition changed last."""


class FieldReference(Model):
    """A field that a person would change."""

    kind: str | None = None
    """Kind of the object; absent for the Rollout itself."""
    name: str | None = None
    """Name of the object, in the Rollout's namespace; absent for the Rollout itself."""
    path: str | None = None
    """Path of the field in it; absent for the object as a whole."""


class VerdictRecord(Model):
    """Which of the conditions Ready, Reconciling and Stalled is true, and why."""

    always: ClassVar[frozenset[str]] = frozenset({"condition", "reason"})

    condition: str
    """Ready, Reconciling or Stalled."""
    reason: str
    """The condition's reason."""
    since: MicroTime | None = None
    """Since when that is the reason."""
    goes_on: bool | None = None
    """Whether the controller goes on by itself though the condition is Stalled; absent: it does not."""
    field: FieldReference | None = None
    """What a person would change; absent where nothing in particular is to be changed."""


class SubStatus(Model):
    """Kruise's canaryStatus and blueGreenStatus, as far as they are alike. Counts are groups."""

    always: ClassVar[frozenset[str]] = frozenset(
        {"podTemplateHash", "currentStepIndex", "nextStepIndex", "finalisingStep", "currentStepState"}
    )

    observed_workload_generation: int | None = None
    """Generation of the LWS that was judged last."""
    observed_rollout_id: Annotated[str | None, Field(alias="observedRolloutID")] = None
    """Id of the release, as in status.observedRolloutID."""
    rollout_hash: str | None = None
    """Hash of the plan that is being followed."""
    stable_revision: str | None = None
    """LWS's revision of the stable version."""
    pod_template_hash: str = ""
    """LWS's revision of the version being released."""
    current_step_index: int = 0
    """The step that is on, from 1; 0 before any release."""
    next_step_index: int = -1
    """The step after it, -1 at the end. Another number from 1 to n is a jump."""
    finalising_step: str = ""
    """Kruise's word for the task at the end of a release."""
    current_step_state: str = StepState.COMPLETED.value
    """State of the step. StepReady, written by a person while the step is paused, approves it."""
    message: str | None = None
    """One sentence about now."""
    last_update_time: Time | None = None
    """When step or state changed last."""
    replicas: int | None = None
    """Groups that exist, of both versions."""
    ready_replicas: int | None = None
    """Of these, ready."""
    updated_replicas: int | None = None
    """Groups of the new version; at rest, of the stable one."""
    updated_ready_replicas: int | None = None
    """Of these, ready."""

    #: What the style calls LWS's revision of the version being released.
    revision_field: ClassVar[str] = ""

    @property
    def new_revision(self) -> str:
        """LWS's revision of the version being released, whatever the style calls it; "" before any release."""
        return getattr(self, self.revision_field, None) or ""

    def of(self, kind: type[SubStatus]) -> SubStatus:
        """The same in the words of another style."""
        if type(self) is kind:
            return self
        common = {name: getattr(self, name) for name in SubStatus.model_fields}
        words: dict[str, Any] = {**common, kind.revision_field: self.new_revision or None}
        return kind(**words)


class CanaryStatus(SubStatus):
    """Kruise's canaryStatus. Counts are groups."""

    revision_field: ClassVar[str] = "canary_revision"

    canary_revision: str | None = None
    """LWS's revision of the version being released."""
    canary_replicas: int | None = None
    """Groups in the canary LWS."""
    canary_ready_replicas: int | None = None
    """Of these, ready."""


class BlueGreenStatus(SubStatus):
    """Kruise's blueGreenStatus. Counts are groups."""

    revision_field: ClassVar[str] = "updated_revision"

    updated_revision: str | None = None
    """LWS's revision of the version being released."""


class StableRecord(Model):
    """The version that serves."""

    template_hash: str
    """Our hash of its template and network configuration."""
    revision: str = ""
    """LWS's template-revision-hash of it."""
    workload_uid: Annotated[str, Field(alias="workloadUID")] = ""
    """UID of the LWS; another UID is a fresh adoption."""


class KeptGroups(Model):
    """The groups that gave up the requests when the roles changed, and stay for scaleDownDelaySeconds."""

    template_hash: str
    """The version that they run."""
    since: MicroTime | None = None
    """Since when nothing but the delay keeps them; absent while the release goes on."""


class AbortedRecord(Model):
    """The version that was aborted last; applied again it stays aborted until it is retried."""

    template_hash: str
    """Our hash of it."""
    revision: str | None = None
    """LWS's revision of it."""
    release_id: str | None = None
    """Id of the release."""
    at: MicroTime | None = None
    """When."""
    reason: str | None = None
    """Why, in a word or a person's words."""
    message: str | None = None
    """Why, in a sentence."""


class StepRecord(Model):
    """The step that is on."""

    started_at: MicroTime | None = None
    """When it began."""
    routed_at: MicroTime | None = None
    """When its traffic was routed; without routing, when its groups were ready."""
    paused_at: MicroTime | None = None
    """When its pause began."""
    halted_at: MicroTime | None = None
    """Since when the release is paused while gates are measured, whose deadlines stand still; absent otherwise."""
    best_ready: Tally | None = None
    """Most groups that were ready in it."""
    best_ready_at: MicroTime | None = None
    """When that was reached; the deadline runs from here."""
    waiting_since: MicroTime | None = None
    """Since when it waits for room or quota; a wait of 5 s or longer has the deadline run anew."""
    partition_attempts: Annotated[dict[str, Tally], Field(max_length=10_000)] | None = None
    """Windows opened by ordinal of the group."""


class GateRecord(Model):
    """A gate of the step that is on, or of the release. Values are texts with their unit, like those of limits."""

    always: ClassVar[frozenset[str]] = frozenset({"name"})

    name: str
    """Name of the gate."""
    hash: str = ""
    """Hash of what it asks."""
    result: GateResult | None = None
    """Passed, Failed, Inconclusive, Error or Skipped; absent while it is measured."""
    since: MicroTime | None = None
    """Since when it is measured."""
    finished_at: MicroTime | None = None
    """When the result was there, or when the release went on without one."""
    halted: Tally | None = None
    """Seconds for which the release was paused meanwhile, which its deadline leaves out."""
    value: str | None = None
    """The new version's value."""
    stable_value: str | None = None
    """The stable version's value; absent unless the limit depends on it."""
    limit: str | None = None
    """The limit that stands."""
    samples: Tally | None = None
    """Completed requests of the new version, readings of a gauge."""
    stable_samples: Tally | None = None
    """The same of the stable version; absent unless the limit depends on it."""
    share: str | None = None
    """Share of the new version's requests that were slow or failed; absent where no share decides."""
    share_from: str | None = None
    """The least that this share may be, by the requests that were counted."""
    share_to: str | None = None
    """The most that it may be."""
    share_limit: str | None = None
    """The share that the limit allows."""
    message: str | None = None
    """Why, in a sentence."""
    query: str | None = None
    """The query as it was last sent, of a gate that asks one."""
    by: str | None = None
    """Who skipped it."""
    job: str | None = None
    """The Job that was made for it."""


class GateJobRecord(Model):
    """A Job that was made for a gate, and has not been deleted."""

    always: ClassVar[frozenset[str]] = frozenset({"name"})

    name: str
    """Name of the Job."""
    ended: bool | None = None
    """It has ended or was stopped; absent before."""
    earlier: bool | None = None
    """It is of an earlier release, and is being deleted; absent before."""


class FinalisingRecord(Model):
    """The end of a release."""

    reason: str
    """Why it ends."""
    task: str
    """What is being done."""
    since: MicroTime | None = None
    """Since when."""
    best_ready: Tally | None = None
    """Most groups of the version that ends up serving that were ready in it."""
    best_ready_at: MicroTime | None = None
    """When that was reached; the deadline runs from here."""


class RestartRecord(Model):
    """A leader that was seen; many of one group mean that it keeps being rebuilt."""

    workload: str
    """Name of its LWS."""
    group: str
    """Index of the group."""
    uid: str
    """UID of its leader pod."""
    at: MicroTime | None = None
    """When it was first seen."""
    pod: str | None = None
    """Name of the pod of its group of which a container failed last."""
    container: str | None = None
    """Name of that container."""
    message: str | None = None
    """What the kubelet said of it."""


class EvictionRecord(Model):
    """How often Kueue had given a group up before the release renewed it; that is not the new version's failure."""

    workload: str
    """UID of the group's Workload."""
    count: Tally
    """Evictions by waitForPodsReady."""


class UnadmittedGroup(Model):
    """A group that runs outside of Kueue's quota; it was told of in an event."""

    group: str
    """Index of the group."""
    uid: str
    """UID of its leader pod."""


class HoldConflict(Model):
    """Another field manager reset the hold."""

    at: MicroTime | None = None
    """When that was seen."""
    manager: str = ""
    """Field manager that wrote it."""
    put_back_at: MicroTime | None = None
    """When the hold was put back; absent while it is left as it is."""
    template_hash: str | None = None
    """Version that the workload asked for then."""
    workload: str | None = None
    """Name of the companion; absent of the workload itself."""


class WriteConflict(Model):
    """Another field manager changed what a release had written in a Service, pool, route or autoscaler."""

    at: MicroTime | None = None
    """When that was seen."""
    manager: str = ""
    """Field manager that wrote it."""
    kind: str = ""
    """Kind of the object that was written over."""
    name: str = ""
    """Its name."""


class TrafficWeight(Model):
    """How requests are divided between the versions."""

    always: ClassVar[frozenset[str]] = frozenset({"weight"})

    weight: Percent = 0
    """Percent of requests that go to the new version."""
    matches: Tally | None = None
    """The step's matches: requests that fit one go to the new version whatever the weight is. Absent for none."""

    @property
    def text(self) -> str:
        """The weight as messages and kubectl show it, like 20% and 1 match."""
        return weight_text(self.weight, self.matches or 0)


class TrafficRecord(Model):
    """What routers were asked for, and what they accepted."""

    desired: TrafficWeight | None = None
    """Weight that was written."""
    applied: TrafficWeight | None = None
    """Weight that routers accepted last."""
    message: str | None = None
    """Why they differ."""
    step: Tally | None = None
    """Step whose share is desired; absent or 0: everything goes to the stable version."""
    since: MicroTime | None = None
    """When the applied share was accepted, or the first one written; grace and drain run from here."""
    listed_at: MicroTime | None = None
    """When a route was last made to name the new version's backend with weight 0 after the release's begin, because it
    could not be written then or has lost the backend.
    """
    conflicts: tuple[WriteConflict, ...] = ()
    """Foreign writes over ours, newest last."""
    stable_drained_at: MicroTime | None = None
    """Since when all requests go to the canary while stable groups are renewed."""
    last_pod_gone_at: MicroTime | None = None
    """Since when no pod of the version that left gets requests; pickers of pools get their grace from here."""
    answered_by: str | None = None
    """While no group of either version is ready as a whole: whose ready leaders requests can reach, ``Stable``,
    ``New``, ``Both`` or ``Neither``. Absent while one is.
    """
    unanswered: MicroTime | None = None
    """When a version lost its requests last because the endpoint picker of its pool did not answer."""
    unmanaged_backends: tuple[str, ...] = ()
    """Services, pools, budgets and workloads besides that requests of the release meet; events told of them."""


class AutoscalersRecord(Model):
    """HorizontalPodAutoscalers of the LWS may carry bounds of a release; gone when they have been restored."""

    since: MicroTime | None = None
    """When this was put on record."""
    held: tuple[str, ...] = ()
    """Names of those whose bounds were written."""
    conflicts: tuple[WriteConflict, ...] = ()
    """Foreign writes over ours, newest last."""


class WaitingReplicas(Model):
    """A number of groups that waits."""

    replicas: Tally = 0
    """The number."""
    waits_for: ScalingWait | None = None
    """What it waits for."""
    by_autoscaler: bool | None = None
    """Whether an autoscaler has named the Rollout since it was asked for."""


class ScalingRecord(Model):
    """What spec.replicas has asked of the workload; absent without spec.replicas."""

    workload_uid: Annotated[str | None, Field(alias="workloadUID")] = None
    """The workload that it was asked of."""
    replicas: Tally | None = None
    """Groups that the workload was asked for last."""
    seen: bool | None = None
    """Whether the workload has had that number: another one is another client's then."""
    waiting: WaitingReplicas | None = None
    """A number that waits; absent if spec.replicas was asked for."""
    version: str | None = None
    """Template hash of the stable version when the workload had that number last."""
    tries: Tally | None = None
    """How often writing the number was tried lately."""
    tried_at: MicroTime | None = None
    """When it was tried last."""


class Summary(Model):
    """What kubectl get shows, a column each."""

    state: str = ""
    """One word of a closed list, STATUS of kubectl get."""
    step: str | None = None
    """Current step of all, like 2/5."""
    traffic: str | None = None
    """Share of the new version."""
    new: str | None = None
    """Groups of the new version, ready of existing."""
    stable: str | None = None
    """Groups of the stable version, ready of existing."""
    accelerators: Tally | None = None
    """Accelerators held by all groups; pods that are gated or fit on no node hold none."""
    new_accelerators: Tally | None = None
    """Those of them that groups of the new version hold."""
    since: MicroTime | None = None
    """Since when the state is this."""


class GroupCount(Model):
    """Groups of one version."""

    always: ClassVar[frozenset[str]] = frozenset({"ready", "total"})

    ready: Tally = 0
    """Groups that are ready."""
    total: Tally = 0
    """Groups that exist or are being made."""

    @property
    def text(self) -> str:
        """The count as kubectl shows it, like 3/4."""
        return f"{self.ready}/{self.total}"


class GroupCounts(Model):
    """Groups of both versions."""

    stable: GroupCount | None = None
    """Of the stable version; absent while the workload does not exist."""
    new: GroupCount | None = None
    """Of the version being released; absent while no release is on."""


class CompanionStatus(Model):
    """One companion of a pair: its workloads' names, and their groups."""

    always: ClassVar[frozenset[str]] = frozenset({"active", "inactive"})

    active: str
    """Name of the workload that serves with the active side."""
    inactive: str
    """Name of the one on the other side."""
    groups: GroupCounts = GroupCounts()
    """Groups of both; those of the inactive one while a release is on."""


class CompleteVersion(Model):
    """A version that all workloads of a side had."""

    template_hash: str
    """Our hash of it."""
    release_id: Annotated[str | None, Field(alias="releaseID")] = None
    """The rollout-id that all of them carried; absent without one. It starts no release any more."""


class ArrivingVersion(Model):
    """A version that has not been applied to all workloads of a side yet."""

    template_hash: str
    """What they have together now."""
    since: MicroTime | None = None
    """Since when they have that."""


class NotReadyGroup(Model):
    """A group that is not ready, with the pod and container to blame."""

    workload: str
    """Name of its LWS."""
    group: str
    """Index of the group."""
    pod: str | None = None
    """Name of the pod to blame; absent where it is not one pod's."""
    container: str | None = None
    """Name of its container to blame; absent where it is not one container's."""
    previous_logs: bool | None = None
    """Whether the container has ended before: what it said then is in kubectl logs --previous."""
    reason: str
    """One word, the kubelet's or scheduler's own where there is one."""
    message: str
    """Pod, container and what was said of it."""


class RequestedAction(Model):
    """What a person wants done; the controller does it, removes it and files it in lastAction."""

    type: ActionType
    """Approve, Jump, Abort, Retry, PromoteFull, Pause, Resume, SkipGate or Start."""
    id: str
    """Any text; an id that was filed is never run again."""
    to_step: int | None = None
    """Step to jump to."""
    force: bool | None = None
    """Abort without waiting for routers."""
    gate: str | None = None
    """Name of the gate to skip."""
    by: str | None = None
    """Who asks."""
    at: MicroTime | None = None
    """When it was asked."""
    reason: str | None = None
    """Why."""
    template_hash: str | None = None
    """Refused when another version is being released."""
    step: int | None = None
    """Refused when another step is on."""


class LastAction(RequestedAction):
    """A request that was carried out or refused, as it was made, and how it ended."""

    outcome: str = ""
    """Done or Refused."""
    message: str | None = None
    """Why it was refused."""
    finished_at: MicroTime | None = None
    """When it was done or refused."""


class TimelineEntry(Model):
    """What a release did from a moment on, until the next entry."""

    at: Time
    """Since when."""
    step: Tally | None = None
    """The step; absent once the steps are over."""
    state: str
    """State of the step, as in currentStepState; then the task, as in finalising.task; at last Completed."""
    desired: Percent | None = None
    """Percent of requests that was asked for, as in traffic.desired; absent where no traffic is shared."""
    applied: Percent | None = None
    """Percent that routers had accepted, as in traffic.applied."""
    new: Tally | None = None
    """Groups of the new version that were ready; absent at the end."""
    stable: Tally | None = None
    """Groups of the stable version that were ready."""


class RolloutStatus(Model):
    """The truth about a release, for people, pipelines and GitOps."""

    always: ClassVar[frozenset[str]] = frozenset({"currentStepIndex", "currentStepState"})

    observed_generation: int | None = None
    """The Rollout's generation that was judged last."""
    phase: Phase | None = None
    """Initial, Healthy, Progressing, Aborted, Terminating, Disabling or Disabled."""
    message: str | None = None
    """One sentence about now."""
    current_step_index: int = 0
    """As in the sub-status."""
    current_step_state: str = StepState.COMPLETED.value
    """As in the sub-status."""
    verdict: VerdictRecord | None = None
    """What the last decision came to."""
    conditions: tuple[Condition, ...] = ()
    """Ready, Reconciling, Stalled (kstatus), Held, Paused, Progressing, Succeeded, Terminating; of a pair also
    ReadyToRetire.
    """
    canary_status: CanaryStatus | None = None
    """Kruise's sub-status of a canary."""
    blue_green_status: BlueGreenStatus | None = None
    """Kruise's sub-status of a blue-green release."""
    stable: StableRecord | None = None
    """The version that serves."""
    active: str | None = None
    """Of a pair: name of the workload that requests go to at rest, and from which a release moves them. With promotion
    Swap and capacity Shift: name of the workload that a release has made, while it serves.
    """
    inactive_hash: str | None = None
    """Of a pair: version of the other workload that is not released by itself, because it was there at adoption, or
    before the last release.
    """
    complete: CompleteVersion | None = None
    """Of a pair with companions: what all workloads of the other side had last, at rest or in a release."""
    arriving: ArrivingVersion | None = None
    """Of a pair with companions: the version of the other side that waits to be complete; absent otherwise."""
    companions: Annotated[tuple[CompanionStatus, ...], Field(max_length=4)] = ()
    """Of a pair: its companions, by name."""
    companion_resets: Annotated[tuple[HoldConflict, ...], Field(max_length=64)] = ()
    """Resets of the hold of companions by other field managers, as long as they count."""
    start_requested: bool | None = None
    """Of a pair: that version is to be released all the same, by a request to start; absent once it is over. With
    promotion Swap and capacity Shift: requests are to go to the workload of workloadRef, whatever version it has.
    """
    kept: KeptGroups | None = None
    """With scaleDownDelaySeconds: groups of the version before, until they go."""
    aborted: AbortedRecord | None = None
    """The version that was aborted last."""
    observed_workload_generation: int | None = None
    """Generation of the LWS at the last verdict."""
    observed_template_hash: str | None = None
    """Version that was judged last: released, equal to stable, refused or aborted."""
    observed_rollout_id: Annotated[str | None, Field(alias="observedRolloutID")] = None
    """Id of the release that was judged last; a gate waits for its own id here, then for Ready."""
    capacity: Capacity | None = None
    """How the release that is on makes its groups."""
    step: StepRecord | None = None
    """The step that is on."""
    gates: Annotated[tuple[GateRecord, ...], Field(max_length=64)] = ()
    """Gates of the step that is on, once they are asked; the last step's until another release begins."""
    release_gates: Annotated[tuple[GateRecord, ...], Field(max_length=64)] = ()
    """Gates of the release, once they are asked; the last release's until another one begins."""
    gate_jobs: Annotated[tuple[GateJobRecord, ...], Field(max_length=64)] = ()
    """Jobs of gates, those of earlier steps and attempts too; they are deleted when another release begins."""
    finalising: FinalisingRecord | None = None
    """The end of a release."""
    restarts: tuple[RestartRecord, ...] = ()
    """Leaders seen, newest last."""
    evictions: tuple[EvictionRecord, ...] = ()
    """Groups that Kueue had given up before the release renewed them."""
    unadmitted_groups: tuple[UnadmittedGroup, ...] = ()
    """Groups of the LWS that Kueue has let go without admitting them."""
    local_pods: Tally | None = None
    """Pods with a node of this cluster, of a LeaderWorkerSet that MultiKueue dispatches to another; absent when there
    are none.
    """
    longest_startup_seconds: Tally | None = None
    """Longest time a group took from its creation until it was ready."""
    hold_conflicts: tuple[HoldConflict, ...] = ()
    """Foreign resets of the hold, newest last."""
    hold_released_at: MicroTime | None = None
    """Since when the annotation lets the workload roll by itself; absent once it is held again."""
    flaps: Tally | None = None
    """How often the new side stopped serving while it had weight."""
    traffic: TrafficRecord | None = None
    """Weights asked for and accepted."""
    autoscalers: AutoscalersRecord | None = None
    """Autoscalers that a release holds, or has not restored yet."""
    replicas: Tally | None = None
    """The number of groups in the workload's spec, for the scale subresource; absent without spec.replicas."""
    selector: str | None = None
    """Label selector of the leaders of both versions, for autoscalers; absent without spec.replicas."""
    scaling: ScalingRecord | None = None
    """What spec.replicas has asked of the workload."""
    paused: bool | None = None
    """Paused by an action (spec.strategy.paused is the other way)."""
    groups: GroupCounts | None = None
    """Groups of both versions, as numbers."""
    summary: Summary | None = None
    """What kubectl get shows."""
    timeline: Annotated[tuple[TimelineEntry, ...], Field(max_length=64)] = ()
    """What the release has done since when, newest last; the last release's until another one begins."""
    not_ready_groups: tuple[NotReadyGroup, ...] = ()
    """At most 10 groups that are not ready, worst first."""
    requested_action: RequestedAction | None = None
    """What a person wants done now."""
    last_action: LastAction | None = None
    """What was done last."""

    @property
    def sub(self) -> SubStatus | None:
        """The sub-status, whatever its style; None before the first verdict."""
        return self.canary_status or self.blue_green_status


class Rollout(Model):
    """Progressive delivery of one LeaderWorkerSet or StatefulSet."""

    metadata: Metadata = Metadata()
    """Standard metadata."""
    spec: RolloutSpec
    """What to release, and how."""
    status: RolloutStatus | None = None
    """Where the release is."""
