"""The story matrix: a release of every style, with and without a route, and one thing that happens in its middle.

A story is a style, a traffic, a moment and an act. The moment brings the release somewhere, the act does something and
says how it has to end, and the judge looks on at every write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from rollout_lws.objects.resources import PODS
from tests.scenarios.count import partition
from tests.scenarios.invariants import Check, always_serving, stable_untouched_before_promotion
from tests.scenarios.judge import CANARY, HOLD, Judge
from tests.scenarios.routed import SERVICE, hold_record
from tests.scenarios.staged import Staged
from tests.scenarios.styles import Style
from tests.scenarios.walk_plans import Plan
from tests.scenarios.world import KEYS, NAME, World

#: What requests come by; with "none" nobody routes them.
TRAFFIC = ("none", "HTTPRoute")
#: Groups of the LWS in every story: the first step makes one or two of them anew, the second one more.
GROUPS = 3


class Moment(StrEnum):
    """Where a release of v2 over v1 is when something happens."""

    LOADING = "while the first groups load"
    FIRST = "in the first step"
    SECOND = "in the second step"
    HANDING_OVER = "as the promotion begins"
    PROMOTION = "in mid-promotion"
    CLEAN_UP = "in the clean-up"


@dataclass
class Release(Staged):
    """A release of v2 over three groups of v1."""

    moment: Moment = Moment.LOADING
    #: UIDs of the leaders before the release.
    leaders: dict[str, str] = field(default_factory=dict)
    _untouched: Check | None = None
    _approved: set[str] = field(default_factory=set)

    @property
    def stable(self) -> str:
        """The stable version at this moment."""
        return "v2" if self.moment is Moment.CLEAN_UP else "v1"

    @property
    def in_steps(self) -> bool:
        """Whether the promotion has not begun."""
        return self.moment in (Moment.LOADING, Moment.FIRST, Moment.SECOND)

    async def begin(self) -> None:
        await super().begin()
        await self.world.rest()
        self.leaders = self.world.leader_uids()
        self.world.checks.append(always_serving)
        if self.plan.style.apart:
            self._untouched = stable_untouched_before_promotion(self.world)
            self.world.checks.append(self._untouched)

    async def come_to(self, moment: Moment) -> None:
        """Release v2 and approve it as far as ``moment``."""
        self.moment = moment
        with self.judge.user():
            self.apply("v2")
        await self.until(self._arrived[moment], str(moment), approve=True)

    @property
    def _arrived(self) -> dict[Moment, Callable[[], bool]]:
        world = self.world
        return {
            Moment.LOADING: lambda: bool(self.new_groups()),
            Moment.FIRST: lambda: self.waits_in(1),
            Moment.SECOND: lambda: self.waits_in(2),
            Moment.HANDING_OVER: lambda: self.task == "Promote",
            Moment.PROMOTION: lambda: (
                self.task == "Promote" and any(told.endswith("!") for told in world.groups().values())
            ),
            # Where time is real it may be over before anybody gets to look, and v2 is stable in both.
            Moment.CLEAN_UP: lambda: self.task == "CleanUp" or (world.state == "Healthy" and self.ready("v2")),
        }

    @property
    def task(self) -> str:
        return str((self.world.status_of(NAME).get("finalising") or {}).get("task", ""))

    def waits_in(self, step: int) -> bool:
        status = self.world.status_of(NAME)
        told = str((status.get("summary") or {}).get("state", ""))
        return told == "AwaitingApproval" and int(status["currentStepIndex"]) == step

    def new_groups(self, version: str = "v2") -> list[tuple[str, int]]:
        """LWS and ordinal of the groups of ``version``, ready or not."""
        return [
            (name, ordinal)
            for name in (CANARY, NAME)
            for ordinal, told in self.world.groups(name).items()
            if told.removesuffix("!") == version
        ]

    # What a person does

    def do(self, act: Callable[[], None]) -> None:
        """A deed that is a person's, or a machine's, but not the controller's."""
        with self.judge.user():
            act()

    def _approve(self) -> None:
        self._approved.add(self.world.status["step"]["pausedAt"])
        self.do(self.approve)

    def lose(self, name: str, ordinal: int) -> None:
        """The leader of a group is gone."""
        self._excuse(self._untouched)
        self.do(lambda: self.world.delete(PODS, f"{name}-{ordinal}"))

    def take_all(self, act: Callable[[], None]) -> None:
        """A deed after which nobody serves, and that is not the controller's fault."""
        self._excuse(self._untouched, always_serving)
        self.do(act)

    def _excuse(self, *checks: Check | None) -> None:
        self.world.checks[:] = [check for check in self.world.checks if check not in checks]

    async def until(
        self, holds: Callable[[], bool], what: str, *, approve: bool = False, seconds: float | None = None
    ) -> None:
        """Wait until something is so, and approve what asks for it meanwhile if you may.

        Approved is only while all kinds are heard of: a release whose groups are not seen for a while may pass by what
        is waited for.
        """
        world = self.world
        deadline = world.now.timestamp() + (world.patience if seconds is None else seconds)
        while not holds():
            world.raise_errors()
            left = deadline - world.now.timestamp()
            assert left > 0, f"not {what}:\n{world.describe()}"
            status = world.status_of(NAME)
            asks = (status.get("summary") or {}).get("state") == "AwaitingApproval"
            if approve and asks and world.is_current and status["step"]["pausedAt"] not in self._approved:
                self._approve()
            await world._change(min(left, 60 if world.is_current else 1))
        world.raise_errors()

    # How it ends

    async def ends_at(self, version: str, state: str = "Healthy", *, approve: bool = True) -> None:
        """Wait for the end at ``version``; then nothing is left of the release and the status says what happened."""
        world = self.world
        await self.until(lambda: world.state == state and self.ready(version), f"{state} at {version}", approve=approve)
        await world.rest()
        assert world.state == state, world.describe()
        self.assert_clean(version)
        phase = "Aborted" if state == "Aborted" else "Healthy"
        told = world.true_conditions
        seen = (world.status["phase"], "Stalled" in told, "Ready" in told, "Reconciling" in told)
        assert seen == (phase, state == "Aborted", state != "Aborted", False), world.describe()
        assert world.status["observedGeneration"] == world.rollout["metadata"]["generation"]

    def assert_untouched(self) -> None:
        """Before a promotion the groups of the stable version are those of before."""
        if self.in_steps and self.plan.style.apart:
            assert self.world.leader_uids() == self.leaders, "the way back restarts nothing"

    def assert_left(self, version: str, *, waits: bool) -> None:
        """No Rollout manages the LWS any more, which runs ``version``: whatever was changed is restored, and a version
        that ``waits`` is held and told of.
        """
        world = self.world
        assert self.ready(version), world.describe()
        marks = {key for key in world.lws["metadata"].get("annotations", {}) if KEYS.owns(key)}
        held = partition(world.lws) == HOLD
        assert (held, KEYS.held in marks) == (waits, waits), (partition(world.lws), marks)
        names = world.names()
        assert (world.workloads, names["batchreleases"]) == ([NAME], []), world.describe()
        if self.plan.routed:
            assert (hold_record(world), names["services"]) == (self.lent, sorted([NAME, SERVICE]))
        self.assert_untouched()

    def assert_told(self, reason: str, so: bool = True) -> None:
        """A controller that is killed takes along what it has not sent yet; what it has sent is true."""
        told = any(event.reason == reason for event in self.world.events)
        assert told == so or (so and self.world.kills), f"{reason} told: {told}"


def release(world: World, style: Style, traffic: str, size: int = 2) -> Release:
    """What a story of the matrix begins with; ``size`` pods a group."""
    plan = Plan(replicas=GROUPS, size=size, steps=style.steps, routed=traffic != "none", style=style)
    return Release(world, plan, Counter(), Judge(world, plan.unavailable, style))
