"""What an API server refuses is found, and no manifest, however wrong, is too much."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from rollout_lws.api import crd
from rollout_lws.cli.lint.findings import Severity
from rollout_lws.cli.lint.paths import Path, located, written
from tests.api import test_refusals as by_server
from tests.cli.lint import rich
from tests.cli.lint.manifests import (
    HPA,
    HPA_OF_ROLLOUT,
    INGRESS,
    LWS,
    POOLS,
    ROLLOUT,
    ROUTE,
    SERVICE,
    WHOLE_SCALED_PAIR,
    edited,
    found,
    joined,
    report,
)
from tests.cli.lint.stateful import WHOLE_STS


def errors(rollout: dict[str, Any]) -> list[str]:
    head = {"apiVersion": "rollouts.kruise.io/v1beta1", "kind": "Rollout"}
    found = report(yaml.safe_dump({**head, **rollout})).findings
    return [each.message for each in found if each.severity is Severity.ERROR]


@pytest.mark.parametrize("case", by_server._GOOD)
def test_what_a_server_accepts_has_no_error(case: str) -> None:
    found = errors(by_server.rollout(by_server._GOOD[case]))
    # The controller is stricter: a share needs somebody who gives it.
    assert [each for each in found if not each.startswith("nothing is named that could route it")] == []


@pytest.mark.parametrize("case", by_server._BAD)
def test_what_a_server_refuses_has_an_error(case: str) -> None:
    assert errors(by_server.rollout(by_server._BAD[case][0])) != []


@pytest.mark.parametrize("member", ["annotations", "labels", "namespace"])
def test_what_is_null_in_metadata_is_not_said(member: str) -> None:
    texts = (each.replace("  name: chat\n", f"  name: chat\n  {member}:\n", 1) for each in (ROLLOUT, LWS))
    assert [each.message for each in report(joined(*texts)).findings if each.code == "LWS102"] == []


def _rules(schema: Any) -> Iterator[Mapping[str, str]]:
    if isinstance(schema, Mapping):
        yield from schema.get("x-kubernetes-validations") or ()
        for inner in schema.values():
            yield from _rules(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _rules(inner)


def _pair(counterpart: Any, **members: Any) -> dict[str, Any]:
    made = by_server.rollout(by_server.canary(capacity="Pair"))
    return {**made, "spec": {**made["spec"], "counterpartRef": counterpart, **members}}


def _companion(counterpart: str | None, canary: Any = MappingProxyType({}), **members: Any) -> dict[str, Any]:
    """A pair, if it has a counterpart, with a companion of these members."""
    made = by_server.rollout(by_server.canary(capacity="Pair", **canary))
    ref = {"counterpartRef": {**by_server.REF, "name": counterpart}} if counterpart is not None else {}
    companions = [{"name": "a", "counterpart": "b", **members}]
    return {**made, "spec": {**made["spec"], **ref, "companions": companions}}


#: A Rollout that breaks each rule of our own definitions, by the rule's message.
_RULED: dict[str, dict[str, Any]] = {
    "only leaderworkerset.x-k8s.io/v1 LeaderWorkerSet and apps/v1 StatefulSet can be released": by_server.rollout(
        ref={"apiVersion": "x/v1"}
    ),
    "exactly one of canary and blueGreen must be set": by_server.rollout({}),
    "replicas must be more than 0": by_server.rollout(by_server.step(replicas="0%")),
    "approvalTimeoutSeconds needs a pause without duration": by_server.rollout(
        by_server.step(pause={"duration": 1, "approvalTimeoutSeconds": 1})
    ),
    "capacity contradicts enableExtraWorkloadForCanary: remove the latter": by_server.rollout(
        by_server.canary(capacity="Surge", enableExtraWorkloadForCanary=True)
    ),
    "the name may have at most 63 characters: objects of a release carry it as a label": by_server.rollout(
        name="a" * 64
    ),
    "capacity Pair and counterpartRef go together: set both or neither": by_server.rollout(
        by_server.canary(capacity="Pair")
    ),
    "counterpartRef must name another workload of the kind of workloadRef": _pair(by_server.REF),
    "with touch RouteOnly no workload is scaled: scale the workload itself": _pair(
        {**by_server.REF, "name": "other"}, touch="RouteOnly", replicas=4
    ),
    "shift is for capacity Shift, and for a pair whose workloads the release scales (no touch)": by_server.rollout(
        by_server.canary(shift={})
    ),
    "capacity Shift takes requests off groups before they go: it needs trafficRoutings": by_server.rollout(
        by_server.canary(capacity="Shift")
    ),
    "scaleDownDelaySeconds keeps the groups that promotion Swap has taken the requests off by trafficRoutings": (
        by_server.rollout(by_server.blue_green(promotion="Swap", scaleDownDelaySeconds=60))
    ),
    "with maxExtraGroups 0 a group has to be allowed to lack: set maxUnavailableGroups 1, or remove maxExtraGroups": (
        by_server.rollout(by_server.canary(capacity="Pair", shift={"maxExtraGroups": "0%"}))
    ),
    "companions are of a pair: name its second workload in counterpartRef": _companion(None, replicas=2),
    "each companion needs replicas, unless touch is RouteOnly: then its owner scales it": _companion("other"),
    "groups of companions cannot be exchanged one by one: remove shift, or companions": _companion(
        "other", {"shift": {}}, replicas=2
    ),
}


def test_our_own_rules_are_asked_in_the_controllers_words() -> None:
    about_edits = {each["message"] for each in _rules(crd.render()) if "oldSelf" in each["rule"]}
    assert {each["message"] for each in _rules(crd.render())} - about_edits == set(_RULED)
    assert [message for message, rollout in _RULED.items() if not errors(rollout)] == []


@pytest.mark.parametrize(
    "path", [("spec", "steps", 0, "replicas"), ("metadata", "labels", "app.kubernetes.io/name"), ("a",), ("a", 1, 2)]
)
def test_a_path_is_found_again_as_it_was_written(path: Path) -> None:
    body: Any = None
    for part in reversed(path):
        body = {part: body} if isinstance(part, str) else [None] * part + [body]
    assert located(body, written(path)) == path


_VALUES: tuple[Any, ...] = (
    *(None, "x", "", 0, -1, 3.5, True, [], {}, ["x"], {"a": "b"}, [{}], [None], "100%", "x" * 70, 10**12, 10**30),
    *(float("nan"), 2.0, "\n"),
    "delete",
)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_WORLDS = {
    "route": joined(ROLLOUT, LWS, SERVICE, ROUTE, HPA),
    "Ingress": joined(ROLLOUT.replace("gateway:", "ingress:").replace("httpRouteName", "name"), LWS, SERVICE, INGRESS),
    "pools": joined(
        ROLLOUT.replace(
            "httpRouteName: chat", "httpRouteName: chat\n            inferencePool: {stable: chat, canary: chat-next}"
        ),
        LWS,
        SERVICE,
        ROUTE,
        POOLS,
    ),
    "a pair": joined(*WHOLE_SCALED_PAIR, HPA_OF_ROLLOUT),
    "a StatefulSet": joined(*WHOLE_STS, HPA.replace("LeaderWorkerSet", "StatefulSet")),
    "all written out": joined(
        *(edited(each, "  name: chat\nspec", f"  name: chat\n{rich.METADATA}spec") for each in (ROLLOUT, ROUTE)),
        edited(SERVICE, "  name: chat-api\n", f"  name: chat-api\n{rich.METADATA}"),
        *(rich.LWS, rich.SCALED, rich.BUDGET),
    ),
}


def _paths(value: Any, at: Path = ()) -> Iterator[Path]:
    yield at
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, inner in members:
        yield from _paths(inner, (*at, part))


def _breaks(documents: list[Any]) -> list[tuple[Path, Any]]:
    """Each member of each document, with what else it may be."""
    return [(path, value) for path in _paths(documents) if path for value in _VALUES]


def _broken(documents: list[Any], path: Path, value: Any) -> list[Any]:
    made = copy.deepcopy(documents)
    inner: Any = made
    for part in path[:-1]:
        inner = inner[part]
    if value == "delete":
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return made


def test_what_is_all_written_out_has_no_mistake() -> None:
    assert [each.message for each in report(_WORLDS["all written out"]).findings if each.code < "LWS200"] == []


#: What people mistype in members that no rule needs, but some function of the controller reads.
_MISTYPED = {
    "an uid": ("  name: chat\n", "  name: chat\n  uid: 7\n"),
    "an owner's name": ("  name: chat\n", "  name: chat\n  ownerReferences: [{kind: A, name: 5}]\n"),
    "a number beyond all": ("  replicas: 4", "  replicas: 1000000000000000000000000000000"),
    "a number that is none": ("    size: 2", "    size: 1e30"),
    "an owner of nothing": ("  name: chat\n", "  name: chat\n  ownerReferences: [null]\n"),
    "a time": ("  name: chat\n", "  name: chat\n  creationTimestamp: soon\n"),
    "a period": ("            readiness", "            startupProbe: {periodSeconds: 10s}\n            readiness"),
    "a delay": ("            readiness", "            startupProbe: {initialDelaySeconds: x}\n            readiness"),
}


@pytest.mark.parametrize(("old", "new"), _MISTYPED.values(), ids=_MISTYPED)
def test_a_mistyped_member_is_told(old: str, new: str) -> None:
    assert "LWS102" in {each.code for each in found(joined(edited(LWS, old, new), ROLLOUT))}


def test_a_whole_number_with_a_point_is_one() -> None:
    partition = "  rolloutStrategy: {type: RollingUpdate, rollingUpdateConfiguration: {partition: 2.0}}\n"
    lws = edited(LWS, "  replicas: 4\n", f"  replicas: 4.0\n{partition}")
    assert [each.code for each in found(ROLLOUT, lws) if each.code < "LWS400"] == ["LWS305"]


@pytest.mark.parametrize("field", ["uid", "ownerReferences", "labels", "generation", "finalizers", "annotations"])
def test_nulls_of_metadata_are_what_was_left_out(field: str) -> None:
    texts = [edited(each, "  name: chat\nspec", f"  name: chat\n  {field}: null\nspec") for each in (ROLLOUT, LWS)]
    assert [each.message for each in found(*texts)] == [each.message for each in found(ROLLOUT, LWS)]


@pytest.mark.parametrize("world", _WORLDS)
@pytest.mark.parametrize("number", [40, pytest.param(2500, marks=[pytest.mark.long, pytest.mark.timeout(400)])])
def test_no_manifest_is_too_wrong_to_be_looked_at(world: str, number: int) -> None:
    documents = list(yaml.safe_load_all(_WORLDS[world]))
    every = _breaks(documents)
    for path, value in random.Random(7).sample(every, min(number, len(every))):
        report(yaml.dump_all(_broken(documents, path, value), Dumper=_DUMPER))
