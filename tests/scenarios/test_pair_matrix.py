"""Pairs in the story matrix: both kinds, through everything that may happen to a release, wherever it is, with the
requests of users measured.

The default run tells half of the acts, each once; without ``-m`` pytest tells all.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from rollout_lws.objects.resources import PODS
from rollout_lws.rollout.reasons import Reason
from tests.scenarios.kinds import LWS, ORDERED, STATEFUL_SET, LeaderWorkerSets
from tests.scenarios.matrix_table import Told
from tests.scenarios.paired import (
    BLUE,
    GREEN,
    MeteredPair,
    ScaleJudge,
    WeightJudge,
    all_ready,
    apply,
    approve_to_the_end,
    in_step,
    left,
    metered_pair,
    rollout,
    share,
    weights,
)
from tests.scenarios.paired_companions import PREFILL, SETS, sets
from tests.scenarios.paired_companions import roles as roles_of_sets
from tests.scenarios.paired_scaled import replicas, roles, stalled
from tests.scenarios.routed import (
    BY_GRPC,
    BY_ROUTE,
    BY_VIRTUAL_SERVICE,
    NOT_OF_PAIRS,
    ROUTES,
    because,
    rules_of,
    told_with,
)
from tests.scenarios.world import NAME, ROLLOUTS, World

Record = Callable[[str, object], None]
#: Groups of the active side.
GROUPS = 3
OTHERS_TOLD = because("test_one_by_another_kind_of_route_does_too tells each act", BY_GRPC, BY_VIRTUAL_SERVICE)
BY_ROUTES = told_with(BY_ROUTE, but=NOT_OF_PAIRS | OTHERS_TOLD)


class Moment(StrEnum):
    """Where a release of v2 over v1 is when something happens."""

    LOADING = "while the first groups load"
    FIRST = "in the first step"
    SECOND = "in the second step"
    HANDING_OVER = "while the old side drains"
    AFTER = "when the roles have changed"


class Kind(StrEnum):
    """What a release does to the workloads."""

    ROUTE_ONLY = "pair, RouteOnly"
    SCALED = "pair"
    SHIFTED = "pair, shift"
    ACCOMPANIED = "pair, companion"


@dataclass
class Release:
    """A release of v2 on the inactive side of a pair."""

    pair: MeteredPair
    kind: Kind
    moment: Moment
    excused: bool = False
    """Requests may be lost, through no fault of the controller's."""

    @property
    def world(self) -> World:
        return self.pair.world

    @property
    def scaled(self) -> bool:
        """The release scales both sides, else their owner has."""
        return self.kind is not Kind.ROUTE_ONLY

    @property
    def accompanied(self) -> bool:
        """Each side has a second workload, with as many groups."""
        return self.kind is Kind.ACCOMPANIED

    def apply(self, side: str, version: str) -> None:
        """Another version for a side, as its owner applies it."""
        for name in SETS[side] if self.accompanied else (side,):
            apply(self.world, name, version)

    @property
    def companions(self) -> list[dict[str, str]]:
        """What the Rollout says of companions."""
        return [{"name": PREFILL[BLUE], "counterpart": PREFILL[GREEN], "replicas": "100%"}] if self.accompanied else []

    @property
    def shift(self) -> dict[str, Any] | None:
        return {} if self.kind is Kind.SHIFTED else None

    @property
    def has_turned(self) -> bool:
        return self.moment is Moment.AFTER

    async def come_to(self) -> None:
        world = self.world
        match self.moment:
            case Moment.LOADING:
                self.apply(GREEN, "v2")
                await world.until(lambda: world.status.get("phase") == "Progressing", "the release begins")
            case Moment.FIRST:
                await self._in_step()
            case Moment.SECOND:
                await self._in_step(2)
            case Moment.HANDING_OVER:
                await self._in_step(2)
                world.approve()
                await world.until(lambda: share(world, GREEN) == 1, "all requests")
            case Moment.AFTER:
                await self._in_step(2)
                await approve_to_the_end(world)
        # Requests run where they were sent.
        await world.sleep(0 if self.moment is Moment.LOADING else 10)

    async def _in_step(self, step: int = 1) -> None:
        self.apply(GREEN, "v2")
        await in_step(self.world, step)

    async def ends(self, active: str, version: str, state: str = "Healthy", groups: int = GROUPS) -> None:
        """Everything is as if nothing but this had ever been."""
        world = self.world
        if state == "Healthy":
            await approve_to_the_end(world)
        await world.until_state(state, 1200)
        await world.rest(quiet=40, seconds=1200)
        other = GREEN if active == BLUE else BLUE
        assert world.status["active"] == active, world.describe()
        assert weights(world)[other] == 0 < weights(world)[active]
        assert {told.rstrip("!") for told in world.groups(active).values()} == {version}
        assert world.names()["batchreleases"] == [] and len(_rules(world)) == 1
        if self.scaled:
            assert replicas(world) == {active: groups, other: 0}
            assert roles(world) == {active: "active", other: "parked"}
        if self.accompanied:
            assert sets(world) == {active: (groups, groups), other: (0, 0)}
            assert {told.rstrip("!") for told in world.groups(PREFILL[active]).values()} == {version}
            assert roles_of_sets(world) == {active: {"active"}, other: {"parked"}}
        if not self.excused:
            self.pair.assert_unharmed()


def _rules(world: World) -> list[Any]:
    return rules_of(world)


# What happens


async def finish(it: Release) -> None:
    await it.ends(GREEN, "v2")


async def rollback_by_template(it: Release) -> None:
    _renewed_by_its_owner(it)
    it.apply(GREEN, "v1")
    await it.ends(BLUE, "v1")


def _renewed_by_its_owner(it: Release) -> None:
    """A side that no release holds is renewed at once, with what runs there."""
    it.excused = not it.scaled


async def abort(it: Release) -> None:
    it.world.request("Abort")
    await it.ends(BLUE, "v1", "Aborted")


async def retry(it: Release) -> None:
    await abort(it)
    it.world.request("Retry")
    await it.world.until(lambda: it.world.status.get("phase") == "Progressing", "again")
    await it.ends(GREEN, "v2")


async def start_the_way_back(it: Release) -> None:
    it.world.request("Start")
    await it.world.until(lambda: it.world.status.get("phase") == "Progressing", "the way back")
    await it.ends(BLUE, "v1")


async def third_template(it: Release) -> None:
    _renewed_by_its_owner(it)
    side = BLUE if it.has_turned else GREEN
    it.apply(side, "v3")
    await it.world.until(lambda: "v3" in it.world.groups(side).values(), "a group of the third version", 1200)
    await it.ends(side, "v3")


async def scale_up(it: Release) -> None:
    await _scaled(it, GROUPS + 2)


async def scale_down(it: Release) -> None:
    it.excused = True
    await _scaled(it, GROUPS - 1)


async def _scaled(it: Release, count: int) -> None:
    world = it.world
    if it.scaled:
        world.patch(ROLLOUTS, NAME, {"spec": {"replicas": count}})
    else:
        for side in (BLUE, GREEN):
            world.patch_lws({"replicas": count}, side)
    await it.ends(GREEN, "v2", groups=count)
    assert len(world.groups(GREEN)) == count
    assert not it.pair.meter.failures


async def delete_rollout(it: Release) -> None:
    world = it.world
    active = GREEN if it.has_turned else BLUE
    await left(world)
    assert share(world, active) == 1 and set(roles(world).values()) == {None}
    spec = {"companions": it.companions} if it.accompanied else {} if it.scaled else None
    world.server.create(ROLLOUTS, rollout(*STEPS[it.kind], spec=spec, shift=it.shift, kind=world.kind))
    await world.until_state("Healthy", 1200)
    await it.ends(active, "v2" if it.has_turned else "v1")


async def disable(it: Release) -> None:
    world = it.world
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled", 1200)
    world.patch_rollout({"disabled": None})
    await world.until_state("Healthy", 1200)
    await it.ends(*((GREEN, "v2") if it.has_turned else (BLUE, "v1")))


async def delete_the_inactive_side(it: Release) -> None:
    it.excused = True
    world = it.world
    active, other = (GREEN, BLUE) if it.has_turned else (BLUE, GREEN)
    world.delete(world.kind.resource, other)
    await world.until(lambda: stalled(world, Reason.COUNTERPART_MISSING), "told", 1200)
    assert share(world, active) == 1
    await is_gone(world, other)
    version = "v2" if it.has_turned else "v1"
    create(it, other, version)
    await it.ends(await serves_at_last(it, other, active), version)


async def is_gone(world: World, name: str) -> None:
    await world.until(lambda: not world.kind.pods(world.server.store, name), f"{name} gone", 1200)


def create(it: Release, name: str, version: str) -> None:
    it.world.create_workload(name=name, replicas=0 if it.scaled else GROUPS, size=1, tag=version)
    if it.accompanied:
        apply(it.world, PREFILL[name], version)


async def serves_at_last(it: Release, made: str, active: str) -> str:
    """The side that serves when another one has been made anew with the version that runs: that is nothing to release,
    unless their templates differ in the labels by which StatefulSets know their pods.
    """
    world = it.world
    if world.kind is LWS:
        await world.until_state("Healthy", 1200)
        return active
    await world.until(lambda: world.state in ("AwaitingApproval", "Healthy"), "the release", 1200)
    await approve_to_the_end(world)
    found = str(world.status["active"])
    assert found in (made, active), found
    return found


async def delete_the_active_side(it: Release) -> None:
    """The other one serves, if it has groups or may have some."""
    it.excused = True
    world = it.world
    active, other = (GREEN, BLUE) if it.has_turned else (BLUE, GREEN)
    version = "v1" if it.has_turned else "v2"
    world.delete(world.kind.resource, active)
    if it.moment is Moment.LOADING:
        # No group of a version that was never released serves by itself.
        await world.until(lambda: stalled(world, Reason.WORKLOAD_NOT_FOUND) or world.status["active"] == other, "told")
        return
    await world.until(lambda: world.status["active"] == other, "the roles", 1200)
    await world.until(lambda: share(world, other) == 1, "requests", 1200)
    await is_gone(world, active)
    create(it, active, version)
    await it.ends(await serves_at_last(it, active, other), version)


async def groups_lost(it: Release) -> None:
    it.excused = True
    world = it.world
    for side in (BLUE, GREEN):
        if len(world.groups(side)) > 1 and world.get(PODS, f"{side}-0") is not None:
            world.delete(PODS, f"{side}-0")
            await world.sleep(60)
    await it.ends(GREEN, "v2")


async def accompany(it: Release) -> None:
    """Both sides get a companion, whose Rollout lets go of them meanwhile."""
    world = it.world
    world.patch_rollout({"disabled": True})
    await world.until_state("Disabled")
    for side, count in ((BLUE, GROUPS), (GREEN, 0)):
        world.create_workload(name=PREFILL[side], replicas=count, size=1, tag="v1")
    await all_ready(world, PREFILL[BLUE])
    world.patch_rollout({"disabled": None, "companions": it.companions})
    await world.until_state("Healthy")
    await world.rest()


BEFORE = tuple(each for each in Moment if each is not Moment.AFTER)


@dataclass(frozen=True)
class Act:
    """``moments`` are those at which it is asked for, ``sample`` the one of the default run."""

    name: str
    happen: Callable[[Release], Awaitable[None]]
    sample: Moment
    moments: tuple[Moment, ...] = tuple(Moment)

    def __str__(self) -> str:
        return self.name


#: The plans; none is the usual one.
STEPS: dict[Kind, tuple[dict[str, Any], ...]] = {
    Kind.ROUTE_ONLY: (),
    Kind.SCALED: (),
    Kind.SHIFTED: tuple({"replicas": count, "traffic": "auto", "pause": {}} for count in (1, 2)),
    Kind.ACCOMPANIED: (),
}
ACTS = (
    Act("finish", finish, Moment.FIRST, (Moment.FIRST,)),
    Act("rollback by template", rollback_by_template, Moment.SECOND, BEFORE),
    Act("abort", abort, Moment.HANDING_OVER, BEFORE),
    Act("retry", retry, Moment.FIRST, BEFORE),
    Act("start", start_the_way_back, Moment.AFTER, (Moment.AFTER,)),
    Act("third template", third_template, Moment.HANDING_OVER),
    Act("scale up", scale_up, Moment.SECOND),
    Act("scale down", scale_down, Moment.FIRST),
    Act("delete Rollout", delete_rollout, Moment.AFTER),
    Act("disable", disable, Moment.HANDING_OVER),
    Act("delete inactive LWS", delete_the_inactive_side, Moment.SECOND),
    Act("delete LWS", delete_the_active_side, Moment.SECOND),
    Act("group lost in mid-step", groups_lost, Moment.SECOND),
)


def everything() -> Iterator[Any]:
    for kind, act in itertools.product(Kind, ACTS):
        for moment in act.moments:
            yield pytest.param(kind, act, moment, id=f"{kind.name.lower()}-{act}-{moment.name.lower()}")


def sample() -> Iterator[Any]:
    for number, act in enumerate(ACTS):
        yield pytest.param((*Kind,)[number % len(Kind)], act, act.sample, id=str(act))


async def tell(kind: Kind, act: Act, moment: Moment, record: Record, workload: LeaderWorkerSets = LWS) -> None:
    column = kind.value if workload is LWS else f"{workload}: {kind.value}"
    record(*Told(act.name, column, ROUTES.provider.name).note())
    more: dict[str, Any] = {"scaled": True} if kind is not Kind.ROUTE_ONLY else {"beside": GROUPS}
    if kind is Kind.SHIFTED:
        more["more"] = {"shift": {}}
    async with metered_pair(*STEPS[kind], replicas=GROUPS, size=1, kind=workload, **more) as pair:
        it = Release(pair, kind, moment)
        if it.accompanied:
            await accompany(it)
        WeightJudge(pair.world).watch()
        ScaleJudge(pair.world).watch()
        await it.come_to()
        await act.happen(it)


@BY_ROUTES
@pytest.mark.one_in(2)
@pytest.mark.looptime
@pytest.mark.parametrize(("kind", "act", "moment"), [*sample()])
async def test_a_release_of_a_pair_comes_to_a_legal_end(
    kind: Kind, act: Act, moment: Moment, record_property: Record
) -> None:
    await tell(kind, act, moment, record_property)


@BY_ROUTES
@pytest.mark.each_change
@pytest.mark.long
@pytest.mark.looptime
@pytest.mark.parametrize(("kind", "act", "moment"), [*everything()])
async def test_a_release_of_a_pair_comes_to_a_legal_end_whenever_it_happens(
    kind: Kind, act: Act, moment: Moment, record_property: Record
) -> None:
    await tell(kind, act, moment, record_property)


@BY_ROUTES
@pytest.mark.long
@pytest.mark.looptime
@pytest.mark.parametrize("workload", [STATEFUL_SET, ORDERED], ids=str)
@pytest.mark.parametrize(("kind", "act", "moment"), [*everything()])
async def test_one_of_stateful_sets_does_too(
    kind: Kind, act: Act, moment: Moment, workload: LeaderWorkerSets, record_property: Record
) -> None:
    await tell(kind, act, moment, record_property, workload)


@pytest.mark.long
@pytest.mark.looptime
@told_with(BY_GRPC, BY_VIRTUAL_SERVICE, but=NOT_OF_PAIRS | because("the tests above tell all of it", BY_ROUTE))
@pytest.mark.usefixtures("router")
@pytest.mark.parametrize("router", [BY_GRPC, BY_VIRTUAL_SERVICE], ids=str, indirect=True)
@pytest.mark.parametrize(("kind", "act", "moment"), [*sample()])
async def test_one_by_another_kind_of_route_does_too(
    kind: Kind, act: Act, moment: Moment, record_property: Record
) -> None:
    await tell(kind, act, moment, record_property)
