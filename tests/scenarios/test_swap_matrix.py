"""Swaps and shifts in the story matrix: a release from the user's workload, or home to it, through everything that may
happen to one, wherever it is, with the requests of users measured.

The default run tells some of the acts, each once; without ``-m`` pytest tells all.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from rollout_lws.objects.resources import HTTP_ROUTES, PODS, SERVICES
from rollout_lws.rollout.reasons import Reason
from rollout_lws.sandbox.patching.patches import APPLY_PATCH
from tests.scenarios.kinds import LWS, ORDERED, STATEFUL_SET, LeaderWorkerSets, pinned
from tests.scenarios.matrix_table import Told
from tests.scenarios.metered import Metered
from tests.scenarios.paired_scaled import stalled
from tests.scenarios.routed import ROUTE, SERVICE
from tests.scenarios.shifted import assert_serves, shifted
from tests.scenarios.stories import CANARY
from tests.scenarios.swapped import (
    SWAP,
    left_as_is,
    make_anew,
    moved,
    replicas,
    stands_in,
    swapped,
    to_the_end,
)
from tests.scenarios.world import NAME, NAMESPACE, World

Record = Callable[[str, object], None]
#: Groups of the Rollout.
GROUPS = 3
#: Seconds that old groups stay after a release, if they do.
KEPT_SECONDS = 900


class Moment(StrEnum):
    """Where a release of v3 is when something happens."""

    LOADING = "while the first groups load"
    FIRST = "in the first step"
    SECOND = "in the second step"
    HANDING_OVER = "while the old groups drain"
    AFTER = "when the roles have changed"


class Kind(StrEnum):
    """What becomes of old groups as new ones come, and which way the release goes."""

    SWAP = "swap"
    SWAP_HOME = "swap, home"
    KEPT = "swap, old groups stay"
    KEPT_HOME = "swap, old groups stay, home"
    SHIFT = "shift"
    SHIFT_HOME = "shift, home"

    @property
    def shifts(self) -> bool:
        return self in (Kind.SHIFT, Kind.SHIFT_HOME)

    @property
    def home(self) -> bool:
        return self in (Kind.SWAP_HOME, Kind.KEPT_HOME, Kind.SHIFT_HOME)

    @property
    def keeps(self) -> bool:
        return self in (Kind.KEPT, Kind.KEPT_HOME)

    @property
    def moments(self) -> tuple[Moment, ...]:
        """Those that differ from a release of another kind."""
        return (Moment.HANDING_OVER, Moment.AFTER) if self.keeps else tuple(Moment)


@asynccontextmanager
async def at_rest(kind: Kind, workload: LeaderWorkerSets = LWS) -> AsyncIterator[Metered]:
    auto = tuple({"replicas": count, "traffic": "auto", "pause": {}} for count in (1, 2))
    swaps = {**SWAP, "scaleDownDelaySeconds": KEPT_SECONDS} if kind.keeps else SWAP
    of_kind: dict[str, Any] = {"replicas": GROUPS, "kind": workload}
    async with shifted(None, *auto, **of_kind) if kind.shifts else swapped(words=swaps, **of_kind) as m:
        yield m


@dataclass
class Release:
    """A release of v3, over v1 from the user's workload, or over v2 home to it."""

    m: Metered
    kind: Kind
    moment: Moment
    excused: bool = False
    """Requests may be lost, through no fault of the controller's."""
    cut: bool = False
    """Streams may be cut, through no fault of the controller's."""

    @property
    def world(self) -> World:
        return self.m.world

    @property
    def old(self) -> str:
        return CANARY if self.kind.home else NAME

    @property
    def new(self) -> str:
        return NAME if self.kind.home else CANARY

    @property
    def before(self) -> str:
        """The version that runs before."""
        return "v2" if self.kind.home else "v1"

    @property
    def has_turned(self) -> bool:
        return self.moment is Moment.AFTER

    @property
    def active(self) -> str:
        return self.new if self.has_turned else self.old

    async def come_to(self) -> None:
        world = self.world
        world.set_image("v3")
        await world.until(lambda: world.status.get("phase") == "Progressing", "the release begins")
        if self.moment is Moment.LOADING:
            return
        await self.m.step(1)
        await world.sleep(40)
        if self.moment is Moment.FIRST:
            return
        world.approve()
        await self.m.step(2)
        await world.sleep(40)
        if self.moment is Moment.SECOND:
            return
        world.approve()
        await world.until(lambda: world.state == "Promoting", "the hand-over")
        await world.sleep(20)
        if self.has_turned:
            await to_the_end(world)

    async def ends(self, serves: str, version: str, state: str = "Healthy", groups: int = GROUPS) -> None:
        """Everything is as if nothing but this had ever been."""
        world = self.world
        if state == "Healthy":
            await to_the_end(world)
        await world.until_state(state, 1200)
        await world.until(lambda: "kept" not in world.status_of(NAME), "no groups stay", KEPT_SECONDS + 300)
        await world.rest(quiet=40, seconds=1200)
        assert stands_in(world) is (serves == CANARY), world.describe()
        assert_serves(world, serves, version, groups)
        if not self.excused:
            assert await self.m.shares() == {serves: 1.0}
            told = [*self.m.meter.failures, *(() if self.cut else self.m.cuts)]
            assert not told, "\n".join(map(str, told))

    async def again(self) -> None:
        """The version that was not released is released from its first step."""
        world = self.world
        if not self.has_turned:
            await world.until(lambda: world.state == "AwaitingApproval", "again", 1200)
        await self.ends(self.new, "v3")


# What happens


async def finish(it: Release) -> None:
    await it.ends(it.new, "v3")


async def rollback_by_template(it: Release) -> None:
    it.world.set_image(it.before)
    await it.ends(it.old, it.before)


async def undo(it: Release) -> None:
    """The version before is applied again when the release is over."""
    it.world.set_image(it.before)
    await it.world.until(lambda: it.world.state != "Healthy", "the way back")
    await it.ends(it.old, it.before)


async def abort(it: Release) -> None:
    it.world.request("Abort")
    await it.ends(it.old, it.before, "Aborted")


async def retry(it: Release) -> None:
    await abort(it)
    it.world.request("Retry")
    await it.again()


async def home(it: Release) -> None:
    """The version that runs comes home, if it is not there."""
    it.world.request("Start")
    if it.active == CANARY:
        await it.world.until(lambda: it.world.state != "Healthy", "the way home")
    await it.ends(NAME, "v3")


async def third_template(it: Release) -> None:
    it.world.set_image("v4")
    other = it.old if it.has_turned else it.new
    await it.world.until(lambda: "v4" in it.world.groups(other).values(), "a group of the fourth version", 1200)
    await it.ends(other, "v4")


async def scale_up(it: Release) -> None:
    await _scaled(it, GROUPS + 2)


async def scale_down(it: Release) -> None:
    # What is scaled away at rest has its preStop only.
    it.cut = True
    await _scaled(it, GROUPS - 1)


async def _scaled(it: Release, count: int) -> None:
    it.world.patch_rollout({"replicas": count})
    await it.world.sleep(60)
    await it.ends(it.new, "v3", groups=count)


async def delete_rollout(it: Release) -> None:
    """It goes back first, and leaves what serves as it is."""
    left = await left_as_is(it.world)
    await it.world.sleep(60)
    assert await it.m.shares() == {it.active: 1.0}
    make_anew(it.world, left)
    await it.world.until(lambda: bool(it.world.status_of(NAME).get("stable")), "adopted", 600)
    await it.again()


async def disable(it: Release) -> None:
    world = it.world
    world.patch_rollout({"disabled": True})
    if it.active == CANARY:
        await world.until(lambda: stalled(world, Reason.STANDS_IN), "told", 1200)
    else:
        await world.until_state("Disabled", 1200)
    world.patch_rollout({"disabled": None})
    await it.again()


async def delete_the_made_one(it: Release) -> None:
    """It goes when its requests are elsewhere."""
    world = it.world
    if world.get(world.kind.resource, CANARY) is None:
        await world.until(lambda: world.get(world.kind.resource, CANARY) is not None or it.has_turned, "made", 600)
    served = stands_in(world)
    world.delete(world.kind.resource, CANARY)
    await world.sleep(300)
    await it.ends(NAME if served else it.new, "v3")


async def delete_the_users(it: Release) -> None:
    """What the other one has of requests, it keeps; and an LWS of that name is taken into care when there is one."""
    it.excused = True
    world, spec = it.world, it.world.lws["spec"]
    world.delete(world.kind.resource, NAME)
    await world.until(lambda: not world.kind.pods(world.server.store, NAME), "gone", 1200)
    await world.sleep(120)
    made_serves = world.get(world.kind.resource, CANARY) is not None and stands_in(world)
    spec = {**spec, "replicas": 0 if made_serves else GROUPS, world.kind.strategy[0]: {"type": "RollingUpdate"}}
    body = world.kind.resource.manifest(NAME, NAMESPACE, spec=spec)
    world.server.create(world.kind.resource, body)
    await world.sleep(120)
    await it.ends(CANARY if made_serves and it.has_turned else NAME, "v3")


async def groups_lost(it: Release) -> None:
    it.excused = True
    world = it.world
    world.checks.clear()
    for name, count in replicas(world).items():
        if count > 1 and world.get(PODS, f"{name}-0") is not None:
            world.delete(PODS, f"{name}-0")
            await world.sleep(60)
    await it.ends(it.new, "v3")


async def applied_again(it: Release) -> None:
    """The manifests of the workload, the Service and the route, by a tool that insists."""
    world = it.world
    route, live = world.get(HTTP_ROUTES, ROUTE) or {}, world.lws
    resource, (member, *_) = world.kind.resource, world.kind.template
    body = resource.manifest(NAME, NAMESPACE, spec={member: live["spec"][member]})
    rules = [{**each, "backendRefs": [{"name": SERVICE, "port": 80}]} for each in route["spec"]["rules"]]
    for _ in range(3):
        world.server.patch(resource, NAMESPACE, NAME, body, APPLY_PATCH, field_manager="argocd", force=True)
        written = (world.get(SERVICES, SERVICE) or {})["spec"]["selector"]
        unpinned: dict[str, Any] = {key: None for key in written if pinned({key: ""})}
        world.patch(SERVICES, SERVICE, {"spec": {"selector": unpinned}})
        world.patch(HTTP_ROUTES, ROUTE, {"spec": {"rules": rules}})
        await world.sleep(10)
    # Requests go where the manifests say, until that is put back: to groups that are about to go as well.
    it.cut = True
    await it.ends(it.new, "v3")


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


ACTS = (
    Act("finish", finish, Moment.FIRST, (Moment.FIRST,)),
    Act("rollback by template", rollback_by_template, Moment.SECOND, BEFORE),
    Act("undo", undo, Moment.AFTER, (Moment.AFTER,)),
    Act("abort", abort, Moment.HANDING_OVER, BEFORE),
    Act("retry", retry, Moment.FIRST, BEFORE),
    Act("home", home, Moment.AFTER, (Moment.AFTER,)),
    Act("third template", third_template, Moment.HANDING_OVER),
    Act("scale up", scale_up, Moment.SECOND),
    Act("scale down", scale_down, Moment.FIRST),
    Act("delete Rollout", delete_rollout, Moment.SECOND),
    Act("disable", disable, Moment.HANDING_OVER),
    Act("delete the made LWS", delete_the_made_one, Moment.SECOND),
    Act("delete LWS", delete_the_users, Moment.SECOND),
    Act("group lost in mid-step", groups_lost, Moment.SECOND),
    Act("applied again", applied_again, Moment.HANDING_OVER),
)


def everything() -> Iterator[Any]:
    for kind, act in itertools.product(Kind, ACTS):
        for moment in (each for each in act.moments if each in kind.moments):
            if act.happen is delete_the_made_one and kind.home and not kind.keeps and moment is Moment.AFTER:
                # It is gone by then.
                continue
            yield pytest.param(kind, act, moment, id=f"{kind.name.lower()}-{act}-{moment.name.lower()}")


def sample() -> Iterator[Any]:
    for number, act in enumerate(ACTS):
        yield pytest.param((*Kind,)[number % len(Kind)], act, act.sample, id=str(act))


async def tell(kind: Kind, act: Act, moment: Moment, record: Record, workload: LeaderWorkerSets = LWS) -> None:
    column = kind.value if workload is LWS else f"{workload}: {kind.value}"
    record(*Told(act.name, column, "HTTPRoute").note())
    async with at_rest(kind, workload) as m:
        await moved(m, away=kind.home)
        it = Release(m, kind, moment)
        await it.come_to()
        await act.happen(it)


@pytest.mark.one_in(2)
@pytest.mark.looptime
@pytest.mark.parametrize(("kind", "act", "moment"), [*sample()])
async def test_a_release_comes_to_a_legal_end(kind: Kind, act: Act, moment: Moment, record_property: Record) -> None:
    await tell(kind, act, moment, record_property)


@pytest.mark.each_change
@pytest.mark.long
@pytest.mark.looptime
@pytest.mark.parametrize(("kind", "act", "moment"), [*everything()])
async def test_a_release_comes_to_a_legal_end_whenever_it_happens(
    kind: Kind, act: Act, moment: Moment, record_property: Record
) -> None:
    await tell(kind, act, moment, record_property)


@pytest.mark.long
@pytest.mark.looptime
@pytest.mark.parametrize("workload", [STATEFUL_SET, ORDERED], ids=str)
@pytest.mark.parametrize(("kind", "act", "moment"), [*everything()])
async def test_one_of_a_stateful_set_does_too(
    kind: Kind, act: Act, moment: Moment, workload: LeaderWorkerSets, record_property: Record
) -> None:
    await tell(kind, act, moment, record_property, workload)
