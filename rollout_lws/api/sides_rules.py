"""What a spec can be refused for whose releases move requests between two workloads: a pair of the user's, or one of
the user's and one that releases make.
"""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.api.problem import Problem
from rollout_lws.api.rollout_spec import CanaryStrategy, CounterpartRef, RolloutSpec

_CAPACITY = "spec.strategy.canary.capacity"


def sides_problems(spec: RolloutSpec) -> Iterator[Problem]:
    """What is wrong with the members of a pair, and with those that are of a pair only and set without one."""
    canary, counterpart = spec.strategy.canary, spec.counterpart_ref
    is_pair = canary is not None and canary.is_pair
    if counterpart is None:
        if is_pair:
            yield Problem("spec.counterpartRef", "capacity Pair moves requests between two workloads: name the other")
        yield from _without_pair(spec)
        yield from _keeps(spec)
        if canary is not None:
            yield from _of_one(spec, canary)
        return
    if not is_pair or canary is None:
        yield Problem(
            _CAPACITY,
            "counterpartRef names a pair's second workload: set capacity: Pair, or remove counterpartRef",
        )
        return
    yield from _workloads(spec, counterpart)
    if spec.replicas is not None and not spec.scales_sides:
        yield Problem("spec.replicas", "with touch: RouteOnly no workload is scaled: remove it, and scale the workload")
    yield from _companions(spec, canary)
    yield from _shift(spec, canary)
    yield from _routing(canary)


def _companions(spec: RolloutSpec, canary: CanaryStrategy) -> Iterator[Problem]:
    if spec.companions and canary.shift is not None:
        yield Problem(
            "spec.strategy.canary.shift",
            "groups of companions cannot be exchanged one by one: remove it, or companions",
        )
    seen = [*spec.workloads[:2]]
    for index, each in enumerate(spec.companions):
        at = f"spec.companions[{index}]"
        for field, name in (("name", each.name), ("counterpart", each.counterpart)):
            if name in seen:
                yield Problem(f"{at}.{field}", f"{name} is named already: each workload has one place in a pair")
            seen.append(name)
        if spec.scales_sides and each.replicas is None:
            yield Problem(
                f"{at}.replicas", f'say how many groups {each.name} has: a count, or "N%" of those of workloadRef'
            )
        if not spec.scales_sides and each.replicas is not None:
            yield Problem(f"{at}.replicas", "with touch: RouteOnly no workload is scaled: remove it")


def _shift(spec: RolloutSpec, canary: CanaryStrategy) -> Iterator[Problem]:
    asked = canary.shift
    if asked is None:
        return
    at = "spec.strategy.canary.shift"
    if spec.touch is not None:
        yield Problem(at, "with touch: RouteOnly no workload is scaled: remove it, or remove touch")
    if {asked.max_extra_groups, asked.max_unavailable_groups} <= {0, "0%"}:
        yield Problem(
            at,
            "with neither an extra group nor one that may lack, no group can come or go: give maxExtraGroups 1, or"
            " maxUnavailableGroups 1 where no accelerator is free",
        )


def _of_one(spec: RolloutSpec, canary: CanaryStrategy) -> Iterator[Problem]:
    """Problems of capacity Shift, and of ``shift`` without it."""
    at = "spec.strategy.canary"
    if not canary.swaps:
        if canary.shift is not None:
            yield Problem(
                f"{at}.shift",
                "it is for capacity Shift, and for a pair: set capacity: Shift, or name the second workload in"
                " counterpartRef, or remove it",
            )
        return
    yield from _shift(spec, canary)
    if not canary.traffic_routings:
        yield Problem(
            f"{at}.trafficRoutings",
            "groups lose their requests before they go: name the Service, and the route that shares them",
        )
    yield from _shares(canary)


def _keeps(spec: RolloutSpec) -> Iterator[Problem]:
    """Groups that cannot stay when a release is over: nothing gives up requests, or nothing keeps them away."""
    plan, at = spec.strategy.blue_green, "spec.strategy.blueGreen.scaleDownDelaySeconds"
    if plan is None or not plan.keeps_seconds:
        return
    if not spec.swaps:
        yield Problem(at, "only with promotion: Swap there are groups that could stay: add that, or remove it")
    elif not plan.traffic_routings:
        yield Problem(
            at, "without trafficRoutings requests go to all groups that are ready: name the Service, or remove it"
        )


def _shares(canary: CanaryStrategy) -> Iterator[Problem]:
    """Steps without a share after one that has some."""
    for index, step in enumerate(canary.steps):
        shared = any(each.traffic or each.matches for each in canary.steps[:index])
        # A last step of all groups is only the hand-over if the old ones go meanwhile.
        hands_over = canary.shifting is not None and index == len(canary.steps) - 1 and step.replicas == "100%"
        if shared and not (step.traffic or step.matches or hands_over):
            yield Problem(
                f"spec.strategy.canary.steps[{index}].traffic",
                "without a share the step would move back what the steps before have moved: give it traffic",
            )


def _without_pair(spec: RolloutSpec) -> Iterator[Problem]:
    style = spec.strategy.style
    routing = style.traffic_routings[0] if style is not None and style.traffic_routings else None
    for path, value in (
        ("spec.activeSide", spec.active_side),
        ("spec.touch", spec.touch),
        ("spec.companions", spec.companions or None),
        (
            f"spec.strategy.{'canary' if spec.strategy.canary is not None else 'blueGreen'}"
            ".trafficRoutings[0].counterpartService",
            routing.counterpart_service if routing is not None else None,
        ),
    ):
        if value is not None:
            yield Problem(path, "it is for a pair: name the second workload in counterpartRef, or remove it")


def _workloads(spec: RolloutSpec, counterpart: CounterpartRef) -> Iterator[Problem]:
    ref = spec.workload_ref
    if (counterpart.api_version, counterpart.kind) != (ref.api_version, ref.kind):
        yield Problem(
            "spec.counterpartRef.kind",
            f"both workloads of a pair are of one kind: give it {ref.api_version} {ref.kind}, as workloadRef has",
        )
    if counterpart.name == ref.name:
        yield Problem("spec.counterpartRef.name", f"{ref.name} is workloadRef itself: name the other workload")
    if spec.active_side not in (None, ref.name, counterpart.name):
        yield Problem("spec.activeSide", f"{spec.active_side} is neither: name {ref.name} or {counterpart.name}")


def _routing(canary: CanaryStrategy) -> Iterator[Problem]:
    at = "spec.strategy.canary.trafficRoutings"
    if not canary.traffic_routings:
        yield Problem(at, "the release of a pair moves requests: name the route and the Services of both workloads")
        return
    yield from _shares(canary)
    for index, step in enumerate(canary.steps):
        if step.request_header_modifier is not None and not step.matches:
            yield Problem(
                f"spec.strategy.canary.steps[{index}].requestHeaderModifier",
                "a weight changes no headers, since both backends are yours: give the step matches, or remove it",
            )
    routing = canary.traffic_routings[0]
    if routing.ingress is not None:
        yield Problem(
            f"{at}[0].ingress",
            "an Ingress cannot name both Services of a pair: name a route in gateway or istio",
        )
    if routing.istio is not None and routing.istio.destination_rule_name is not None:
        yield Problem(
            f"{at}[0].istio.destinationRuleName",
            "both Services of a pair are yours, and no DestinationRule is copied: remove it",
        )
    if routing.custom_network_refs:
        yield Problem(
            f"{at}[0].customNetworkRefs",
            "scripts do not move weight between Services of a pair: name a route in gateway",
        )
    if routing.target != "AsSelected":
        yield Problem(
            f"{at}[0].target", "a pair's Services keep the selectors that they have: remove it, and correct those"
        )
    pools = canary.pools
    if pools is None and routing.counterpart_service is None:
        yield Problem(f"{at}[0].counterpartService", "each workload of a pair has its own Service: name the other one")
    elif pools is not None and routing.counterpart_service is not None:
        yield Problem(
            f"{at}[0].counterpartService", "inference pools lead to both workloads: remove it, or remove inferencePool"
        )
    elif routing.counterpart_service == routing.service:
        yield Problem(
            f"{at}[0].counterpartService", f"Service {routing.service} is that of workloadRef: name the other one"
        )
