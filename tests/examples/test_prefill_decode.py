"""The example of prefill and decode: its manifests are as their comments say, its README's commands do what is told,
and a release of it in virtual time never lets versions meet.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.api import Rollout
from rollout_lws.api.validation import problems
from rollout_lws.cli.demo.checks import is_ready
from rollout_lws.objects.resources import (
    HTTP_ROUTES,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
)
from rollout_lws.sandbox.api_resources import GATEWAYS
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.meter import Client, TrafficMeter
from tests.examples.examples import objects
from tests.examples.test_pair import of_kind, replicas, weights
from tests.examples.test_readmes import sections
from tests.reader import Reader, reading
from tests.scenarios.world import NAME as STORY
from tests.scenarios.world import NAMESPACE, ROLLOUTS, World

EXAMPLE = "prefill-decode"
NAME = "assistant"
BLUE, GREEN = SIDES = ("blue", "green")
#: Every workload of a side: that of decode, and its companion.
SETS = {side: tuple(f"wide-ep-assistant-nvidia-vllm-{role}-{side}" for role in ("decode", "prefill")) for side in SIDES}
ALL_BLUE, ALL_GREEN = [100, 0], [0, 100]
#: Seconds that a group loads, and those of the answers that run.
LOAD, ANSWER = 1200.0, 60.0


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with reading(tmp_path) as made:
        yield made


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(Options(timing=Timing(ready_after=LOAD)))
    yield made
    made.close()


def labels(lws: dict[str, Any]) -> dict[str, str]:
    """Those of its pods."""
    found: dict[str, str] = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["labels"]
    return found


# The manifests


def test_the_rollout_names_both_workloads_of_each_side() -> None:
    spec = Rollout.model_validate(of_kind(EXAMPLE, "Rollout")[NAME]).spec
    assert problems(spec) == ()
    assert spec.workloads == (SETS[BLUE][0], SETS[GREEN][0], SETS[BLUE][1], SETS[GREEN][1])
    assert set(of_kind(EXAMPLE, "LeaderWorkerSet")) == set(spec.workloads)


def test_each_pool_selects_both_roles_of_its_side_and_nothing_of_the_other_one() -> None:
    workloads = of_kind(EXAMPLE, "LeaderWorkerSet")
    selected = {}
    for pool, each in of_kind(EXAMPLE, "InferencePool").items():
        asked = each["spec"]["selector"]["matchLabels"].items()
        selected[pool] = {name for name, lws in workloads.items() if asked <= labels(lws).items()}
    assert selected == {f"{NAME}-{side}": set(SETS[side]) for side in SIDES}
    assert {labels(lws)["llm-d.ai/role"] for lws in workloads.values()} == {"decode", "prefill"}


def test_a_pool_has_as_many_ports_as_it_may_and_each_is_one_of_the_pods() -> None:
    for side in SIDES:
        pool = of_kind(EXAMPLE, "InferencePool")[f"{NAME}-{side}"]
        ports = [each["number"] for each in pool["spec"]["targetPorts"]]
        assert ports == list(range(8000, 8008))
        for name in SETS[side]:
            pod = of_kind(EXAMPLE, "LeaderWorkerSet")[name]["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]
            containers = (*pod.get("initContainers", ()), *pod["containers"])
            assert {port["containerPort"] for each in containers for port in each["ports"]} >= set(ports)


def test_both_sides_are_alike_but_for_the_label_that_tells_them_apart() -> None:
    workloads = of_kind(EXAMPLE, "LeaderWorkerSet")
    for blue, green in zip(SETS[BLUE], SETS[GREEN], strict=True):
        specs = [copy.deepcopy(workloads[name]["spec"]) for name in (blue, green)]
        assert [labels({"spec": spec}).pop("side") for spec in specs] == [BLUE, GREEN]
        assert specs[0] == specs[1]
        # What a release scales has no number in its manifest, and what it holds no partition.
        assert not {"replicas", "rolloutStrategy"} & specs[0].keys()


def test_names_are_as_long_as_those_of_real_installations_and_leave_room_for_their_pods() -> None:
    assert min(map(len, SETS[BLUE] + SETS[GREEN])) > 40
    # Longer ones have no workers, as a label of theirs has the name, two numbers and a hash.
    assert max(map(len, SETS[BLUE] + SETS[GREEN])) <= 48


# The README


@pytest.mark.long
@pytest.mark.kubectl
async def test_the_commands_do_what_the_readme_says(reader: Reader) -> None:
    scripts = sections(EXAMPLE)
    assert list(scripts) == ["Start", "Release a new version", "Approve", "Scale", "Go back", "Abort", "Clean up"]
    await reader.run(scripts["Start"])
    before = [reader.leaders(name) for name in SETS[BLUE]]
    assert counts(reader) == {BLUE: (4, 2), GREEN: (0, 0)} and tags(reader, BLUE) == {"v0.8.0"}
    await reader.run(scripts["Release a new version"])
    assert counts(reader) == {BLUE: (4, 2), GREEN: (1, 1)} and tags(reader, GREEN) == {"v0.8.2"}
    assert [reader.leaders(name) for name in SETS[BLUE]] == before
    assert weights(reader) == [90, 10]
    await reader.run(scripts["Approve"])
    assert counts(reader) == {BLUE: (0, 0), GREEN: (4, 2)} and tags(reader, GREEN) == {"v0.8.2"}
    assert weights(reader) == ALL_GREEN
    await reader.run(scripts["Scale"])
    assert counts(reader) == {BLUE: (0, 0), GREEN: (5, 3)}
    await reader.run(scripts["Go back"])
    assert counts(reader) == {BLUE: (5, 3), GREEN: (0, 0)} and tags(reader, BLUE) == {"v0.8.0"}
    assert weights(reader) == ALL_BLUE
    before = [reader.leaders(name) for name in SETS[BLUE]]
    await reader.run(scripts["Abort"])
    assert counts(reader) == {BLUE: (5, 3), GREEN: (0, 0)} and weights(reader) == ALL_BLUE
    assert [reader.leaders(name) for name in SETS[BLUE]] == before
    await reader.run(scripts["Clean up"])
    await reader.nothing_left()


def counts(reader: Reader) -> dict[str, tuple[int, ...]]:
    """Groups asked for of each side, its companion's last."""
    found = replicas(reader)
    return {side: tuple(found[name] for name in names) for side, names in SETS.items()}


def tags(reader: Reader, side: str) -> set[str]:
    return {tag for name in SETS[side] for tag in reader.tags(name)}


# A release in virtual time


async def at_rest(world: World) -> None:
    """The example applied, the other side parked, and all groups of the first one ready. Its Rollout is called as
    stories call theirs; nothing else of it changes.
    """
    found = copy.deepcopy(objects(EXAMPLE))
    for resource in (SERVICES, GATEWAYS, INFERENCE_POOLS, HTTP_ROUTES, LEADER_WORKER_SETS, ROLLOUTS):
        for each in found:
            if each["kind"] == resource.kind:
                each["metadata"]["namespace"] = NAMESPACE
                if each["kind"] == "Rollout":
                    each["metadata"]["name"] = STORY
                if each["metadata"]["name"] in SETS[GREEN]:
                    each["spec"]["replicas"] = 0
                world.server.create(resource, each)
    world.start_controller()
    await world.until(lambda: [len(ready(world, name)) for name in SETS[BLUE]] == [4, 2], "all groups ready", 3 * LOAD)
    await world.rest()


def ready(world: World, name: str) -> list[str]:
    """Tags of the ready leaders of a workload."""
    pods = world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_NAME}={name},{LWS_WORKER_INDEX}=0")
    return [pod["spec"]["containers"][0]["image"].rpartition(":")[2] for pod in pods if is_ready(pod)]


def shares(world: World) -> dict[str, int]:
    route = world.get(HTTP_ROUTES, NAME) or {}
    backends = route["spec"]["rules"][0]["backendRefs"]
    return {each["name"].removeprefix(f"{NAME}-"): each["weight"] for each in backends}


def unmixed(world: World) -> None:
    """Ready servers of both roles behind a pool that gets requests have one version, and both roles have some."""
    for side, weight in shares(world).items():
        found = [ready(world, name) for name in SETS[side]]
        assert not weight or (all(found) and len({tag for each in found for tag in each}) == 1), (side, weight, found)


def release(world: World, side: str, tag: str) -> None:
    """Patches the image of both, as the README does."""
    path = "/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/image"
    body = [{"op": "replace", "path": path, "value": f"ghcr.io/llm-d/llm-d-inference-sim:{tag}"}]
    for name in SETS[side]:
        world.server.patch(LEADER_WORKER_SETS, NAMESPACE, name, body, "application/json-patch+json")


@pytest.mark.looptime
async def test_a_release_with_loads_of_twenty_minutes_loses_no_request_and_mixes_no_versions(world: World) -> None:
    await at_rest(world)
    client = Client("users", route=NAME, namespace=NAMESPACE, path="/v1/chat/completions")
    meter = TrafficMeter(world.server, [client], drain=ANSWER, lag=0)
    meter.start()
    world.checks.append(unmixed)
    for side, other, tag in ((GREEN, BLUE, "v0.8.2"), (BLUE, GREEN, "v0.9.0")):
        release(world, side, tag)
        await world.until_state("AwaitingApproval", 3 * LOAD)
        assert (shares(world)[side], [len(ready(world, name)) for name in SETS[side]]) == (10, [1, 1])
        world.approve()
        await world.until_state("Healthy", 10 * LOAD)
        await world.rest()
        assert [len(ready(world, name)) for name in (*SETS[side], *SETS[other])] == [4, 2, 0, 0]
    meter.stop()
    assert not meter.failures and not meter.cuts
