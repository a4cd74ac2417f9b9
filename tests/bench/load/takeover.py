"""What becomes of a fleet when its leader goes: how soon another leads, decides, and sends on what waited meanwhile."""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tests.bench.figures import Figure, markdown, number
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


def _sent(wanted: signal.Signals) -> Callable[[Stage, Candidate], Awaitable[None]]:
    async def act(_: Stage, leader: Candidate) -> None:
        leader.running.process.send_signal(wanted)

    return act


async def _cut(stage: Stage, leader: Candidate) -> None:
    await stage.ask("cut", door=leader.door)


async def _fixed(stage: Stage, leader: Candidate) -> None:
    await stage.ask("mend", door=leader.door)


#: The leader is by turns the one behind the first door and the one behind the second.
FATES = (
    Fate("ends in order (SIGTERM)", _sent(signal.SIGTERM), runs_out=False),
    Fate("killed (SIGKILL)", _sent(signal.SIGKILL)),
    Fate("stopped and continued (SIGSTOP, SIGCONT)", _sent(signal.SIGSTOP), _sent(signal.SIGCONT)),
    Fate("cut off from the network", _cut, _fixed),
)


@dataclass(frozen=True, slots=True)
class Takeover:
    """Of one fleet, seconds from the blow until the other one's Lease is held, its first decision is made, its first
    write for an approved release arrives (None: there was none), and each Rollout is decided once. ``unfinished`` are
    approved releases that did not end.
    """

    fleet: str
    fate: Fate
    held: float
    first: float
    wrote: float | None
    decided: float
    unfinished: int

    def figures(self, lease: float, rollouts: int) -> Iterator[Figure]:
        """Of a fleet of so many, with a lease of so many seconds."""
        name = f"{self.fleet}, leader {self.fate.name}"
        most = _GRACE + (lease if self.fate.runs_out else 0.0)
        yield Figure(f"{name}: until the other one's Lease is held", self.held, most, "s")
        yield Figure(f"{name}: until its first decision", self.first, None, "s")
        if self.wrote is not None:
            yield Figure(f"{name}: until its first write for an approved release", self.wrote, None, "s")
        most = _DECIDES * max(1.0, rollouts / 1000)
        yield Figure(f"{name}: from its Lease until each is decided once", self.decided - self.held, most, "s")


def side_by_side(takeovers: Sequence[Takeover]) -> str:
    """A Markdown table of them, a row for each."""
    header = ("the leader", "fleet", "the other's Lease", "its first write", "each decided once")
    rows = [
        (
            each.fate.name,
            each.fleet,
            f"{number(each.held)} s",
            "" if each.wrote is None else f"{number(each.wrote)} s",
            f"{number(each.decided)} s",
        )
        for each in sorted(takeovers, key=lambda each: FATES.index(each.fate))
    ]
    return markdown(header, rows)


async def takeovers(stage: Stage, fleet: str, rollouts: int, approvals: int) -> tuple[list[Figure], list[Takeover]]:
    """Two controllers over a fleet of so many ``rollouts``, and each fate of the one that leads. While nobody leads, so
    many releases are approved.
    """
    found: list[Takeover] = []
    async with AsyncExitStack() as stack:
        leader = await stack.enter_async_context(stage.candidate("first"))
        await stage.leads(leader.door, _WAITS_SECONDS)
        await leader.decides(rollouts)
        other = await stack.enter_async_context(stage.candidate("second"))
        for fate in FATES:
            stage.progress(f"takeover: {fleet}: leader {fate.name}")
            found.append(await _struck(stage, fate, (leader, other), fleet, rollouts, approvals))
            if fate.returns is not None:
                await fate.returns(stage, leader)
                await leader.running.logged("lost leader election", _WAITS_SECONDS)
            else:
                await leader.running.process.wait()
                leader = await stack.enter_async_context(stage.candidate(leader.door))
            leader, other = other, leader
        wrong = await stage.wrong()
    for each in wrong:
        stage.progress(f"takeover: {each}")
    unfinished = sum(each.unfinished for each in found)
    return [
        *(figure for each in found for figure in each.figures(stage.election.duration, rollouts)),
        Figure(f"{fleet}, all takeovers: writes of who did not hold the Lease, or too late", len(wrong), 0),
        Figure(f"{fleet}, all takeovers: approved releases that did not end", unfinished, 0),
    ], found


async def _struck(
    stage: Stage, fate: Fate, candidates: tuple[Candidate, Candidate], fleet: str, rollouts: int, approvals: int
) -> Takeover:
    """From the blow until the other one has decided everything, and until what was approved meanwhile is over."""
    leader, other = candidates
    before = await other.decisions()
    await stage.ask("begin")
    struck = time.time()
    await fate.strike(stage, leader)
    approved = await stage.ask("approve", releases=approvals)
    held = await stage.leads(other.door, stage.election.duration + _WAITS_SECONDS)
    await other.decides(before + 1)
    first = time.time()
    await other.decides(before + rollouts)
    decided = time.time()
    unfinished = await stage.ask("finish", names=approved, seconds=_PATIENCE_SECONDS)
    wrote = (await stage.ask("sent"))[other.door]["first"]
    # As many releases are in flight as before.
    await stage.ask("again", names=[name for name in approved if name not in unfinished])
    return Takeover(
        fleet,
        fate,
        held - struck,
        first - struck,
        None if wrote is None else wrote - struck,
        decided - struck,
        len(unfinished),
    )
