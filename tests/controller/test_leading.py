"""Two controller processes and signals: what a stopped process still sends, and how soon the other goes on."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollout_lws.api.resources import rollouts
from rollout_lws.cli.demo import manifests
from rollout_lws.cli.sandbox.local_cluster import playground
from rollout_lws.objects.resources import DEFAULT_API_GROUP, EVENTS, LEADER_WORKER_SETS, LEASES, PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.faults import WRITES, Effect
from rollout_lws.sandbox.http import Server
from rollout_lws.sandbox.routes import Request, Response, target_of, verb_of
from tests.kubectl.programs import ROLLOUT_LWS, Program

pytestmark = pytest.mark.long

DURATION, DEADLINE, RETRY = 4, 2.5, 0.5
PLACE = "default", "rollout-lws-controller"
PLAN = [{"replicas": 1, "pause": {"duration": 1}}, {"replicas": 2, "pause": {"duration": 1}}, {"replicas": "100%"}]
PATIENCE = 60.0
SECONDS = "seconds_until_the_other_leads"


@dataclass
class Replica:
    """A controller process behind a server of its own onto the same cluster, so that what it sends is known."""

    program: Program
    door: Server
    #: Its own name for itself, from its first claim on.
    name: str = ""
    sent: int = 0
    wrong: list[str] = field(default_factory=list)


def holder(server: ApiServer) -> str:
    found = [each["spec"]["holderIdentity"] for each in server.list(LEASES, PLACE[0])]
    return found[0] if found else ""


def _write(kubeconfig: Path, door: Server) -> None:
    kubeconfig.write_text(yaml.safe_dump(door.kubeconfig()))


@asynccontextmanager
async def replica(server: ApiServer, kubeconfig: Path, command: Sequence[str]) -> AsyncIterator[Replica]:
    door = Server(server)
    await door.start()
    _write(kubeconfig, door)
    answer = door.gate.answer

    async def judged(request: Request) -> Response:
        target = target_of(server, request.path)
        if verb_of(request, target) not in WRITES or target.served.resource == EVENTS:
            return await answer(request)
        if target.served.resource != LEASES:
            it.sent += 1
            if holder(server) != it.name:
                it.wrong.append(f"{request.method} {request.path} while {holder(server)} leads")
            return await answer(request)
        claimed = json.loads(request.body)["spec"]["holderIdentity"]
        it.name = it.name or claimed
        return await answer(request)

    door.gate.answer = judged  # type: ignore[method-assign]
    election = {
        "resource-namespace": PLACE[0],
        "lease-duration": f"{DURATION}s",
        "renew-deadline": f"{DEADLINE}s",
        "retry-period": f"{RETRY}s",
    }
    flags = [f"--leader-elect-{flag}={value}" for flag, value in election.items()]
    off = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
    program = await Program.start(*command, "controller", f"--kubeconfig={kubeconfig}", "--leader-elect", *flags, *off)
    it = Replica(program, door)
    try:
        await program.says("controller started")
        yield it
    finally:
        await program.kill()
        await door.stop()


@dataclass
class Cluster:
    server: ApiServer
    leader: Replica
    other: Replica

    async def until(self, holds: Callable[[], bool]) -> None:
        """At the change after which it is so."""
        changed = asyncio.Event()
        unsubscribe = self.server.store.subscribe(lambda _: changed.set())
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds():
                    changed.clear()
                    await changed.wait()
        finally:
            unsubscribe()

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.get(rollouts(), "default", manifests.NAME).get("status") or {}
        return found

    def state(self) -> str:
        return str(self.status.get("summary", {}).get("state"))

    async def begin(self) -> None:
        """A release, as far as its first group."""
        template = manifests.with_image(manifests.workload(), manifests.NEW)
        spec = {"spec": {"leaderWorkerTemplate": template}}
        self.server.patch(LEADER_WORKER_SETS, "default", manifests.NAME, spec)
        await self.until(lambda: self.state() == "Loading")

    def released(self) -> bool:
        pods = self.server.list(
            PODS,
            "default",
            label_selector="leaderworkerset.sigs.k8s.io/worker-index=0",
        )
        return self.state() == "Healthy" and {each["spec"]["containers"][0]["image"] for each in pods} == {
            manifests.NEW
        }


@asynccontextmanager
async def resting(
    home: Path, first: Sequence[str] = (ROLLOUT_LWS,), second: Sequence[str] = (ROLLOUT_LWS,)
) -> AsyncIterator[Cluster]:
    """At rest, led by the first of two; each is a command that takes the controller's arguments."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(playground(Options(timing=Timing(speed=10)), DEFAULT_API_GROUP))
        leader = await stack.enter_async_context(replica(cluster.server, home / "first", first))
        both = Cluster(cluster.server, leader, leader)
        await both.until(lambda: holder(cluster.server) != "")
        both.other = await stack.enter_async_context(replica(cluster.server, home / "second", second))
        lws = manifests.workload()
        rollout = manifests.rollout(rollouts().api_version, lws["metadata"])
        rollout["spec"]["strategy"]["canary"]["steps"] = PLAN
        cluster.apply(lws)
        cluster.apply(rollout)
        await both.until(lambda: both.state() == "Healthy")
        yield both


@asynccontextmanager
async def releasing(home: Path) -> AsyncIterator[Cluster]:
    """In mid-release, led by the first of two."""
    async with resting(home) as both:
        await both.begin()
        yield both


def cut(it: Replica) -> None:
    it.door.gate.faults.add(Effect(lost=True), count=None)
    it.door.gate.faults.cut_watches()


@pytest.mark.parametrize(
    ("fate", "least"),
    [
        pytest.param(lambda it: it.program.signal(signal.SIGKILL), DURATION - 2 * RETRY, id="killed"),
        pytest.param(lambda it: it.program.signal(signal.SIGSTOP), DURATION - 2 * RETRY, id="stopped"),
        pytest.param(cut, DURATION - 2 * RETRY, id="cut off"),
        pytest.param(lambda it: it.program.signal(signal.SIGTERM), 0, id="ended in order"),
    ],
)
async def test_the_other_goes_on_within_the_lease_and_two_seconds(
    fate: Callable[[Replica], None], least: float, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    async with releasing(tmp_path) as cluster:
        took = await taken_over(cluster, fate)
        record_property(SECONDS, took)
        assert least <= took <= DURATION + 2


@pytest.mark.parametrize(("ahead", "speed"), [(30, 1.2), (-30, 0.85)], ids=["fast, ahead", "slow, behind"])
async def test_clocks_that_differ_by_more_than_the_lease_change_nothing(
    ahead: float, speed: float, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Who waits neither takes a Lease that is renewed for one that has run out, nor the other way round; what it counts
    are seconds of its own.
    """
    command = (sys.executable, "-m", "tests.controller.skewed", f"{ahead}", f"{speed}")
    async with resting(tmp_path, second=command) as cluster:
        await asyncio.sleep(DURATION)
        lease = cluster.server.get(LEASES, *PLACE)["spec"]
        assert (lease["holderIdentity"], lease["leaseTransitions"]) == (cluster.leader.name, 0)
        await cluster.begin()
        took = await taken_over(cluster, lambda it: it.program.signal(signal.SIGSTOP))
        record_property(SECONDS, took)
        assert (DURATION - 2 * RETRY) / speed <= took <= DURATION / speed + 2


async def taken_over(cluster: Cluster, fate: Callable[[Replica], None]) -> float:
    """Seconds until the other leads; it then brings the release to its end, and nobody writes out of turn."""
    leader, other = cluster.leader, cluster.other
    began = time.monotonic()
    fate(leader)
    await cluster.until(lambda: holder(cluster.server) == other.name != "")
    took = time.monotonic() - began
    # Whoever comes back has slept through his deadline, and finds that out before anything goes out.
    with suppress(ProcessLookupError):
        leader.program.signal(signal.SIGCONT)
    leader.door.gate.faults.restore()
    await cluster.until(cluster.released)
    assert other.sent > 0
    assert (leader.wrong, other.wrong) == ([], [])
    return took
