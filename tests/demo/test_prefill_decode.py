"""The verdict of the demo of prefill and decode: each claim about how it went fails when it has not gone so."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.demo import manifests, prefill_decode
from rollout_lws.cli.demo.checks import HOLD, Expected, Listing
from rollout_lws.cli.demo.prefill_decode import (
    BLUE,
    DECODE_BLUE,
    DECODE_GREEN,
    GREEN,
    PREFILL_BLUE,
    PREFILL_GREEN,
    ROUTE,
)
from rollout_lws.objects.resources import (
    HTTP_ROUTES,
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_WORKER_INDEX,
    PODS,
)
from rollout_lws.sandbox.store import Event

GROUP = "rollouts.kruise.io"
Object = dict[str, Any]
EXPECTED = Expected(
    DECODE_GREEN, manifests.with_image(prefill_decode.decode(DECODE_GREEN), manifests.NEW), False, None, GROUP
)
SIZES = {DECODE_BLUE: 2, DECODE_GREEN: 2, PREFILL_BLUE: 1, PREFILL_GREEN: 1}


def pods(name: str, group: int, *, ready: bool = True, image: str = "", suffix: str = "") -> list[Object]:
    """All pods of a group."""
    image = image or (manifests.OLD if name in BLUE else manifests.NEW)
    return [
        {
            "metadata": {
                "name": f"{name}-{group}" + (f"-{worker}" if worker else ""),
                "uid": f"{name}-{group}-{worker}{suffix}",
                "labels": {LWS_NAME: name, LWS_GROUP_INDEX: str(group), LWS_WORKER_INDEX: str(worker)},
            },
            "spec": {"containers": [{"image": image}]},
            "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
        }
        for worker in range(SIZES[name])
    ]


def workload(name: str, replicas: int, image: str = "") -> Object:
    lws = prefill_decode.decode(name) if "decode" in name else prefill_decode.prefill(name)
    lws["metadata"]["annotations"] = {f"{GROUP}/original": "{}"}
    lws["spec"] |= {"replicas": replicas, "rolloutStrategy": {"rollingUpdateConfiguration": {"partition": HOLD}}}
    if image:
        lws["spec"]["leaderWorkerTemplate"] = manifests.with_image(lws, image)
    return lws


def route(blue: int) -> Object:
    made = next(each for each in prefill_decode.others() if each["kind"] == "HTTPRoute")
    for backend, weight in zip(made["spec"]["rules"][0]["backendRefs"], (blue, 100 - blue), strict=True):
        backend["weight"] = weight
    return made


def listing(blue: tuple[int, int], green: tuple[int, int], **more: Any) -> Listing:
    """Both sides with this many groups of decode and of prefill."""
    counts = dict(zip((*BLUE, *GREEN), (*blue, *green), strict=True))
    every = [pod for name, count in counts.items() for group in range(count) for pod in pods(name, group)]
    services = {each["metadata"]["name"]: each for each in prefill_decode.others() if each["kind"] == "Service"}
    return {
        "Rollout": {"llama": {"metadata": {}, "status": {"phase": "Healthy"}}},
        "LeaderWorkerSet": {name: workload(name, count) for name, count in counts.items()},
        "Pod": {pod["metadata"]["name"]: pod for pod in every},
        "Service": services,
        "StatefulSet": {},
        "HTTPRoute": {ROUTE: route(100)},
        **more,
    }


def pod_events(kind: str, changed: list[Object]) -> list[Event]:
    return [Event(kind, PODS, pod, None, 1) for pod in changed]


def loads(name: str, groups: int, **how: Any) -> list[Event]:
    """Groups are made, and get ready."""
    return [
        event
        for group in range(groups)
        for event in (
            *pod_events("ADDED", pods(name, group, ready=False, **how)),
            *pod_events("MODIFIED", pods(name, group, **how)),
        )
    ]


def goes(name: str, groups: int) -> list[Event]:
    return [event for group in range(groups) for event in pod_events("DELETED", pods(name, group))]


def applied(name: str) -> list[Event]:
    return [Event("MODIFIED", LEADER_WORKER_SETS, workload(name, 0, manifests.NEW), None, 1)]


def weighs(blue: int) -> list[Event]:
    return [Event("MODIFIED", HTTP_ROUTES, route(blue), None, 1)]


BEFORE, AFTER = listing((4, 2), (0, 0)), listing((0, 0), (4, 2))
APPLIED = [*applied(DECODE_GREEN), *applied(PREFILL_GREEN)]
LOADED = [*loads(DECODE_GREEN, 4), *loads(PREFILL_GREEN, 2)]
GONE = [*goes(DECODE_BLUE, 4), *goes(PREFILL_BLUE, 2)]
WELL = [*APPLIED, *LOADED, *weighs(90), *weighs(0), *GONE]


def failed(after: Listing = AFTER, happened: list[Event] | None = None) -> list[str]:
    judged = prefill_decode.end_state(BEFORE, after, WELL if happened is None else happened, EXPECTED)
    return [check.claim for check in judged if not check.passed]


def test_a_release_of_both_passes_every_check() -> None:
    assert failed() == []


WAITED = "nothing started before decode and prefill had the new version"
UNMIXED = "no request met decode and prefill of two versions, or one without the other"
READY = "4 groups of decode and 2 of prefill were ready at every moment"
ONCE = "each group was loaded once"
BAD = {"image": manifests.BAD}


@pytest.mark.parametrize(
    ("happened", "claims"),
    [
        ([*applied(DECODE_GREEN), *LOADED, *applied(PREFILL_GREEN), *weighs(0), *GONE], [WAITED]),
        ([*applied(DECODE_GREEN), *LOADED, *weighs(0), *GONE], [WAITED]),
        ([*APPLIED, *loads(DECODE_GREEN, 4), *weighs(90), *loads(PREFILL_GREEN, 2), *weighs(0), *GONE], [UNMIXED]),
        ([*APPLIED, *loads(DECODE_GREEN, 4), *loads(PREFILL_GREEN, 2, **BAD), *weighs(0), *GONE], [UNMIXED]),
        ([*APPLIED, *LOADED, *goes(PREFILL_BLUE, 2), *weighs(0), *goes(DECODE_BLUE, 4)], [UNMIXED]),
        ([*APPLIED, *loads(DECODE_GREEN, 4), *goes(PREFILL_BLUE, 1), *loads(PREFILL_GREEN, 2), *weighs(0)], [READY]),
        ([*WELL, *loads(PREFILL_GREEN, 1, suffix="again")], [READY, ONCE]),
        ([*APPLIED, *weighs(0), *GONE], [UNMIXED, READY, ONCE]),
    ],
    ids=[
        "one is early",
        "one lacks it",
        "decode alone has requests",
        "two versions",
        "prefill goes first",
        "too few of prefill",
        "one is loaded twice",
        "none is loaded",
    ],
)
def test_what_went_otherwise_is_found(happened: list[Event], claims: list[str]) -> None:
    assert failed(happened=happened) == claims


@pytest.mark.parametrize(
    ("after", "claims"),
    [
        (listing((0, 1), (4, 2)), [f"{PREFILL_BLUE} is parked"]),
        (listing((1, 0), (4, 2)), [f"{DECODE_BLUE} is parked"]),
        (
            listing((0, 0), (4, 1), LeaderWorkerSet=AFTER["LeaderWorkerSet"]),
            [f"all groups of {PREFILL_GREEN} are ready"],
        ),
        (
            listing((0, 0), (4, 2), Rollout={"llama": {"status": {"phase": "Progressing"}}}),
            ["the Rollout says Healthy"],
        ),
        (
            listing((0, 0), (4, 2), StatefulSet={"x": {"metadata": {"labels": {LWS_NAME: PREFILL_BLUE}}}}),
            ["nothing is left over"],
        ),
        (listing((0, 0), (4, 2), StatefulSet={"x": {"metadata": {"labels": {LWS_NAME: PREFILL_GREEN}}}}), []),
        (
            listing(
                (0, 0), (4, 2), Service={f"{name}-api": {"metadata": {}, "spec": {}} for name in (BLUE[0], GREEN[0])}
            ),
            ["no Service was changed"],
        ),
    ],
    ids=["prefill is left", "decode is left", "one is missing", "not over", "a set", "a set that serves", "a Service"],
)
def test_an_end_that_is_not_as_claimed_is_found(after: Listing, claims: list[str]) -> None:
    assert failed(after) == claims


def test_a_workload_that_runs_something_else_or_is_not_held_is_found() -> None:
    after = listing((0, 0), (4, 2))
    after["LeaderWorkerSet"][PREFILL_GREEN]["spec"]["rolloutStrategy"] = {}
    for pod in pods(PREFILL_GREEN, 0, image=manifests.BAD):
        after["Pod"][pod["metadata"]["name"]]["spec"] = pod["spec"]
    assert failed(after) == [f"every pod of {PREFILL_GREEN} runs the right version", f"{PREFILL_GREEN} is held"]
