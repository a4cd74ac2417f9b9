"""The demo's own verdict: each claim about the end state fails when the world is not as claimed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.demo.checks import HOLD, Expected, Listing, end_state, lost_before_promotion
from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.objects.resources import LWS_NAME, LWS_WORKER_INDEX, PODS
from rollout_lws.sandbox.store import Event

GROUP = "rollouts.kruise.io"
ROLLOUTS = rollouts_of(GROUP)
KINDS = ("StatefulSet", "Service", "Ingress", "HTTPRoute", "InferencePool", "BatchRelease")
Object = dict[str, Any]


def pod(name: str, uid: str, image: str, worker: str, ready: str = "True") -> Object:
    return {
        "metadata": {"name": name, "uid": uid, "labels": {LWS_NAME: "llama", LWS_WORKER_INDEX: worker}},
        "spec": {"containers": [{"image": image}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def workload(partition: int = HOLD, mark: str = f"{GROUP}/original") -> Object:
    lws = manifests.workload()
    lws["metadata"]["annotations"] = {mark: "{}"}
    lws["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"partition": partition}}
    return lws


def listing(phase: str, image: str, uids: str) -> Listing:
    pods = {}
    for group in range(manifests.GROUPS):
        pods[f"llama-{group}"] = pod(f"llama-{group}", f"{uids}{group}", image, "0")
        pods[f"llama-{group}-1"] = pod(f"llama-{group}-1", f"{uids}{group}w", image, "1")
    release = {"Rollout": {"llama": {"status": {"phase": phase}}}, "LeaderWorkerSet": {"llama": workload()}}
    return {**release, "Pod": pods, **{kind: {} for kind in KINDS}}


def changed(source: Listing, kind: str, **objects: Object) -> Listing:
    return {**source, kind: {**source[kind], **{name.replace("_", "-"): obj for name, obj in objects.items()}}}


BEFORE = listing("Healthy", manifests.OLD, "a")
PROMOTED = listing("Healthy", manifests.NEW, "b")
ABORTED = listing("Aborted", manifests.OLD, "a")
NEW_TEMPLATE = manifests.with_image(manifests.workload(), manifests.NEW)
OLD_TEMPLATE = manifests.with_image(manifests.workload(), manifests.OLD)
PROMOTION = Expected("llama", NEW_TEMPLATE, False, None, GROUP)
ABORT = Expected("llama", OLD_TEMPLATE, True, None, GROUP)
#: An abort after which the worker of group 3 is another.
AGAIN = changed(ABORTED, "Pod", llama_3_1=pod("llama-3-1", "other", manifests.OLD, "1"))
FAILED_GATE = {"name": "first-token", "result": "Failed", "message": "too slow"}
SECOND = "no second LeaderWorkerSet ever existed"


def failed(after: Listing, expected: Expected, *lost: str, others: tuple[str, ...] = ()) -> list[str]:
    checks = end_state(BEFORE, after, list(lost), set(others), expected)
    return [check.claim for check in checks if not check.passed]


def test_a_clean_promotion_and_a_clean_abort_pass_every_check() -> None:
    assert failed(PROMOTED, PROMOTION) == []
    assert failed(ABORTED, ABORT) == []


@pytest.mark.parametrize(
    ("after", "claims"),
    [
        (
            changed(PROMOTED, "Pod", llama_3=BEFORE["Pod"]["llama-3"]),
            ["all groups are new", "every pod runs the right version"],
        ),
        (
            changed(PROMOTED, "Pod", llama_0_1=pod("llama-0-1", "b0w", manifests.NEW, "1", "False")),
            ["all groups are ready"],
        ),
        (changed(PROMOTED, "LeaderWorkerSet", llama=workload(0)), ["the hold is in place"]),
        (changed(PROMOTED, "LeaderWorkerSet", llama=workload(mark="other.io/original")), ["the hold is in place"]),
        (changed(PROMOTED, "Rollout", llama={"status": {"phase": "Progressing"}}), ["the Rollout says Healthy"]),
        *(
            (changed(PROMOTED, kind, llama_canary={"metadata": {"name": "llama-canary"}}), ["nothing is left over"])
            for kind in ("LeaderWorkerSet", *KINDS)
        ),
    ],
)
def test_an_end_that_is_not_as_claimed_is_found(after: Listing, claims: list[str]) -> None:
    assert failed(after, PROMOTION) == claims


def test_groups_that_end_before_the_promotion_are_as_many_as_the_steps_renew() -> None:
    counted = "before the promotion as many groups were renewed as the steps say"
    untouched = "stable was not touched before its promotion"
    for in_steps, lost, claims in (
        (None, ("llama-0",), [untouched]),
        (0, ("llama-3",), [untouched]),
        (2, ("llama-2", "llama-3"), []),
        (1, ("llama-2", "llama-3"), [counted]),
        (3, ("llama-2", "llama-3"), [counted]),
    ):
        assert failed(PROMOTED, replace(PROMOTION, in_steps=in_steps), *lost) == claims


def test_a_second_workload_that_has_been_there_for_a_moment_is_found() -> None:
    for after, expected in ((PROMOTED, PROMOTION), (ABORTED, ABORT)):
        assert failed(after, expected, others=("llama-canary",)) == []
        assert failed(after, replace(expected, in_steps=0), others=("llama-canary",)) == [SECOND]


def test_an_abort_makes_no_group_again_but_those_of_its_step_in_one_workload() -> None:
    in_place = replace(ABORT, in_steps=1)
    assert failed(AGAIN, in_place, "llama-3") == []
    assert failed(AGAIN, in_place, "llama-3", "llama-2") == ["only groups that the step had renewed were made again"]
    assert failed(AGAIN, replace(ABORT, in_steps=0)) == ["every pod from before still runs"]
    assert failed(AGAIN, ABORT) == ["every pod from before still runs"]


@pytest.mark.parametrize(
    ("status", "passes"),
    [
        ({"gates": [FAILED_GATE], "aborted": {"message": "gate first-token: too slow"}}, True),
        ({"gates": [FAILED_GATE], "aborted": {"message": "aborted by ann"}}, False),
        ({"gates": [{**FAILED_GATE, "result": "Passed"}], "aborted": {"message": "gate first-token: too slow"}}, False),
        ({"gates": [FAILED_GATE]}, False),
        ({}, False),
    ],
    ids=["by the gate", "by a user", "by a gate that passed", "not aborted", "without gates"],
)
def test_an_abort_that_is_not_the_gates_is_found(status: Object, passes: bool) -> None:
    after = changed(ABORTED, "Rollout", llama={"status": {"phase": "Aborted", **status}})
    claims = [] if passes else ["a gate that failed has aborted the release"]
    assert failed(after, replace(ABORT, by_gate=True)) == claims


def test_leaders_are_lost_until_the_promotion_begins() -> None:
    ended = [
        Event("DELETED", PODS, BEFORE["Pod"][name], None, 1)
        for name in ("llama-3", "llama-3-1", "llama-2", "llama-1", "llama-0")
    ]
    promotes = Event("MODIFIED", ROLLOUTS, {"metadata": {}, "status": {"finalising": {"task": "Promote"}}}, None, 1)
    other = Event("DELETED", PODS, pod("llama-0", "another", manifests.OLD, "0"), None, 1)
    for events, lost in (
        ([promotes, *ended], []),
        ([*ended[:3], promotes, *ended[3:]], ["llama-2", "llama-3"]),
        ([*ended[:4], other], ["llama-1", "llama-2", "llama-3"]),
    ):
        assert lost_before_promotion(BEFORE, events, "llama", ROLLOUTS) == lost
