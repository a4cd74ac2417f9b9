"""The command against a cluster over HTTP, without a controller: what it prints, and its exit codes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from rollout_lws.cli.analyze.command import proxied
from rollout_lws.cli.main import program
from rollout_lws.cli.sandbox.local_cluster import Playground, playground
from rollout_lws.errors import RolloutLwsError
from rollout_lws.kubeconfig.context import Context
from rollout_lws.objects.resources import DEFAULT_API_GROUP, LWS_WORKER_INDEX, PODS
from rollout_lws.sandbox.behaviours.base import running_and_ready
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.faults import WRITES
from rollout_lws.sandbox.model_servers import PREFIX
from rollout_lws.sandbox.store import Event
from tests.cli.conftest import World
from tests.cli.states import HEALTHY
from tests.reader import ROOT

BUSY = {"engine": "vLLM", "requests-per-second": "1000", "first-token-seconds": "0.3"}
WIDE = {"name": "wide", "metric": {"signal": "TimeToFirstToken", "max": "1s"}}
TIGHT = {"name": "tight", "metric": {"signal": "TimeToFirstToken", "max": "250ms"}}
HEADING = ["GATE", "STEP", "RESULT", "VALUE", "LIMIT", "SAMPLES", "NEEDED", "WHY"]


def quickstart(name: str) -> Any:
    return yaml.safe_load((ROOT / f"examples/quickstart/{name}.yaml").read_text())


class Serving:
    """The quickstart's four groups, with model servers that get many requests."""

    def __init__(self, cluster: Playground, home: Path) -> None:
        self.cluster = cluster
        self.kubeconfig = home / "kubeconfig"
        cluster.write_kubeconfig(self.kubeconfig)

    async def serve(self, *gates: Any) -> None:
        """Until all leaders are ready; the second step of the plan has the gates."""
        lws, rollout = quickstart("lws"), quickstart("rollout")
        template = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]
        template["metadata"]["annotations"] = {PREFIX + name: text for name, text in BUSY.items()}
        rollout["spec"]["strategy"]["canary"]["steps"][1]["gates"] = [*gates]
        self.cluster.apply(lws)
        self.cluster.apply(rollout)
        ready = asyncio.Event()

        def look(_: Event | None = None) -> None:
            if self._ready():
                ready.set()

        unsubscribe = self.cluster.server.store.subscribe(look)
        look()
        await asyncio.wait_for(ready.wait(), 20)
        unsubscribe()

    def _ready(self) -> bool:
        pods = self.cluster.server.list(PODS, "default", label_selector=LWS_WORKER_INDEX)
        return len(pods) == 8 and all(map(running_and_ready, pods))

    async def run(self, *arguments: str) -> Result:
        """In another thread, since the cluster is in this one."""
        command = ["--kubeconfig", str(self.kubeconfig), "analyze", *arguments]
        result = await asyncio.to_thread(CliRunner().invoke, program, command)
        if result.exception is not None and not isinstance(result.exception, SystemExit | RolloutLwsError):
            raise result.exception
        return result


@pytest.fixture
async def serving(tmp_path: Path) -> AsyncIterator[Serving]:
    async with playground(Options(timing=Timing(speed=100)), DEFAULT_API_GROUP) as cluster:
        yield Serving(cluster, tmp_path)


async def test_a_limit_that_what_serves_does_not_meet_ends_with_1(serving: Serving) -> None:
    await serving.serve(WIDE, TIGHT)
    for verb in WRITES:
        serving.cluster.http.gate.faults.refuse(500, verb, count=None)
    result = await serving.run("quickstart", "--window", "2s")
    heading, wide, tight = result.stdout.splitlines()
    assert heading.split() == HEADING
    assert wide.split()[:3] == ["wide", "2", "Passed"]
    assert tight.split()[:3] == ["tight", "2", "Failed"]
    assert "took longer" in tight
    assert (result.exit_code, result.stderr) == (1, "")


async def test_the_document_is_for_machines_and_no_failure_ends_with_0(serving: Serving) -> None:
    await serving.serve(WIDE)
    result = await serving.run("rollout/quickstart", "--window", "2s", "-o", "json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["namespace"], document["name"]) == (0, "default", "quickstart")
    assert document["revision"]
    (gate,) = document["gates"]
    assert (gate["name"], gate["step"], gate["kind"], gate["result"]) == ("wide", 2, "metric", "Passed")
    assert gate["samples"] > gate["needed"] > 0


async def test_a_plan_without_gates_is_told(serving: Serving) -> None:
    await serving.serve()
    result = await serving.run("quickstart")
    assert result.exit_code == 1
    assert str(result.exception) == "rollout/quickstart has no gates: add them to the steps of its plan"


@pytest.mark.parametrize(
    ("flags", "code", "told"),
    [
        (["--window", "0"], 2, "--window is shorter than 1s"),
        (["--token-file", "token"], 2, "is for the --prometheus that it is sent to"),
        (["--prometheus", "localhost:9090"], 1, "is no address of a server: write http://host:port"),
        (["--prometheus", "http://localhost:9090", "--token-file", "missing"], 1, "missing cannot be read"),
    ],
)
def test_what_makes_no_sense_is_told_before_anything_is_asked(
    world: World, flags: list[str], code: int, told: str
) -> None:
    result = world.run("analyze", "llama", *flags)
    assert result.exit_code == code
    assert told in f"{result.stderr}{result.exception}"


def test_a_rollout_that_would_be_refused_is_not_tried(world: World) -> None:
    world.release(**HEALTHY)
    steps = [{"replicas": 2}, {"replicas": 1}, {"replicas": "100%"}]
    plan = {"spec": {"strategy": {"canary": {"steps": steps}}}}
    world.do(lambda: world.server.patch(world.rollouts, "default", "llama", plan))
    result = world.run("analyze", "llama")
    assert result.exit_code == 1
    assert "rollout/llama would be refused: spec.strategy.canary.steps[1].replicas" in str(result.exception)


def test_without_a_ready_group_nothing_is_judged(world: World) -> None:
    world.release(**HEALTHY)
    plan = {"spec": {"strategy": {"canary": {"steps": [{"replicas": 1, "gates": [WIDE]}, {"replicas": "100%"}]}}}}
    world.do(lambda: world.server.patch(world.rollouts, "default", "llama", plan))
    result = world.run("analyze", "llama")
    assert result.exit_code == 1
    assert str(result.exception) == (
        "no group of LeaderWorkerSet llama is ready at its stable version, so there is nothing to judge gates by:"
        " see kubectl rollout-lws doctor llama"
    )


def test_pods_are_asked_by_the_proxy_of_the_environment_as_the_api_server_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy:3128")
    monkeypatch.setenv("NO_PROXY", "near.example.com")
    far, near = (Context("main", f"https://{name}.example.com", "default") for name in ("far", "near"))
    assert [proxied(each).cluster["proxy-url"] for each in (far, near)] == ["http://proxy:3128", ""]
