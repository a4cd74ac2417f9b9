"""How many losses a release may have is what `plan` says of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nodes.release import BLUE_GREEN, DRAINING, DYING, IN_PLACE, Pods, Style
from tests.nodes.stories import NO_LOSS, Announced, Story


def _part(disrupted: int, back: int, peak: float) -> dict[str, Any]:
    way_back = {"disruptedGroups": back, "modelLoads": disrupted}
    return {"disruptedGroups": disrupted, "windows": 1, "wayBack": way_back, "load": {"peak": peak}}


PLAN = {
    "replicas": 3,
    "totals": {"disruptedLoad": 1.5, "connectionCuts": 3},
    "steps": [_part(1, 0, 1.5), _part(1, 1, 2.0), _part(1, 3, 1.5)],
}


@pytest.mark.parametrize(
    ("style", "pods", "end", "announced"),
    [
        (IN_PLACE, DYING, "finish", Announced(1.5, 3)),
        # One of three groups, with half of the requests.
        (IN_PLACE, DYING, "abort", Announced(0.5, 2)),
        (IN_PLACE, DRAINING, "finish", NO_LOSS),
        (BLUE_GREEN, DRAINING, "abort", NO_LOSS),
    ],
)
def test_only_pods_that_die_lose_requests_and_no_more_than_announced(
    style: Style, pods: Pods, end: str, announced: Announced
) -> None:
    assert Story(style, pods, end).announced(PLAN) == announced
