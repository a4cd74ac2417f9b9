"""The verdict of a pair's demo: each claim about how it went fails when it has not gone so."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.demo import manifests, pair
from rollout_lws.cli.demo.checks import HOLD, Expected, Listing
from rollout_lws.cli.demo.pair import BLUE, GREEN
from rollout_lws.objects.resources import LWS_GROUP_INDEX, LWS_NAME, LWS_WORKER_INDEX, PODS, SERVICES
from rollout_lws.sandbox.store import Event

GROUP = "rollouts.kruise.io"
Object = dict[str, Any]
EXPECTED = Expected(GREEN, manifests.with_image(manifests.workload(), manifests.NEW), False, None, GROUP)


def pods(side: str, group: int, *, ready: bool = True, suffix: str = "") -> list[Object]:
    """A leader and its worker."""
    image = manifests.OLD if side == BLUE else manifests.NEW
    return [
        {
            "metadata": {
                "name": f"{side}-{group}" + (f"-{worker}" if worker else ""),
                "uid": f"{side}-{group}-{worker}{suffix}",
                "labels": {LWS_NAME: side, LWS_GROUP_INDEX: str(group), LWS_WORKER_INDEX: str(worker)},
            },
            "spec": {"containers": [{"image": image}]},
            "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
        }
        for worker in (0, 1)
    ]


def workload(side: str, replicas: int) -> Object:
    lws = pair.workload(side)
    lws["metadata"]["annotations"] = {f"{GROUP}/original": "{}"}
    lws["spec"] |= {
        "replicas": replicas,
        "rolloutStrategy": {"rollingUpdateConfiguration": {"partition": HOLD}},
    }
    return lws


def listing(blue: int, green: int, **more: Any) -> Listing:
    """Both sides with this many groups."""
    counts = {BLUE: blue, GREEN: green}
    every = [pod for side, count in counts.items() for group in range(count) for pod in pods(side, group)]
    services = {each["metadata"]["name"]: each for each in pair.others() if each["kind"] == "Service"}
    return {
        "Rollout": {"llama": {"metadata": {}, "status": {"phase": "Healthy"}}},
        "LeaderWorkerSet": {side: workload(side, count) for side, count in counts.items()},
        "Pod": {pod["metadata"]["name"]: pod for pod in every},
        "Service": services,
        "StatefulSet": {},
        **more,
    }


def events(*changes: tuple[str, list[Object]]) -> list[Event]:
    return [Event(kind, PODS, pod, None, 1) for kind, changed in changes for pod in changed]


def loads(group: int, suffix: str = "") -> list[Event]:
    """A group of the parked side is made, and gets ready."""
    made = ("ADDED", pods(GREEN, group, ready=False, suffix=suffix))
    return events(made, ("MODIFIED", pods(GREEN, group, suffix=suffix)))


def goes(group: int) -> list[Event]:
    """A group of the active side terminates."""
    return events(("MODIFIED", pods(BLUE, group, ready=False)), ("DELETED", pods(BLUE, group)))


BEFORE, AFTER = listing(4, 0), listing(0, 4)
WELL = [event for group in range(4) for event in (*loads(group), *goes(3 - group))]


def failed(after: Listing = AFTER, happened: list[Event] | None = None) -> list[str]:
    judged = pair.end_state(BEFORE, after, WELL if happened is None else happened, EXPECTED)
    return [check.claim for check in judged if not check.passed]


def test_a_release_in_which_one_group_goes_for_each_that_comes_passes_every_check() -> None:
    assert failed() == []


MOST = "both sides together had at most 5 groups"
READY = "4 groups were ready at every moment"
LOADED = "each group was loaded once"


@pytest.mark.parametrize(
    ("happened", "claims"),
    [
        ([*loads(0), *loads(1), *goes(3), *goes(2), *WELL[16:]], [MOST]),
        ([*goes(3), *WELL[:4], *WELL[8:]], [READY]),
        ([*WELL, *events(("DELETED", pods(GREEN, 0))), *loads(0, "again")], [READY, LOADED]),
        (WELL[8:], [LOADED]),
        # Another kind's changes are none of a group.
        ([*WELL, Event("ADDED", SERVICES, {"metadata": {"name": "x", "uid": "y"}}, None, 1)], []),
    ],
    ids=["two at a time", "one goes first", "one is loaded twice", "three are loaded", "a Service"],
)
def test_groups_that_come_and_go_otherwise_are_found(happened: list[Event], claims: list[str]) -> None:
    assert failed(happened=happened) == claims


@pytest.mark.parametrize(
    ("after", "claims"),
    [
        (listing(1, 4), ["the old side is parked"]),
        (
            listing(0, 3, LeaderWorkerSet=AFTER["LeaderWorkerSet"]),
            ["all groups are new", "all groups are ready"],
        ),
        (listing(0, 4, Rollout={"llama": {"status": {"phase": "Progressing"}}}), ["the Rollout says Healthy"]),
        (listing(0, 4, BatchRelease={}), []),
        (listing(0, 4, StatefulSet={"x": {"metadata": {"labels": {LWS_NAME: BLUE}}}}), ["nothing is left over"]),
        (listing(0, 4, StatefulSet={"x": {"metadata": {"labels": {LWS_NAME: GREEN}}}}), []),
        (
            listing(0, 4, Service={f"{side}-api": {"metadata": {}, "spec": {}} for side in (BLUE, GREEN)}),
            ["no Service was changed"],
        ),
    ],
    ids=["a group is left", "one is missing", "not over", "no record", "a set", "a set that serves", "a Service"],
)
def test_an_end_that_is_not_as_claimed_is_found(after: Listing, claims: list[str]) -> None:
    assert failed(after) == claims
