"""A gate right after an apply never answers for another version: ours, ours for an id, and kubectl's two-step wait.

Real kubectl, real processes of the command line, a controller, and pods that load in hundredths of a second. What a
gate answers is compared with the pods that run at that moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.pipelines import Answer, Pipeline, acts
from tests.kubectl.programs import Program, Programs
from tests.reader import Reader, reading

pytestmark = pytest.mark.kubectl

ABORTED, HEALTHY = Answer("aborted", 3), Answer("healthy", 0)
Way = Callable[[Pipeline, str, int], Awaitable[None]]


async def ours(team: Pipeline, act: str, number: int) -> None:
    """One round with our command line."""
    before = team.good
    if act == "the same again":
        team.write(team.good)
        assert await team.gate() == HEALTHY
    elif act == "a broken one":
        team.write(f"b{number}", broken=True)
        answer, _ = await asyncio.gather(team.gate(), team.aborted())
        assert answer == ABORTED
        team.good = before
        assert await team.gate() == ABORTED, "the aborted version is applied again"
    elif act == "overtaken":
        await _overtaken(team, number)
    else:
        team.write(f"v{number}")
        assert await team.gate() == HEALTHY
    assert team.running() == {team.good}


async def _overtaken(team: Pipeline, number: int) -> None:
    """The next version is applied as soon as the gate of this one has begun."""
    team.write(first := f"v{number}a")
    team.forget()
    async with begun(team, f"{team.apply} && exec rollout-lws status {team.name} --timeout 20s") as gate:
        team.write(f"v{number}b")
        assert await team.gate() == HEALTHY
        await gate.end(20)
    _overtaken_or_over(team, first, gate)


@asynccontextmanager
async def begun(team: Pipeline, script: str) -> AsyncIterator[Program]:
    """A gate that has looked once."""
    programs = Programs()
    try:
        gate = await programs.start("bash", "-c", script, environment=team.reader.environment)
        await gate.line(lambda line: "Z " in line)
        yield gate
    finally:
        await programs.close()


def _overtaken_or_over(team: Pipeline, version: str, gate: Program) -> None:
    answer = team.answer(gate.output)
    assert answer == Answer("superseded", 6) or (answer == HEALTHY and version in team.served)


async def by_id(team: Pipeline, act: str, number: int) -> None:
    """One round in which a gate waits for the id, and Argo CD or Flux applies meanwhile."""
    before = team.good
    if act == "a broken one":
        release = team.write(f"b{number}", broken=True)
        answer, *_ = await asyncio.gather(team.gate_by_id(release), team.reader.run(team.apply), team.aborted())
        assert answer == ABORTED
        team.good = before
    elif act == "overtaken":
        release = team.write(first := f"v{number}a")
        team.forget()
        async with begun(team, f"exec rollout-lws status {team.name} --release-id {release} --timeout 20s") as gate:
            await team.reader.run(team.apply)
            await team.until(lambda: team.is_about(release))
            team.write(f"v{number}b")
            assert await team.gate() == HEALTHY
            await gate.end(20)
        _overtaken_or_over(team, first, gate)
    else:
        release = team.write(team.good if act == "the same again" else f"v{number}")
        answer, _ = await asyncio.gather(team.gate_by_id(release), team.reader.run(team.apply))
        assert answer == HEALTHY
        assert team.is_about(release)
    assert team.running() == {team.good}


async def kubectl_alone(team: Pipeline, act: str, number: int) -> None:
    """One round with nothing but kubectl."""
    before = team.good
    if act == "a broken one":
        release = team.write(f"b{number}", broken=True)
        await asyncio.gather(team.wait_twice(release, "Stalled"), team.aborted())
        team.good = before
    else:
        release = team.write(team.good if act == "the same again" else f"v{number}")
        await team.wait_twice(release, "Ready")
    assert team.running() == {team.good}


WAYS: dict[Way, tuple[str, ...]] = {
    ours: ("a new version", "the same again", "a broken one", "overtaken"),
    by_id: ("a new version", "the same again", "a broken one", "overtaken"),
    kubectl_alone: ("a new version", "the same again", "a broken one"),
}


def long(way: Way, teams: int, rounds: int) -> Any:
    return pytest.param(way, (teams, rounds), marks=[pytest.mark.long, pytest.mark.timeout(900)])


#: Ways to gate, teams side by side, and rounds of each.
CASES = [(ours, (1, 2)), long(ours, 4, 50), long(by_id, 4, 13), long(kubectl_alone, 4, 50)]


@pytest.mark.parametrize(
    ("way", "rounds"), CASES, ids=lambda given: given.__name__ if callable(given) else f"{given[0]}x{given[1]}"
)
async def test_no_gate_answers_for_another_version(way: Way, rounds: tuple[int, int], tmp_path: Path) -> None:
    teams, each = rounds
    async with reading(tmp_path) as reader:
        await asyncio.gather(*(_team(reader, tmp_path, way, f"team-{number}", each) for number in range(teams)))


async def _team(reader: Reader, home: Path, way: Way, name: str, rounds: int) -> None:
    team = Pipeline(reader, home, name)
    await team.begin()
    for number, act in enumerate(acts(name, rounds, WAYS[way]), 1):
        await way(team, act, number)
