"""A release that is watched while it goes on, to compare it with the picture of its plan."""

from __future__ import annotations

from rollout_lws.cli.plan.model import Plan
from rollout_lws.cli.plan.picture import course_of
from rollout_lws.workload.canary import name_of_canary
from tests.scenarios.observed import Observed
from tests.scenarios.world import World


class Watch:
    """Watches the release of a plan, which begins now. ``tag`` is the new version; ``routed``: an HTTPRoute or a
    Service says which version gets requests.
    """

    def __init__(self, world: World, plan: Plan, tag: str = "v2", *, routed: bool = True) -> None:
        self._world, self.course = world, course_of(plan)
        sides = (plan.sides.active, plan.sides.inactive) if plan.sides is not None else ()
        names = (plan.workload, name_of_canary(plan.workload), *sides)
        self._observed = Observed(world, names, tag, self.course.resources, routed=routed)
        waits = plan.begins.seconds if plan.begins is not None else 0.0
        assert waits is not None
        self._begun = world.server.clock() + waits
        self._approved: list[float] = []

    def approves(self) -> None:
        """The next step is approved now."""
        self._approved.append(self._world.server.clock())

    def assert_as_drawn(self, late: float, early: float = 0.0) -> None:
        """What lasts in the picture was so, but for changes that came up to so many seconds later, or earlier, since
        some of what they wait for went by while an approval was thought about.
        """
        self._observed.stop()
        begun, approved, count = self._begun, iter(self._approved), 0
        for stretch in self.course.stretches:
            count += self._observed.assert_was(stretch.moments, begun, stretch.ends, late, early)
            if stretch.approval:
                begun = next(approved) - stretch.ends
        assert count, "something lasts"
