"""What is foretold of each workload: which version would roll, in how many groups, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rollout_lws.cli.releases import typed
from rollout_lws.cli.uninstall.detach_plan import Detachment, detachments
from rollout_lws.cli.uninstall.opening import Roll, restoring_patch
from rollout_lws.cli.uninstall.plan import keeping, rolling
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.workload.hold import HOLD
from tests.cli.uninstall.held import GROUP, KEYS, NEW, RUNS, WAITS, by_place, lws, rollout

Object = dict[str, Any]
HELD = lws(by="uid-llama")
WAITING = lws(by="uid-llama", image=NEW)
PROGRESSING = {"phase": "Progressing", "observedTemplateHash": WAITS, "summary": {"state": "AwaitingApproval"}}
PROMOTING = {**PROGRESSING, "finalising": {"reason": "Success", "task": "Promote"}}
ROLLING_BACK = {**PROGRESSING, "finalising": {"reason": "Aborted", "task": "CleanUp"}}
ABORTED = {"phase": "Aborted", "aborted": {"templateHash": WAITS, "reason": "wrong answers"}}
ROLLS = Roll(WAITS, (NEW,), 4, 1)


RESTS = "runs revision rev-1 in 4 groups"
BACK, FINISHED = "goes back to revision rev-1 first", "its promotion is finished first"


def foretold(
    workload: Object | None, *rollouts: Object, wanted: str = "", running: Sequence[str] = ()
) -> tuple[Detachment, ...]:
    known = by_place(workload) if workload else {}
    return detachments(GROUP, rollouts, known, lambda _: (wanted, running))


def roll_of(each: Detachment) -> Roll | None:
    """The only version that rolls, if any does."""
    assert len(each.rolls) <= 1
    return next(iter(each.rolls), None)


@pytest.mark.parametrize(
    ("workload", "status", "words", "roll"),
    [
        pytest.param(HELD, {}, RESTS, None, id="at rest"),
        pytest.param(WAITING, {}, RESTS, ROLLS, id="a version waits"),
        pytest.param(WAITING, PROGRESSING, BACK, ROLLS, id="a release is on"),
        pytest.param(WAITING, ROLLING_BACK, BACK, ROLLS, id="a release goes back"),
        pytest.param(HELD, PROGRESSING, BACK, None, id="the template was taken back just now"),
        pytest.param(WAITING, PROMOTING, FINISHED, None, id="a version is promoted"),
        pytest.param(lws(by="uid-llama", image="third"), PROMOTING, FINISHED, "third", id="and another waits"),
        pytest.param(WAITING, ABORTED, RESTS, "wrong answers", id="the version was aborted"),
        pytest.param(lws(image=NEW), {}, RESTS, None, id="never held"),
        pytest.param(
            lws(by="uid-llama", image=NEW, release_hold="true"),
            {},
            RESTS,
            None,
            id="open already",
        ),
        pytest.param(lws(by="uid-gone", image=NEW), {}, RESTS, ROLLS, id="held for a Rollout before"),
    ],
)
def test_of_a_rollout(workload: Object, status: Object, words: str, roll: Roll | str | None) -> None:
    (each,) = foretold(workload, rollout(**status))
    assert each.finalizer and words in each.outlook
    if isinstance(roll, str):
        rolls = roll_of(each)
        assert rolls is not None and roll in (rolls.aborted, *rolls.images)
    else:
        assert roll_of(each) == roll


@pytest.mark.parametrize(
    ("users", "replicas", "roll"),
    [
        ({"maxUnavailable": "50%"}, 4, (4, 2, 0)),
        ({"maxUnavailable": 0, "maxSurge": "30%"}, 4, (4, 0, 2)),
        ({"partition": 3}, 4, (1, 1, 0)),
        ({"partition": 4}, 4, None),
        ({}, 0, None),
        ({}, 1, (1, 1, 0)),
    ],
)
def test_the_users_own_strategy_says_how_fast(users: Object, replicas: int, roll: tuple[int, int, int] | None) -> None:
    workload = lws(by="uid-llama", image=NEW, users=users)
    workload["spec"]["replicas"] = replicas
    (each,) = foretold(workload, rollout())
    rolls = roll_of(each)
    assert (rolls and (rolls.groups, rolls.unavailable, rolls.surge)) == roll


def test_groups_that_lws_itself_would_renew_are_foretold_too() -> None:
    """After an upgrade of LWS its revision of the same version may be another one."""
    (each,) = foretold(HELD, rollout(), wanted="rev-2", running=["rev-1"] * 4)
    rolls = roll_of(each)
    assert rolls is not None and rolls.version == RUNS
    (each,) = foretold(HELD, rollout(), wanted="rev-1", running=["rev-1"] * 4)
    assert roll_of(each) is None


def test_where_no_version_is_on_record_the_revisions_of_groups_tell() -> None:
    bare = rollout(stable=None)
    for running, rolls in ((["rev-1"] * 4, True), (["rev-2"] * 4, False), ([], False)):
        (each,) = foretold(WAITING, bare, wanted="rev-2", running=running)
        assert (roll_of(each) is not None) == rolls


def test_of_two_rollouts_the_one_that_holds_the_workload_goes_last() -> None:
    first, second = foretold(WAITING, rollout("llama"), rollout("zebra", workload="llama"))
    assert (first.rollout, roll_of(first)) == ("zebra", None)
    assert "leaderworkerset/llama is in the care of rollout/llama; nothing rolls" in first.outlook
    assert (second.rollout, roll_of(second)) == ("llama", ROLLS)


def test_a_workload_that_is_gone_is_no_obstacle() -> None:
    (each,) = foretold(None, rollout())
    assert each.outlook == "leaderworkerset/llama does not exist; nothing rolls"


def test_a_workload_that_is_held_for_nobody_is_opened_too() -> None:
    orphan = lws(by="uid-gone", image=NEW, held="a version waits")
    running = ["rev-1"] * 4
    (each,) = foretold(orphan, wanted="rev-2", running=running)
    assert (each.rollout, each.workload, each.finalizer, roll_of(each)) == ("", "llama", False, ROLLS)
    assert each.outlook == ("leaderworkerset/llama runs revision rev-1 in 4 groups; a deleted Rollout has left it held")
    assert rolling(each, ROLLS) == f"the version that waits ({NEW}) ROLLS in 4 groups, 1 at a time"
    opened = lws(by="uid-gone", image=NEW, held="a version waits")
    opened["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] = 0
    (each,) = foretold(opened, wanted="rev-2", running=running)
    assert roll_of(each) is None


@pytest.mark.parametrize(("partition", "rolls"), [(HOLD + 1, True), (HOLD, True), (HOLD - 1, False), (2, False)])
def test_a_partition_of_others_is_open_only_below_the_hold(partition: int, rolls: bool) -> None:
    workload = lws(by="uid-llama", image=NEW)
    workload["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] = partition
    (each,) = foretold(workload, rollout())
    assert roll_of(each) == (ROLLS if rolls else None)


def test_words_of_a_release_that_is_on() -> None:
    (each,) = foretold(WAITING, rollout(**PROGRESSING, capacity="InPlace"))
    assert each.outlook == (
        "its release (AwaitingApproval) goes back to revision rev-1 first; the groups that it has renewed are recreated"
        " for that"
    )
    (each,) = foretold(WAITING, rollout(**PROMOTING))
    assert each.outlook == "its promotion is finished first; nothing rolls"


@pytest.mark.parametrize(
    ("workload", "spec"),
    [
        (lws(by="u", users={"maxSurge": 2}), {"partition": 0, "maxSurge": 2}),
        (lws(by="u", held="text", aborted="{}", release_hold="true"), {"partition": 0}),
        (lws(aborted="{}"), None),
    ],
)
def test_opened_it_has_the_users_strategy_and_no_mark(workload: Object, spec: Object | None) -> None:
    workload["metadata"]["annotations"] |= {"team": "a", KEYS.rollout_id: "7"}
    body = restoring_patch(typed(workload, LeaderWorkerSet), KEYS)
    assert body is not None
    marks = {key for key in workload["metadata"]["annotations"] if KEYS.owns(key)} - {KEYS.rollout_id}
    assert body["metadata"] == {"annotations": dict.fromkeys(marks)}
    change = {"rolloutStrategy": {"rollingUpdateConfiguration": spec}}
    assert body.get("spec") == (change if spec else None)


def test_nothing_is_written_on_a_workload_without_a_mark() -> None:
    assert restoring_patch(typed(lws(), LeaderWorkerSet), KEYS) is None
    assert RUNS != WAITS


@pytest.mark.parametrize(
    ("roll", "words"),
    [
        (Roll("h", ("a",), 1, 1), "(a) ROLLS in 1 group, 1 at a time"),
        (Roll("h", ("a", "b", "c", "d", "e"), 8, 2), "(a, b, c and 2 more) ROLLS in 8 groups, 2 at a time"),
        (Roll("h", ("a",), 4, 0, 2), "(a) ROLLS in 4 groups, at most 0 down and 2 extra at a time"),
        (Roll("h", ("a",), 4, 1, 0, "bad"), "1 at a time; its release was aborted: bad"),
    ],
)
def test_words_of_a_version_that_rolls(roll: Roll, words: str) -> None:
    (each,) = foretold(HELD, rollout())
    assert rolling(each, roll).endswith(words)


LEFT = (
    "leaderworkerset/llama and leaderworkerset/llama-green are left as they are, and so are the weights of their route;"
    " nothing rolls"
)


CLEANING_UP = {**PROGRESSING, "finalising": {"reason": "Success", "task": "CleanUp"}}


def pair_of(touch: str = "RouteOnly", **status: Any) -> Object:
    made = rollout(**status)
    made["spec"]["counterpartRef"] = {**made["spec"]["workloadRef"], "name": "llama-green"}
    made["spec"]["strategy"]["canary"]["capacity"] = "Pair"
    made["spec"] |= {"touch": touch} if touch else {"replicas": 4}
    return made


@pytest.mark.parametrize(
    ("status", "outlook"),
    [
        ({"active": "llama"}, LEFT),
        (
            {**PROGRESSING, "active": "llama", "stable": {"templateHash": RUNS}},
            f"its release (AwaitingApproval) goes back to leaderworkerset/llama first; {LEFT}",
        ),
        (
            {**PROMOTING, "active": "llama", "stable": {"templateHash": RUNS}},
            f"its release (AwaitingApproval) goes back to leaderworkerset/llama first; {LEFT}",
        ),
        (
            {**CLEANING_UP, "active": "llama", "stable": {"templateHash": RUNS}},
            f"its hand-over to leaderworkerset/llama is finished first; {LEFT}",
        ),
    ],
    ids=["at rest", "a release is on", "the roles are about to change", "the roles have changed"],
)
def test_the_workloads_and_weights_of_a_pair_are_left_alone(status: Object, outlook: str) -> None:
    (each,) = foretold(lws(image=NEW), pair_of(**status), wanted="rev-2", running=("rev-1",))
    assert (each.outlook, roll_of(each), each.workload, each.inactive) == (outlook, None, "llama", "llama-green")


KEPT = (
    "leaderworkerset/llama keeps its groups, and leaderworkerset/llama-green has none; the weights of their route stay"
)
BACK_TO = "its release (AwaitingApproval) goes back to leaderworkerset/llama first"


@pytest.mark.parametrize(
    ("workload", "status", "outlook", "roll"),
    [
        pytest.param(HELD, {}, f"{KEPT}; nothing rolls", None, id="at rest"),
        pytest.param(HELD, PROGRESSING, f"{BACK_TO}; {KEPT}; nothing rolls", None, id="a release is on"),
        pytest.param(HELD, PROMOTING, f"{BACK_TO}; {KEPT}; nothing rolls", None, id="the roles are about to change"),
        pytest.param(WAITING, {}, KEPT, ROLLS, id="a version waits on the active side"),
        pytest.param(WAITING, PROGRESSING, f"{BACK_TO}; {KEPT}", ROLLS, id="and a release is on"),
        pytest.param(None, {}, f"{KEPT}; nothing rolls", None, id="the active side is gone"),
    ],
)
def test_of_a_pair_that_its_releases_scale(
    workload: Object | None, status: Object, outlook: str, roll: Roll | None
) -> None:
    (found,) = foretold(workload, pair_of("", **status, active="llama"))
    assert (found.outlook, roll_of(found)) == (outlook, roll)
    assert [each.workload for each in found.held] == ["llama", "llama-green"]
    assert all(not each.rollout and not each.inactive for each in found.held)
    assert keeping(found) == "put the template of what runs back into leaderworkerset/llama"


def test_what_a_release_has_taken_from_the_active_side_is_loaded_again() -> None:
    workload = lws(by="uid-llama", side="active", replicas="4")
    for standing, loads in ((4, ""), (3, ", which loads 1 group again"), (1, ", which loads 3 groups again")):
        workload["spec"]["replicas"] = standing
        (found,) = foretold(workload, pair_of("", **PROGRESSING, active="llama"))
        assert found.outlook == f"{BACK_TO}{loads}; {KEPT}; nothing rolls"
    workload["metadata"]["annotations"][KEYS.replicas] = "many"
    (found,) = foretold(workload, pair_of("", **PROGRESSING, active="llama"))
    assert found.outlook == f"{BACK_TO}; {KEPT}; nothing rolls"


SET_KEPT = (
    "leaderworkerset/llama with llama-prefill keeps its groups, and leaderworkerset/llama-green with"
    " llama-prefill-green has none; the weights of their route stay"
)


@pytest.mark.parametrize("image", ["", NEW], ids=["nothing waits", "a version of a companion waits"])
@pytest.mark.parametrize("turned", [False, True])
def test_all_workloads_of_a_pair_with_companions_are_given_back(image: str, turned: bool) -> None:
    active = "llama-green" if turned else "llama"
    made = pair_of("", active=active, stable={"templateHash": f"{RUNS}-{RUNS}", "revision": "rev-1"})
    names = ("llama-prefill", "llama-prefill-green")
    made["spec"]["companions"] = [{"name": names[0], "counterpart": names[1], "replicas": 2}]
    beside = names[1] if turned else names[0]
    workloads = by_place(
        *(lws(name, by="uid-llama", side="active", image=image if name == beside else "") for name in (active, beside))
    )
    (each,) = detachments(GROUP, [made], workloads, lambda _: ("", ()))
    assert {held.workload for held in each.held} == {"llama", "llama-green", *names}
    assert all(not held.companions for held in each.held)
    if not image:
        assert each.rolls == ()
        assert turned or each.outlook == f"{SET_KEPT}; nothing rolls"
        return
    (roll,) = each.rolls
    assert (roll.version, roll.companion) == (WAITS, beside)
    assert f" in leaderworkerset/{beside} ROLLS in 4 groups" in rolling(each, roll)
    assert keeping(each) == f"put the template of what runs back into leaderworkerset/{beside}"


def test_a_companion_that_a_deleted_rollout_has_left_is_foretold_on_its_own() -> None:
    made = pair_of("", active="llama")
    made["spec"]["companions"] = [{"name": "llama-prefill", "counterpart": "llama-prefill-green", "replicas": 2}]
    workloads = by_place(HELD, lws("llama-prefill-green", by="uid-gone", image=NEW))
    told = detachments(GROUP, [made], workloads, lambda _: ("rev-2", ["rev-1"]))
    assert [(each.rollout, each.workload) for each in told] == [("llama", "llama"), ("", "llama-prefill-green")]


@pytest.mark.parametrize(("said", "number"), [("4", 4), ("2", None), ("1", None), ("", None), ("-3", None)])
def test_the_number_of_groups_is_restored_where_some_were_taken(said: str, number: int | None) -> None:
    workload = lws(by="u", side="active", replicas=said)
    workload["spec"]["replicas"] = 2
    body = restoring_patch(typed(workload, LeaderWorkerSet), KEYS)
    assert body is not None
    assert body["metadata"]["annotations"][KEYS.replicas] is None
    assert body["spec"].get("replicas") == number


def test_the_active_side_of_a_pair_may_be_either() -> None:
    green = lws("llama-green", by="uid-llama", image=NEW, side="active")
    workloads = by_place(lws(side="parked"), green)
    (each,) = detachments(GROUP, [pair_of("", active="llama-green")], workloads, lambda _: ("", ()))
    assert (each.workload, each.inactive, roll_of(each)) == ("llama-green", "llama", ROLLS)


def test_a_side_that_another_rollout_has_left_held_is_foretold_on_its_own() -> None:
    workloads = by_place(HELD, lws("llama-green", by="uid-gone", image=NEW))
    for touch in ("", "RouteOnly"):
        left = detachments(GROUP, [pair_of(touch, active="llama")], workloads, lambda _: ("rev-2", ["rev-1"]))[-1]
        assert (left.rollout, left.workload, roll_of(left)) == ("", "llama-green", ROLLS), touch


def test_of_two_rollouts_that_share_a_side_the_one_that_holds_goes_last() -> None:
    workloads = by_place(HELD, lws("llama-green", side="parked"))
    second = rollout("zebra", workload="llama-green")
    first, last = detachments(GROUP, [pair_of("", active="llama"), second], workloads, lambda _: ("", ()))
    assert (first.rollout, last.rollout) == ("zebra", "llama")
    assert first.outlook == "leaderworkerset/llama-green is in the care of rollout/llama; nothing rolls"


def test_a_label_that_a_deleted_rollout_has_left_is_removed() -> None:
    left = lws(side="parked")
    (found,) = foretold(left)
    assert (found.workload, roll_of(found)) == ("llama", None)
    assert found.outlook == "a deleted Rollout has left it labelled; nothing rolls"
    assert restoring_patch(typed(left, LeaderWorkerSet), KEYS) == {"metadata": {"labels": {KEYS.side: None}}}
    both = restoring_patch(typed(lws(by="u", side="active"), LeaderWorkerSet), KEYS)
    assert both is not None
    assert both["metadata"] == {"annotations": {KEYS.original: None}, "labels": {KEYS.side: None}}
