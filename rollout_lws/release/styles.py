"""The four ways in which groups of a new version are made: what a release costs, and what it can do, hangs on them."""

from __future__ import annotations

from enum import StrEnum

from rollout_lws.api import BlueGreenStrategy, CanaryStrategy, Capacity, StyleStrategy


class Style(StrEnum):
    """The capacity of a canary, or blue-green."""

    EXTRA_WORKLOAD = "ExtraWorkload"
    IN_PLACE = "InPlace"
    SURGE = "Surge"
    BLUE_GREEN = "BlueGreen"

    @property
    def in_one_lws(self) -> bool:
        """Whether the new version's groups are groups of the LWS itself rather than of a second one."""
        return self in (Style.IN_PLACE, Style.SURGE)


def style_of(plan: StyleStrategy) -> Style:
    """A canary makes its groups in a second LWS unless it says otherwise, in our word or in Kruise's."""
    if isinstance(plan, BlueGreenStrategy):
        return Style.BLUE_GREEN
    if not isinstance(plan, CanaryStrategy):
        return Style.EXTRA_WORKLOAD
    if plan.capacity is None and plan.enable_extra_workload_for_canary is False:
        return Style.IN_PLACE
    return Style(plan.capacity or Capacity.EXTRA_WORKLOAD)
