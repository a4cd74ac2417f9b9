"""What users write: Rollout.spec, in the field names of OpenKruise Rollouts v1beta1, counted in groups."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, assert_never

from pydantic import Field

from rollout_lws.api.base import Model
from rollout_lws.api.gate_spec import Analysis, ReleaseGate, StepGate
from rollout_lws.api.words import Capacity, DrainUntil, OnFailure, Promotion, Touch

Percent = Annotated[str, Field(pattern=r"^(100|[1-9]?[0-9])%$", max_length=4)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
IntOrPercent = Count | Percent
#: A number of groups by itself, or in proportion to another one.
CountOrRatio = (
    Annotated[int, Field(ge=1, le=100_000)] | Annotated[str, Field(pattern=r"^[1-9][0-9]{0,2}%$", max_length=4)]
)
Seconds = Annotated[int, Field(ge=0, le=2_147_483_647)]
Name = Annotated[str, Field(min_length=1, max_length=253)]
Short = Annotated[str, Field(max_length=1024)]
#: A name as the Gateway API takes it for headers and query parameters.
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$", min_length=1, max_length=256)]


class WorkloadRef(Model):
    """The workload to release, in the Rollout's own namespace."""

    api_version: Name
    """Group and version: leaderworkerset.x-k8s.io/v1, or apps/v1 of a StatefulSet."""
    kind: Name
    """LeaderWorkerSet or StatefulSet."""
    name: Name
    """Name of the workload. Frozen while that is in care; a disabled Rollout may name another."""


class CounterpartRef(Model):
    """The second workload of a pair, in the Rollout's own namespace; of the same kind as the first."""

    api_version: Name
    """Always that of workloadRef."""
    kind: Name
    """Always that of workloadRef."""
    name: Name
    """Name of the workload. Frozen while it is in care; a disabled Rollout may name another."""


class Companion(Model):
    """A further workload of each side of a pair, which has no requests of its own routed: with those of workloadRef and
    counterpartRef its version is one, such as prefill with decode. It is of their kind, in the same namespace.
    """

    always: ClassVar[frozenset[str]] = frozenset({"name", "counterpart"})

    name: Name
    """Name of the workload on the side of workloadRef. Frozen while it is in care."""
    counterpart: Name
    """Name of the workload on the side of counterpartRef. Frozen while it is in care."""
    replicas: CountOrRatio | None = None
    """Groups of the one whose side has the requests: a count, or "N%" of the number that the Rollout asks for, rounded
    up. Required, but with touch: RouteOnly, where their owner scales them, absent.
    """


class HeaderMatch(Model):
    """One HTTP header or query parameter to match."""

    type: Literal["Exact", "RegularExpression"] = "Exact"
    """How the value is compared; Exact by default."""
    name: HeaderName
    """Name of the header or query parameter."""
    value: Short
    """Value, or regular expression, to compare with."""


class PathMatch(Model):
    """The path to match."""

    type: Literal["Exact", "PathPrefix", "RegularExpression"] = "PathPrefix"
    """How the path is compared; PathPrefix by default."""
    value: Short = "/"
    """The path; "/" by default."""


class HttpMatch(Model):
    """Requests that go to the new version; all members must match."""

    path: PathMatch | None = None
    """Path of the request."""
    headers: Annotated[tuple[HeaderMatch, ...], Field(max_length=16)] = ()
    """Headers, all of which must match; at most 16."""
    query_params: Annotated[tuple[HeaderMatch, ...], Field(max_length=16)] = ()
    """Query parameters, all of which must match; at most 16."""


class HeaderValue(Model):
    """One header and its value."""

    name: HeaderName
    """Name of the header."""
    value: Short
    """Value of the header."""


class RequestHeaderModifier(Model):
    """Headers changed on requests that go to the new version."""

    set: Annotated[tuple[HeaderValue, ...], Field(max_length=16)] = ()
    """Headers to overwrite; at most 16."""
    add: Annotated[tuple[HeaderValue, ...], Field(max_length=16)] = ()
    """Headers to add; at most 16."""
    remove: Annotated[tuple[HeaderName, ...], Field(max_length=16)] = ()
    """Names of headers to remove; at most 16."""


class Pause(Model):
    """How a step ends."""

    duration: Seconds | None = None
    """Seconds to wait once traffic is routed; absent: wait for an approval."""
    approval_timeout_seconds: Seconds | None = None
    """Seconds after which a missing approval is a failure (see onFailure); absent: never."""


class Step(Model):
    """One step: groups of the new version, then traffic, then gates and a pause."""

    replicas: IntOrPercent
    """Groups of the new version from this step on, cumulative: a count or "N%" of the LWS's replicas, rounded up; more
    than 0.
    """
    traffic: Annotated[str, Field(pattern=r"^(auto|(100|[1-9]?[0-9])%)$", max_length=4)] | None = None
    """Share of requests for the new version, "N%" or "auto" (in proportion to groups). Absent with no matches: no
    routing.
    """
    matches: Annotated[tuple[HttpMatch, ...], Field(max_length=16)] = ()
    """Requests that go to the new version whatever the share; at most 16."""
    request_header_modifier: RequestHeaderModifier | None = None
    """Headers changed on requests that go to the new version."""
    gates: Annotated[tuple[StepGate, ...], Field(max_length=16)] = ()
    """What the step has to pass before it ends, besides its pause; at most 16."""
    pause: Pause = Pause()
    """How the step ends; by default it waits for an approval."""


class IngressRef(Model):
    """The Ingress beside which the new version gets one of its own."""

    class_type: Short = ""
    """What serves the class of the Ingress: nginx (ingress-nginx; the same if empty and the class is nginx or none) or
    traefik (Traefik's ingress-nginx provider, v3.7 or newer).
    """
    name: Name
    """Name of the Ingress."""


class InferencePools(Model):
    """Inference pools of the Gateway API inference extension."""

    stable: Name
    """Pool of the stable version."""
    canary: Name
    """Pool of the new version."""


class GatewayRef(Model):
    """The routes whose rules share requests, and what they lead to."""

    http_route_name: Name | None = None
    """Name of the HTTPRoute."""
    grpc_route_name: Name | None = None
    """Name of the GRPCRoute."""
    inference_pool: InferencePools | None = None
    """Pools that the route's rules refer to instead of Services."""


class IstioRef(Model):
    """The VirtualService whose HTTP routes share requests."""

    virtual_service_name: Name
    """Name of the VirtualService."""
    destination_rule_name: Name | None = None
    """Name of the DestinationRule of the stable version's Service; needed where the routes name subsets."""


class NetworkRef(Model):
    """A routing object of any kind, in the Rollout's namespace."""

    api_version: Name
    """Its API group and version, such as networking.istio.io/v1."""
    kind: Name
    """Its kind, such as VirtualService."""
    name: Name
    """Its name."""


class Drain(Model):
    """What ends the time of requests that run on groups which leave."""

    until: DrainUntil = DrainUntil.TIME
    """Time (default): drainSeconds are over. Idle: the groups' engines say that nothing runs and nothing waits."""
    max_seconds: Annotated[int, Field(ge=1, le=86_400)] | None = None
    """With Idle: seconds after which groups go whatever runs on them, at least drainSeconds; 1800 by default."""

    @property
    def longest(self) -> int:
        """The most seconds that requests get with Idle."""
        return self.max_seconds if self.max_seconds is not None else 1800


class TrafficRouting(Model):
    """How requests reach the two versions."""

    service: Name
    """The Service of the stable version; the new version's is made as a copy of it. Of a pair: the Service of
    workloadRef.
    """
    counterpart_service: Name | None = None
    """Of a pair: the Service of counterpartRef; absent where inference pools lead to both."""
    grace_period_seconds: Seconds = 3
    """Seconds that routers get to act on a change; 3 by default."""
    drain_seconds: Annotated[int, Field(ge=0, le=7200)] = 30
    """Seconds that running requests get before their group goes; 30 by default, at most 7200."""
    drain: Drain | None = None
    """What ends that time; drainSeconds by default."""
    ingress: IngressRef | None = None
    """Route by an Ingress."""
    gateway: GatewayRef | None = None
    """Route by the Gateway API."""
    istio: IstioRef | None = None
    """Route by Istio."""
    custom_network_refs: Annotated[tuple[NetworkRef, ...], Field(max_length=16)] = ()
    """Objects of any kind that share requests, as a script of the controller's administrator says; at most 16."""
    target: Literal["AsSelected", "Leaders", "AllPods"] = "AsSelected"
    """Which pods of a group receive requests; AsSelected keeps what the Service selects."""
    allow_unmanaged_backends: bool | None = None
    """Accept other Services that select the new version's leaders; false by default."""

    @property
    def draining(self) -> Drain:
        """What ends the time of requests on groups which leave."""
        return self.drain or Drain()

    @property
    def any_router(self) -> bool:
        """Whether an object is named in which shares can be written."""
        gateway = self.gateway
        others = self.ingress is not None or self.istio is not None or bool(self.custom_network_refs)
        return others or bool(gateway and (gateway.http_route_name or gateway.grpc_route_name))


class MetadataPatch(Model):
    """Labels and annotations for the canary's leader template only."""

    labels: Annotated[dict[str, str], Field(default_factory=dict)]
    """Labels to set."""
    annotations: Annotated[dict[str, str], Field(default_factory=dict)]
    """Annotations to set."""


class Shift(Model):
    """By how much the groups of both versions together may differ from the Rollout's number while one side grows and
    the other one shrinks.
    """

    max_extra_groups: IntOrPercent = 1
    """Groups beyond the number, terminating ones among them: a count or "N%" of it, rounded up; 1 by default."""
    max_unavailable_groups: IntOrPercent = 0
    """Groups that may lack in it while others load: a count or "N%" of it, rounded down; 0 by default."""


class StyleStrategy(Model):
    """What canary and blue-green releases have in common."""

    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=50)]
    """The steps, 1 to 50; replicas must not decrease."""
    gates: Annotated[tuple[ReleaseGate, ...], Field(max_length=16)] = ()
    """What is watched from the first share of requests to the end of the promotion; at most 16."""
    traffic_routings: Annotated[tuple[TrafficRouting, ...], Field(max_length=1)] = ()
    """At most one."""
    failure_threshold: IntOrPercent | None = None
    """Groups of a batch that may be not ready, a count or "N%" of the batch, rounded up; none by default."""
    disable_generate_canary_service: bool | None = None
    """Kruise's single-Service mode, which is not built yet: true is refused."""

    @property
    def every_gate(self) -> tuple[StepGate, ...]:
        """The gates of the plan."""
        return tuple(gate for step in self.steps for gate in step.gates)

    @property
    def metadata_patch(self) -> MetadataPatch | None:
        """Labels and annotations for the new version's leader template."""
        return None

    @property
    def pools(self) -> InferencePools | None:
        """The inference pools that each version has one of; None where Services lead to the versions."""
        gateways = (each.gateway for each in self.traffic_routings)
        return next((each.inference_pool for each in gateways if each is not None), None)

    @property
    def made_by(self) -> Capacity:
        """How groups of the new version are made, whatever words say so."""
        return Capacity.EXTRA_WORKLOAD

    @property
    def shifting(self) -> Shift | None:
        """By how much the number of groups may differ while old groups go as new ones come; None if old ones stay."""
        return None

    @property
    def keeps_seconds(self) -> int:
        """Seconds that groups which gave up the requests stay after a release."""
        return 0

    @property
    def takes_places(self) -> bool:
        """Whether new groups take the places of old ones."""
        return self.made_by is Capacity.IN_PLACE or self.shifting is not None


def capacity_of(asked: Capacity | None, extra_workload: bool | None) -> Capacity:
    """How a canary makes its groups, by our word for it, else by Kruise's."""
    if asked is not None:
        return asked
    return Capacity.IN_PLACE if extra_workload is False else Capacity.EXTRA_WORKLOAD


class CanaryStrategy(StyleStrategy):
    """A part of the groups at the new version first, the rest after."""

    patch_pod_template_metadata: MetadataPatch | None = None
    """Labels and annotations for the canary LWS's leader template."""
    capacity: Capacity | None = None
    """How groups of the new version are made: ExtraWorkload (default), InPlace, Surge, or Shift, with which groups of a
    second workload come as old ones go, and it takes the place of the first one; Pair, where counterpartRef names a
    second workload that has them.
    """
    enable_extra_workload_for_canary: bool | None = None
    """Kruise's word for it: true means ExtraWorkload, false InPlace; must not contradict capacity."""
    shift: Shift | None = None
    """Of capacity Shift, and of a pair: the workload that has the requests gives up groups as the other one gets some,
    so that a release needs hardly more accelerators than there are. Absent: with capacity Shift its defaults; in a pair
    the workload keeps all groups until the roles change.
    """

    @property
    def is_pair(self) -> bool:
        """Whether a second workload of the user's has the new version's groups."""
        return self.made_by is Capacity.PAIR

    @property
    def swaps(self) -> bool:
        """Whether the workload that a release makes takes the place of that of workloadRef."""
        return self.made_by is Capacity.SHIFT

    @property
    def shifting(self) -> Shift | None:
        match self.made_by:
            case Capacity.SHIFT:
                return self.shift or Shift()
            case Capacity.PAIR:
                return self.shift
            case Capacity.EXTRA_WORKLOAD | Capacity.IN_PLACE | Capacity.SURGE:
                return None
            case unknown:
                assert_never(unknown)

    @property
    def metadata_patch(self) -> MetadataPatch | None:
        return self.patch_pod_template_metadata

    @property
    def made_by(self) -> Capacity:
        return capacity_of(self.capacity, self.enable_extra_workload_for_canary)


class BlueGreenStrategy(StyleStrategy):
    """A full second set of groups before any of the first is renewed."""

    promotion: Promotion | None = None
    """InPlace (default) renews the LWS itself, so that a release makes its groups twice. Swap leaves the requests with
    the second set and scales the LWS to 0; the next release brings them back.
    """
    scale_down_delay_seconds: Annotated[int, Field(ge=0, le=86_400)] | None = None
    """With promotion Swap: seconds that the groups which gave up the requests stay after a release, so that the version
    before gets the requests back at once if it is applied again; 0 by default. It needs trafficRoutings.
    """

    @property
    def keeps_seconds(self) -> int:
        return self.scale_down_delay_seconds or 0


class Strategy(Model):
    """How a new version is released; exactly one of canary and blueGreen."""

    paused: bool | None = None
    """Nothing goes forward while true; false by default."""
    canary: CanaryStrategy | None = None
    """Release in steps beside the stable version."""
    blue_green: BlueGreenStrategy | None = None
    """Release with a full second set."""
    progress_deadline_seconds: Annotated[int, Field(ge=1, le=2_147_483_647)] | None = None
    """Longest time in seconds without a further ready group; default max(3600, start-up probe budget + 900)."""
    capacity_deadline_seconds: Annotated[int, Field(ge=1, le=2_147_483_647)] | None = None
    """Longest wait in seconds for quota or accelerators; absent: for ever."""
    min_ready_seconds: Annotated[int, Field(ge=0, le=86_400)] | None = None
    """Seconds that a group must be ready before it counts; 0 by default."""
    on_failure: OnFailure | None = None
    """What happens when a release fails (deadline, crash loop): Pause (default) waits for a user, Abort rolls back."""

    analysis: Analysis | None = None
    """Where figures of gates come from; by default the leader pods' own metrics."""

    @property
    def source(self) -> Analysis:
        """Where figures of gates come from."""
        return self.analysis or Analysis()

    @property
    def style(self) -> StyleStrategy | None:
        """The one of canary and blueGreen that is set; None with neither."""
        return self.canary or self.blue_green


class RolloutSpec(Model):
    """What to release, and how."""

    always: ClassVar[frozenset[str]] = frozenset({"workloadRef", "strategy"})

    workload_ref: WorkloadRef
    """The workload to release."""
    counterpart_ref: CounterpartRef | None = None
    """The second workload of a pair (capacity Pair). Requests go to one of the two; a version that is applied to the
    other one is released by moving them there.
    """
    companions: Annotated[tuple[Companion, ...], Field(max_length=4)] = ()
    """Of a pair: further workloads of each side, at most 4. A version is what all workloads of a side have together: it
    is released as one, and none of them serves with another one's.
    """
    active_side: Name | None = None
    """Of a pair: name of the workload that requests go to, where both have some at adoption; else the route says it."""
    touch: Touch | None = None
    """Of a pair: RouteOnly has releases write the route and no workload, which its owner scales; absent: a release
    scales both workloads, and at rest the one without requests has no groups.
    """
    replicas: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """Groups of the workload, which the controller writes to it and keeps there; absent: the workload's own number. The
    scale subresource sets it, so kubectl scale and autoscalers may name the Rollout. Of a pair, and with promotion Swap
    or capacity Shift, those of the workload that has the requests; absent: the controller writes its number here,
    unless touch is RouteOnly.
    """
    disabled: bool | None = None
    """Leave the workload alone; false by default."""
    strategy: Strategy
    """How a new version is released."""

    @property
    def swaps(self) -> bool:
        """Whether the workloads that releases make take the place of that of workloadRef, in turn."""
        canary, blue_green = self.strategy.canary, self.strategy.blue_green
        if canary is not None:
            return canary.swaps
        return blue_green is not None and blue_green.promotion is Promotion.SWAP

    @property
    def scales_sides(self) -> bool:
        """Whether releases scale two workloads, of which one has no groups at rest: those of a pair, or in a swap."""
        return self.swaps if self.counterpart_ref is None else self.touch is None

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names of all workloads: that of workloadRef, the counterpart's, and those of companions."""
        other = (self.counterpart_ref.name,) if self.counterpart_ref is not None else ()
        further = (name for each in self.companions for name in (each.name, each.counterpart))
        return (self.workload_ref.name, *other, *further)
