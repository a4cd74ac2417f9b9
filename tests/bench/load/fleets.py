"""The order of it: fleets at rest, then the same with releases in flight, and what becomes of them without a leader."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rollout_lws.settings import Election
from tests.bench.figures import Figure
from tests.bench.load.live import GROUPS, SIZE
from tests.bench.load.stage import Stage, staged
from tests.bench.load.takeover import Takeover, takeovers
from tests.bench.measures import at_rest, of_rest
from tests.bench.processes import Progress

_REST_SECONDS = 20.0
#: Most releases that are sent on in one takeover.
_APPROVALS = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """``sizes`` are in Rollouts; of each fleet ``in_flight`` are real releases. A last fleet consists of releases in
    flight only, ``restart`` of them; 0 leaves it out.
    """

    sizes: tuple[int, ...]
    in_flight: int
    restart: int = 1000
    rest_seconds: float = _REST_SECONDS


async def measured(
    directory: Path, plan: Plan, election: Election, progress: Progress
) -> tuple[list[Figure], list[Takeover]]:
    """All figures, each fleet's one after the other, and the takeovers among them."""
    figures: list[Figure] = []
    found: list[Takeover] = []
    async with staged(directory, plan.in_flight, election, progress) as stage:
        progress("load: one release from its beginning to its end, to be copied")
        async with stage.candidate("first"):
            await stage.ask("model")
        for size in plan.sizes:
            fleet = f"{size:,} Rollouts of {GROUPS} groups of {SIZE}"
            figures += await _at_rest(stage, plan, f"{fleet} at rest", size, size - 1, 0)
        progress(f"load: {plan.in_flight} releases are brought into flight")
        await stage.ask("stand", at_rest=0, in_flight=0)
        async with stage.candidate("first"):
            await stage.ask("fly", releases=plan.in_flight)
        for size in plan.sizes:
            fleet = f"{size:,} Rollouts, {plan.in_flight} of them in mid-release"
            figures += await _at_rest(stage, plan, fleet, size, size - 1 - plan.in_flight, 0)
            of_takeovers, more = await takeovers(stage, fleet, size, min(_APPROVALS, plan.in_flight // 4))
            figures += of_takeovers
            found += more
        if plan.restart > plan.in_flight:
            fleet = f"{plan.restart:,} Rollouts, all of them in mid-release"
            figures += await _at_rest(stage, plan, fleet, plan.restart, 0, plan.restart - plan.in_flight)
    return figures, found


async def _at_rest(
    stage: Stage, plan: Plan, fleet: str, rollouts: int, copies_at_rest: int, copies_in_flight: int
) -> list[Figure]:
    """A cold start with ``rollouts``, of which so many are copies, and what the controller takes while nothing happens.

    It must write nothing, not even where releases wait.
    """
    counts = await stage.ask("stand", at_rest=copies_at_rest, in_flight=copies_in_flight)
    kinds = ", ".join(f"{count:,} {resource.partition('.')[0]}" for resource, count in counts.items())
    stage.progress(f"fleet: {fleet}; copies: {kinds}")
    await stage.ask("begin")
    where = stage.kubeconfig("first")
    async with at_rest(where, rollouts, plan.rest_seconds, stage.directory, stage.progress, stage.flags) as (rest, _):
        sent = (await stage.ask("sent"))["first"]
    for request in sent["unserved"]:
        stage.progress(f"fleet: {request} asks for worker pods, which the copies do not have")
    return [
        *of_rest(fleet, rollouts, rest, released=copies_in_flight > 0),
        Figure(f"{fleet}: writes", sent["writes"], 0),
        Figure(f"{fleet}: lists of worker pods of all namespaces", len(sent["unserved"]), 0),
    ]
