"""The four ways in which groups of a new version are made: what a release costs, and what it can do, hangs on them."""

from __future__ import annotations

from enum import StrEnum

from rollout_lws.api import BlueGreenStrategy, StyleStrategy


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
    """Which of them a plan asks for."""
    return Style.BLUE_GREEN if isinstance(plan, BlueGreenStrategy) else Style(plan.made_by)
