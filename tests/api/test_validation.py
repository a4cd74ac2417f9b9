"""What a spec alone is refused for: every message of the module, with its place and the way out."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rollout_lws.api import CanaryStrategy, RolloutSpec, Step, sides_rules, validation
from rollout_lws.api.validation import Problem, problems

REF = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llama"}
STEPS = [{"replicas": 1}]
AT = "spec.strategy.canary"
CUSTOM = {"apiVersion": "a.io/v1", "kind": "Mesh", "name": "llama"}
DRAIN = f"{AT}.trafficRoutings[0].drain"
NO_ROUTING = (
    "nothing is named that could route it: give the strategy trafficRoutings, or remove it; requests then reach the new"
    " version through your own Service, in proportion to its groups"
)


def spec(strategy: dict[str, Any]) -> RolloutSpec:
    return RolloutSpec.model_validate({"workloadRef": REF, "strategy": strategy})


def canary(**members: Any) -> RolloutSpec:
    return spec({"canary": {"steps": STEPS, **members}})


def steps(*replicas: Any, **members: Any) -> RolloutSpec:
    return canary(steps=[{"replicas": each, **members} for each in replicas])


def routed(**members: Any) -> RolloutSpec:
    return canary(trafficRoutings=[{"service": "api", "gateway": {"httpRouteName": "api"}}], **members)


def drained(drain: dict[str, Any], **routing: Any) -> RolloutSpec:
    return canary(trafficRoutings=[{"service": "api", "gateway": {"httpRouteName": "api"}, "drain": drain, **routing}])


def matched(value: str) -> dict[str, Any]:
    return {"headers": [{"name": "x", "type": "RegularExpression", "value": value}]}


def unchecked(*replicas: Any, **members: Any) -> RolloutSpec:
    """A spec past the limits of its models, as a caller may build one."""
    made = tuple(Step.model_construct(replicas=each) for each in replicas)
    before = canary()
    strategy = CanaryStrategy.model_construct(steps=made, **members)
    return before.model_copy(update={"strategy": before.strategy.model_copy(update={"canary": strategy})})


OTHER = {**REF, "name": "llama-green"}
COMPANION = {"name": "prefill", "counterpart": "prefill-green", "replicas": "200%"}
SIDES = {"service": "blue", "counterpartService": "green", "gateway": {"httpRouteName": "llama"}}


def pair(
    *, routing: dict[str, Any] | None = None, steps: Any = STEPS, strategy: dict[str, Any] | None = None, **members: Any
) -> RolloutSpec:
    """A pair that can be released, but for what is said; None takes a member out."""
    asked = {key: value for key, value in {**SIDES, **(routing or {})}.items() if value is not None}
    style = {"canary": {"capacity": "Pair", "steps": steps, "trafficRoutings": [asked]}}
    said = {"workloadRef": REF, "counterpartRef": OTHER, "touch": "RouteOnly", "strategy": strategy or style, **members}
    return RolloutSpec.model_validate({key: value for key, value in said.items() if value is not None})


def shifting(*, extra: int | str = 1, unavailable: int | str = 0, **members: Any) -> RolloutSpec:
    """A pair whose sides shift."""
    margin = {"maxExtraGroups": extra, "maxUnavailableGroups": unavailable}
    style = {"canary": {"capacity": "Pair", "steps": STEPS, "trafficRoutings": [SIDES], "shift": margin}}
    return pair(strategy=style, **{"touch": None, **members})


ROUTE = {"service": "llama-api", "gateway": {"httpRouteName": "llama"}}
POOLS = {"httpRouteName": "llama", "inferencePool": {"stable": "blue", "canary": "green"}}
NO_MARGIN = [
    (
        f"{AT}.shift",
        "with neither an extra group nor one that may lack, no group can come or go: give maxExtraGroups 1, or"
        " maxUnavailableGroups 1 where no accelerator is free",
    )
]
FOR_PAIRS = "it is for a pair: name the second workload in counterpartRef, or remove it"

WARM_UP = {"name": "warm-up", "when": "BeforeTraffic", "http": {"each": "Group"}}
NO_SECOND = (
    "it is for the pods of a second workload, and capacity {} makes none: remove it, or use capacity ExtraWorkload"
)

_CASES: dict[str, tuple[RolloutSpec, list[tuple[str, str]]]] = {
    "no style": (
        spec({}),
        [("spec.strategy", "exactly one of canary and blueGreen must be set: give the canary one with its steps")],
    ),
    "a comparison with a version that gets no requests": (
        routed(
            steps=[
                {
                    "replicas": 1,
                    "traffic": "100%",
                    "gates": [{"name": "slow", "metric": {"signal": "RequestLatency", "maxToStable": "120%"}}],
                }
            ]
        ),
        [
            (
                "spec.strategy.canary.steps[0].gates[0].metric.maxToStable",
                "the stable version gets no requests in this step, so there is nothing to compare with: use max, or"
                " compare in a step before",
            )
        ],
    ),
    "a bound of no wait": (
        drained({"maxSeconds": 60}),
        [(f"{DRAIN}.maxSeconds", "it bounds the wait for idle groups: add until: Idle, or use drainSeconds")],
    ),
    "a bound below the fixed time": (
        drained({"until": "Idle", "maxSeconds": 60}, drainSeconds=90),
        [
            (
                f"{DRAIN}.maxSeconds",
                "60 is less than drainSeconds (90), which groups get that do not say what runs on them: raise it, or"
                " lower drainSeconds",
            )
        ],
    ),
    "a fixed time above the usual bound": (
        drained({"until": "Idle"}, drainSeconds=3600),
        [
            (
                f"{DRAIN}.maxSeconds",
                "1800 is less than drainSeconds (3600), which groups get that do not say what runs on them: raise it,"
                " or lower drainSeconds",
            )
        ],
    ),
    "idle groups": (drained({"until": "Idle", "maxSeconds": 90}, drainSeconds=90), []),
    "a blue-green step of nothing": (
        spec({"blueGreen": {"steps": [{"replicas": 0}]}}),
        [("spec.strategy.blueGreen.steps[0].replicas", "0 is too small: give at least 1 group")],
    ),
    "both styles": (
        spec({"canary": {"steps": STEPS}, "blueGreen": {"steps": STEPS}}),
        [
            ("spec.strategy", "exactly one of canary and blueGreen must be set: give the canary one with its steps"),
        ],
    ),
    "no steps": (unchecked(), [(f"{AT}.steps", "0 steps: give 1 to 50")]),
    "too many steps": (unchecked(*[1] * 51), [(f"{AT}.steps", "51 steps: give 1 to 50")]),
    "a step of nothing": (
        steps(0, 1),
        [(f"{AT}.steps[0].replicas", "0 is too small: give at least 1 group")],
    ),
    "a step of no per cent": (
        steps("0%"),
        [(f"{AT}.steps[0].replicas", "0% is too small: give at least 1 group")],
    ),
    "more than all": (unchecked("101%"), [(f"{AT}.steps[0].replicas", "101% is more than 100%")]),
    "neither count nor percentage": (
        unchecked("some"),
        [(f"{AT}.steps[0].replicas", "'some' is neither a whole number nor a percentage like 25%")],
    ),
    "a negative threshold": (
        unchecked(1, failure_threshold=-1),
        [(f"{AT}.failureThreshold", "-1 is too small: give at least 0 groups")],
    ),
    "counts that decrease": (
        steps(1, 3, 2),
        [(f"{AT}.steps[2].replicas", "2 is less than the step before (3): raise it, steps must not decrease")],
    ),
    "percentages that decrease": (
        steps("50%", "20%"),
        [(f"{AT}.steps[1].replicas", "20% is less than the step before (50%): raise it, steps must not decrease")],
    ),
    "garbage is not compared": (
        unchecked("50%", "x%"),
        [(f"{AT}.steps[1].replicas", "'x%' is neither a whole number nor a percentage like 25%")],
    ),
    "traffic": (steps(1, traffic="20%"), [(f"{AT}.steps[0].traffic", NO_ROUTING)]),
    "a match of nothing": (
        routed(steps=[{"replicas": 1, "matches": [{}]}]),
        [
            (
                f"{AT}.steps[0].matches[0]",
                "it says nothing of requests, and the route's own rule takes all of them before it: give it headers, a"
                " path or queryParams",
            )
        ],
    ),
    "expressions that are none": (
        routed(
            steps=[
                {
                    "replicas": 1,
                    "matches": [
                        {"path": {"type": "RegularExpression", "value": "("}},
                        {"headers": [{"name": "x", "type": "RegularExpression", "value": "a)"}]},
                        {"queryParams": [{"name": "x", "type": "RegularExpression", "value": "[a"}]},
                        # What some router may understand, or is compared as it stands.
                        {"headers": [{"name": "x", "type": "RegularExpression", "value": r"\Q(\E|(?<n>a)++"}]},
                        {"path": {"type": "RegularExpression", "value": "/[[:alnum:](]+[^[:space:])]"}},
                        {"headers": [{"name": "x", "value": "("}]},
                    ],
                }
            ]
        ),
        [
            (
                f"{AT}.steps[0].matches[0].path.value",
                '"(" is no regular expression: the group that "(" begins at character 1 does not end: add ")", or write'
                ' "\\("',
            ),
            (
                f"{AT}.steps[0].matches[1].headers[0].value",
                '"a)" is no regular expression: ")" at character 2 ends no group: remove it, or write "\\)"',
            ),
            (
                f"{AT}.steps[0].matches[2].queryParams[0].value",
                '"[a" is no regular expression: the set that "[" begins at character 1 does not end: add "]", or write'
                ' "\\["',
            ),
        ],
    ),
    "more expressions than are read": (
        routed(
            steps=[
                *({"replicas": 1, "matches": [matched("()" * 500)] * 16},) * 2,
                {"replicas": 1, "matches": [matched("(" * 769)]},
                {"replicas": 1, "matches": [matched("(")]},
            ]
        ),
        [
            (
                f"{AT}.steps[2].matches[0].headers[0].value",
                f'"{"(" * 769}" is no regular expression: the group that "(" begins at character 769 does not end: add'
                ' ")", or write "\\("',
            )
        ],
    ),
    "matches": (steps(1, matches=[{"path": {}}]), [(f"{AT}.steps[0].matches", NO_ROUTING)]),
    "headers": (
        steps(1, requestHeaderModifier={"remove": ["x"]}),
        [(f"{AT}.steps[0].requestHeaderModifier", NO_ROUTING)],
    ),
    "a pause both ways": (
        steps(1, pause={"duration": 60, "approvalTimeoutSeconds": 60}),
        [
            (
                f"{AT}.steps[0].pause.approvalTimeoutSeconds",
                "it bounds the wait for an approval, and a pause with a duration asks for none: remove one of the two",
            )
        ],
    ),
    "no route": (
        canary(trafficRoutings=[{"service": "llama"}]),
        [
            (
                f"{AT}.trafficRoutings[0].gateway.httpRouteName",
                "name the HTTPRoute that shares the requests, or set grpcRouteName, istio, ingress or"
                " customNetworkRefs",
            )
        ],
    ),
    "an object of a custom kind twice": (
        canary(
            trafficRoutings=[{"service": "llama", "customNetworkRefs": [CUSTOM, {**CUSTOM, "apiVersion": "a.io/v2"}]}]
        ),
        [
            (
                f"{AT}.trafficRoutings[0].customNetworkRefs[1]",
                "Mesh llama is named twice, and would be changed twice: name it once",
            )
        ],
    ),
    "the Service of the stable version": (
        canary(
            trafficRoutings=[
                {
                    "service": "llama",
                    "customNetworkRefs": [{"apiVersion": "v1", "kind": "Service", "name": "llama"}],
                }
            ]
        ),
        [
            (
                f"{AT}.trafficRoutings[0].customNetworkRefs[0]",
                "Service llama is named twice, and would be changed twice: name it once",
            )
        ],
    ),
    "an apiVersion that is none": (
        canary(trafficRoutings=[{"service": "llama", "customNetworkRefs": [{**CUSTOM, "apiVersion": "a.io/../v1"}]}]),
        [
            (
                f"{AT}.trafficRoutings[0].customNetworkRefs[0].apiVersion",
                "'a.io/../v1' is no apiVersion: write group/version, such as networking.istio.io/v1",
            )
        ],
    ),
    "scripts and pools": (
        canary(
            trafficRoutings=[
                {
                    "service": "llama",
                    "gateway": {"httpRouteName": "r", "inferencePool": {"stable": "a", "canary": "b"}},
                    "customNetworkRefs": [CUSTOM],
                }
            ]
        ),
        [
            (
                f"{AT}.trafficRoutings[0].customNetworkRefs",
                "scripts share requests between Services, and inference pools have theirs from the route: remove one of"
                " the two",
            )
        ],
    ),
    "pools without a route": (
        canary(
            trafficRoutings=[{"service": "llama", "gateway": {"inferencePool": {"stable": "a", "canary": "b"}}}],
        ),
        [
            (
                f"{AT}.trafficRoutings[0].gateway.httpRouteName",
                "name the HTTPRoute that refers to the inference pools as well",
            )
        ],
    ),
    "pools and an Ingress": (
        canary(
            trafficRoutings=[
                {
                    "service": "llama",
                    "gateway": {"httpRouteName": "r", "inferencePool": {"stable": "a", "canary": "b"}},
                    "ingress": {"name": "i"},
                }
            ]
        ),
        [
            (
                f"{AT}.trafficRoutings[0].ingress",
                "an Ingress cannot refer to inference pools: remove it, or refer to Services in the route",
            )
        ],
    ),
    "pools and a VirtualService": (
        canary(
            trafficRoutings=[
                {
                    "service": "llama",
                    "gateway": {"httpRouteName": "r", "inferencePool": {"stable": "a", "canary": "b"}},
                    "istio": {"virtualServiceName": "v"},
                }
            ]
        ),
        [
            (
                f"{AT}.trafficRoutings[0].istio",
                "a VirtualService cannot refer to inference pools: remove it, or refer to Services in the routes",
            )
        ],
    ),
    "pools and a GRPCRoute": (
        canary(
            trafficRoutings=[
                {
                    "service": "llama",
                    "gateway": {
                        "httpRouteName": "r",
                        "grpcRouteName": "g",
                        "inferencePool": {"stable": "a", "canary": "b"},
                    },
                }
            ]
        ),
        [
            (
                f"{AT}.trafficRoutings[0].gateway.grpcRouteName",
                "inference pools answer HTTP requests: remove it, or refer to Services in the routes",
            )
        ],
    ),
    "one Service": (
        canary(disableGenerateCanaryService=True),
        [(f"{AT}.disableGenerateCanaryService", "the single-Service mode is not built yet: remove it")],
    ),
    "leaders of a second LWS in place": (
        canary(capacity="InPlace", patchPodTemplateMetadata={"labels": {"a": "b"}}),
        [(f"{AT}.patchPodTemplateMetadata", NO_SECOND.format("InPlace"))],
    ),
    "leaders of a second LWS in place, in Kruise's words": (
        canary(enableExtraWorkloadForCanary=False, patchPodTemplateMetadata={"labels": {"a": "b"}}),
        [(f"{AT}.patchPodTemplateMetadata", NO_SECOND.format("InPlace"))],
    ),
    "a contradiction": (
        canary(capacity="InPlace", enableExtraWorkloadForCanary=True),
        [(f"{AT}.capacity", "capacity InPlace contradicts enableExtraWorkloadForCanary true: remove the latter")],
    ),
    "the other contradiction": (
        canary(capacity="ExtraWorkload", enableExtraWorkloadForCanary=False),
        [
            (
                f"{AT}.capacity",
                "capacity ExtraWorkload contradicts enableExtraWorkloadForCanary false: remove the latter",
            )
        ],
    ),
    "a pair of one": (
        pair(counterpartRef=None, touch=None, routing={"counterpartService": None}),
        [("spec.counterpartRef", "capacity Pair moves requests between two workloads: name the other")],
    ),
    "what is of a pair, without one": (
        canary(trafficRoutings=[SIDES]).model_copy(update={"active_side": "llama", "touch": "RouteOnly"}),
        [
            ("spec.activeSide", FOR_PAIRS),
            ("spec.touch", FOR_PAIRS),
            (f"{AT}.trafficRoutings[0].counterpartService", FOR_PAIRS),
        ],
    ),
    "a shift without its capacity": (
        canary(shift={}),
        [
            (
                f"{AT}.shift",
                "it is for capacity Shift, and for a pair: set capacity: Shift, or name the second workload in"
                " counterpartRef, or remove it",
            )
        ],
    ),
    "groups that stay where none give up requests": (
        spec({"blueGreen": {"steps": STEPS, "scaleDownDelaySeconds": 60}}),
        [
            (
                "spec.strategy.blueGreen.scaleDownDelaySeconds",
                "only with promotion: Swap there are groups that could stay: add that, or remove it",
            )
        ],
    ),
    "groups that stay and get requests": (
        spec({"blueGreen": {"steps": STEPS, "promotion": "Swap", "scaleDownDelaySeconds": 60}}),
        [
            (
                "spec.strategy.blueGreen.scaleDownDelaySeconds",
                "without trafficRoutings requests go to all groups that are ready: name the Service, or remove it",
            )
        ],
    ),
    "capacity Shift without a route": (
        canary(capacity="Shift"),
        [
            (
                f"{AT}.trafficRoutings",
                "groups lose their requests before they go: name the Service, and the route that shares them",
            )
        ],
    ),
    "a shift in which no group of one workload can come or go": (
        canary(capacity="Shift", trafficRoutings=[ROUTE], shift={"maxExtraGroups": 0}),
        NO_MARGIN,
    ),
    "a shift that moves requests back": (
        canary(
            capacity="Shift",
            trafficRoutings=[ROUTE],
            steps=[{"replicas": 1, "traffic": "auto"}, {"replicas": 2}, {"replicas": "100%"}],
        ),
        [
            (
                f"{AT}.steps[1].traffic",
                "without a share the step would move back what the steps before have moved: give it traffic",
            )
        ],
    ),
    "a shift of workloads that their owner scales": (
        shifting(touch="RouteOnly"),
        [(f"{AT}.shift", "with touch: RouteOnly no workload is scaled: remove it, or remove touch")],
    ),
    "a shift in which no group can come or go": (shifting(extra=0, unavailable="0%"), NO_MARGIN),
    "a shift without a group beyond the number": (shifting(extra="0%"), NO_MARGIN),
    "companions without a pair": (
        canary().model_copy(update={"companions": pair(companions=[COMPANION]).companions}),
        [("spec.companions", FOR_PAIRS)],
    ),
    "companions and a shift": (
        shifting(companions=[COMPANION]),
        [(f"{AT}.shift", "groups of companions cannot be exchanged one by one: remove it, or companions")],
    ),
    "a companion without a number": (
        pair(touch=None, companions=[{"name": "prefill", "counterpart": "prefill-green"}]),
        [("spec.companions[0].replicas", 'say how many groups prefill has: a count, or "N%" of those of workloadRef')],
    ),
    "a companion that its owner scales, with a number": (
        pair(companions=[COMPANION]),
        [("spec.companions[0].replicas", "with touch: RouteOnly no workload is scaled: remove it")],
    ),
    "companions that have a place already": (
        pair(
            touch=None,
            companions=[{**COMPANION, "counterpart": "llama"}, {**COMPANION, "counterpart": "router-green"}],
        ),
        [
            ("spec.companions[0].counterpart", "llama is named already: each workload has one place in a pair"),
            ("spec.companions[1].name", "prefill is named already: each workload has one place in a pair"),
        ],
    ),
    "a blue-green release of a second Service": (
        spec({"blueGreen": {"steps": STEPS, "trafficRoutings": [SIDES]}}),
        [("spec.strategy.blueGreen.trafficRoutings[0].counterpartService", FOR_PAIRS)],
    ),
    "two workloads, and another capacity": (
        pair(strategy={"canary": {"steps": STEPS, "trafficRoutings": [SIDES]}}),
        [
            (
                f"{AT}.capacity",
                "counterpartRef names a pair's second workload: set capacity: Pair, or remove counterpartRef",
            )
        ],
    ),
    "a pair of two kinds": (
        pair(counterpartRef={**OTHER, "kind": "Deployment"}),
        [
            (
                "spec.counterpartRef.kind",
                "both workloads of a pair are of one kind: give it leaderworkerset.x-k8s.io/v1 LeaderWorkerSet, as"
                " workloadRef has",
            )
        ],
    ),
    "a workload and itself": (
        pair(counterpartRef=REF),
        [("spec.counterpartRef.name", "llama is workloadRef itself: name the other workload")],
    ),
    "a third side": (
        pair(activeSide="llama-red"),
        [("spec.activeSide", "llama-red is neither: name llama or llama-green")],
    ),
    "a pair with a number of groups": (
        pair(replicas=4),
        [("spec.replicas", "with touch: RouteOnly no workload is scaled: remove it, and scale the workload")],
    ),
    "a pair without a route": (
        pair(strategy={"canary": {"capacity": "Pair", "steps": STEPS}}),
        [
            (
                f"{AT}.trafficRoutings",
                "the release of a pair moves requests: name the route and the Services of both workloads",
            )
        ],
    ),
    "headers that a pair's weight would change": (
        pair(
            steps=[
                {
                    "replicas": 1,
                    "traffic": "10%",
                    "requestHeaderModifier": {"remove": ["x"]},
                    "matches": [{"path": {}}],
                },
                {"replicas": 2, "traffic": "20%", "requestHeaderModifier": {"remove": ["x"]}},
            ]
        ),
        [
            (
                f"{AT}.steps[1].requestHeaderModifier",
                "a weight changes no headers, since both backends are yours: give the step matches, or remove it",
            )
        ],
    ),
    "a step of a pair that moves everything back": (
        pair(steps=[{"replicas": 1}, {"replicas": 1, "traffic": "10%"}, {"replicas": 2}]),
        [
            (
                f"{AT}.steps[2].traffic",
                "without a share the step would move back what the steps before have moved: give it traffic",
            )
        ],
    ),
    "a pair whose last step moves everything back": (
        pair(steps=[{"replicas": 1, "traffic": "10%"}, {"replicas": "100%"}]),
        [
            (
                f"{AT}.steps[1].traffic",
                "without a share the step would move back what the steps before have moved: give it traffic",
            )
        ],
    ),
    "a pair by scripts": (
        pair(routing={"customNetworkRefs": [CUSTOM]}),
        [
            (
                f"{AT}.trafficRoutings[0].customNetworkRefs",
                "scripts do not move weight between Services of a pair: name a route in gateway",
            )
        ],
    ),
    "a pair behind an Ingress": (
        pair(routing={"ingress": {"name": "llama"}}),
        [
            (
                f"{AT}.trafficRoutings[0].ingress",
                "an Ingress cannot name both Services of a pair: name a route in gateway or istio",
            )
        ],
    ),
    "a pair with a DestinationRule to copy": (
        pair(routing={"gateway": None, "istio": {"virtualServiceName": "llama", "destinationRuleName": "llama"}}),
        [
            (
                f"{AT}.trafficRoutings[0].istio.destinationRuleName",
                "both Services of a pair are yours, and no DestinationRule is copied: remove it",
            )
        ],
    ),
    "a pair whose workers answer": (
        pair(routing={"target": "AllPods"}),
        [
            (
                f"{AT}.trafficRoutings[0].target",
                "a pair's Services keep the selectors that they have: remove it, and correct those",
            )
        ],
    ),
    "a pair with one Service": (
        pair(routing={"counterpartService": None}),
        [
            (
                f"{AT}.trafficRoutings[0].counterpartService",
                "each workload of a pair has its own Service: name the other one",
            )
        ],
    ),
    "a pair with pools and a second Service": (
        pair(routing={"gateway": POOLS}),
        [
            (
                f"{AT}.trafficRoutings[0].counterpartService",
                "inference pools lead to both workloads: remove it, or remove inferencePool",
            )
        ],
    ),
    "a pair with the same Service twice": (
        pair(routing={"counterpartService": "blue"}),
        [(f"{AT}.trafficRoutings[0].counterpartService", "Service blue is that of workloadRef: name the other one")],
    ),
    "everything at once, in the order of the fields": (
        canary(
            steps=[{"replicas": 2, "traffic": "5%"}, {"replicas": 1}], capacity="Surge", patchPodTemplateMetadata={}
        ),
        [
            (f"{AT}.steps[0].traffic", NO_ROUTING),
            (f"{AT}.steps[1].replicas", "1 is less than the step before (2): raise it, steps must not decrease"),
            (f"{AT}.patchPodTemplateMetadata", NO_SECOND.format("Surge")),
        ],
    ),
}


@pytest.mark.parametrize(("refused", "told"), _CASES.values(), ids=_CASES)
def test_each_problem_is_told_with_its_place_and_the_way_out(refused: RolloutSpec, told: list[tuple[str, str]]) -> None:
    assert [(each.path, each.message) for each in problems(refused)] == told


@pytest.mark.parametrize(
    "accepted",
    [
        canary(),
        steps(1, 1, 2, 1_000_000),
        steps("1%", "1%", "100%"),
        # What a percentage makes depends on the LWS, so counts and percentages cannot be compared.
        steps("50%", 1, "20%", 2),
        canary(capacity="ExtraWorkload"),
        canary(capacity="InPlace"),
        canary(capacity="InPlace", enableExtraWorkloadForCanary=False),
        canary(capacity="Surge", enableExtraWorkloadForCanary=False),
        canary(enableExtraWorkloadForCanary=False),
        canary(capacity="ExtraWorkload", enableExtraWorkloadForCanary=True),
        canary(enableExtraWorkloadForCanary=True),
        canary(failureThreshold=0),
        canary(failureThreshold="0%"),
        canary(failureThreshold="100%"),
        canary(patchPodTemplateMetadata={"labels": {"a": "b"}}),
        canary(disableGenerateCanaryService=False),
        canary(trafficRoutings=[]),
        canary(
            trafficRoutings=[{"service": "llama", "gateway": {"httpRouteName": "llama"}}],
            steps=[{"replicas": 1, "traffic": "auto"}, {"replicas": 2, "matches": [{"path": {}}]}],
        ),
        steps(1, pause={"duration": 0}),
        routed(steps=[{"replicas": 1, "gates": [WARM_UP]}]),
        routed(steps=[{"replicas": 1, "gates": [WARM_UP]}], capacity="Surge"),
        pair(),
        pair(activeSide="llama"),
        pair(activeSide="llama-green"),
        shifting(),
        shifting(replicas=4),
        shifting(extra=0, unavailable=1),
        shifting(extra="0%", unavailable="25%"),
        shifting(extra="100%"),
        canary(capacity="Shift", trafficRoutings=[ROUTE]),
        canary(capacity="Shift", trafficRoutings=[ROUTE], shift={"maxExtraGroups": 0, "maxUnavailableGroups": 1}),
        pair(routing={"counterpartService": None, "gateway": POOLS}),
    ],
)
def test_what_can_be_released_has_no_problems(accepted: RolloutSpec) -> None:
    assert problems(accepted) == ()


#: Modules whose messages have their cases here.
_MODULES = (validation, sides_rules)


def _places() -> set[tuple[str, int]]:
    """Modules and first lines of the expressions that make a Problem."""
    return {
        (module.__name__, call.lineno)
        for module in _MODULES
        for call in ast.walk(ast.parse(Path(inspect.getfile(module)).read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Problem"
    }


@pytest.fixture
def made_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[tuple[str, int]]]:
    lines: set[tuple[str, int]] = set()

    def record(path: str, message: str) -> Problem:
        caller = sys._getframe(1)
        lines.add((caller.f_globals["__name__"], caller.f_lineno))
        return Problem(path, message)

    for module in _MODULES:
        monkeypatch.setattr(module, "Problem", record)
    yield lines


def test_no_message_is_without_a_case(made_at: set[tuple[str, int]]) -> None:
    for refused, _ in _CASES.values():
        problems(refused)
    assert made_at == _places()


@pytest.mark.parametrize("name", ["x canary:", "x\ncanary", "", "ü"])
def test_a_header_that_no_route_could_name_is_refused_by_the_schema(name: str) -> None:
    with pytest.raises(ValidationError, match=r"headers\.0\.name"):
        routed(steps=[{"replicas": 1, "matches": [{"headers": [{"name": name, "value": "yes"}]}]}])
