"""The sandbox's LeaderWorkerSet behaves as the recordings of the real one say, scenario by scenario."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.store import Event
from tests.sandbox.behaviours.world import NAMESPACE, cluster

HERE = Path(__file__).parent
SCENARIOS = sorted((HERE / "scenarios").glob("*.yaml"))
LWS = "llm"


def load_record() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record", HERE / "record.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


record = load_record()


async def settle(recorder: Any, quiet: float, timeout: float = 120.0) -> dict[str, Any]:
    """record.py's settle in the loop's time."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    recorder.changed = max(recorder.changed, clock() - quiet + min(quiet, 0.5))
    while (rest := min(recorder.changed + quiet, deadline) - clock()) > 1e-6:
        await asyncio.sleep(rest)
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
        if event.resource in (LEADER_WORKER_SETS, STATEFUL_SETS, PODS):
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


@pytest.mark.looptime
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
async def test_a_scenario_goes_as_it_was_recorded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(record, "time", SimpleNamespace(monotonic=loop.time))
    scenario = yaml.safe_load(path.read_text())
    expected = json.loads((HERE / "lws-0.10.0" / f"{scenario['name']}.json").read_text())
    async with cluster() as server:
        actual = await replay(server, scenario)
    assert list(record.differences(expected, actual)) == []
