"""What a Rollout's spec alone can be refused for, each with the way out.

The CRD's CEL rules say most of it at apply time; a cluster may hold older objects, and what is not built yet is
accepted by the schema (so that manifests stay portable) and refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rollout_lws.api.expressions import unclosed
from rollout_lws.api.gate_rules import before_traffic_problems, gate_problems, pool_problems, source_problems
from rollout_lws.api.gate_spec import Analysis
from rollout_lws.api.problem import Problem
from rollout_lws.api.rollout_spec import (
    CanaryStrategy,
    GatewayRef,
    HttpMatch,
    RolloutSpec,
    Step,
    StyleStrategy,
    TrafficRouting,
)
from rollout_lws.api.sides_rules import sides_problems
from rollout_lws.api.words import DrainUntil
from rollout_lws.objects.scaling import scaled

#: Characters of expressions that are read of one spec: reading them takes 10 ms of a processor, and an object has room
#: for fifty times as many. What is beyond is left to the router.
MOST_EXPRESSED = 2**15


#: An apiVersion, which becomes part of a path: group ("" for the core group) and version.
_API_VERSION = re.compile(r"(?:([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)/)?(v[a-z0-9]+)")


def no_api_version(text: str) -> str:
    """Why this is no apiVersion; "" if it is one. Any other text would lead a request elsewhere."""
    if _API_VERSION.fullmatch(text):
        return ""
    return f"{text!r} is no apiVersion: write group/version, such as networking.istio.io/v1"


def problems(spec: RolloutSpec) -> tuple[Problem, ...]:
    """Everything wrong with a spec, in the order of its fields; () when it can be released."""
    return tuple(each_problem(spec))


def each_problem(spec: RolloutSpec) -> Iterator[Problem]:
    """The same one by one, for callers that need only the first ones."""
    strategy = spec.strategy
    if (strategy.canary is None) == (strategy.blue_green is None):
        yield Problem(
            "spec.strategy", "exactly one of canary and blueGreen must be set: give the canary one with its steps"
        )
    if strategy.blue_green is not None:
        yield from _style(strategy.blue_green, strategy.source, "spec.strategy.blueGreen")
    yield from source_problems(strategy.source, "spec.strategy.analysis")
    if strategy.canary is not None:
        yield from _style(strategy.canary, strategy.source, "spec.strategy.canary")
        yield from _capacity(strategy.canary, "spec.strategy.canary")
    yield from sides_problems(spec)


def _style(style: StyleStrategy, analysis: Analysis, at: str) -> Iterator[Problem]:
    if not 1 <= len(style.steps) <= 50:
        yield Problem(f"{at}.steps", f"{len(style.steps)} steps: give 1 to 50")
    yield from gate_problems(style.gates, analysis, at)
    yield from pool_problems(style.gates, at, pools=style.pools is not None)
    yield from _steps(style.steps, at, routed=bool(style.traffic_routings))
    for index, step in enumerate(style.steps):
        path = f"{at}.steps[{index}]"
        yield from _gates(step, analysis, path, frozenset(gate.name for gate in style.gates))
        yield from pool_problems(step.gates, path, pools=style.pools is not None)
        yield from before_traffic_problems(
            step.gates,
            path,
            routed=bool(style.traffic_routings),
            in_place=style.takes_places,
        )
    if style.failure_threshold is not None:
        yield from _number(f"{at}.failureThreshold", style.failure_threshold, least=0)
    yield from _routings(style, at)
    if style.disable_generate_canary_service:
        yield Problem(f"{at}.disableGenerateCanaryService", "the single-Service mode is not built yet: remove it")


def _routings(style: StyleStrategy, at: str) -> Iterator[Problem]:
    for routing in style.traffic_routings:
        path, gateway = f"{at}.trafficRoutings[0]", routing.gateway
        yield from _drain(routing, path)
        yield from _custom(routing, path)
        unnamed = gateway is None or not gateway.http_route_name
        by_grpc = gateway is not None and gateway.grpc_route_name
        if gateway is not None and gateway.inference_pool is not None and unnamed:
            yield Problem(
                f"{path}.gateway.httpRouteName", "name the HTTPRoute that refers to the inference pools as well"
            )
        elif gateway is not None and gateway.inference_pool is not None and by_grpc:
            yield Problem(
                f"{path}.gateway.grpcRouteName",
                "inference pools answer HTTP requests: remove it, or refer to Services in the routes",
            )
        elif gateway is not None and gateway.inference_pool is not None and routing.ingress is not None:
            yield Problem(
                f"{path}.ingress",
                "an Ingress cannot refer to inference pools: remove it, or refer to Services in the route",
            )
        elif gateway is not None and gateway.inference_pool is not None and routing.istio is not None:
            yield Problem(
                f"{path}.istio",
                "a VirtualService cannot refer to inference pools: remove it, or refer to Services in the routes",
            )
        elif not routing.any_router:
            yield Problem(
                f"{path}.gateway.httpRouteName",
                "name the HTTPRoute that shares the requests, or set grpcRouteName, istio, ingress or"
                " customNetworkRefs",
            )


def _custom(routing: TrafficRouting, at: str) -> Iterator[Problem]:
    gateway, group = routing.gateway or GatewayRef(), "gateway.networking.k8s.io"
    seen = {
        ("v1", "Service", routing.service),
        (group, "HTTPRoute", gateway.http_route_name),
        (group, "GRPCRoute", gateway.grpc_route_name),
        ("networking.istio.io", "VirtualService", routing.istio.virtual_service_name if routing.istio else None),
        ("networking.k8s.io", "Ingress", routing.ingress.name if routing.ingress else None),
    }
    for index, ref in enumerate(routing.custom_network_refs):
        path, found = f"{at}.customNetworkRefs[{index}]", (ref.api_version.partition("/")[0], ref.kind, ref.name)
        if found in seen:
            yield Problem(path, f"{ref.kind} {ref.name} is named twice, and would be changed twice: name it once")
        seen.add(found)
        wrong = no_api_version(ref.api_version)
        if wrong:
            yield Problem(f"{path}.apiVersion", wrong)
    if routing.custom_network_refs and routing.gateway is not None and routing.gateway.inference_pool is not None:
        yield Problem(
            f"{at}.customNetworkRefs",
            "scripts share requests between Services, and inference pools have theirs from the route: remove one of the"
            " two",
        )


def _drain(routing: TrafficRouting, at: str) -> Iterator[Problem]:
    drain, seconds = routing.draining, routing.drain_seconds
    if drain.until is not DrainUntil.IDLE:
        if drain.max_seconds is not None:
            yield Problem(
                f"{at}.drain.maxSeconds", "it bounds the wait for idle groups: add until: Idle, or use drainSeconds"
            )
    elif drain.longest < seconds:
        yield Problem(
            f"{at}.drain.maxSeconds",
            f"{drain.longest} is less than drainSeconds ({seconds}), which groups get that do not say what runs on"
            " them: raise it, or lower drainSeconds",
        )


def _capacity(canary: CanaryStrategy, at: str) -> Iterator[Problem]:
    extra, capacity = canary.enable_extra_workload_for_canary, canary.capacity
    if capacity is not None and extra is not None and extra != capacity.makes_workload:
        yield Problem(
            f"{at}.capacity",
            f"capacity {capacity} contradicts enableExtraWorkloadForCanary {str(extra).lower()}: remove the latter",
        )
    elif not canary.made_by.makes_workload and canary.patch_pod_template_metadata is not None:
        yield Problem(
            f"{at}.patchPodTemplateMetadata",
            f"it is for the pods of a second workload, and capacity {canary.made_by} makes none: remove it,"
            " or use capacity ExtraWorkload",
        )


def _steps(steps: tuple[Step, ...], at: str, *, routed: bool) -> Iterator[Problem]:
    room = MOST_EXPRESSED
    for index, step in enumerate(steps):
        path = f"{at}.steps[{index}]"
        yield from _number(f"{path}.replicas", step.replicas, least=1)
        before = steps[index - 1].replicas if index else None
        if before is not None and _decreases(before, step.replicas):
            yield Problem(
                f"{path}.replicas",
                f"{step.replicas} is less than the step before ({before}): raise it, steps must not decrease",
            )
        if step.pause.duration is not None and step.pause.approval_timeout_seconds is not None:
            yield Problem(
                f"{path}.pause.approvalTimeoutSeconds",
                "it bounds the wait for an approval, and a pause with a duration asks for none: remove one of the two",
            )
        for number, match in enumerate(step.matches):
            yield from _match(match, f"{path}.matches[{number}]")
            for member, expression in _expressions(match):
                problem = unclosed(expression) if room > 0 else ""
                room -= len(expression)
                if problem:
                    message = f'"{expression}" is no regular expression: {problem}'
                    yield Problem(f"{path}.matches[{number}].{member}.value", message)
        for name in () if routed else _routed_members(step):
            yield Problem(
                f"{path}.{name}",
                "nothing is named that could route it: give the strategy trafficRoutings, or remove it; requests then"
                " reach the new version through your own Service, in proportion to its groups",
            )


def _gates(step: Step, analysis: Analysis, at: str, of_release: frozenset[str]) -> Iterator[Problem]:
    yield from gate_problems(step.gates, analysis, at, of_release)
    for index, gate in enumerate(step.gates):
        path = f"{at}.gates[{index}]"
        if gate.metric is not None and gate.metric.max_to_stable is not None and step.traffic == "100%":
            yield Problem(
                f"{path}.metric.maxToStable",
                "the stable version gets no requests in this step, so there is nothing to compare with: use max, or"
                " compare in a step before",
            )


def _match(match: HttpMatch, at: str) -> Iterator[Problem]:
    if not (match.path or match.headers or match.query_params):
        yield Problem(
            at,
            "it says nothing of requests, and the route's own rule takes all of them before it: give it headers, a path"
            " or queryParams",
        )


def _expressions(match: HttpMatch) -> Iterator[tuple[str, str]]:
    """The regular expressions of a match, each with the member that has it."""
    every = [
        *((("path", match.path),) if match.path else ()),
        *((f"headers[{number}]", each) for number, each in enumerate(match.headers)),
        *((f"queryParams[{number}]", each) for number, each in enumerate(match.query_params)),
    ]
    return ((member, each.value) for member, each in every if each.type == "RegularExpression")


def _routed_members(step: Step) -> Iterator[str]:
    if step.traffic is not None:
        yield "traffic"
    if step.matches:
        yield "matches"
    if step.request_header_modifier is not None:
        yield "requestHeaderModifier"


def _number(path: str, value: int | str, *, least: int) -> Iterator[Problem]:
    try:
        number = scaled(value, 100)
    except ValueError as error:
        yield Problem(path, f"{error}")
        return
    if number < least:
        yield Problem(path, f"{value} is too small: give at least {least} group" + ("" if least == 1 else "s"))
    elif isinstance(value, str) and number > 100:
        yield Problem(path, f"{value} is more than 100%")


def _decreases(before: int | str, after: int | str) -> bool:
    """Counts and percentages can only be compared among themselves; what they make is never lowered going forward."""
    if isinstance(before, int) != isinstance(after, int):
        return False
    try:
        return scaled(after, 100) < scaled(before, 100)
    except ValueError:
        return False
