"""What happens in the middle of a release, and how each has to end, wherever the release is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rollout_lws.rollout.reasons import EventReason, Reason
from tests.scenarios.judge import CANARY
from tests.scenarios.matrix import GROUPS, Moment, Release
from tests.scenarios.world import KEYS, NAME

EVERYWHERE = tuple(Moment)


async def finish(it: Release) -> None:
    await it.ends_at("v2")
    assert [each.reason for each in it.world.events].count(EventReason.COMPLETED) <= 1
    it.assert_told(EventReason.COMPLETED)


async def rollback_by_template(it: Release) -> None:
    it.do(lambda: it.apply("v1"))
    # What has become stable meanwhile is left by a release; anything else is taken back at once.
    await it.ends_at("v1", approve=_may_be_promoted(it))
    if not _may_be_promoted(it):
        it.assert_told(EventReason.ROLLED_BACK)
    it.assert_untouched()


async def abort(it: Release) -> None:
    await _aborted(it)
    it.assert_untouched()


async def retry(it: Release) -> None:
    await _aborted(it)
    it.do(lambda: it.ask("Retry"))
    await it.ends_at("v2")


async def third_template(it: Release) -> None:
    it.do(lambda: it.apply("v3"))
    await it.until(lambda: bool(it.new_groups("v3")), "a group of the third version")
    it.assert_untouched()
    await it.ends_at("v3")
    it.assert_told(EventReason.SUPERSEDED, it.stable == "v1")


async def scale_up(it: Release) -> None:
    await _scaled(it, GROUPS + 2)


async def scale_down(it: Release) -> None:
    await _scaled(it, GROUPS - 1)


async def to_zero(it: Release) -> None:
    it.take_all(lambda: it.replicas(0))
    await it.until(lambda: it.world.groups() == {}, "empty")
    await it.world.rest()
    it.do(lambda: it.replicas(GROUPS))
    await it.ends_at("v2")


async def delete_rollout(it: Release) -> None:
    it.do(lambda: it.delete_rollout("Background"))
    await it.until(lambda: it.world.get(it.world.ROLLOUT, NAME) is None, "gone")
    await it.world.rest()
    _left(it)
    it.do(it.create_rollout)
    await it.ends_at("v2")


async def disable(it: Release) -> None:
    it.do(lambda: it.disabled(True))
    await it.until(lambda: it.world.state == "Disabled", "disabled")
    await it.world.rest()
    assert it.world.status["phase"] == "Disabled"
    _left(it)
    it.do(lambda: it.disabled(False))
    await it.ends_at("v2")


async def delete_lws(it: Release) -> None:
    world = it.world
    serving = {ordinal: told for ordinal, told in world.groups(CANARY).items() if not told.endswith("!")}
    it.take_all(lambda: it.delete_lws("Background"))
    await it.until(lambda: world.condition("Stalled").get("reason") == Reason.WORKLOAD_NOT_FOUND, "missed")
    await world.rest()
    if serving and it.moment is not Moment.CLEAN_UP:
        assert serving.items() <= world.groups(CANARY).items(), world.describe()
    it.do(lambda: it.create_lws("v3"))
    await it.ends_at("v3", approve=False)


async def bad_version(it: Release) -> None:
    it.do(lambda: it.apply("bad"))
    await it.until(lambda: it.world.state == "Stalled", "stalled", approve=it.moment is Moment.CLEAN_UP)
    assert it.world.condition("Stalled")["reason"] in (Reason.DEADLINE, Reason.CHURN), it.world.describe()
    it.do(lambda: it.ask("Abort"))
    await it.ends_at(it.stable, "Aborted", approve=False)
    it.assert_untouched()
    it.do(lambda: it.apply("v3"))
    await it.ends_at("v3")


async def group_lost(it: Release) -> None:
    first = it.world.kind.first(it.world.lws)
    for name, ordinal in (it.new_groups()[0], (NAME, first + (GROUPS - 1 if it.plan.style.apart else 0))):
        await it.until(lambda: _others_serve(it, name, ordinal), "others serve")  # noqa: B023
        it.lose(name, ordinal)
        await it.world._change(1)
    await it.ends_at("v2")


def _others_serve(it: Release, name: str, ordinal: int) -> bool:
    """Whether the world can lose this group without an outage that would be nobody's fault."""
    return any(
        not told.endswith("!")
        for each in (NAME, CANARY)
        for number, told in it.world.groups(each).items()
        if (each, number) != (name, ordinal)
    )


def _may_be_promoted(it: Release) -> bool:
    """Whether v2 is stable, or the last group that serves would have to go back."""
    return it.moment is Moment.CLEAN_UP or (it.moment is Moment.PROMOTION and not it.plan.style.apart)


def _left(it: Release) -> None:
    """A promotion is finished first; before it, the release has gone back and its version waits."""
    it.assert_left("v1" if it.in_steps else "v2", waits=it.in_steps)


async def _aborted(it: Release) -> None:
    world = it.world
    it.do(lambda: it.ask("Abort"))
    await it.until(lambda: "requestedAction" not in world.status and "finalising" not in world.status, "ended")
    outcome = world.status["lastAction"]["outcome"]
    assert outcome == "Done" or _may_be_promoted(it), world.status["lastAction"]
    if outcome == "Done":
        await it.ends_at("v1", "Aborted", approve=False)
        assert world.condition("Stalled")["reason"] == Reason.ABORTED
        it.assert_told(EventReason.ABORTED)
        assert KEYS.aborted in world.lws["metadata"]["annotations"], "whoever is in care of it next knows"
    else:
        await it.ends_at("v2", approve=False)


async def _scaled(it: Release, groups: int) -> None:
    """Invariant 9: a new number of groups costs no canary and skips no step."""
    world = it.world
    canary, step = world.get(world.kind.resource, CANARY), world.status["currentStepIndex"]
    highest = world.kind.first(world.lws) + groups - 1
    it.do(lambda: it.replicas(groups))
    # Those of a surge stand beside them.
    beside = lambda: it.plan.style.spared or max(world.groups()) <= highest  # noqa: E731
    await it.until(lambda: highest in world.groups() and beside(), f"{groups} groups")
    await world.rest()
    if it.in_steps:
        now = world.get(world.kind.resource, CANARY)
        assert (now and now["metadata"]["uid"]) == (canary and canary["metadata"]["uid"])
        assert world.status["currentStepIndex"] == step, "no step is skipped"
    await it.ends_at("v2")
    assert len(world.groups()) == groups


@dataclass(frozen=True)
class Act:
    """``moments`` are those at which it is asked for, ``sample`` the one of the default run."""

    name: str
    happen: Callable[[Release], Awaitable[None]]
    sample: Moment
    moments: tuple[Moment, ...] = EVERYWHERE

    def __str__(self) -> str:
        return self.name


BAD_VERSION = Act("bad version", bad_version, Moment.LOADING)
ACTS = (
    Act("finish", finish, Moment.FIRST, (Moment.FIRST,)),
    Act("rollback by template", rollback_by_template, Moment.PROMOTION),
    Act("abort", abort, Moment.SECOND),
    Act("retry", retry, Moment.PROMOTION),
    Act("third template", third_template, Moment.PROMOTION),
    Act("scale up", scale_up, Moment.SECOND),
    Act("scale down", scale_down, Moment.PROMOTION),
    Act("to zero", to_zero, Moment.FIRST),
    Act("delete Rollout", delete_rollout, Moment.SECOND),
    Act("disable", disable, Moment.PROMOTION),
    Act("delete LWS", delete_lws, Moment.SECOND),
    BAD_VERSION,
    Act("group lost in mid-step", group_lost, Moment.LOADING),
)
