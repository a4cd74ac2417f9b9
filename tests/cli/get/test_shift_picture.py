"""The picture of a release in which one workload gives up groups as another one gets some, of a pair or not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollout_lws.cli.get.picture import release
from rollout_lws.cli.get.plan import margin_of, planned_steps
from rollout_lws.cli.releases import Release
from tests.cli.get import objects
from tests.cli.get.objects import NOW, lws, pod, rollout, workers
from tests.cli.get.test_pair_picture import AWAITING, STEPS, line, shown

LACKING = {"maxExtraGroups": 0, "maxUnavailableGroups": 1}
LAST = {**AWAITING, "currentStepIndex": 2}


def told(there: Release) -> list[str]:
    return release(there, NOW)


def test_the_next_step_takes_groups_of_one_side_as_the_other_one_gets_some() -> None:
    there = shown(1, shift={}, stay=3, size=2, **AWAITING)
    # Two rounds are the other way round: a group goes, and then one comes.
    assert line(there, "After approval") == (
        "After approval: +1 group of llama-green as 1 of llama goes, 50% traffic, about 12m15s"
    )


def test_groups_that_come_one_after_the_other_take_their_time() -> None:
    there = shown(1, shift={}, stay=7, asked=8, size=2, **AWAITING)
    assert line(there, "After approval").endswith(
        "+3 groups of llama-green as 3 of llama go, 50% traffic, about 36m45s"
    )
    there = shown(1, shift={"maxExtraGroups": "50%"}, stay=7, asked=8, size=2, **AWAITING)
    assert line(there, "After approval").endswith("about 12m15s")


@pytest.mark.parametrize(
    ("shift", "ahead"),
    [
        (
            {},
            "+2 groups of llama-green as 1 of llama goes, then all requests go to llama-green, which becomes the active"
            " side, and llama is scaled to 0",
        ),
        (
            LACKING,
            "+1 group of llama-green as 1 of llama goes, then all requests go to llama-green, which becomes the active"
            " side, and llama is scaled to 0; then llama-green gets its last group",
        ),
    ],
)
def test_the_last_approval_leaves_the_last_old_group_to_the_end(shift: dict[str, Any], ahead: str) -> None:
    assert line(shown(2, shift=shift, stay=2, **LAST), "After approval") == f"After approval: {ahead}"


def test_a_last_step_of_all_groups_is_the_hand_over_itself() -> None:
    there = shown(1, shift={}, stay=3, **AWAITING)
    there.rollout["spec"]["strategy"]["canary"]["steps"] = [
        {"replicas": 1, "traffic": "auto", "pause": {}},
        {"replicas": "100%", "traffic": "100%"},
    ]
    assert line(there, "After approval").startswith(
        "After approval: +3 groups of llama-green as 2 of llama go, then all requests go to llama-green"
    )


@pytest.mark.parametrize(
    ("there", "effect"),
    [
        (shown(1, shift={}, **AWAITING), "all requests go back to llama, and llama-green is scaled to 0"),
        (
            shown(2, shift={}, stay=2, **AWAITING),
            "all requests go back to llama, which loads 2 groups again, and llama-green is scaled to 0",
        ),
        (
            shown(1, shift={}, stay=3, **AWAITING),
            "all requests go back to llama, which loads 1 group again, and llama-green is scaled to 0",
        ),
    ],
)
def test_an_abort_loads_what_was_taken(there: Release, effect: str) -> None:
    assert line(there, "         rollout-lws abort").partition("   # ")[2].startswith(effect)


def test_a_release_holds_what_both_sides_have_beyond_one_at_rest() -> None:
    # Old groups have eight accelerators here, and new ones as many.
    assert line(shown(1, shift={}, size=2, **AWAITING), "Status").endswith("(holding 8 GPU)")
    assert not line(shown(1, shift={}, stay=3, size=2, **AWAITING), "Status").endswith("GPU)")
    # A new group of twice the size takes more than the one that it replaces.
    assert line(shown(1, shift={}, stay=3, **AWAITING), "Status").endswith("(holding 8 GPU)")


@pytest.mark.parametrize(
    ("shift", "size", "peak"),
    [
        ({}, 2, "   40 at peak (step 1)"),
        (LACKING, 2, ""),
        ({"maxExtraGroups": "100%"}, 2, "   48 at peak (at the end)"),
        # Four old groups of 8 and a new one of 16; at the end an old one of 8 and four new ones.
        ({}, 4, "   72 at peak (at the end)"),
        # Half as large: four old ones and a new one are the most.
        ({}, 1, "   36 at peak (step 1)"),
        ({"maxExtraGroups": "many"}, 2, ""),
    ],
)
def test_the_peak_is_that_of_both_sides_together(shift: dict[str, Any], size: int, peak: str) -> None:
    assert line(shown(1, shift=shift, stay=3, size=size, **AWAITING), "GPU") == f"GPU      48 now{peak}"


def test_no_step_asks_for_the_last_group() -> None:
    made = shown(1, shift={}, **AWAITING).rollout
    made["spec"]["strategy"]["canary"]["steps"] = [{"replicas": 1}, {"replicas": "100%", "traffic": "auto"}]
    assert [each.groups for each in planned_steps(made, 4)] == [1, 3]


def test_a_group_that_is_about_to_go_stands_on_its_own() -> None:
    there = shown(1, shift={}, **AWAITING)
    assert there.stable is not None
    record = {"labels": {"app": "llama"}, "since": "2026-01-01T11:59:30Z"}
    for text, rows in ((json.dumps(record), 2), ("{", 1), ('{"since": 7}', 1)):
        there.stable.leaders[3].metadata.annotations["rollouts.kruise.io/draining"] = text
        *groups, _ = [each for each in told(there) if each.startswith("  group")]
        assert len(groups) == rows
        assert groups[-1].endswith("draining for 30s") == (rows == 2)


def test_once_the_roles_have_changed_the_new_side_is_the_active_one() -> None:
    """Though its last group is still to come."""
    turned = {
        "active": "llama-green",
        "finalising": {"reason": "Success", "task": "CleanUp"},
        "stable": {"revision": "8d21b", "templateHash": "h"},
        "traffic": {"desired": {"weight": 100}, "applied": {"weight": 100}},
        "summary": {"state": "Promoting", "new": "0/0", "stable": "3/3", "accelerators": "24"},
    }
    there = shown(3, shift=LACKING, stay=1, size=2, **{**AWAITING, **turned})
    assert there.canary is not None
    assert line(there, "Users") == "Users    all requests go to llama-green"
    assert line(there, "GPU") == "GPU      24 now"
    active, inactive = (each.split() for each in told(there) if each.startswith(("llama-green ", "llama   ")))
    assert active[:4] == ["llama-green", "active", "3/3", "100%"]
    assert inactive[:4] == ["llama", "inactive", "1/1", "0%"]
    assert not any("old" in each.split() or "new" in each.split() for each in told(there))
    assert not any(each.startswith("Next") for each in told(there))


@pytest.mark.parametrize("touch", ["", "RouteOnly"])
def test_only_releases_that_scale_both_sides_take_groups(touch: str) -> None:
    made = shown(1, shift={}, touch=touch, **AWAITING).rollout
    assert (margin_of(made, 4) is None) == bool(touch)
    assert margin_of(rollout({"canary": {"shift": {}, "steps": []}}), 4) is None


# One workload, and one that releases make


def exchanging(standing: int, stay: int, *, back: bool = False, **status: Any) -> Release:
    """A release with capacity Shift of four groups: ``stay`` are left, and ``standing`` are new. ``back``: they are
    those of the user's workload.
    """
    old, new = ("llama-canary", "llama") if back else ("llama", "llama-canary")
    groups = [pod(old, group, "5f9c8", size=2) for group in range(stay)]
    groups += [pod(new, group, "8d21b", size=2) for group in range(standing)]
    there = {**AWAITING, "capacity": "Shift", "active": old if back else None, **status}
    made = rollout({"canary": {"capacity": "Shift", "steps": STEPS}}, **there)
    made["spec"]["replicas"] = 4
    gives = lws(old, size=2, replicas=stay)
    gives["metadata"]["annotations"] = {"rollouts.kruise.io/replicas": "4"} if stay < 4 else {}
    workloads = [gives, lws(new, size=2, replicas=standing, tag="v0.19.0")]
    return objects.release(made, workloads, groups, [workers(each, 1) for each in groups])


@pytest.mark.parametrize(
    ("back", "names", "ends"),
    [
        (False, ("llama", "llama-canary"), "which serves from then on, and llama is scaled to 0"),
        (True, ("llama-canary", "llama"), "and llama-canary is removed"),
    ],
)
def test_groups_of_a_workload_that_releases_make_come_as_others_go(
    back: bool, names: tuple[str, str], ends: str
) -> None:
    old, new = names
    there = exchanging(1, 3, back=back)
    assert line(there, "After approval").startswith(
        f"After approval: +1 group of {new} as 1 of {old} goes, 50% traffic"
    )
    there = exchanging(2, 2, back=back, currentStepIndex=2)
    assert line(there, "After approval") == (
        f"After approval: +2 groups of {new} as 1 of {old} goes, then all requests go to {new}, {ends}"
    )
    removed = f"{new} is scaled to 0" if back else f"{new} is removed"
    effect = line(there, "         rollout-lws abort").partition("   # ")[2]
    assert effect.startswith(f"all requests go back to {old}, which loads 2 groups again, and {removed}")


def test_before_a_group_has_gone_an_abort_leaves_the_old_version_untouched() -> None:
    effect = line(exchanging(1, 4), "         rollout-lws abort").partition("   # ")[2]
    assert effect == "stable untouched"
