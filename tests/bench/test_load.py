"""The measurement of load itself: a list that left objects out, or a wrong write that nobody counted, would flatter."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.errors import Unreachable
from rollout_lws.objects.resources import CONFIG_MAPS, LWS_WORKER_INDEX, NAMESPACES
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.routes import Request, Response
from rollout_lws.settings import Election
from tests.bench.load.door import Door, Sent, holder
from tests.bench.load.fleets import Plan, measured
from tests.bench.load.still import Still, without_workers
from tests.bench.load.takeover import FATES, Takeover, side_by_side

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
MAPS = "/api/v1/configmaps"
JSON = {"content-type": "application/json"}


def recorded(name: str, resource: str = "configmaps", **labels: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "to-be-copied", "uid": f"00000000-0000-0000-0000-0000000000{len(name):02}"}
    return {"resource": resource, "object": {"metadata": {**meta, "resourceVersion": "1", "labels": labels}}}


@pytest.fixture
def door() -> Door:
    server = ApiServer(time.time)
    server.create(NAMESPACES, {"metadata": {"name": "live"}})
    for name in ("a", "b"):
        server.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "live", "labels": {"role": name}}})
    door = Door(server, deadline=10)
    door.still = Still([([recorded("one", role="a"), recorded("two", role="b")], 2), ([recorded("three")], 1)])
    return door


async def listed(door: Door, path: str = MAPS, **params: str) -> tuple[list[str], dict[str, Any]]:
    answer = json.loads((await door.answer(Request("GET", path, params))).body)
    return [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in answer["items"]], answer[
        "metadata"
    ]


async def test_a_list_is_of_copies_and_of_what_lives_page_by_page(door: Door) -> None:
    copies = ["team-00000/one", "team-00000/two", "team-00001/one", "team-00001/two", "team-00002/three"]
    live = ["live/a", "live/b"]
    assert (await listed(door))[0] == copies + live
    found, token = [], {}
    for size in (2, 2, 3):
        names, meta = await listed(door, limit="2", **token)
        assert (len(names), int(meta["resourceVersion"])) == (size, door.server.store.version)
        found += names
        token = {"continue": meta.get("continue", "")}
    assert (found, token) == (copies + live, {"continue": ""})
    assert (await listed(door, labelSelector="role=b"))[0] == ["team-00000/two", "team-00001/two", "live/b"]


async def test_a_list_of_one_namespace_is_of_that_one(door: Door) -> None:
    for namespace, names in (("team-00001", ["one", "two"]), ("live", ["a", "b"]), ("nobody", [])):
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        assert (await listed(door, path))[0] == [f"{namespace}/{name}" for name in names]


def test_worker_pods_of_what_rests_are_left_out() -> None:
    pods = [
        recorded(name, "pods", **{LWS_WORKER_INDEX: index}) for name, index in (("llama-0", "0"), ("llama-0-1", "1"))
    ]
    kept = without_workers([*pods, recorded("one")])
    assert [each["object"]["metadata"]["name"] for each in kept] == ["llama-0", "one"]


async def test_who_asks_for_worker_pods_that_are_not_there_is_told_of(door: Door) -> None:
    door.still = Still([([recorded("llama-0", "pods", **{LWS_WORKER_INDEX: "0"})], 1)])
    await listed(door, "/api/v1/pods", labelSelector=f"{LWS_WORKER_INDEX}=0")
    await listed(door, "/api/v1/namespaces/team-00000/pods")
    assert door.sent.unserved == []
    await listed(door, "/api/v1/pods")
    assert len(door.sent.unserved) == 1


async def lead(door: Door, name: str) -> Response:
    """Claim the Lease, as an elector does."""
    spec = {"holderIdentity": name, "leaseDurationSeconds": 15}
    if holder(door.server):
        headers = {"content-type": "application/merge-patch+json"}
        return await door.answer(Request("PATCH", f"{LEASES}/it", {}, headers, json.dumps({"spec": spec}).encode()))
    body = {"metadata": {"name": "it", "namespace": "default"}, "spec": spec}
    return await door.answer(Request("POST", LEASES, {}, JSON, json.dumps(body).encode()))


async def write(door: Door, namespace: str = "live") -> None:
    body = {"metadata": {"generateName": "map-", "namespace": namespace}}
    await door.answer(
        Request("POST", f"/api/v1/namespaces/{namespace}/configmaps", {}, JSON, json.dumps(body).encode())
    )


async def test_a_write_of_who_does_not_hold_the_lease_is_wrong_and_one_where_nothing_changes(door: Door) -> None:
    other = Door(door.server, deadline=10)
    assert (await lead(door, "me")).status == 201
    await write(door)
    assert (door.sent.wrong, door.sent.writes) == ([], 1)
    await write(other)
    assert other.sent.wrong == ["POST /api/v1/namespaces/live/configmaps of who never led while me leads"]
    await lead(other, "you")
    await write(door)
    assert door.sent.wrong == ["POST /api/v1/namespaces/live/configmaps of me while you leads"]
    await write(other, "team-00000")
    assert other.sent.wrong[1:] == ["POST /api/v1/namespaces/team-00000/configmaps, where nothing has changed"]


def test_a_leader_that_has_not_renewed_writes_too_late() -> None:
    sent = Sent(deadline=10)
    sent.claimed(100.0, {"spec": {"holderIdentity": "me"}})
    sent.wrote(109.9, "PATCH a", "me")
    assert (sent.wrong, sent.first) == ([], 109.9)
    sent.wrote(110.5, "PATCH a", "me")
    assert sent.wrong == ["PATCH a 10.5 s after the last renewal"]
    # Who hands the Lease back does not hold it.
    sent.claimed(111.0, {"spec": {"holderIdentity": ""}})
    sent.wrote(111.1, "PATCH b", "")
    assert sent.wrong[1:] == ["PATCH b of me while nobody leads"]


async def test_through_a_door_that_is_cut_nothing_comes_until_it_is_fixed(door: Door) -> None:
    door.cut()
    for request in (Request("GET", MAPS), Request("POST", LEASES, {}, JSON, b"{}")):
        with pytest.raises(Unreachable):
            await door.answer(request)
    with pytest.raises(Unreachable):
        async with door.watch(Request("GET", MAPS, {"watch": "true"})):
            pass
    door.mend()
    assert len((await listed(door))[0]) == 7


def test_takeovers_are_told_by_what_became_of_the_leader_and_by_fleet() -> None:
    told = [Takeover(f"{size} Rollouts", fate, 15.04, 15.2, None, 16.0, 0) for size in (10, 20) for fate in FATES[:2]]
    table = [[cell.strip() for cell in row.strip("|").split("|")] for row in side_by_side(told).splitlines()]
    assert [row[:2] for row in table[2:]] == [[fate.name, f"{n} Rollouts"] for fate in FATES[:2] for n in (10, 20)]
    assert table[2][2:] == ["15 s", "", "16 s"]
    goals = [[figure.goal for figure in told[number].figures(15, 2000)] for number in (0, 1)]
    assert goals == [[2, None, 10], [17, None, 10]]


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_small_fleet_is_measured_from_its_making_to_the_last_takeover(tmp_path: Path) -> None:
    plan = Plan(sizes=(8,), in_flight=4, restart=8, rest_seconds=1.0)
    told, found = await measured(tmp_path, plan, Election(None, "it", 4, 2.5, 0.5), print)
    figures = {each.name: each for each in told}
    none = [name for name, figure in figures.items() if figure.goal == 0]
    assert [figures[name].value for name in none] == [0] * len(none) == [0] * 8
    least = [3 if fate.runs_out else 0 for fate in FATES]
    assert [low <= each.held <= 6 for low, each in zip(least, found, strict=True)] == [True] * len(FATES)
    assert [each.held <= (each.wrote or 0) <= each.decided + 1 for each in found] == [True] * len(FATES)
