"""The rules of leader election: a table for each, and of several candidates never two that lead."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout_lws.kube import lease
from rollout_lws.kube.lease import Ask, Lease, Look, Standing, Stop, Terms, Wait
from rollout_lws.objects.writes import Create, Patch

DATE = datetime(2026, 3, 1, 12, 0, 0, 250_000, UTC)
TERMS = Terms(15, 10, 2)
PLACE = ("system", "leader")


def held(by: str, version: int = 1, **spec: Any) -> Lease:
    body = {
        "metadata": {"name": PLACE[1], "namespace": PLACE[0], "resourceVersion": str(version)},
        "spec": {"holderIdentity": by, "leaseDurationSeconds": 15, "leaseTransitions": 3, **spec},
    }
    return lease.read(msgspec.json.encode(body))


def act(standing: Standing, now: float) -> lease.Act:
    return lease.act(standing, now, DATE, *PLACE)


FIRST = Standing("me", TERMS)
SEEN = lease.saw(FIRST, held("her"), 100.0)
LEADS = lease.granted(FIRST, held("me"), 100.0)
RENEWED = lease.saw(SEEN, held("her", 2, renewTime="2026-03-01T12:00:10.000000Z"), 110.0)
LABELLED = msgspec.structs.replace(held("her"), metadata=held("me", 2).metadata)


def lasting(seconds: int | None) -> Standing:
    """Of a Lease that was seen first at 0 and looked at a moment before it has run out."""
    hers = held("her", leaseDurationSeconds=seconds)
    return lease.saw(lease.saw(FIRST, hers, 0.0), hers, 14.0 if seconds is None else seconds - 1.0)


@pytest.mark.parametrize(
    ("standing", "now", "wanted"),
    [
        pytest.param(SEEN, 100.0, Wait(106.0), id="another holds it"),
        pytest.param(SEEN, 106.0, Look(), id="and no renewal is heard of"),
        pytest.param(lease.saw(SEEN, held("her"), 106.0), 106.0, Wait(112.0), id="there was none"),
        pytest.param(lease.saw(SEEN, held("her"), 112.0), 112.0, Wait(115.0), id="until it has run out"),
        pytest.param(RENEWED, 115.0, Wait(116.0), id="she renewed it"),
        pytest.param(lease.saw(RENEWED, RENEWED.lease, 124.0), 124.0, Wait(125.0), id="that counts from then"),
        pytest.param(lease.saw(SEEN, LABELLED, 114.0), 114.0, Wait(115.0), id="a label renews nothing"),
        pytest.param(lease.saw(SEEN, None, 101.0), 101.0, Wait(116.0), id="deleted, and she may not know"),
        pytest.param(lasting(60), 59.0, Wait(60.0), id="for longer"),
        pytest.param(lasting(None), 14.0, Wait(15.0), id="for how long?"),
        pytest.param(lease.asked(lasting(15), 15.0, 2.0), 16.0, Wait(17.0), id="asked a moment ago"),
        pytest.param(lease.asked(LEADS, 100.0, 2.0), 100.0, Wait(102.0), id="leads, renews in time"),
        pytest.param(lease.asked(LEADS, 109.0, 2.0), 109.5, Wait(110.0), id="leads, but not for longer"),
        pytest.param(LEADS, 110.0, Stop(), id="no renewal came in time"),
        pytest.param(LEADS, 9e9, Stop(), id="stood still for years"),
    ],
)
def test_what_is_done_without_asking(standing: Standing, now: float, wanted: lease.Act) -> None:
    assert act(standing, now) == wanted


@pytest.mark.parametrize(
    ("standing", "now", "version", "transitions"),
    [
        pytest.param(SEEN, 115.0, "1", 4, id="hers has run out"),
        pytest.param(lease.saw(FIRST, held(""), 0.0), 0.0, "1", 4, id="handed back"),
        pytest.param(lease.saw(FIRST, held("", 7, leaseTransitions=None), 0.0), 0.0, "7", 1, id="made by hand"),
        pytest.param(LEADS, 102.0, "1", None, id="a renewal"),
        pytest.param(lease.saw(FIRST, held("me", 5), 0.0), 0.0, "5", None, id="ours, though no answer said so"),
    ],
)
def test_what_is_asked_names_the_version_that_was_seen(
    standing: Standing, now: float, version: str, transitions: int | None
) -> None:
    found = act(standing, now)
    assert isinstance(found, Ask) and isinstance(found.write, Patch)
    moment = "2026-03-01T12:00:00.250000Z"
    taken = {} if transitions is None else {"acquireTime": moment, "leaseTransitions": transitions}
    assert found.write.resource_version == version
    assert found.write.body == {
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": moment, **taken}
    }


def test_a_lease_that_is_not_there_is_made() -> None:
    found = act(FIRST, 0.0)
    assert isinstance(found, Ask) and isinstance(found.write, Create)
    assert (found.write.namespace, found.write.name) == PLACE
    assert found.write.body["spec"]["holderIdentity"] == "me"


@pytest.mark.parametrize("after", [held("her", 2), held("", 2), None], ids=["hers", "nobody's", "deleted"])
def test_a_leader_whose_lease_is_not_his_any_more_leads_no_longer(after: Lease | None) -> None:
    assert lease.saw(LEADS, after, 101.0).leads_until is None


def test_a_renewal_that_was_carried_out_though_its_answer_was_lost_adds_nothing() -> None:
    standing = lease.saw(LEADS, held("me", 2), 103.0)
    assert standing.leads_until == 110.0


def test_a_renewal_counts_from_when_it_was_asked_for() -> None:
    assert lease.granted(LEADS, held("me", 2), 104.0).leads_until == 114.0


def test_what_was_refused_is_asked_again_at_once_only_when_there_is_news() -> None:
    asked = lease.asked(LEADS, 102.0, 2.0)
    assert lease.refused(asked, held("me", 2), 102.1).next_moment == 102.1
    assert lease.refused(asked, held("me", 1), 102.1).next_moment == 104.0


@pytest.mark.parametrize(
    ("standing", "gives"),
    [(LEADS, True), (lease.stopped(LEADS), True), (SEEN, False), (FIRST, False)],
    ids=["leads", "led, and nobody has taken it", "waits", "knows nothing"],
)
def test_only_whose_it_is_hands_it_back(standing: Standing, gives: bool) -> None:
    write = lease.handed_back(standing, DATE)
    assert (write is not None) is gives
    if write is not None:
        assert (write.resource_version, write.body["spec"]["holderIdentity"]) == ("1", "")
        assert write.body["spec"]["leaseDurationSeconds"] == 1


# Several candidates and one Lease, with every delay, loss and clock that there may be


@dataclass
class Server:
    """A Lease with versions; who writes has to name the one that is there."""

    lease: Lease | None = None
    version: int = 0

    def take(self, write: Create | Patch) -> bool:
        seen = None if isinstance(write, Create) else write.resource_version
        if seen != (None if self.lease is None else str(self.version)):
            return False
        self.version += 1
        self.lease = held(write.body["spec"]["holderIdentity"], self.version, renewTime=f"{self.version}")
        return True


@dataclass
class Candidate:
    """Its clock is ``ahead`` of the true one; while it is asleep until ``sleeps`` nothing of it runs."""

    standing: Standing
    ahead: float
    sleeps: float = 0.0

    def leads_at(self, true: float) -> bool:
        until = self.standing.leads_until
        return until is not None and true + self.ahead < until


@dataclass
class Run:
    """True time; everything that happens does so at a moment of it."""

    draw: Callable[[str], float]
    server: Server = field(default_factory=Server)
    now: float = 0.0
    led: set[str] = field(default_factory=set)
    _agenda: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _number: itertools.count[int] = field(default_factory=itertools.count)

    def at(self, when: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (when, next(self._number), do))

    def of(self, who: Candidate, when: float, do: Callable[[], None]) -> None:
        """The like, but not while it sleeps."""

        def awake() -> None:
            if self.now < who.sleeps:
                self.of(who, who.sleeps, do)
            else:
                do()

        self.at(when, awake)

    def step(self, who: Candidate) -> None:
        own = self.now + who.ahead
        found = act(who.standing, own)
        if isinstance(found, Look):
            self.hear(who, again=False)
            # Whatever it finds, it does not look again at once.
            who.standing = replace(who.standing, looks_at=own + TERMS.retry)
            self.of(who, self.now + 0.1, lambda: self.step(who))
        elif isinstance(found, Stop):
            who.standing = lease.stopped(who.standing)
            self.of(who, self.now, lambda: self.step(who))
        elif isinstance(found, Wait):
            later = min(found.until - own, 1.0)
            self.of(who, self.now + max(later, 0.001), lambda: self.step(who))
        else:
            who.standing = lease.asked(who.standing, own, TERMS.retry)
            self.at(self.now + self.draw("there"), lambda: self.arrives(who, found.write, own))
            self.of(who, self.now + TERMS.retry, lambda: self.step(who))

    def arrives(self, who: Candidate, write: Create | Patch, asked_at: float) -> None:
        taken, answer = self.server.take(write), self.server.lease
        back = self.now + self.draw("back")

        def answered() -> None:
            # An answer that comes after the request's time-out is none.
            if self.now + who.ahead - asked_at > TERMS.retry:
                return
            if taken and answer is not None:
                who.standing = lease.granted(who.standing, answer, asked_at)
            elif not taken:
                who.standing = lease.refused(who.standing, answer, self.now + who.ahead)

        self.of(who, back, answered)

    def hear(self, who: Candidate, again: bool = True) -> None:
        """A watch that lags, and tells the newest only."""
        newest = self.server.lease

        def told() -> None:
            known = who.standing.lease
            old = -1 if known is None else int(known.metadata.resource_version)
            if newest is not None and int(newest.metadata.resource_version) > old:
                who.standing = lease.saw(who.standing, newest, self.now + who.ahead)

        self.of(who, self.now + self.draw("watch"), told)
        if again:
            self.at(self.now + 1.0, lambda: self.hear(who))

    def go(self, candidates: list[Candidate], seconds: float) -> None:
        while self._agenda and self._agenda[0][0] <= seconds:
            self.now, _, do = heapq.heappop(self._agenda)
            do()
            leaders = [each for each in candidates if each.leads_at(self.now)]
            assert len(leaders) <= 1, f"two lead at {self.now}"
            self.led |= {each.standing.me for each in leaders}


DELAYS = st.one_of(st.floats(0.0, 0.2), st.floats(0.0, 30.0))


@settings(max_examples=60)
@given(
    ahead=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=3),
    sleeps=st.lists(st.tuples(st.integers(0, 2), st.floats(0.0, 90.0), st.floats(0.1, 60.0)), max_size=4),
    delays=st.lists(DELAYS, min_size=1, max_size=40),
)
def test_two_never_lead(ahead: list[float], sleeps: list[tuple[int, float, float]], delays: list[float]) -> None:
    drawn = itertools.cycle(delays)
    run = Run(lambda _: next(drawn))
    candidates = [Candidate(Standing(f"c{number}", TERMS), each) for number, each in enumerate(ahead)]
    for number, each in enumerate(candidates):
        run.at(0.01 * number, lambda each=each: run.step(each))  # type: ignore[misc]
        run.at(0.01 * number, lambda each=each: run.hear(each))  # type: ignore[misc]
    for number, begin, length in sleeps:
        sleeper = candidates[number % len(candidates)]
        run.at(begin, lambda who=sleeper, until=begin + length: setattr(who, "sleeps", until))  # type: ignore[misc]
    run.go(candidates, 120.0)


def test_somebody_leads_again_soon_after_whoever_led_is_gone() -> None:
    run = Run(lambda _: 0.05)
    candidates = [Candidate(Standing(f"c{number}", TERMS), 1000.0 * number) for number in range(2)]
    for each in candidates:
        run.at(0.0, lambda each=each: run.step(each))  # type: ignore[misc]
        run.at(0.0, lambda each=each: run.hear(each))  # type: ignore[misc]
    run.go(candidates, 30.0)
    (leader,) = [each for each in candidates if each.leads_at(30.0)]
    (other,) = [each for each in candidates if each is not leader]
    leader.sleeps = math.inf
    run.go(candidates, 30.0 + TERMS.duration + 2.0)
    assert other.leads_at(run.now)
