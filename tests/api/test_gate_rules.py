"""What is asked of gates: each mistake has one sentence, and what has none stands for one criterion."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rollout_lws.analysis.criterion import Criterion
from rollout_lws.analysis.kinds import Engine, Signal
from rollout_lws.api import RolloutSpec
from rollout_lws.api.gate_rules import criterion
from rollout_lws.api.structural import structural
from rollout_lws.api.validation import problems

WORKLOAD = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llama"}


def spec(*gates: dict[str, Any], analysis: dict[str, Any] | None = None, **step: Any) -> RolloutSpec:
    plan = {"steps": [{"replicas": 1, "gates": list(gates), **step}, {"replicas": "100%"}]}
    if "traffic" in step:
        plan["trafficRoutings"] = [{"service": "llama", "gateway": {"httpRouteName": "llama"}}]
    strategy = {"canary": plan, **({"analysis": analysis} if analysis else {})}
    return RolloutSpec.model_validate({"workloadRef": WORKLOAD, "strategy": strategy})


def metric(signal: str = "TimeToFirstToken", name: str = "g", **limits: Any) -> dict[str, Any]:
    return {"name": name, "metric": {"signal": signal, **limits}}


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        (metric(max="2s"), Criterion(Signal.TIME_TO_FIRST_TOKEN, limit=2.0)),
        (metric(max="500ms", quantile=99), Criterion(Signal.TIME_TO_FIRST_TOKEN, limit=0.5, quantile=0.99)),
        (metric(maxToStable="120%"), Criterion(Signal.TIME_TO_FIRST_TOKEN, to_stable=1.2)),
        (metric("ErrorRate", max="2%", minSamples=500), Criterion(Signal.ERROR_RATE, limit=0.02, min_samples=500)),
        (metric("ErrorRate", max="0.5%"), Criterion(Signal.ERROR_RATE, limit=0.005)),
        (metric("PrefixCacheHits", min="40%"), Criterion(Signal.PREFIX_CACHE_HITS, limit=0.4, at_least=True)),
        (metric("QueueLength", max="8", confidence="90%"), Criterion(Signal.QUEUE_LENGTH, limit=8.0, confidence=0.9)),
        (metric("KVCacheUsage", max="90%"), Criterion(Signal.KV_CACHE_USAGE, limit=0.9)),
        (metric("Stalled", max="1m"), Criterion(Signal.STALLED, limit=60.0)),
        ({**metric(max="2s"), "window": 600}, Criterion(Signal.TIME_TO_FIRST_TOKEN, limit=2.0, window=600.0)),
    ],
)
def test_criteria(gate: dict[str, Any], expected: Criterion) -> None:
    found = spec(gate)
    assert problems(found) == ()
    (plan, *_) = found.strategy.canary.steps  # type: ignore[union-attr]
    (asked,) = plan.gates
    assert asked.metric is not None
    assert criterion(asked.metric, asked, found.strategy.source) == expected


def http(**asked: Any) -> dict[str, Any]:
    return {"name": "g", "http": asked}


@pytest.mark.parametrize(
    ("gates", "path", "message"),
    [
        ([metric()], "metric", "exactly one of max, min, maxToStable must be set, and 0 are"),
        ([metric(max="2s", maxToStable="120%")], "metric", "and 2 are"),
        ([metric(max="2")], "metric.max", "has no unit of time"),
        ([metric(max="2%")], "metric.max", "has no unit of time"),
        ([metric(max="0s")], "metric.max", "more than 0s"),
        ([metric(min="2s")], "metric.min", "better when lower"),
        ([metric("ErrorRate", max="2")], "metric.max", "write 2%"),
        ([metric("ErrorRate", max="0%")], "metric.max", "decides nothing"),
        ([metric("ErrorRate", max="100%")], "metric.max", "decides nothing"),
        ([metric("ErrorRate", max="2%", quantile=95)], "metric.quantile", "has no quantile"),
        ([metric("PrefixCacheHits", max="2%")], "metric", "use min"),
        ([metric("QueueLength", max="2s")], "metric.max", "write 8"),
        ([metric("KVCacheUsage", max="0.9")], "metric.max", "write 90%"),
        ([metric("Stalled", maxToStable="120%")], "metric.maxToStable", "use max, in seconds"),
        (
            [{**metric(max="2s"), "window": 600, "deadlineSeconds": 300}],
            "deadlineSeconds",
            "before the window of 600 s",
        ),
        ([{"name": "g"}], "", "it asks for nothing"),
        ([{**metric(max="2s"), **http(each="Group")}], "", "it asks for metric and http: give it one"),
        ([{**metric(max="2s"), "when": "BeforeTraffic"}], "when", "come with its traffic"),
        ([{**http(each="Group"), "window": 60}], "window", "an answer has no window"),
        ([http()], "http", "exactly one of each and service must be set, and none is"),
        ([http(each="Group", service="approvals")], "http", "and both are"),
        ([http(each="Group", body="{}", method="GET")], "http.body", "a GET has no body"),
        ([http(each="Group", metadata={"a": "b"})], "http.metadata", "part of the body that a POST has by default"),
        ([http(service="a", metadata={"a": "b"}, body="{}")], "http.metadata", "or the body"),
        ([http(service="a", body="é" * 10_000)], "http.body", "20000 bytes are too many: give at most 16384"),
        ([http(service="a", headers={"a b": "c"})], "http.headers", "'a b' is no name of a header"),
        ([http(service="a", headers={"x\r\nhost": "c"})], "http.headers", "is no name of a header"),
        *(
            ([http(service="a", headers={name: "c"})], "http.headers", f"{name} is set by the controller, or says who")
            for name in (
                *("Host", "Authorization", "Cookie", "Content-Length", "Transfer-Encoding", "Connection", "TE"),
                *("Proxy-Authorization", "Impersonate-User", "X-Remote-User", "X-Forwarded-For", "Accept-Encoding"),
            )
        ),
    ],
)
def test_mistakes(gates: list[dict[str, Any]], path: str, message: str) -> None:
    (problem,) = problems(spec(*gates))
    assert problem.path == f"spec.strategy.canary.steps[0].gates[0].{path}".rstrip(".")
    assert message in problem.message


def job(**fields: Any) -> dict[str, Any]:
    return {"name": "g", "job": {"fromCronJob": "evals"}, **fields}


def test_a_job_has_an_hour() -> None:
    found = spec(job())
    assert problems(found) == ()
    (gate,) = found.strategy.canary.steps[0].gates  # type: ignore[union-attr]
    assert gate.deadline == 3600
    assert spec(job(deadlineSeconds=30)).strategy.canary.steps[0].gates[0].deadline == 30  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("gate", "path", "message"),
    [
        (job(window=600), ".window", "a Job has no window"),
        ({**job(), **metric(max="2s")}, "", "it asks for metric and job: give it one"),
        ({"name": "g"}, "", "give it a metric, a query, http or a job"),
        (job(when="BeforeTraffic"), ".when", "give the strategy trafficRoutings"),
    ],
)
def test_mistakes_of_jobs(gate: dict[str, Any], path: str, message: str) -> None:
    (problem,) = problems(spec(gate))
    assert problem.path == f"spec.strategy.canary.steps[0].gates[0]{path}"
    assert message in problem.message


@pytest.mark.parametrize(("capacity", "refused"), [("ExtraWorkload", False), ("Surge", False), ("InPlace", True)])
def test_requests_are_held_back_only_from_groups_that_are_made_beside(capacity: str, refused: bool) -> None:
    routed = spec(job(when="BeforeTraffic"), traffic="10%").to_json_dict()
    routed["strategy"]["canary"]["capacity"] = capacity
    found = problems(RolloutSpec.model_validate(routed))
    assert [each.path for each in found] == ["spec.strategy.canary.steps[0].gates[0].when"] * refused
    assert all("get their share before they are ready" in each.message for each in found)


def test_two_gates_of_one_name() -> None:
    (problem,) = problems(spec(metric(max="2s"), metric(max="3s")))
    assert problem.path.endswith("gates[1].name")


def test_an_engine_that_does_not_expose_a_signal() -> None:
    (problem,) = problems(spec(metric("Degenerate", max="1%"), analysis={"engine": Engine.SGLANG.value}))
    assert problem.message == "SGLang does not expose it; vLLM does"


PICKED = {"of": "EndpointPicker"}


@pytest.mark.parametrize(
    ("gate", "analysis", "pools", "told"),
    [
        (metric(max="2s", **PICKED), {"from": "Prometheus"}, True, ""),
        # It is not the engine of the leader pods that is asked.
        (metric(max="2s", **PICKED), {"from": "Prometheus", "engine": "TGI"}, True, ""),
        (
            metric("ErrorRate", maxToStable="150%", **PICKED),
            {"from": "Prometheus"},
            True,
            "metric.maxToStable: a picker",
        ),
        (metric("ErrorRate", max="2%", **PICKED), {"from": "Prometheus"}, True, ""),
        (metric("RunningRequests", max="8", **PICKED), {"from": "Prometheus"}, True, "metric.signal: EndpointPicker"),
        (metric("QueueTime", max="2s", **PICKED), {"from": "Prometheus"}, True, "metric.signal: EndpointPicker does"),
        (metric(max="2s", **PICKED), None, True, "metric.of: no picker is asked itself: set analysis.from"),
        (metric(max="2s", **PICKED), {"from": "Prometheus"}, False, "metric.of: the versions have no endpoint picker"),
    ],
)
@pytest.mark.parametrize("of_release", [False, True])
def test_what_an_endpoint_picker_may_be_asked_for(
    gate: dict[str, Any], analysis: dict[str, Any] | None, pools: bool, told: str, of_release: bool
) -> None:
    made = spec(gate, analysis=analysis, traffic="10%").to_json_dict()
    canary = made["strategy"]["canary"]
    if pools:
        canary["trafficRoutings"][0]["gateway"]["inferencePool"] = {"stable": "a", "canary": "b"}
    if of_release:
        canary["gates"] = canary["steps"][0].pop("gates")
    found = problems(RolloutSpec.model_validate(made))
    at = "spec.strategy.canary" + ("" if of_release else ".steps[0]") + ".gates[0]."
    said = [f"{each.path}: {each.message}".removeprefix(at) for each in found]
    assert [each[: len(told)] for each in said] == [told] * bool(told)


def test_nothing_is_compared_with_a_version_without_requests() -> None:
    (problem,) = problems(spec(metric(maxToStable="120%"), traffic="100%"))
    assert "the stable version gets no requests in this step" in problem.message
    assert problems(spec(metric(maxToStable="120%"), traffic="50%")) == ()


@pytest.mark.parametrize(
    ("asked", "verb"),
    [
        ({"each": "Group"}, "GET"),
        ({"each": "Group", "body": "{}"}, "POST"),
        ({"each": "Group", "method": "POST"}, "POST"),
        ({"service": "approvals"}, "POST"),
        ({"service": "approvals", "method": "GET"}, "GET"),
        ({"service": "approvals", "port": 8080, "headers": {"X-Team": "a"}, "failOn": [409]}, "POST"),
        ({"service": "approvals", "port": "web", "metadata": {"type": "cmd"}, "path": "/v1/models/m:predict"}, "POST"),
    ],
)
def test_requests(asked: dict[str, Any], verb: str) -> None:
    found = spec(http(**asked))
    assert problems(found) == ()
    (gate,) = found.strategy.canary.steps[0].gates  # type: ignore[union-attr]
    assert gate.http is not None
    assert (gate.http.verb, gate.deadline) == (verb, 600)


@pytest.mark.parametrize(
    "path", ["/../x", "/a/../../x", "/./x", "x", "//x", "/a//b", "/%2e%2e/x", "/x?y", "/x#y", "/.x"]
)
def test_paths_that_are_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        spec(http(each="Group", path=path))


@pytest.mark.parametrize("value", ["a\r\nHost: b", "a\n", "\x00", "é", "x" * 1025])
def test_values_of_headers_that_are_refused(value: str) -> None:
    with pytest.raises(ValidationError):
        spec(http(each="Group", headers={"a": value}))


def of_release(*gates: dict[str, Any], step: dict[str, Any] | None = None) -> RolloutSpec:
    plan = {"gates": list(gates), "steps": [{"replicas": 1, **(step or {})}, {"replicas": "100%"}]}
    return RolloutSpec.model_validate({"workloadRef": WORKLOAD, "strategy": {"canary": plan}})


def test_a_gate_of_the_release_is_watched() -> None:
    found = of_release(metric(max="2s"))
    assert problems(found) == ()
    (asked,) = found.strategy.canary.gates  # type: ignore[union-attr]
    assert asked.metric is not None
    assert criterion(asked.metric, asked, found.strategy.source).watched


@pytest.mark.parametrize(
    ("found", "path", "message"),
    [
        (of_release({"name": "g"}), "gates[0]", "it asks for nothing: give it a metric or a query"),
        (of_release(metric()), "gates[0].metric", "exactly one of max, min, maxToStable must be set, and 0 are"),
        (
            of_release(metric(max="1s"), metric(max="2s")),
            "gates[1].name",
            "two gates are called g: rename one of them",
        ),
        (
            of_release(metric(max="1s"), step={"gates": [metric(max="2s")]}),
            "steps[0].gates[0].name",
            "a gate of the release is called g as well: rename one of them",
        ),
    ],
)
def test_what_gates_of_the_release_are_refused_for(found: RolloutSpec, path: str, message: str) -> None:
    assert [(each.path, each.message) for each in problems(found)] == [(f"spec.strategy.canary.{path}", message)]


@pytest.mark.parametrize("member", ["http", "job", "when", "deadlineSeconds"])
def test_what_only_steps_ask_for_is_no_field_of_theirs(member: str) -> None:
    schema = structural(RolloutSpec)
    style = schema["properties"]["strategy"]["properties"]["canary"]["properties"]
    assert member not in style["gates"]["items"]["properties"]
    assert member in style["steps"]["items"]["properties"]["gates"]["items"]["properties"]
