"""What users of one release ask by both ways at once, the route and the Service, and what they lose of it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from rollout_lws.objects.resources import SERVICES
from tests.nodes import losses, users
from tests.nodes.cluster import Cluster
from tests.nodes.losses import Phase, PhaseCounts, Row, Said
from tests.nodes.release import GRACE_SECONDS, SERVICE, STREAM_SECONDS, Release
from tests.nodes.stories import DIRECT, NO_LOSS, ROUTE, Announced
from tests.nodes.users import Users


class Asked:
    """Those that ask by the route and by the Service; ``asking`` makes them. Phases begin when ``phase`` is called."""

    def __init__(self, by_route: Users, by_service: Users) -> None:
        self.by_route = by_route
        self.by_service = by_service
        self._phases: list[Phase] = []
        self._ended = 0.0

    def phase(self, name: str) -> None:
        """What comes now is called so."""
        self._phases.append((time.time(), name))

    async def answered(self, short: int, streams: int = 0) -> None:
        """Until so many more have been answered by each way."""
        await asyncio.gather(*(each.answered(short, streams) for each in (self.by_route, self.by_service)))

    def counts(self, way: Users) -> list[PhaseCounts]:
        """Those of each phase, once all have ended. What was asked before the first, when not all parts had heard of
        each other, is no release's.
        """
        counts = losses.by_phase(way.noted(), self._phases, settle=GRACE_SECONDS)
        return [each for each in counts if each.began is not None]

    def rows(self, release: str, pods: str, shares: Sequence[Said] = (), announced: Announced = NO_LOSS) -> list[Row]:
        """A row for each way, once all have ended; ``shares`` are those of the route."""
        rows = []
        for way, told, cuts in ((self.by_route, tuple(shares), 0), (self.by_service, (), announced.cuts)):
            tally = losses.total(self.counts(way))
            seconds = (self._ended or time.time()) - self._phases[0][0]
            short, streams = (
                _with_chance(announced.load * (at_once + of / seconds * GRACE_SECONDS))
                for at_once, of in zip(way.at_once, (tally.short, tally.streams), strict=True)
            )
            rows.append(Row(release, pods, way.way, tally, told, short + cuts * way.kept, streams))
        return rows

    def lost(self, *only: str) -> str:
        """What was lost, a line each with how long phases were; "" if nothing was. With names of phases what was both
        asked and lost in one of them: a request may wait long for a node that is no more.
        """
        counts = [count for way in (self.by_route, self.by_service) for count in self.counts(way)]
        if only:
            counts = [_asked_within(count) for count in counts if count.name in only]
        told = losses.failures(counts)
        return "\n".join((*told, self.lasted())) if told else ""

    def lasted(self) -> str:
        """How long each phase was."""
        phases = *self._phases, (self._ended or time.time(), "")
        return ", ".join(f"{name} {later - moment:.0f} s" for (moment, name), (later, _) in pairwise(phases))

    def end(self) -> None:
        """The last phase is over."""
        self._ended = time.time()


def _with_chance(expected: float) -> int:
    """Requests fall to groups by chance: three standard deviations more than expected."""
    return math.ceil(expected + 3 * math.sqrt(expected))


def _asked_within(count: PhaseCounts) -> PhaseCounts:
    began = count.began or 0.0
    return replace(count, failed=tuple(each for each in count.failed if each.started >= began))


@asynccontextmanager
async def asking(
    nodes: Cluster, release: Release, notes: Path, *, short: int = 20, streams: int = 10
) -> AsyncIterator[Asked]:
    """Users of ``release``, from the first good answers by both ways to the end of the block; ``notes`` is a directory.

    By each way ``short`` of them make short requests, and ``streams`` read streams. The first phase is called
    "at rest", and the release may begin.
    """
    address = (await release.get(SERVICES, SERVICE))["spec"]["clusterIP"]

    def by(way: str, url: str) -> AbstractAsyncContextManager[Users]:
        file = notes / f"{way}.jsonl"
        return users.asking(
            way, url, {"Host": release.host}, file, short=short, streams=streams, seconds=STREAM_SECONDS
        )

    async with by(ROUTE, nodes.gateway.url) as by_route, by(DIRECT, f"http://{address}") as by_service:
        asked = Asked(by_route, by_service)
        asked.phase("at rest")
        await asked.answered(200)
        yield asked
        asked.end()
