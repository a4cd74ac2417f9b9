"""A pair that its releases scale is taken off: both workloads are as their owner's again, labels included."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from rollout_lws.workload.hold import HOLD
from tests.cli.conftest import World
from tests.cli.uninstall.held import KEYS, NEW, leader_set, leaders, lws
from tests.cli.uninstall.place import Place, place
from tests.cli.uninstall.test_detach_plan import pair_of
from tests.cli.uninstall.test_installations import refused, uninstall
from tests.cli.uninstall.test_refused import created

pytestmark = pytest.mark.rare(3)

Object = dict[str, Any]
BLUE, GREEN = "helper-blue", "helper-green"


def sides(there: Place) -> dict[str, tuple[int, int, str | None]]:
    """Replicas, partition and role of each side."""
    found = {}
    for name in (BLUE, GREEN):
        live = there.server.get(LEADER_WORKER_SETS, "default", name)
        strategy = (live["spec"].get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
        role = (live["metadata"].get("labels") or {}).get(KEYS.side)
        found[name] = live["spec"]["replicas"], strategy.get("partition", 0), role
    return found


async def at_rest(there: Place) -> None:
    await there.install()
    for each in there.manifests:
        there.server.create(
            there.resource(each["kind"]), {**each, "metadata": {"namespace": "default", **each["metadata"]}}
        )
    await there.until(lambda: sides(there) == {BLUE: (4, HOLD, "active"), GREEN: (0, 0, "parked")})
    await there.until(lambda: there.state() == "Healthy" and len(there.reader.leaders(BLUE)) == 4)


def edit(there: Place, name: str, tag: str) -> None:
    path = "/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/image"
    operation = {"op": "replace", "path": path, "value": f"nginxinc/nginx-unprivileged:{tag}"}
    there.server.patch(LEADER_WORKER_SETS, "default", name, [operation], "application/json-patch+json")


@pytest.mark.parametrize("released", [False, True], ids=["at rest", "in a release"])
async def test_both_sides_are_given_back(released: bool, tmp_path: Path) -> None:
    async with place(tmp_path, "pair") as there:
        await at_rest(there)
        before = there.reader.leaders(BLUE)
        if released:
            edit(there, GREEN, "1.28")
            await there.until(lambda: there.state() == "AwaitingApproval")
        planned = "".join(await there.uninstall("--dry-run"))
        assert ("goes back to leaderworkerset/helper-blue first" in planned) == released
        kept = "leaderworkerset/helper-blue keeps its groups, and leaderworkerset/helper-green has none"
        assert kept in planned and "nothing rolls" in planned
        await there.leaves()
        assert sides(there) == {BLUE: (4, 0, None), GREEN: (0, 0, None)}
        assert (there.reader.leaders(BLUE), there.traces()) == (before, [])


async def test_a_version_that_waits_on_the_active_side_rolls_only_because_that_is_said(tmp_path: Path) -> None:
    async with place(tmp_path, "pair") as there:
        await at_rest(there)
        edit(there, BLUE, "1.28")
        await there.until(lambda: there.state() == "Stalled")
        planned = "".join(await there.uninstall("--dry-run"))
        assert "nginxinc/nginx-unprivileged:1.28) ROLLS in 4 groups, 1 at a time" in planned
        assert (
            "to keep what runs, first: put the template of what runs back into leaderworkerset/helper-blue" in planned
        )
        await there.leaves()
        await there.until(lambda: set(there.reader.tags(BLUE)) == {"1.28"} and len(there.reader.tags(BLUE)) == 4)
        assert sides(there) == {BLUE: (4, 0, None), GREEN: (0, 0, None)}
        assert there.traces() == []


def shifts(there: Place) -> None:
    """The active side gives up groups as the other one gets some."""
    for each in there.manifests:
        if each["kind"] == "Service":
            each["spec"]["selector"]["app"] = "helper"
        if each["kind"] == "Rollout":
            canary = each["spec"]["strategy"]["canary"]
            canary |= {"shift": {}, "steps": [{"replicas": "50%", "traffic": "auto", "pause": {}}]}
            canary["trafficRoutings"][0] |= {"gracePeriodSeconds": 0, "drainSeconds": 0}


async def test_a_side_that_has_given_up_groups_gets_them_back(tmp_path: Path) -> None:
    async with place(tmp_path, "pair") as there:
        shifts(there)
        await at_rest(there)
        edit(there, GREEN, "1.28")
        await there.until(lambda: there.state() == "AwaitingApproval")
        await there.until(lambda: (sides(there)[BLUE][0], sides(there)[GREEN][0]) == (2, 2))
        planned = "".join(await there.uninstall("--dry-run"))
        assert "goes back to leaderworkerset/helper-blue first, which loads 2 groups again" in planned
        await there.leaves()
        assert sides(there) == {BLUE: (4, 0, None), GREEN: (0, 0, None)}
        assert there.traces() == []


def left(world: World, image: str = "", *, taken: int = 0) -> None:
    """A pair whose Rollout no controller looks after, whose active side is ``llama``; a release has ``taken`` some of
    its four groups, and the next one is about to go.
    """
    made = pair_of("", active="llama")
    made["metadata"].pop("finalizers")
    status = {"status": made.pop("status")}
    owner = world.do(partial(world.server.create, world.rollouts, made))
    world.do(partial(world.server.patch, world.rollouts, "default", "llama", status, subresource="status"))
    uid = owner["metadata"]["uid"]
    active, parked = lws(by=uid, image=image, side="active"), lws("llama-green", by=uid, side="parked")
    parked["spec"]["replicas"] = 0
    if taken:
        active["spec"]["replicas"] = 4 - taken
        active["metadata"]["annotations"][KEYS.replicas] = "4"
    for each in (active, parked):
        world.do(partial(world.server.create, LEADER_WORKER_SETS, created(each)))
    world.do(partial(world.server.create, STATEFUL_SETS, leader_set("rev-2" if image else "rev-1")))
    pods = leaders(*["rev-1"] * (4 - taken))
    if taken:
        record = {"labels": {"app": "llama"}, "since": "2026-01-01T00:00:00Z"}
        pods[-1]["metadata"]["annotations"] = {KEYS.draining: json.dumps(record)}
    for pod in pods:
        world.do(partial(world.server.create, PODS, pod))


def marks(world: World) -> list[str]:
    """Whatever the workloads have of ours."""
    every = world.do(lambda: world.server.list(LEADER_WORKER_SETS, "default"))
    said = ({**(each["metadata"].get("labels") or {}), **(each["metadata"].get("annotations") or {})} for each in every)
    return [key for each in said for key in each if KEYS.owns(key)]


def test_without_a_controller_both_holds_are_opened_and_both_labels_removed(world: World) -> None:
    left(world)
    told = uninstall(world)
    for name in ("llama", "llama-green"):
        assert f"leaderworkerset/{name} in namespace default has its own strategy back: nothing rolls" in told
    every = world.do(lambda: world.server.list(LEADER_WORKER_SETS, "default"))
    configured = [each["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] for each in every]
    assert [each["partition"] for each in configured] == [0, 0]
    assert [each["spec"]["replicas"] for each in every] == [4, 0]
    assert marks(world) == []


def test_without_a_controller_what_a_release_has_taken_is_given_back(world: World) -> None:
    left(world, taken=2)
    world.do(lambda: world.server.delete(world.rollouts, "default", "llama"))
    (planned,) = [line for line in uninstall(world, "--dry-run") if "leaderworkerset/llama in" in line]
    assert "left it held, with 2 of its 4 groups: it gets the other 2 back, which load; nothing rolls" in planned
    told = uninstall(world)
    given = "leaderworkerset/llama in namespace default has its own strategy back, and gets its 4 groups: nothing rolls"
    assert given in told
    assert world.do(lambda: world.server.get(LEADER_WORKER_SETS, "default", "llama"))["spec"]["replicas"] == 4
    pod = world.do(lambda: world.server.get(PODS, "default", "llama-1"))["metadata"]
    assert pod["labels"]["app"] == "llama" and KEYS.draining not in (pod.get("annotations") or {})
    assert marks(world) == []


def test_a_version_that_would_roll_is_asked_about(world: World) -> None:
    left(world, image=NEW)
    before = marks(world)
    assert "there is no terminal to ask at" in refused(world)
    assert marks(world) == before
    assert any("ROLLS in 4 groups" in line for line in uninstall(world, "--dry-run"))


def test_labels_alone_are_removed(world: World) -> None:
    for name, role in (("llama", "active"), ("llama-green", "parked")):
        world.do(partial(world.server.create, LEADER_WORKER_SETS, created(lws(name, side=role))))
    told = uninstall(world)
    assert "leaderworkerset/llama in namespace default is labelled no more: nothing rolls" in told
    assert marks(world) == []
