"""Which side of a pair is active: a table of evidence, the strongest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from rollout_lws.rollout.routing.sides import Side, active_side
from tests.workload.build import BEFORE, NOW, facts, lws, pod

BLUE, GREEN = "blue", "green"


@dataclass(frozen=True)
class Given:
    """One side: ``ready`` groups of so many ``replicas``; without ``replicas`` it does not exist."""

    replicas: int | None = 2
    ready: bool = True
    weight: int = 0
    labelled: bool = False
    going: bool = False

    def side(self, name: str, *, scaled: bool) -> Side:
        if self.replicas is None:
            return Side(name, None, self.weight, self.labelled, scaled)
        more: dict[str, Any] = {"deletion_timestamp": NOW} if self.going else {}
        workload = lws(self.replicas, name=name, **more)
        leader = pod(0, workload=name, size=1, since=BEFORE if self.ready else None)
        return Side(name, facts(workload, leader), self.weight, self.labelled, scaled)


SERVES, ALL = Given(), Given(weight=100)
EMPTY, GONE, BROKEN = Given(replicas=0, ready=False), Given(replicas=None), Given(ready=False)
LABELLED = Given(labelled=True)
TABLE: dict[str, tuple[Given, Given, dict[str, Any], str, str]] = {
    # blue, green, evidence besides, who is active if an owner scales them, and if releases do
    "the record": (SERVES, ALL, {"on_record": BLUE}, BLUE, BLUE),
    "the record of a side that does not serve": (BROKEN, ALL, {"on_record": BLUE}, BLUE, BLUE),
    "the record of a side that is scaled to 0": (EMPTY, SERVES, {"on_record": BLUE}, GREEN, BLUE),
    "the record of a side that is gone": (GONE, SERVES, {"on_record": BLUE}, GREEN, GREEN),
    "the record of a side that is gone, and none serves": (GONE, BROKEN, {"on_record": BLUE}, BLUE, BLUE),
    "the record of a side that goes": (Given(ready=False, going=True), SERVES, {"on_record": BLUE}, GREEN, GREEN),
    "the record of a side that goes and serves": (Given(going=True), SERVES, {"on_record": BLUE}, BLUE, BLUE),
    "a record of long ago": (EMPTY, LABELLED, {"on_record": BLUE}, GREEN, GREEN),
    "a record that the labels have not followed yet": (SERVES, LABELLED, {"on_record": BLUE}, BLUE, BLUE),
    "a label": (LABELLED, ALL, {}, BLUE, BLUE),
    "a label of a side that does not serve": (Given(ready=False, labelled=True), ALL, {}, GREEN, GREEN),
    "two labels": (LABELLED, Given(labelled=True, weight=100), {}, GREEN, GREEN),
    "the weights": (SERVES, ALL, {"asked": BLUE}, GREEN, GREEN),
    "the weights of a side that does not serve": (SERVES, Given(ready=False, weight=100), {}, BLUE, BLUE),
    "the status, if both have weight": (ALL, ALL, {"stable": "uid-green", "asked": BLUE}, GREEN, GREEN),
    "what is asked for, if both have weight": (ALL, ALL, {"asked": GREEN}, GREEN, GREEN),
    "the only one with groups": (EMPTY, BROKEN, {}, GREEN, GREEN),
    "the only one that serves": (BROKEN, SERVES, {}, GREEN, GREEN),
    "nothing": (SERVES, SERVES, {}, "", ""),
    "neither has groups": (EMPTY, EMPTY, {}, "", ""),
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("scaled", [False, True], ids=["by their owner", "by releases"])
def test_the_strongest_evidence_says_which_side_is_active(name: str, scaled: bool) -> None:
    blue, green, evidence, by_owner, by_releases = TABLE[name]
    found = active_side(
        blue.side(BLUE, scaled=scaled),
        green.side(GREEN, scaled=scaled),
        **{"on_record": "", "asked": None, "now": NOW, **evidence},
    )
    assert found == (by_releases if scaled else by_owner)
