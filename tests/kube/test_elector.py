"""Candidates for one Lease on one API server: who works when, whatever becomes of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from rollout_lws.errors import ApiError, NotLeading
from rollout_lws.kube.client import Client
from rollout_lws.kube.elector import Elector
from rollout_lws.kube.fence import Fence
from rollout_lws.kube.lease import Terms
from rollout_lws.objects.permissions import SOURCE
from rollout_lws.objects.resources import CONFIG_MAPS, LEASES
from rollout_lws.objects.writes import Create
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Effect, Faults
from rollout_lws.sandbox.routes import Response
from rollout_lws.sandbox.transport import DirectTransport

pytestmark = pytest.mark.looptime

TERMS = Terms(15, 10, 2)
PLACE = "default", "leader"


class Wire(DirectTransport):
    """``meddle`` gives what arrives instead of the answer to a write of a Lease."""

    meddle: Callable[[Response], Awaitable[Response]] | None = None

    async def request(self, method: str, path: str, **asked: Any) -> Response:
        answer = await super().request(method, path, **asked)
        if self.meddle is not None and method != "GET" and "/leases" in path:
            return await self.meddle(answer)
        return answer


class Candidate:
    """A process as far as it elects: its own wire, its own clock, and its work."""

    def __init__(self, server: ApiServer, name: str, ahead: float = 0.0, place: tuple[str, str] = PLACE) -> None:
        loop = asyncio.get_running_loop()
        self.name, self.ahead = name, ahead
        self.faults = Faults()
        self.fence = Fence(lambda: loop.time() + self.ahead)
        self.exit_seconds = 0.0
        self.wire = wire = Wire(server, self.faults)
        self.client = Client(wire, fence=self.fence)
        self.elector = Elector(
            Client(wire, timeout=TERMS.retry),
            *place,
            name,
            TERMS,
            self.fence,
            clock=lambda: loop.time() + self.ahead,
            chance=random.Random(name),
        )
        self.works = False
        self.changed = asyncio.Event()
        self.spells: list[tuple[float, float]] = []
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def _work(self) -> AsyncIterator[None]:
        begin, self.works = asyncio.get_running_loop().time(), True
        self.changed.set()
        try:
            yield
        finally:
            await asyncio.sleep(self.exit_seconds)
            self.works = False
            self.changed.set()
            self.spells.append((begin, asyncio.get_running_loop().time()))

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self.elector.run(self._work))

    async def stop(self) -> None:
        """As SIGTERM does."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def cut(self) -> None:
        """No answer to anything any more, and nothing arrives."""
        self.faults.add(Effect(lost=True), count=None)
        self.faults.cut_watches()

    async def write(self, name: str) -> None:
        await self.client.send(Create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "default"}}, "a test"))


def api_server() -> ApiServer:
    loop = asyncio.get_running_loop()
    return ApiServer(clock=lambda: 1.7e9 + loop.time(), seed=1)


@dataclass(frozen=True, slots=True)
class Two:
    """Candidates for the Lease on one server; the clocks of their machines are years apart."""

    server: ApiServer
    first: Candidate
    second: Candidate

    async def one_works(self, patience: float) -> None:
        """Wait until one of them works."""
        either = [asyncio.ensure_future(until(each, True)) for each in (self.first, self.second)]
        done, _ = await asyncio.wait(either, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        for each in either:
            each.cancel()
        assert done
        assert self.first.works is not self.second.works


@asynccontextmanager
async def electing() -> AsyncIterator[Two]:
    """The first leads, the second waits."""
    server = api_server()
    two = Two(server, Candidate(server, "first"), Candidate(server, "second", ahead=1e8))
    async with AsyncExitStack() as stack:
        for each in (two.first, two.second):
            stack.push_async_callback(each.stop)
            each.start()
            await asyncio.sleep(5)
        assert (two.first.works, two.second.works) == (True, False)
        yield two


async def until(candidate: Candidate, works: bool, patience: float = 60.0) -> float:
    """Seconds until it works, or does not."""
    begin = asyncio.get_running_loop().time()
    async with asyncio.timeout(patience):
        while candidate.works is not works:
            candidate.changed.clear()
            await candidate.changed.wait()
    return asyncio.get_running_loop().time() - begin


def spec(server: ApiServer) -> dict[str, Any]:
    found: dict[str, Any] = server.get(LEASES, *PLACE)["spec"]
    return found


async def test_one_works_for_as_long_as_it_renews() -> None:
    async with electing() as two:
        before = two.server.get(LEASES, *PLACE)["metadata"]["resourceVersion"]
        await asyncio.sleep(600)
        assert (two.first.works, two.second.works) == (True, False)
        assert spec(two.server)["leaseTransitions"] == 0
        # One renewal every two seconds, and nothing by who waits.
        after = two.server.get(LEASES, *PLACE)["metadata"]["resourceVersion"]
        assert int(after) - int(before) == pytest.approx(300, abs=30)


async def test_who_ends_in_order_hands_back_and_the_other_works_at_once() -> None:
    async with electing() as two:
        await two.first.stop()
        assert not two.first.works
        assert await until(two.second, True) < 0.1


async def test_who_waits_may_end_and_nothing_happens() -> None:
    async with electing() as two:
        await two.second.stop()
        assert two.first.works
        assert spec(two.server)["holderIdentity"] == "first"


async def test_who_is_cut_off_stops_before_the_other_begins() -> None:
    async with electing() as two:
        two.first.cut()
        stopped = await until(two.first, False)
        began = stopped + await until(two.second, True)
        assert TERMS.deadline - TERMS.retry - 0.5 <= stopped <= TERMS.deadline
        assert TERMS.duration - TERMS.retry - 0.5 <= began <= TERMS.duration + 2.0
        with pytest.raises(NotLeading):
            await two.first.write("late")


async def test_a_short_cut_changes_nothing() -> None:
    async with electing() as two:
        two.first.cut()
        await asyncio.sleep(TERMS.deadline - 2 * TERMS.retry)
        two.first.faults.rules.clear()
        await asyncio.sleep(60)
        assert (two.first.works, two.second.works) == (True, False)
        assert two.first.spells == []
        assert spec(two.server)["leaseTransitions"] == 0


async def test_a_server_that_is_away_ends_the_work_and_the_same_goes_on_when_it_is_back() -> None:
    async with electing() as two:
        for each in (two.first, two.second):
            each.cut()
        await until(two.first, False)
        await asyncio.sleep(300)
        assert not two.first.works and not two.second.works
        for each in (two.first, two.second):
            each.faults.rules.clear()
        await two.one_works(40)


async def test_nothing_goes_out_of_a_process_that_has_stood_still() -> None:
    async with electing() as two:
        await two.first.write("in-time")
        two.first.ahead += 60
        with pytest.raises(NotLeading):
            await two.first.write("late")
        await asyncio.sleep(1.1 * TERMS.retry)
        # What it had begun was given up. Nobody else had taken the Lease meanwhile, so it may begin anew.
        assert len(two.first.spells) == 1
        assert (two.first.works, two.second.works) == (True, False)


async def test_a_write_that_takes_too_long_is_given_up_when_leadership_ends() -> None:
    async with electing() as two:
        two.first.faults.add(Effect(delay=100), "create", "configmaps")
        two.first.faults.add(Effect(lost=True), "*", "leases", count=None)
        two.first.faults.cut_watches()
        begin = asyncio.get_running_loop().time()
        with pytest.raises(NotLeading, match="given up"):
            await two.first.write("slow")
        assert asyncio.get_running_loop().time() - begin <= TERMS.deadline


async def test_a_write_takes_as_long_as_it_takes_while_leadership_goes_on() -> None:
    async with electing() as two:
        two.first.faults.add(Effect(delay=25), "create", "configmaps")
        await two.first.write("slow")
        assert two.server.get(CONFIG_MAPS, "default", "slow")


@pytest.mark.parametrize("verb", ["patch", "*"])
async def test_answers_that_are_lost_are_no_renewals(verb: str) -> None:
    async with electing() as two:
        two.first.faults.add(Effect(lost=True, carried_out=True), verb, "leases", count=None)
        if verb == "*":
            two.first.faults.cut_watches()
        await until(two.first, False, TERMS.deadline)
        # Its renewals are carried out all the same as long as they are sent, and the other waits for their end.
        two.first.faults.rules.clear()
        await two.one_works(2 * TERMS.duration)


async def test_a_lease_that_somebody_gives_to_another_ends_the_work_at_once() -> None:
    async with electing() as two:
        two.server.patch(LEASES, *PLACE, {"spec": {"holderIdentity": "a stranger"}})
        await asyncio.sleep(0.01)
        assert not two.first.works
        begin = asyncio.get_running_loop().time()
        await two.one_works(TERMS.duration + 1.0)
        assert asyncio.get_running_loop().time() - begin >= TERMS.duration - 0.1


async def test_a_lease_that_is_deleted_is_made_anew() -> None:
    async with electing() as two:
        two.server.delete(LEASES, *PLACE)
        await asyncio.sleep(5)
        assert two.first.works is not two.second.works
        assert spec(two.server)["holderIdentity"] in ("first", "second")


async def test_what_others_keep_in_the_lease_stays() -> None:
    async with electing() as two:
        two.server.patch(LEASES, *PLACE, {"metadata": {"labels": {"team": "platform"}}})
        await asyncio.sleep(5)
        assert two.first.works
        await two.first.stop()
        await until(two.second, True)
        assert two.server.get(LEASES, *PLACE)["metadata"]["labels"] == {"team": "platform"}


async def test_a_right_that_is_missing_is_named_and_waited_for() -> None:
    server = api_server()
    alone = Candidate(server, "alone")
    alone.faults.add(Effect(refusal=ApiError(403, "Forbidden", "leases is forbidden")), "create", "leases", count=None)
    alone.start()
    try:
        await asyncio.sleep(30)
        assert not alone.works
        assert alone.elector.trouble == (
            "leases is forbidden: allow the controller's account to get, list, watch, create and patch"
            f" leases.coordination.k8s.io in namespace default ({SOURCE})"
        )
        alone.faults.rules.clear()
        await until(alone, True, 2 * TERMS.retry)
        assert alone.elector.trouble == ""
    finally:
        await alone.stop()


async def test_a_namespace_that_is_not_there_is_named() -> None:
    server = api_server()
    alone = Candidate(server, "alone", place=("nowhere", "leader"))
    alone.start()
    try:
        await asyncio.sleep(10)
        assert alone.elector.trouble == 'namespaces "nowhere" not found'
    finally:
        await alone.stop()


async def test_it_is_not_ready_before_it_is_known_who_leads() -> None:
    server = api_server()
    alone = Candidate(server, "alone")
    alone.faults.add(Effect(refusal=ApiError(403, "Forbidden", "no leases for you")), "list", "leases", count=None)
    alone.start()
    try:
        await asyncio.sleep(30)
        assert "no leases for you" in alone.elector.missing and "list and watch leases" in alone.elector.missing
        alone.faults.rules.clear()
        await until(alone, True, 60)
        assert alone.elector.missing + alone.elector.untold == ""
    finally:
        await alone.stop()


async def test_work_that_fails_ends_the_process_and_hands_back() -> None:
    server = api_server()
    alone, other = Candidate(server, "alone"), Candidate(server, "other")

    @asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        raise RuntimeError("a bug")
        yield

    with pytest.raises(ExceptionGroup, match="unhandled"):
        await alone.elector.run(broken)
    other.start()
    try:
        assert await until(other, True) < 0.1
    finally:
        await other.stop()


@pytest.mark.parametrize("page", [b"{}", b"<html>moved</html>", b'{"kind":"Status","status":"Success"}'])
async def test_what_a_proxy_says_instead_of_the_server_renews_nothing(page: bytes) -> None:
    async with electing() as two:

        async def moved(_: Response) -> Response:
            return Response(200, page, {})

        two.first.wire.meddle = moved
        two.first.faults.add(Effect(lost=True), "watch", count=None)
        two.first.faults.cut_watches()
        two.first.faults.add(Effect(lost=True), "get", "leases", count=None)
        # What it asks for is carried out, so that it still holds the Lease; it just does not know.
        await until(two.first, False, TERMS.deadline + 0.1)
        assert not two.second.works
        assert "leases.coordination.k8s.io: the answer is" in two.first.elector.trouble


async def test_an_answer_from_before_the_lease_was_deleted_is_worth_nothing() -> None:
    async with electing() as two:

        async def deleted_meanwhile(answer: Response) -> Response:
            two.first.wire.meddle = None
            two.server.delete(LEASES, *PLACE)
            await asyncio.sleep(0.5)
            return answer

        two.first.wire.meddle = deleted_meanwhile
        await until(two.first, False, 2 * TERMS.retry)
        with pytest.raises(NotLeading):
            await two.first.write("late")
        # Whoever held it may make it anew at once; others wait, for he may not know yet.
        await until(two.first, True, 2 * TERMS.retry)
        assert not two.second.works


async def test_a_lease_that_was_deleted_is_left_to_its_holder_for_as_long_as_it_lasts() -> None:
    async with electing() as two:
        two.first.cut()
        two.server.delete(LEASES, *PLACE)
        stopped = await until(two.first, False)
        began = stopped + await until(two.second, True)
        assert stopped <= TERMS.deadline < TERMS.duration <= began + 0.1


async def test_leadership_is_handed_back_after_a_last_write_that_took_long() -> None:
    async with electing() as two:
        two.first.exit_seconds = TERMS.deadline + 1
        began = asyncio.get_running_loop().time()
        await two.first.stop()
        await until(two.second, True, 0.1)
        assert asyncio.get_running_loop().time() - began < TERMS.deadline + 1.2


async def test_nothing_opens_the_fence_again_at_the_end() -> None:
    async with electing() as two:
        two.first.faults.add(Effect(delay=1.5), "patch", "leases")
        ending = asyncio.ensure_future(two.first.stop())
        await asyncio.sleep(0.1)
        two.server.patch(LEASES, *PLACE, {"metadata": {"labels": {"team": "platform"}}})
        await asyncio.sleep(0.1)
        with pytest.raises(NotLeading):
            await two.first.write("late")
        await ending


async def test_labels_do_not_keep_a_dead_leader_alive() -> None:
    async with electing() as two:
        two.first.cut()
        for number in range(4):
            await asyncio.sleep(TERMS.duration / 3)
            two.server.patch(LEASES, *PLACE, {"metadata": {"labels": {"round": f"r{number}"}}})
        assert two.second.works


async def test_who_waits_does_not_rely_on_its_watch_alone() -> None:
    async with electing() as two:
        two.second.faults.add(Effect(silent=True), "watch", "leases", count=None)
        two.second.faults.cut_watches()
        await asyncio.sleep(60)
        assert (two.first.works, two.second.works) == (True, False)
        two.first.cut()
        began = asyncio.get_running_loop().time()
        await until(two.second, True)
        assert asyncio.get_running_loop().time() - began <= TERMS.duration + 3 * TERMS.retry + 0.5


async def test_a_claim_that_was_cut_off_is_handed_back_if_it_was_carried_out() -> None:
    server = api_server()
    alone, other = Candidate(server, "alone"), Candidate(server, "other")

    async def slow(answer: Response) -> Response:
        alone.wire.meddle = None
        await asyncio.sleep(1)
        return answer

    alone.wire.meddle = slow
    alone.start()
    await asyncio.sleep(0.5)
    await alone.stop()
    assert spec(server)["holderIdentity"] == ""
    other.start()
    try:
        assert await until(other, True) < 0.1
    finally:
        await other.stop()


async def test_a_lease_that_may_not_be_read_is_not_asked_for_without_a_pause() -> None:
    async with electing() as two:
        forbidden = Effect(refusal=ApiError(403, "Forbidden", "leases is forbidden"))
        refusals = two.second.faults.add(forbidden, "get", "leases", count=None)
        two.second.faults.add(Effect(silent=True), "watch", "leases", count=None)
        two.second.faults.cut_watches()
        await asyncio.sleep(60)
        # By looking, and by what is refused to the claim of one who has heard nothing for so long.
        assert 1 <= refusals.seen <= 2 * 60 / TERMS.retry + 2
        assert "allow the controller's account to get" in two.second.elector.trouble
        assert (two.first.works, two.second.works) == (True, False)
