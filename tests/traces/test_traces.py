"""The sandbox's LeaderWorkerSet behaves as the recordings of the real one say, scenario by scenario."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from rollout_lws.objects.resources import DEPLOYMENTS, LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.store import Event
from tests.sandbox.behaviours.world import NAMESPACE, cluster

HERE = Path(__file__).parent
SCENARIOS = sorted((HERE / "scenarios").glob("*.yaml"))
#: Groups without numbers, which LeaderWorkerSet has after 0.10.
HASH = sorted((HERE / "scenarios-hash").glob("*.yaml"))
LWS = "llm"
#: Recorded steps that depend on which of two pods, made together, is ready first: here the lower one is.
BY_CHANCE = {"roll-4-2-2": [[6, 1]]}


def load_record() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record", HERE / "record.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


record = load_record()


async def settle(recorder: Any, quiet: float) -> dict[str, Any]:
    """record.py's settle in the loop's time."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + 120.0
    recorder.changed = max(recorder.changed, clock() - quiet + min(quiet, 0.5))
    rest = quiet
    while rest > 1e-6:
        rest = min(recorder.changed + quiet, deadline) - clock()
        await asyncio.sleep(max(0.0, rest))
    return recorder.conclude(timed_out=clock() >= deadline - 1e-6)


def act(server: ApiServer, action: dict[str, Any]) -> None:
    if "delete-pod" in action:
        server.delete(PODS, NAMESPACE, f"{LWS}-{action['delete-pod']}")
    elif "copy" in action:
        body = record.twin(server.get(LEADER_WORKER_SETS, NAMESPACE, LWS), action)
        server.create(LEADER_WORKER_SETS, body, namespace=NAMESPACE)
    elif "delete" in action:
        server.delete(LEADER_WORKER_SETS, NAMESPACE, LWS)
    else:
        body = record.merge_patch(server.get(LEADER_WORKER_SETS, NAMESPACE, LWS), action)
        server.patch(LEADER_WORKER_SETS, NAMESPACE, LWS, body)


async def replay(server: ApiServer, scenario: dict[str, Any]) -> dict[str, Any]:
    recorder = record.Recorder(NAMESPACE, LWS, scenario["lws"].get("size", 1))

    def follow(event: Event) -> None:
        if event.resource in (LEADER_WORKER_SETS, STATEFUL_SETS, DEPLOYMENTS, PODS):
            recorder.apply(event.type, event.object)

    stop = server.store.subscribe(follow)
    stretches = []
    server.create(LEADER_WORKER_SETS, record.manifest(LWS, scenario), namespace=NAMESPACE)
    for action in scenario["actions"]:
        if "settle" in action:
            stretches.append(await settle(recorder, action["settle"] or 2))
            recorder.begin(None)
            continue
        if recorder.stretch["action"] is None:
            recorder.begin(action)
        act(server, action)
    if recorder.stretch["action"] is not None:
        stretches.append(await settle(recorder, 2))
    stop()
    return record.trace(scenario, stretches)


def unseen(expected: dict[str, Any], actual: dict[str, Any]) -> Iterator[list[int]]:
    """Recorded steps of the leader StatefulSet that did not happen here, where no step is too short to see."""
    for want, got in zip(expected["stretches"], actual["stretches"], strict=True):
        yield from (step for step in want["sts"] if step not in got["sts"])


def load(path: Path, version: str = "0.10.0") -> tuple[dict[str, Any], dict[str, Any]]:
    """A scenario and what was recorded of it."""
    scenario = yaml.safe_load(path.read_text())
    return scenario, json.loads((HERE / f"lws-{version}" / f"{scenario['name']}.json").read_text())


@pytest.mark.looptime
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
async def test_a_scenario_goes_as_it_was_recorded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(record, "time", SimpleNamespace(monotonic=loop.time))
    scenario, expected = load(path)
    async with cluster() as server:
        actual = await replay(server, scenario)
    assert list(record.differences(expected, actual)) == []
    assert list(unseen(expected, actual)) == BY_CHANCE.get(path.stem, [])


@pytest.mark.looptime
@pytest.mark.parametrize("path", HASH, ids=lambda path: path.stem)
async def test_groups_without_numbers_go_as_they_were_recorded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(record, "time", SimpleNamespace(monotonic=loop.time))
    scenario, expected = load(path, "main-987")
    async with cluster(version="1.0") as server:
        actual = await replay(server, scenario)
    for stretch in actual["stretches"]:
        # A condition that came after the recorded version.
        assert stretch["end"]["conditions"].pop("Degraded") is False
    assert list(record.differences(expected, actual)) == []


@pytest.mark.looptime
async def test_another_history_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(record, "time", SimpleNamespace(monotonic=loop.time))
    scenario, expected = load(HERE / "scenarios" / "roll-4-1-0.yaml")
    scenario["lws"]["strategy"]["maxUnavailable"] = 2
    async with cluster() as server:
        actual = await replay(server, scenario)
    assert "minReady: want 3, got 2" in " ".join(record.differences(expected, actual))
    assert list(unseen(expected, actual)) == [[4, 3]]
