"""What becomes of a fleet when its leader goes: how soon another leads, decides, and sends on what waited meanwhile."""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tests.bench.figures import Figure
from tests.bench.load.stage import Candidate, Stage

#: Seconds beyond the lease's own until another leads; a leader that hands its Lease back is followed within as many.
_GRACE = 2.0
#: Seconds in which who leads decides 1,000 Rollouts once: a restart may take twice as long, but his caches are filled.
_DECIDES = 5.0
#: Seconds in which an approved release is over, on a sandbox that has many of them to see to.
_PATIENCE_SECONDS = 120.0
_WAITS_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a leader. ``returns`` is for one whose process goes on and follows when it comes back."""

    name: str
    strike: Callable[[Stage, Candidate], Awaitable[None]]
    returns: Callable[[Stage, Candidate], Awaitable[None]] | None = None
    #: Whether the Lease has to run out first.
    runs_out: bool = True


def _sent(number: signal.Signals) -> Callable[[Stage, Candidate], Awaitable[None]]:
    async def act(_: Stage, leader: Candidate) -> None:
        leader.running.process.send_signal(number)

    return act


async def _cut(stage: Stage, leader: Candidate) -> None:
    await stage.ask("cut", door=leader.door)


async def _mended(stage: Stage, leader: Candidate) -> None:
    await stage.ask("mend", door=leader.door)


#: The leader is by turns the one behind the first door and the one behind the second.
FATES = (
    Fate("ends in order (SIGTERM)", _sent(signal.SIGTERM), runs_out=False),
    Fate("killed (SIGKILL)", _sent(signal.SIGKILL)),
    Fate("stopped and continued (SIGSTOP, SIGCONT)", _sent(signal.SIGSTOP), _sent(signal.SIGCONT)),
    Fate("cut off from the network", _cut, _mended),
)


async def takeovers(stage: Stage, fleet: str, rollouts: int, approvals: int) -> list[Figure]:
    """Two controllers over a fleet of so many ``rollouts``, and each fate of the one that leads. While nobody leads, so
    many releases are approved.
    """
    figures, unfinished = [], 0
    async with AsyncExitStack() as stack:
        leader = await stack.enter_async_context(stage.candidate("first"))
        await stage.leads(leader.door, _WAITS_SECONDS)
        await leader.decides(rollouts)
        other = await stack.enter_async_context(stage.candidate("second"))
        for fate in FATES:
            stage.progress(f"takeover: {fleet}: leader {fate.name}")
            measured, waiting = await _struck(stage, fate, (leader, other), fleet, rollouts, approvals)
            figures += measured
            unfinished += waiting
            if fate.returns is not None:
                await fate.returns(stage, leader)
                await leader.running.logged("leads no longer", _WAITS_SECONDS)
            else:
                await leader.running.process.wait()
                leader = await stack.enter_async_context(stage.candidate(leader.door))
            leader, other = other, leader
        wrong = await stage.wrong()
    for each in wrong:
        stage.progress(f"takeover: {each}")
    return [
        *figures,
        Figure(f"{fleet}, all takeovers: writes of who did not hold the Lease, or too late", len(wrong), 0),
        Figure(f"{fleet}, all takeovers: approved releases that did not end", unfinished, 0),
    ]


async def _struck(
    stage: Stage, fate: Fate, candidates: tuple[Candidate, Candidate], fleet: str, rollouts: int, approvals: int
) -> tuple[list[Figure], int]:
    """From the blow until the other one has decided everything, and until what was approved meanwhile is over; how many
    releases are not.
    """
    leader, other = candidates
    before = await other.decisions()
    await stage.ask("begin")
    struck = time.time()
    await fate.strike(stage, leader)
    approved = await stage.ask("approve", releases=approvals)
    lease = stage.election.duration if fate.runs_out else 0.0
    held = await stage.leads(other.door, stage.election.duration + _WAITS_SECONDS) - struck
    await other.decides(before + 1)
    first = time.time() - struck
    await other.decides(before + rollouts)
    decided = time.time() - struck
    unfinished = await stage.ask("finish", names=approved, seconds=_PATIENCE_SECONDS)
    wrote = (await stage.ask("sent"))[other.door]["first"]
    # As many releases are in flight as before.
    await stage.ask("again", names=[name for name in approved if name not in unfinished])
    name = f"{fleet}, leader {fate.name}"
    figures = [
        Figure(f"{name}: until the other one's Lease is held", held, lease + _GRACE, "s"),
        Figure(f"{name}: until its first decision", first, None, "s"),
        Figure(f"{name}: from its Lease until each is decided once", decided - held, _decides(rollouts), "s"),
    ]
    if wrote is not None:
        figures.insert(2, Figure(f"{name}: until its first write for an approved release", wrote - struck, None, "s"))
    return figures, len(unfinished)


def _decides(rollouts: int) -> float:
    return _DECIDES * max(1.0, rollouts / 1000)
