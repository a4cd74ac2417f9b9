"""No decision goes by a sentence: with each of them replaced by its hash a release makes the same writes, but for the
sentences in them.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from rollout_lws.capacity.result import CapacityResult
from rollout_lws.objects.writes import Create, Patch
from rollout_lws.rollout.decision import Refusal, ReleaseEvent, Verdict
from rollout_lws.rollout.lifecycle.actions import Refused
from rollout_lws.rollout.routing.route_result import Routed
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.traffic.router import Problem
from rollout_lws.workload.pod_words import Failure, PodTrouble
from rollout_lws.workload.queueing import Queueing
from rollout_lws.workload.trouble import Trouble
from tests.scenarios.failures import apply
from tests.scenarios.routed import routed_at_rest
from tests.scenarios.world import KEYS, World

pytestmark = pytest.mark.looptime

#: Every value of the core that has a sentence, and the member that is one.
SENTENCES: dict[type[Any], str] = {
    **dict.fromkeys((Verdict, Routed, Refusal, Problem, CapacityResult, Trouble, Queueing), "message"),
    ReleaseEvent: "note",
    Refused: "why",
    PodTrouble: "detail",
    Failure: "text",
}
DAY = 86_400
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d[.\d]*Z)")
Act: TypeAlias = Callable[[World], Awaitable[None]]
STEPS = ({"replicas": 1, "traffic": "25%", "pause": {}}, {"replicas": 3, "traffic": "75%", "pause": {"duration": 20}})


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""


def _unreadable(monkeypatch: pytest.MonkeyPatch, kind: type[Any], member: str) -> None:
    known, signature = kind.__init__, inspect.signature(kind)

    @functools.wraps(known)
    def made(self: Any, *args: Any, **named: Any) -> None:
        bound = signature.bind(*args, **named)
        if member in bound.arguments:
            bound.arguments[member] = _hashed(bound.arguments[member])
        known(self, *bound.args, **bound.kwargs)

    monkeypatch.setattr(kind, "__init__", made)


async def _until_it_waits(world: World) -> None:
    await world.until_state("AwaitingApproval", 1200)


async def to_its_end(world: World) -> None:
    world.set_image("v2")
    await _until_it_waits(world)
    world.approve()
    await world.until_state("Healthy", 3600)


async def a_version_that_fails(world: World) -> None:
    apply(world, faults={"fail": "CrashLoopBackOff", "crash-after": "5s"})
    await world.until_state("Stalled", 3600)
    await world.sleep(60)
    world.request("Retry", by="ann")
    await world.sleep(30)
    world.request("Abort", by="ann", reason="it crashes")
    await world.until_state("Aborted", 3600)
    world.request("Retry", by="ann")
    await world.sleep(60)
    apply(world, "v3", faults={"fail": None, "crash-after": None})
    await _until_it_waits(world)
    world.approve()
    await world.until_state("Healthy", 3600)


async def a_third_version_and_a_writer(world: World) -> None:
    world.set_image("v2")
    await _until_it_waits(world)
    world.patch_lws({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})
    world.request("Pause")
    await world.sleep(5)
    world.request("Resume")
    await _until_it_waits(world)
    world.set_image("v3")
    await world.sleep(30)
    await _until_it_waits(world)
    world.approve()
    await world.until_state("Healthy", 3600)


async def _written(act: Act, capacity: str) -> list[tuple[str, str, str, Any]]:
    # Both begin at the first second of a day, so that moments differ by whole days only.
    await asyncio.sleep(-asyncio.get_running_loop().time() % DAY)
    world = World(Options())
    # The judge of sentences has none to read.
    world.judges_words = False
    try:
        await routed_at_rest(world, *STEPS, words={"capacity": capacity})
        await act(world)
        await world.rest()
        return [
            (type(each).__name__, str(each.resource), each.name, _without_sentences(each.body))
            for each in world.writes
            if isinstance(each, Create | Patch)
        ]
    finally:
        world.close()


def _without_sentences(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_sentences(each) for key, each in value.items() if key != "message"}
        if kept.get(KEYS.aborted):
            record = json.loads(kept[KEYS.aborted])
            kept[KEYS.aborted] = {key: each for key, each in record.items() if key not in ("message", "reason")}
        if set(kept) & {"templateHash", "releaseId"}:
            kept.pop("reason", None)
        # The id of a request is the moment at which it was made.
        kept.pop("id", None)
        return kept
    if isinstance(value, list | tuple):
        return [_without_sentences(each) for each in value]
    return _MOMENT.sub(r"\1", value) if isinstance(value, str) else value


@pytest.mark.each_change
@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("act", "capacity"),
    [(to_its_end, "InPlace"), (a_version_that_fails, "ExtraWorkload"), (a_third_version_and_a_writer, "Surge")],
)
async def test_without_its_sentences_a_release_makes_the_same_writes(
    act: Act, capacity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await _written(act, capacity)
    for kind, member in SENTENCES.items():
        _unreadable(monkeypatch, kind, member)
    assert await _written(act, capacity) == expected
