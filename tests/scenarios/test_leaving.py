"""Leaving, from wherever a release is: nothing of it stays, nothing starts by itself, and whoever comes next goes on.

The story matrix leaves from every step and from a promotion; here are the other ways to be on the way, and the other
ways to part.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import HTTP_ROUTES, LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.count import partition
from tests.scenarios.failures import apply
from tests.scenarios.insisting import Insisting
from tests.scenarios.judge import CANARY, HOLD
from tests.scenarios.matrix import TRAFFIC, Moment, Release, release
from tests.scenarios.routed import ROUTE, hold_record
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import STEPS
from tests.scenarios.styles import CANARY_STYLE, IN_PLACE, STYLES, SURGE, Style
from tests.scenarios.world import KEYS, NAME, ROLLOUTS, World

pytestmark = pytest.mark.looptime

ROUTED = TRAFFIC[1]
EVERY_STYLE = pytest.mark.parametrize("style", STYLES, ids=str)


async def begun(world: World, style: Style, traffic: str = ROUTED) -> Release:
    it = release(world, style, traffic, size=1)
    await it.begin()
    return it


# From wherever a release is


async def at_rest(it: Release) -> None:
    """No release has begun."""


async def aborted(it: Release) -> None:
    await it.come_to(Moment.SECOND)
    it.do(lambda: it.ask("Abort"))
    await it.ends_at("v1", "Aborted", approve=False)


async def refused(it: Release) -> None:
    """A version waits that would damage each group that restarts."""
    it.do(lambda: it.world.patch_lws({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}))
    await it.until(lambda: it.world.condition("Stalled").get("reason") == Reason.UNSAFE_PENDING, "refused")
    await it.world.rest()


async def refused_in_mid_release(it: Release) -> None:
    await it.come_to(Moment.SECOND)
    await refused(it)


async def aborting(it: Release) -> None:
    await it.come_to(Moment.SECOND)
    it.do(lambda: it.ask("Abort"))
    await it.until(lambda: it.task == "CleanUp", "the canary is taken away")


async def superseded(it: Release) -> None:
    await it.come_to(Moment.SECOND)
    it.do(lambda: it.apply("v3"))
    await it.until(lambda: it.task == "CleanUp", "the canary is taken away")


async def rollback(it: Release) -> None:
    await it.come_to(Moment.PROMOTION)
    it.do(lambda: it.ask("Abort"))
    await it.until(lambda: it.task == "RollBackPromotion", "renewed groups are taken back")


async def paused(it: Release) -> None:
    await it.come_to(Moment.SECOND)
    it.do(lambda: it.paused(True))
    await it.until(lambda: it.world.state == "Paused", "paused")


async def stalled(it: Release) -> None:
    it.do(lambda: it.apply("bad"))
    await it.until(lambda: it.world.state == "Stalled", "stalled")


POINTS = (at_rest, aborted, refused, refused_in_mid_release, aborting, superseded, rollback, paused, stalled)
#: Told in the default run.
SAMPLE = (at_rest, refused_in_mid_release, superseded, rollback)
EVERY_POINT = pytest.mark.parametrize(
    "point",
    [pytest.param(each, marks=[] if each in SAMPLE else [pytest.mark.long], id=each.__name__) for each in POINTS],
)


async def deleted(it: Release) -> None:
    it.do(lambda: it.delete_rollout("Background"))
    await it.until(lambda: it.world.get(it.world.ROLLOUT, NAME) is None, "gone")


async def deleted_in_the_foreground(it: Release) -> None:
    it.do(lambda: it.delete_rollout("Foreground"))
    await it.until(lambda: it.world.get(it.world.ROLLOUT, NAME) is None, "gone")


async def disabled(it: Release) -> None:
    it.do(lambda: it.disabled(True))
    await it.until(lambda: it.world.status["phase"] == "Disabled", "disabled")


Part = Callable[[Release], Awaitable[None]]


@pytest.mark.one_in(4, of="point")
@EVERY_STYLE
@EVERY_POINT
@pytest.mark.parametrize(
    "part",
    [deleted, *(pytest.param(each, marks=pytest.mark.long) for each in (deleted_in_the_foreground, disabled))],
    ids=lambda each: each.__name__,
)
async def test_who_leaves_restarts_nothing_gives_all_back_and_says_what_waits(
    world: World, style: Style, point: Part, part: Part
) -> None:
    it = await begun(world, style)
    await point(it)
    if point is refused_in_mid_release and not style.apart:
        # No group may be taken back while a version waits that would damage it.
        it.do(lambda: it.world.patch_lws({"networkConfig": {"subdomainPolicy": "Shared"}}))
        await it.world.rest()
    await part(it)
    await world.rest()
    it.assert_left("v1", waits=point is not at_rest)
    it.assert_told(EventReason.DETACHED if point is at_rest else EventReason.UPDATE_HELD)
    if style.apart and point is not rollback:
        assert world.leader_uids() == it.leaders
    # Whoever opens the hold by hand, as the mark says, has the version roll by itself.
    it.take_all(lambda: it.partition(0))
    await world.rest()
    tags = {told.removesuffix("!") for told in world.groups().values()}
    assert (tags == {"v1"}) == (point in (at_rest, refused)), tags


@pytest.mark.one_in(4)
@EVERY_STYLE
async def test_an_lws_and_its_rollout_deleted_one_after_the_other_leave_nothing(world: World, style: Style) -> None:
    it = await begun(world, style)
    await it.come_to(Moment.SECOND)
    it.take_all(lambda: it.delete_lws("Background"))
    await it.until(lambda: world.condition("Stalled").get("reason") == Reason.WORKLOAD_NOT_FOUND, "missed")
    await world.rest()
    await deleted(it)
    await world.rest()
    names = world.names()
    assert (names["leaderworkersets"], names["statefulsets"], names["batchreleases"]) == ([], [], [])
    assert hold_record(world) == it.lent


# Somebody else comes


def vanish(it: Release) -> None:
    """The Rollout is gone at once, while nobody is there to let go of anything."""
    it.world.stop_controller()
    it.world.patch(it.world.ROLLOUT, NAME, {"metadata": {"finalizers": None}})
    it.delete_rollout("Background")


@pytest.mark.one_in(4)
@EVERY_STYLE
@pytest.mark.parametrize("traffic", [ROUTED, pytest.param("none", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "moment",
    [each if each is Moment.SECOND else pytest.param(each, marks=pytest.mark.long) for each in Moment],
    ids=lambda each: each.name.lower(),
)
async def test_a_rollout_made_anew_in_mid_release_goes_back_first_and_then_through_all_steps(
    world: World, style: Style, traffic: str, moment: Moment
) -> None:
    it = await begun(world, style, traffic)
    await it.come_to(moment)
    it.take_all(lambda: vanish(it))
    await world.sleep(30)
    it.do(it.create_rollout)
    world.start_controller()
    await it.until(lambda: world.state in ("AwaitingApproval", "Stalled", "Healthy"), "adopted")
    if world.state == "Stalled":
        # Two versions run, and nobody remembers which of them is to stay: the message asks a person.
        assert moment in (Moment.HANDING_OVER, Moment.PROMOTION) or not style.apart
        assert world.condition("Stalled")["reason"] == Reason.PARTITION_IN_USE
        it.do(lambda: it.partition(0))
    await it.ends_at("v2")


@pytest.mark.one_in(4)
@EVERY_STYLE
async def test_a_rollout_made_anew_at_rest_takes_over_without_a_restart(world: World, style: Style) -> None:
    it = await begun(world, style)
    it.do(lambda: vanish(it))
    await world.sleep(30)
    it.do(it.create_rollout)
    world.start_controller()
    await it.ends_at("v1")
    assert world.leader_uids() == it.leaders
    await it.come_to(Moment.FIRST)
    await it.ends_at("v2")


OTHER = "mistral"


@pytest.mark.one_in(4, of="moment")
@EVERY_STYLE
@pytest.mark.parametrize("moment", [None, Moment.SECOND], ids=["at rest", "in mid-release"])
async def test_another_lws_is_taken_care_of_only_after_the_first_is_free(
    world: World, style: Style, moment: Moment | None
) -> None:
    world.create_workload(name=OTHER)
    it = await begun(world, style, "none")
    if moment is not None:
        await it.come_to(moment)
    spec = {"workloadRef": {"name": OTHER}}
    with pytest.raises(ApiError, match="it would stay held: set spec"):
        world.patch_rollout(spec)
    it.do(lambda: it.disabled(True))
    with pytest.raises(ApiError, match="it would stay held"):
        world.patch_rollout(spec)
    await disabled(it)
    await world.rest()
    it.assert_untouched()
    world.checks.clear()
    world.patch_rollout({**spec, "disabled": False})
    await world.until(lambda: world.state == "Healthy")
    await world.rest()
    mark = world.lws["metadata"].get("annotations", {}).get(KEYS.held)
    assert (mark is None) == (moment is None)
    other = world.get(LEADER_WORKER_SETS, OTHER)
    assert other is not None
    assert other["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == HOLD


@pytest.mark.one_in(4)
@EVERY_STYLE
@pytest.mark.parametrize("traffic", [ROUTED, pytest.param("none", marks=pytest.mark.long)])
async def test_an_lws_that_is_made_to_roll_by_itself_in_mid_release_ends_it(
    world: World, style: Style, traffic: str
) -> None:
    it = await begun(world, style, traffic)
    await it.come_to(Moment.SECOND)
    world.checks.clear()
    tools: list[Insisting] = []
    it.do(lambda: tools.append(Insisting(world)))
    await world.until(lambda: world.condition("Stalled").get("reason") == Reason.HOLD_CONFLICT)
    tools[0].stop()
    assert world.get(LEADER_WORKER_SETS, CANARY) is not None or not style.apart, "the canary stays meanwhile"
    # It is tried again a minute after the last reset.
    await world.until(lambda: partition(world.lws) >= HOLD)
    await it.ends_at("v2", approve=False)
    it.assert_told(EventReason.ROLLED_OUT_NATIVELY)


@pytest.mark.one_in(8)
@EVERY_STYLE
@pytest.mark.parametrize(
    "moment", [None, Moment.SECOND, pytest.param(Moment.PROMOTION, marks=pytest.mark.long)], ids=str
)
async def test_the_younger_of_two_rollouts_takes_over_when_the_older_has_gone(
    style: Style, moment: Moment | None
) -> None:
    world = ShellWorld()
    try:
        it = await begun(world, style)
        await world.sleep(5)
        world.create_rollout(*STEPS, name="younger")
        await world.rest()
        told = {each["type"]: each["reason"] for each in world.status_of("younger")["conditions"]}
        assert told["Stalled"] == Reason.SECOND_ROLLOUT
        if moment is not None:
            await it.come_to(moment)
        # Those who judge know of one Rollout only.
        world.refuse = lambda _: None
        it.take_all(lambda: it.delete_rollout("Background"))
        await it.until(lambda: world.get(world.ROLLOUT, NAME) is None, "gone")
        it.assert_untouched()
        world.name, states = (
            "younger",
            {None: "Healthy", Moment.SECOND: "AwaitingApproval", Moment.PROMOTION: "Healthy"},
        )
        await world.until_state(states[moment])
        await world.rest()
        assert hold_record(world) == it.lent
        assert (world.get(HTTP_ROUTES, ROUTE) or {})["spec"]
        assert (moment is Moment.PROMOTION) == it.ready("v2")
        if moment is Moment.SECOND:
            it.assert_untouched()
            assert world.groups(CANARY) == {0: "v2", 1: "v2"}
            world.patch(
                world.ROLLOUT, "younger", {"status": {"canaryStatus": {"currentStepState": "StepReady"}}}, "status"
            )
            await world.until(lambda: world.state == "Healthy" and it.ready("v2"), "released by the younger")
    finally:
        await world.gone()
        world.close()


@pytest.mark.parametrize(
    "style", [IN_PLACE, *(pytest.param(each, marks=pytest.mark.long) for each in (CANARY_STYLE, SURGE))], ids=str
)
async def test_a_stable_version_that_is_broken_by_itself_keeps_no_rollout(world: World, style: Style) -> None:
    annotations = {PREFIX + "fail": "CrashLoopBackOff", PREFIX + "crash-after": "20s"}
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": world.containers.of("v1")}}
    world.create_workload(replicas=3, leaderWorkerTemplate={"size": 1, "workerTemplate": template})
    world.create_rollout({"replicas": 1, "pause": {}}, progressDeadlineSeconds=60, **{style.key: dict(style.words)})
    world.start_controller()
    await world.until_state("Healthy")
    apply(world, "v2", faults={"fail": None, "crash-after": None})
    await world.until_state("AwaitingApproval")
    world.delete(world.ROLLOUT, NAME)
    if style.apart:
        # The canary alone serves, and would go with the Rollout.
        action = f"kubectl delete leaderworkerset {CANARY}"
        await world.until(lambda: action in world.status["message"], "the way out is named")
        world.delete(LEADER_WORKER_SETS, CANARY)
    await world.until(lambda: world.get(world.ROLLOUT, NAME) is None, "the Rollout leaves", 900)
    assert KEYS.held in world.lws["metadata"]["annotations"]
    assert partition(world.lws) == HOLD


@pytest.mark.parametrize(("asked", "left"), [("Resume", "v2"), ("Abort", "v1")])
async def test_a_paused_promotion_that_is_to_be_finished_first_still_answers(
    world: World, asked: str, left: str
) -> None:
    it = await begun(world, CANARY_STYLE, TRAFFIC[0])
    await it.come_to(Moment.FIRST)
    world.request("PromoteFull")
    await world.until(lambda: (world.status.get("finalising") or {}).get("task") == "Promote")
    world.request("Pause")
    await world.sleep(2)
    world.delete(ROLLOUTS, NAME)
    await world.sleep(60)
    assert "resume" in world.status["message"]
    world.request(asked)
    await world.until(lambda: world.get(ROLLOUTS, NAME) is None, "the Rollout leaves", 1200)
    assert set(world.groups().values()) == {left}
