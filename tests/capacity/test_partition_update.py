"""Promotion and the way back: which groups a window opens for, and what is waited for, state by state."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace as change

from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.known import EXTRA_WORKLOAD, IN_PLACE, STRATEGIES, SURGE
from rollout_lws.capacity.partition_update import PartitionUpdate
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.capacity.stable_groups import MOST_GROUPS
from rollout_lws.objects.released import RECOVER
from rollout_lws.objects.resources import LEADER_WORKER_SETS, PODS, STATEFUL_SETS
from rollout_lws.objects.workloads import Pod
from rollout_lws.objects.writes import Confirm, Delete, Patch, Write
from rollout_lws.workload.hold import HOLD, hold, window
from tests.workload.build import KEYS, NAME, NEW, NOW, OLD, UID, facts, leader_set, lws, patched, pod, revision_record

#: One letter a group, from ordinal 0: old or new, ready (capital) or not; "." is missing, x and y terminate, e and f
#: have used up their restarts.
_GROUPS: dict[str, dict[str, Any]] = {
    "O": {"revision": OLD},
    "o": {"revision": OLD, "since": None},
    "x": {"revision": OLD, "terminating": True},
    "N": {"revision": NEW},
    "n": {"revision": NEW, "since": None},
    "y": {"revision": NEW, "terminating": True},
    "e": {"revision": OLD, "terminating": True, "since": None, "exhausted": True},
    "f": {"revision": NEW, "terminating": True, "since": None, "exhausted": True},
}


def leaders(picture: str) -> tuple[Pod, ...]:
    return tuple(pod(at, size=1, **_GROUPS[letter]) for at, letter in enumerate(picture) if letter != ".")


def partition_update(
    picture: str,
    canary: int = 1,
    *,
    replicas: int | None = None,
    unavailable: int | str = 1,
    surge: int | str = 0,
    window_at: int | None = None,
    set_at: int | None = None,
    minimum: float = 0,
    acted: bool = True,
    settled_on: str = "old",
    known: bool = True,
    target: str = NEW,
    emptied: bool = False,
) -> PartitionUpdate:
    """The stable LWS in care: held, or with a window at ``window_at`` that the leader set has at ``set_at``."""
    users = lws(len(picture) if replicas is None else replicas, unavailable=unavailable, surge=surge)
    workload = patched(users, hold(users, KEYS, UID))
    if window_at is not None:
        workload = patched(workload, window(workload, KEYS, UID, window_at, 1))
    at = set_at if set_at is not None else HOLD if window_at is None else window_at
    sets = leader_set(target, partition=at, current=f"set-{settled_on}", update="set-new", observed=5 if acted else 4)
    records = (revision_record("lws-old", OLD),) if known else ()
    seen = facts(workload, *leaders(picture), leader_set=sets, revisions=records)
    return PartitionUpdate(seen, KEYS, UID, NOW, canary, EXTRA_WORKLOAD, minimum, emptied)


def strategy(write: Write) -> dict[str, Any]:
    assert isinstance(write, Patch)
    assert (write.resource, write.uid, write.generation) == (LEADER_WORKER_SETS, f"uid-{NAME}", 3)
    found: dict[str, Any] = write.body["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
    return found


def deleted(result: CapacityResult) -> list[str]:
    """Names of the leaders that are deleted, after a read of the leader StatefulSet, each by its UID."""
    if not result.writes:
        return []
    confirm, *rest = result.writes
    assert isinstance(confirm, Confirm)
    assert (confirm.resource, confirm.uid, confirm.generation) == (STATEFUL_SETS, "uid-set", 5)
    assert all(isinstance(each, Delete) and each.resource == PODS and each.uid.startswith("uid-") for each in rest)
    return [each.name for each in rest]


@pytest.mark.parametrize(
    ("picture", "canary", "unavailable", "opened", "partition"),
    [
        # One group, from the top.
        ("OOOO", 1, 1, (3,), 3),
        ("OOON", 1, 1, (2,), 2),
        ("ONNN", 1, 1, (0,), 0),
        ("O", 1, 1, (0,), 0),
        ("OO", 1, 1, (1,), 1),
        # As many as the user allows, have replacements among the ready canary groups, and leave one of R.
        ("OOOO", 2, 1, (3,), 3),
        ("OOOO", 1, 2, (3,), 3),
        ("OOOO", 2, 2, (2, 3), 2),
        ("OOOO", 2, "50%", (2, 3), 2),
        ("OOOO", 4, "100%", (1, 2, 3), 1),
        ("OOOO", 9, "100%", (1, 2, 3), 1),
        ("OOOOO", 5, "30%", (4,), 4),
        ("OOOOO", 5, "39%", (4,), 4),
        ("OOOOO", 5, "40%", (3, 4), 3),
        ("OO", 2, "100%", (1,), 1),
        ("O", 3, "100%", (0,), 0),
        ("ONNN", 4, "100%", (0,), 0),
        # A user who allows none (and surges instead) gets one at a time.
        ("OOOO", 4, "10%", (3,), 3),
        # Without a canary group one group at a time, as long as another serves.
        ("OOOO", 0, "100%", (3,), 3),
        # Renewed groups in between are skipped.
        ("ONON", 2, 2, (0, 2), 0),
        ("ONOO", 2, 2, (2, 3), 2),
        # What is down already costs nothing, whatever else is down.
        ("OOOo", 1, 1, (3,), 3),
        ("OOoo", 1, 1, (2, 3), 2),
        ("OOoo", 4, 4, (1, 2, 3), 1),
        ("o", 1, 1, (0,), 0),
        ("ooo", 1, 1, (0, 1, 2), 0),
        ("oN", 0, 1, (0,), 0),
        # Broken groups further down count; one more may go as long as R less the user's maxUnavailable serve.
        ("oOOO", 1, 1, (3,), 3),
        ("oOOO", 3, 3, (2, 3), 2),
        ("ooOO", 1, 1, None, None),
        ("ooOO", 2, 1, (3,), 3),
        ("ooOO", 1, "100%", (3,), 3),
        ("OO.O", 1, 1, (3,), 3),
        ("O..O", 1, 1, None, None),
        ("xOOO", 1, 1, (3,), 3),
        ("oOOO", 0, 1, None, None),
        # Never the last that serves.
        ("O", 0, 1, None, None),
        ("o", 0, 1, None, None),
        ("oO", 0, 1, None, None),
    ],
)
def test_a_window_opens_for_as_many_groups_as_may_be_down(
    picture: str, canary: int, unavailable: Any, opened: tuple[int, ...] | None, partition: int | None
) -> None:
    result = partition_update(picture, canary, unavailable=unavailable).promote(NEW)
    assert not result.done
    if opened is None:
        assert (result.writes, result.opened) == ((), ())
        assert result.message.endswith("is not ready: no further group may go down")
        return
    (write,) = result.writes
    assert tuple(sorted(result.opened)) == opened
    assert strategy(write)["partition"] == partition
    assert result.message == "renewing group " + ", ".join(map(str, opened))


@pytest.mark.parametrize(
    ("unavailable", "canary", "picture", "written"),
    [
        (1, 1, "OOOO", None),
        (1, 2, "oOOO", 2),
        (1, 2, "oOOo", 2),
        (2, 2, "oOOo", None),
        (3, 3, "OOOO", None),
        ("25%", 1, "OOOO", None),
        ("10%", 1, "OOOO", 1),
    ],
)
def test_max_unavailable_is_raised_only_when_lws_would_open_too_little(
    unavailable: Any, canary: int, picture: str, written: int | None
) -> None:
    (write,) = partition_update(picture, canary, unavailable=unavailable).promote(NEW).writes
    assert strategy(write).get("maxUnavailable") == written


def test_a_message_names_ten_groups_and_counts_the_rest() -> None:
    result = partition_update("O" * 500, 500, unavailable="100%").promote(NEW)
    assert result.message == "renewing group 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 489 more"
    assert partition_update("O" + "n" * 11).promote(NEW).message.endswith("9, 10 and 1 more")
    back = partition_update("N" * 12, 12).go_back(OLD).message
    assert back.startswith("group 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more goes")


@pytest.mark.parametrize("surge", [1, "50%", "100%"])
def test_a_users_surge_is_no_part_of_a_window(surge: Any) -> None:
    (write,) = partition_update("OOOO", surge=surge).promote(NEW).writes
    assert "maxSurge" not in strategy(write)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (partition_update("OOOn"), "renewing group 3"),
        (partition_update("OOnn"), "renewing group 2, 3"),
        (partition_update("NNNn"), "renewing group 3"),
        # It was renewed before, since groups are from the top.
        (partition_update("OOO."), "waiting for group 3, which is made again, of llama"),
        (partition_update("NNN."), "waiting for group 3, which is made again, of llama"),
        (partition_update("NNNy"), "renewing group 3"),
        (partition_update("OOOO", acted=False), "waiting for the LeaderWorkerSet controller to act on the last change"),
        (partition_update("OOOO", target=OLD), "waiting for the LeaderWorkerSet controller to act on the last change"),
        (partition_update("NNNN"), "waiting for the StatefulSet controller to record the new revision"),
    ],
)
def test_nothing_is_opened_while_something_is_waited_for(made: PartitionUpdate, message: str) -> None:
    assert made.promote(NEW) == CapacityResult(message=message)


def test_a_paused_promotion_opens_no_further_window_but_finishes_the_one_that_is_open() -> None:
    paused = CapacityResult(message="paused: no further group is renewed")
    assert partition_update("OOOO").promote(NEW, may_open=False) == paused
    (write,) = partition_update("OOOn", window_at=3).promote(NEW, may_open=False).writes
    assert strategy(write) == {"partition": HOLD}


def test_a_renewed_group_counts_after_its_warm_up() -> None:
    result = partition_update("OOON", minimum=90).promote(NEW)
    assert (result.writes, result.wake_at) == ((), NOW + timedelta(seconds=30))


@pytest.mark.parametrize("picture", ["N", "NN", "NNNNN"])
def test_the_end_is_all_groups_new_ready_and_held(picture: str) -> None:
    assert partition_update(picture, settled_on="new").promote(NEW) == CapacityResult(done=True)


def test_groups_that_were_scaled_away_are_not_waited_for_as_surge_groups() -> None:
    result = partition_update("OONn", 1, replicas=3).promote(NEW)
    assert "surge" not in result.message
    assert result.writes


@pytest.mark.parametrize(
    ("picture", "acted", "done"), [("NNN", True, False), ("NNy", True, False), ("NN", True, True), ("NN", False, False)]
)
def test_a_surge_is_over_when_its_groups_are_gone(picture: str, acted: bool, done: bool) -> None:
    made = replace(partition_update(picture, replicas=2, settled_on="new", acted=acted), strategy=SURGE)
    assert made.promote(NEW).done is done


def test_surplus_groups_are_nobodys_business() -> None:
    assert partition_update("NNNNo", replicas=4, settled_on="new").promote(NEW).done
    assert partition_update("OOOOo", replicas=4).promote(NEW).opened == (3,)


def test_a_hold_with_surge_groups_is_put_right_before_the_end() -> None:
    made = partition_update("NN", settled_on="new")
    surged = patched(
        made.facts.workload, {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 1}}}}
    )
    seen = facts(surged, *leaders("NN"), leader_set=made.facts.leader_set)
    result = PartitionUpdate(seen, KEYS, UID, NOW, 1, EXTRA_WORKLOAD).promote(NEW)
    assert not result.done
    assert strategy(result.writes[0])["maxSurge"] == 0


# The window itself


@pytest.mark.parametrize(
    ("picture", "at", "closes"),
    [
        ("OOOO", 3, False),
        ("OOO.", 3, False),
        ("OOOx", 3, False),
        ("OOOy", 3, False),
        ("OOOn", 3, True),
        ("OOOf", 3, True),
        ("OOOe", 3, False),
        ("OOON", 3, True),
        ("OOOn", 2, False),
        ("OOnn", 2, True),
        ("OnON", 1, False),
        ("nNNN", 0, True),
        ("OOOO", 9, True),
    ],
)
def test_a_window_closes_as_soon_as_its_leaders_exist_at_the_new_revision(picture: str, at: int, closes: bool) -> None:
    result = partition_update(picture, window_at=at, set_at=HOLD).promote(NEW)
    assert not result.done
    assert [strategy(write) for write in result.writes] == ([{"partition": HOLD}] if closes else [])


@pytest.mark.parametrize(
    ("picture", "at", "names"),
    [
        ("OOOO", 3, []),
        ("OOOO", 2, ["llama-2"]),
        ("OOOn", 1, ["llama-1"]),
        ("OOOx", 1, ["llama-1", "llama-2"]),
        ("OOx.", 1, ["llama-1"]),
        ("OnOn", 0, ["llama-0"]),
    ],
)
def test_a_portion_is_renewed_at_once_where_the_stateful_set_would_go_one_by_one(
    picture: str, at: int, names: list[str]
) -> None:
    assert deleted(partition_update(picture, 4, unavailable="100%", window_at=at).promote(NEW)) == names


def test_all_groups_are_renewed_at_once_where_no_request_reaches_them() -> None:
    result = partition_update("OOOO", 4, emptied=True, window_at=0).promote(NEW)
    assert deleted(result) == ["llama-0", "llama-1", "llama-2"]


def test_a_canary_that_has_fewer_groups_than_the_lws_has_grown_to_renews_no_more_than_may_be_down() -> None:
    assert partition_update("OOOOOO", 4, emptied=True).promote(NEW).opened == (5,)
    assert partition_update("OOOOOO", 6, emptied=True).promote(NEW).opened == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("picture", "at", "canary", "emptied"),
    [
        # Requests came back to stable groups, and a user's maxUnavailable counts again.
        ("OOOO", 0, 4, False),
        ("OOOO", 2, 1, False),
        # Nothing else serves any more.
        ("OOOO", 0, 0, True),
        ("oO", 1, 0, False),
        ("O", 0, 0, True),
    ],
)
def test_a_window_is_closed_when_those_are_lost_that_were_to_serve_meanwhile(
    picture: str, at: int, canary: int, emptied: bool
) -> None:
    result = partition_update(picture, canary, emptied=emptied, window_at=at).promote(NEW)
    assert [strategy(write)["partition"] for write in result.writes] == [HOLD]


@pytest.mark.parametrize("set_at", [HOLD, 3])
def test_no_leader_is_deleted_before_the_stateful_set_has_the_window(set_at: int) -> None:
    # It would come back old.
    assert partition_update("OOOO", 4, unavailable="100%", window_at=1, set_at=set_at).promote(NEW).writes == ()


# The way back


@pytest.mark.parametrize(
    ("picture", "canary", "unavailable", "names"),
    [
        ("OOON", 1, 1, ["llama-3"]),
        ("OOnn", 1, 1, ["llama-2", "llama-3"]),
        ("OONN", 1, 1, ["llama-2"]),
        ("OONN", 1, 2, ["llama-2", "llama-3"]),
        ("OONN", 1, "100%", ["llama-2", "llama-3"]),
        ("NNNN", 1, "100%", ["llama-0", "llama-1", "llama-2", "llama-3"]),
        ("NNNN", 0, "100%", ["llama-0", "llama-1", "llama-2"]),
        ("oONN", 1, 1, []),
        ("oONN", 1, 2, ["llama-2"]),
        # A stable group that may not restart does not come back, however long the others stay.
        ("eONN", 1, 1, ["llama-2"]),
        ("eOON", 1, 1, ["llama-3"]),
        ("eoON", 1, 1, []),
        ("OONy", 1, 1, []),
        ("ONn.", 1, 1, ["llama-2"]),
        ("OOOy", 1, 1, []),
        ("N", 1, 1, ["llama-0"]),
        ("n", 0, 1, ["llama-0"]),
        ("ny", 0, 1, ["llama-0"]),
    ],
)
def test_renewed_groups_go_back_no_more_at_once_than_may_be_down(
    picture: str, canary: int, unavailable: Any, names: list[str]
) -> None:
    result = partition_update(picture, canary, unavailable=unavailable).go_back(OLD)
    assert (result.done, result.blocked) == (False, "")
    assert deleted(result) == names


def test_a_group_that_may_not_restart_is_asked_for_instead_of_deleted() -> None:
    confirm, *rest = partition_update("OOnf").go_back(OLD).writes
    assert isinstance(confirm, Confirm)
    assert [(type(each), each.name) for each in rest if not isinstance(each, Confirm)] == [
        (Delete, "llama-2"),
        (Patch, "llama-3"),
    ]
    asked = rest[1]
    assert isinstance(asked, Patch)
    assert (asked.resource, asked.body) == (PODS, {"metadata": {"annotations": {RECOVER: "true"}}})


@pytest.mark.parametrize("picture", ["OOOf", "OOff"])
def test_no_further_window_opens_for_a_group_that_may_not_restart(picture: str) -> None:
    made = partition_update(picture, unavailable="100%")
    assert made.renew(NEW, picture.count("f")).done
    waiting = made.renew(NEW, 3)
    assert (waiting.done, waiting.writes) == (False, ())


@pytest.mark.parametrize(
    ("made", "blocked"),
    [
        # What is deleted would come back new.
        (partition_update("OOON", settled_on="new"), "PointOfNoReturn"),
        # LWS could not make the workers of a leader that came back.
        (partition_update("OOON", known=False), "PointOfNoReturn"),
        # Nothing else serves.
        (partition_update("N", 0), "LastServing"),
        (partition_update("oN", 0), "LastServing"),
        (partition_update("N", 1), ""),
        (partition_update("ON", 0), ""),
        (partition_update("n", 0), ""),
        (partition_update("nN", 0), ""),
    ],
)
def test_there_is_a_point_of_no_return(made: PartitionUpdate, blocked: str) -> None:
    result = made.go_back(OLD)
    assert result.blocked == blocked
    if blocked:
        assert result.writes == ()


def test_nothing_goes_back_while_it_is_unknown_what_a_group_comes_back_with() -> None:
    result = partition_update("OOON", settled_on="unknown").go_back(OLD)
    assert (result.done, result.blocked, result.writes) == (False, "", ())
    assert result.message


@pytest.mark.parametrize(("picture", "done"), [("OoOo", True), ("OOON", False), ("OOO.", True)])
def test_an_impatient_way_back_ends_with_the_revision_whether_groups_are_ready_or_not(picture: str, done: bool) -> None:
    assert partition_update(picture).go_back(OLD, patient=False).done is done
    assert not partition_update(picture).go_back(OLD).done


def test_the_last_group_that_serves_stays_while_others_come_back() -> None:
    assert deleted(partition_update("nN", 0).go_back(OLD)) == ["llama-0"]


def test_a_window_is_closed_before_anything_goes_back() -> None:
    (write,) = partition_update("OOnO", window_at=2).go_back(OLD).writes
    assert strategy(write) == {"partition": HOLD}


@pytest.mark.parametrize("set_at", [2, 0])
def test_nothing_goes_back_before_the_leader_stateful_set_has_the_hold(set_at: int) -> None:
    result = partition_update("OOnN", set_at=set_at).go_back(OLD)
    assert result == CapacityResult(message="waiting for the leader StatefulSet to have the hold")


@pytest.mark.parametrize(("picture", "done"), [("OOOO", True), ("OOOo", False), ("OOO.", False), ("OOOx", False)])
def test_the_way_back_ends_when_all_groups_are_stable_and_ready(picture: str, done: bool) -> None:
    result = partition_update(picture).go_back(OLD)
    assert (result.done, result.writes) == (done, ())


@pytest.mark.parametrize(
    ("strategy", "picture", "opened"),
    [
        (IN_PLACE, "ooo", (1, 2)),
        (IN_PLACE, "ooO", ()),
        (SURGE, "ooo", ()),
        (EXTRA_WORKLOAD, "ooo", ()),
    ],
    ids=lambda each: getattr(each, "name", str(each)),
)
def test_where_no_group_serves_only_groups_renewed_in_place_can_mend_it(
    strategy: CapacityStrategy, picture: str, opened: tuple[int, ...]
) -> None:
    result = replace(partition_update(picture, 0), strategy=strategy).renew(NEW, 2)
    assert result.opened == opened
    assert result.message.endswith("no further group may go down") is not bool(opened)


def test_a_window_of_an_lws_that_has_no_annotations_demands_its_resource_version() -> None:
    """A JSON Patch cannot add a member to what is not there."""
    held = partition_update("OO")
    bare = change(held.facts.workload, metadata=change(held.facts.workload.metadata, annotations={}))
    result = replace(held, facts=replace(held.facts, workload=bare)).promote(NEW, may_open=True)
    (opened,) = [each for each in result.writes if isinstance(each, Patch)]
    assert (opened.resource_version, opened.generation) == (bare.metadata.resource_version, None)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda each: each.name)
@pytest.mark.parametrize("window_at", [None, 0, 2])
def test_as_many_groups_as_a_number_can_name_cost_no_more_than_those_that_exist(
    strategy: CapacityStrategy, window_at: int | None
) -> None:
    """Somebody types a number into replicas; the controller of everybody else must live on."""
    many = 2**31 - 1
    seen = replace(partition_update("OONN", replicas=many, window_at=window_at), strategy=strategy)
    told = (
        seen.promote(NEW),
        seen.renew(NEW, many),
        seen.renew(NEW, 2),
        seen.extend(NEW, many),
        seen.go_back(OLD),
        seen.take_back(OLD),
    )
    assert [result for result in told if len(result.message) > 300 or len(result.opened) > MOST_GROUPS] == []


@pytest.mark.parametrize("picture", ["OOOO", "ONON", "NOON", "OONN", "NNNN", "yONo", "..ON", "N..."])
@pytest.mark.parametrize("wanted", range(6))
def test_groups_are_renewed_from_the_top_until_enough_are_new(picture: str, wanted: int) -> None:
    """By the definition: the highest partition at which enough are new, those that are new below it among them."""
    seen = partition_update(picture)
    new = {at for at, letter in enumerate(picture) if letter in "Nn"}
    count = len(picture)
    lowest = max(
        partition
        for partition in range(count + 1)
        if sum(each < partition for each in new) + count - partition >= min(wanted, count)
    )
    assert seen.renew(NEW, wanted).done == (new >= set(range(lowest, count)))
