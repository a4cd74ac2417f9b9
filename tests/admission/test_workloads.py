"""Edits of an LWS in care: the hold stays and the user's values are kept; unfit versions never wait under it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import structs

from rollout_lws.admission.review import ALLOWED, Outcome, Response
from rollout_lws.admission.workloads import hold, pending
from rollout_lws.rollout.observation import Capabilities, Observation
from rollout_lws.sandbox.patching.patches import json_patch, merge_patch
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.targets.stateful_set import StatefulSetTarget
from rollout_lws.workload.hold import HOLD, give_back, hold_record, is_held, users_strategy
from rollout_lws.workload.hold import hold as held_by
from tests.rollout.build import at_rest, in_step, rollout
from tests.workload.build import KEYS, MADE_UP, NAME, NOW, OLD, UID, WORKER, facts, lws, patched, revision_record

MINE = "uid-rollout"
KEPT = "is what it gets back when the Rollout lets go; remove it from the manifest"


def plain(workload: LeaderWorkerSet) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(workload))
    return body


def seen(**given: Any) -> Observation:
    made = rollout(status=given.pop("status", at_rest()), **given)
    return Observation(NOW, KEYS, made, stable=facts(lws()))


def at_hold(users: LeaderWorkerSet | None = None) -> LeaderWorkerSet:
    users = users or lws()
    return patched(users, held_by(users, KEYS, MINE))


def edited(before: LeaderWorkerSet, **strategy: Any) -> LeaderWorkerSet:
    return patched(before, {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": strategy}}})


def annotated(before: LeaderWorkerSet, **annotations: Any) -> LeaderWorkerSet:
    return patched(before, {"metadata": {"annotations": annotations}})


def scaled(before: LeaderWorkerSet, replicas: int) -> LeaderWorkerSet:
    return structs.replace(before, spec=structs.replace(before.spec, replicas=replicas))


def templated(before: LeaderWorkerSet, **worker: Any) -> LeaderWorkerSet:
    """With another version."""
    template = msgspec.Raw(json.dumps({"size": 2, "workerTemplate": {"spec": worker}}).encode())
    return structs.replace(before, spec=structs.replace(before.spec, leader_worker_template=template))


def labelled(before: LeaderWorkerSet) -> LeaderWorkerSet:
    return structs.replace(before, metadata=structs.replace(before.metadata, labels={"team": "infra"}))


def judged(before: LeaderWorkerSet, after: LeaderWorkerSet, **given: Any) -> tuple[Response, LeaderWorkerSet]:
    """The response, and the LWS as it is then stored. Asked again, as API servers may, the guard changes nothing."""
    o = seen(**given)
    response = hold(o, before, after, plain(after))
    stored = json_patch(plain(after), list(response.patch))
    again: LeaderWorkerSet = msgspec.json.decode(msgspec.json.encode(stored), type=LeaderWorkerSet)
    assert hold(o, before, again, plain(again)) == ALLOWED
    return response, again


def live(workload: LeaderWorkerSet) -> tuple[Any, Any, Any]:
    strategy = workload.strategy
    return strategy.partition, strategy.max_unavailable, strategy.max_surge


@pytest.mark.parametrize(
    ("users", "edit", "told"),
    [
        (lws(), {"partition": 0}, "partition 0"),
        (lws(), {"partition": 3}, "partition 3"),
        (lws(unavailable="25%"), {"partition": 0, "maxUnavailable": 2}, "partition 0"),
        (lws(), {"maxSurge": 1}, "maxSurge 1"),
        (lws(surge=2), {"partition": 0, "maxSurge": 1}, "partition 0 and maxSurge 1"),
        (lws(surge=2, unavailable=0), {"partition": 0, "maxSurge": 2}, "partition 0 and maxSurge 2"),
    ],
)
def test_what_would_open_the_hold_is_kept_as_the_users_own(
    users: LeaderWorkerSet, edit: dict[str, Any], told: str
) -> None:
    before = at_hold(users)
    response, stored = judged(before, edited(before, **edit))
    assert response.outcome is Outcome.REPAIRED
    assert response.warnings == (f"Rollout {NAME} holds LeaderWorkerSet {NAME}: {told} {KEPT}",)
    assert is_held(stored)
    wanted = edited(users, **edit).strategy
    assert users_strategy(stored, KEYS) == wanted
    # The controller finds nothing to put back, and nobody to fight with.
    assert held_by(stored, KEYS, MINE) is None


@pytest.mark.parametrize("record", [None, *MADE_UP, '{"by":"uid-rollout","original":{},"written":{}}', "{"])
def test_our_record_stays_when_a_manifest_has_another_or_none(record: str | None) -> None:
    before = at_hold(lws(unavailable="25%", surge=1))
    response, stored = judged(before, annotated(before, **{KEYS.original: record}))
    assert response.outcome is Outcome.REPAIRED
    assert response.warnings == (
        f"annotation {KEYS.original} stays: it has what Rollout {NAME} restores to LeaderWorkerSet {NAME}",
    )
    assert stored == before


def test_what_was_exported_while_our_values_stood_brings_the_users_own() -> None:
    """kubectl get -o yaml at another moment, and apply: what was ours then is not taken for what the user wants."""
    users = lws(unavailable=3, surge=1)
    mark = {"by": MINE, "original": {"partition": 0, "maxSurge": 1}, "written": {"partition": 3, "maxSurge": 0}}
    exported = lws(partition=3, unavailable=3, surge=0, annotations={KEYS.original: json.dumps(mark)})
    response, stored = judged(at_hold(), exported)
    assert response.warnings == (f"Rollout {NAME} holds LeaderWorkerSet {NAME}: partition 0 {KEPT}",)
    assert is_held(stored)
    assert users_strategy(stored, KEYS) == users.strategy


def test_a_manifest_that_replaces_everything_opens_nothing() -> None:
    """kubectl replace: neither the record nor any other annotation, and a strategy of its own."""
    before = annotated(at_hold(lws(unavailable=3)), team="infra")
    after = lws(partition=0, unavailable=2)
    response, stored = judged(before, after)
    assert response.outcome is Outcome.REPAIRED
    assert is_held(stored)
    assert users_strategy(stored, KEYS) == after.strategy
    assert stored.metadata.annotations.keys() == {KEYS.original}


@pytest.mark.parametrize(
    "after",
    [
        at_hold(),
        annotated(at_hold(), note="mine"),
        edited(at_hold(), maxUnavailable=2),
        at_hold(lws(8)),
        annotated(edited(at_hold(), partition=0), **{KEYS.release_hold: "true"}),
        annotated(edited(at_hold(), partition=0), **{KEYS.release_hold: "true", KEYS.original: None}),
    ],
    ids=[
        "nothing",
        "a note",
        "how many at a time",
        "scaled",
        "the glass is broken",
        "and the record removed",
    ],
)
def test_what_opens_nothing_or_means_to_passes_as_it_is(after: LeaderWorkerSet) -> None:
    assert judged(at_hold(), after) == (ALLOWED, after)


@pytest.mark.parametrize("users", [lws(unavailable="25%", surge="25%"), lws(unavailable="50%", surge=1)])
def test_who_scales_or_labels_is_not_told_of_a_strategy_that_nobody_has_touched(users: LeaderWorkerSet) -> None:
    before = at_hold(users)
    for after in (scaled(before, 20), scaled(before, 0), labelled(before)):
        assert judged(before, after) == (ALLOWED, after)


SHIFTS = {"canary": {"capacity": "Shift", "steps": [{"replicas": 1}]}}


@pytest.mark.parametrize("number", [0, 1, 9])
def test_a_number_of_groups_that_is_the_rollouts_stays(number: int) -> None:
    before = at_hold()
    response, stored = judged(before, scaled(before, number), **SHIFTS)
    assert (response.outcome, stored.replicas, live(stored)) == (Outcome.REPAIRED, before.replicas, live(before))
    (told,) = response.warnings
    assert told == (
        f"Rollout llama says how many groups LeaderWorkerSet {NAME} has, {before.replicas} now: scale that, by"
        " kubectl scale rollout llama -n prod --replicas=N, and remove replicas from the manifest"
    )


def test_a_number_and_a_partition_that_come_together_are_repaired_together() -> None:
    before = at_hold()
    response, stored = judged(before, scaled(edited(before, partition=0), 9), **SHIFTS)
    assert (stored.replicas, stored.strategy.partition, len(response.warnings)) == (before.replicas, HOLD, 2)


@pytest.mark.parametrize(
    ("before", "given"),
    [
        pytest.param(at_hold(), {}, id="another capacity"),
        pytest.param(lws(), SHIFTS, id="not held"),
        pytest.param(annotated(at_hold(), **{KEYS.release_hold: "true"}), SHIFTS, id="break-glass"),
        pytest.param(at_hold(), {**SHIFTS, "spec": {"disabled": True}}, id="disabled"),
    ],
)
def test_a_number_that_is_not_the_rollouts_passes(before: LeaderWorkerSet, given: dict[str, Any]) -> None:
    response, stored = judged(before, scaled(before, 9), **given)
    assert (response, stored.replicas) == (ALLOWED, 9)


@pytest.mark.parametrize(
    "before",
    [
        lws(),
        patched(lws(), held_by(lws(), KEYS, "uid-of-another")),
        edited(at_hold(), partition=0),
    ],
    ids=["not in care", "another's", "given up: it rolls by itself"],
)
def test_what_is_not_ours_to_hold_passes(before: LeaderWorkerSet) -> None:
    after = edited(before, partition=0, maxUnavailable=3)
    assert judged(before, after) == (ALLOWED, after)


@pytest.mark.parametrize("leaving", [{"spec": {"disabled": True}}, {"metadata": {"deletionTimestamp": NOW}}])
def test_who_lets_go_of_what_nobody_wants_to_hold_is_not_stopped(leaving: dict[str, Any]) -> None:
    before = at_hold()
    opened = patched(before, give_back(before, KEYS))
    assert judged(before, opened, **leaving) == (ALLOWED, opened)
    # A release that still goes back needs its hold.
    assert judged(before, edited(before, partition=0), **leaving)[0].outcome is Outcome.REPAIRED


@pytest.mark.parametrize(
    ("opened", "edit"),
    [
        ({"partition": 3}, {"partition": 0, "maxUnavailable": "100%", "maxSurge": 2}),
        # The last one is as low as the user's own value.
        ({}, {"partition": 2, "maxUnavailable": "100%", "maxSurge": 2}),
    ],
)
def test_a_window_stays_as_narrow_as_it_is_while_groups_are_renewed(
    opened: dict[str, int], edit: dict[str, Any]
) -> None:
    mark = {"by": MINE, "original": dict.fromkeys(opened, 0), "written": opened}
    before = lws(partition=opened.get("partition", 0), unavailable=1, annotations={KEYS.original: json.dumps(mark)})
    after = edited(before, **edit)
    response, stored = judged(before, after, status=in_step())
    told = f"partition {edit['partition']} and maxUnavailable 100% and maxSurge 2"
    assert response.warnings == (f"Rollout {NAME} renews groups of LeaderWorkerSet {NAME} now: {told} {KEPT}",)
    assert live(stored) == live(before)
    assert users_strategy(stored, KEYS) == after.strategy
    assert hold_record(stored, KEYS) is not None


def in_window(opened: dict[str, int], live: dict[str, Any]) -> LeaderWorkerSet:
    mark = {"by": MINE, "original": {"partition": 0, "maxSurge": 0, "maxUnavailable": 1}, "written": opened}
    mark["original"] = {member: mark["original"][member] for member in opened}  # type: ignore[index]
    return lws(**live, annotations={KEYS.original: json.dumps(mark, sort_keys=True, separators=(",", ":"))})


@pytest.mark.parametrize(
    ("opened", "live_now", "held"),
    [
        ({"partition": 3}, {"partition": 3, "unavailable": 1}, (HOLD, 1, 0)),
        ({}, {"partition": 0, "unavailable": 1}, (HOLD, 1, 0)),
        (
            {"partition": 4, "maxSurge": 2, "maxUnavailable": 0},
            {"partition": 4, "unavailable": 0, "surge": 2},
            (HOLD, 0, 2),
        ),
    ],
    ids=["a window", "the last window", "with surge groups"],
)
@pytest.mark.parametrize("states", [{}, {"partition": 0}], ids=["the version alone", "and a partition"])
def test_another_version_that_comes_into_a_window_finds_the_hold(
    opened: dict[str, int], live_now: dict[str, Any], held: tuple[int, int, int], states: dict[str, int]
) -> None:
    before = in_window(opened, live_now)
    after = edited(templated(before, containers=[]), **states)
    response, stored = judged(before, after, status=in_step())
    assert response.outcome is Outcome.REPAIRED
    assert response.warnings == (
        f"Rollout {NAME} renews groups of LeaderWorkerSet {NAME} now: the version that comes waits, and nothing of it"
        " starts in this window",
    )
    assert live(stored) == held
    assert live(patched(stored, give_back(stored, KEYS))) == (0, 1, 0)
    # At rest it waits without a word, and the same version leaves the window as it is.
    assert judged(at_hold(), templated(at_hold(), containers=[]))[0] == ALLOWED
    assert judged(before, annotated(before, note="mine"), status=in_step())[0] == ALLOWED


def test_surge_groups_of_a_release_stay() -> None:
    users = lws(surge=1)
    before = patched(users, held_by(users, KEYS, MINE, surge=2))
    _, stored = judged(before, edited(before, partition=0, maxSurge=0, maxUnavailable=1), status=in_step())
    assert live(stored) == (HOLD, 0, 2)
    assert live(patched(lws(), {})) == (0, 1, 0)
    assert users_strategy(stored, KEYS) == lws().strategy


def test_an_object_without_annotations_or_strategy_can_be_fixed_too() -> None:
    before = at_hold()
    after = lws()
    body = plain(after)
    body["metadata"].pop("annotations", None)
    body["spec"].pop("rolloutStrategy", None)
    response = hold(seen(), before, after, body)
    stored = json_patch(body, list(response.patch))
    assert msgspec.json.decode(msgspec.json.encode(stored), type=LeaderWorkerSet) == before
    assert stored["spec"]["rolloutStrategy"]["type"] == "RollingUpdate"


def version(size: int = 2, **more: Any) -> LeaderWorkerSet:
    """At hold, with stable's template of size 2 on record beside it."""
    return at_hold(lws(template={"size": size, "workerTemplate": WORKER, **more}))


def asked(before: LeaderWorkerSet, after: LeaderWorkerSet, **given: Any) -> Response:
    stable = {"spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": WORKER}}}
    known = facts(before, revisions=(revision_record("r1", OLD, data=stable),))
    status, spec = given.pop("status", at_rest()), given.pop("spec", {})
    o = Observation(NOW, KEYS, rollout(status=status, spec=spec), stable=known, **given)
    return pending(o, before, after)


CLAIM = [{"metadata": {"name": "cache"}}]
RELEASE = f'; to have it roll without steps, annotate it {KEYS.release_hold}: "true" in the same write'


def test_a_version_that_would_damage_held_groups_is_denied() -> None:
    for status in (at_rest(), in_step()):
        response = asked(version(), version(4), status=status)
        assert response.outcome is Outcome.DENIED
        assert response.message == (
            f"the pending version of LeaderWorkerSet {NAME} changes its size; up to LWS 0.10 any group of the held"
            " version that restarts would be damaged: restore the size, or upgrade LeaderWorkerSet" + RELEASE
        )
    claims = asked(version(), version(volumeClaimTemplates=CLAIM))
    assert claims.message == (
        f"the pending version of LeaderWorkerSet {NAME} changes volumeClaimTemplates, which a StatefulSet cannot"
        " change: restore them, or make a new LeaderWorkerSet"
    )


OTHER = {"spec": {"containers": [{"name": "server", "image": "model:2"}]}}


@pytest.mark.parametrize(
    ("before", "after", "given"),
    [
        (version(), at_hold(lws(template={"size": 2, "workerTemplate": OTHER})), {}),
        (version(), annotated(version(4), **{KEYS.release_hold: "true"}), {}),
        (version(4), annotated(version(4), note="mine"), {}),
        (version(4), version(2), {}),
        (scaled(version(), 0), scaled(version(4), 0), {}),
        (version(), scaled(version(4), 0), {}),
        (version(), version(4), {"capabilities": Capabilities(group_identity=True)}),
        (version(), version(4), {"spec": {"disabled": True}}),
        (version(), version(4), {"status": None}),
        (lws(), lws(template={"size": 4, "workerTemplate": WORKER}), {}),
    ],
    ids=[
        "another image",
        "the glass is broken",
        "it waits already",
        "it is taken back",
        "no groups",
        "no groups from now on",
        "a newer LeaderWorkerSet",
        "disabled",
        "not adopted",
        "not in care",
    ],
)
def test_all_other_versions_may_wait(before: LeaderWorkerSet, after: LeaderWorkerSet, given: dict[str, Any]) -> None:
    assert asked(before, after, **given) == ALLOWED


def test_what_is_on_record_is_of_this_very_lws() -> None:
    status = at_rest()
    status["stable"] = status["stable"].model_copy(update={"workload_uid": "uid-before"})
    assert (UID, asked(version(), version(4), status=status)) == ("uid-llama", ALLOWED)


def test_a_stateful_set_stays_held_when_a_manifest_states_on_delete() -> None:
    """Applied again, it would have each pod that is evicted come back at the version of the template."""
    template = {"metadata": {"labels": {"app": "llama"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    body: dict[str, Any] = {
        "metadata": {"name": NAME, "namespace": "prod", "uid": "uid-llama", "generation": 1},
        "spec": {"replicas": 3, "template": template, "updateStrategy": {"type": "OnDelete"}},
    }

    def typed(value: dict[str, Any]) -> StatefulSetTarget:
        return msgspec.json.decode(msgspec.json.encode(value), type=StatefulSetTarget)

    held: dict[str, Any] = merge_patch(body, held_by(typed(body), KEYS, MINE))
    applied: dict[str, Any] = merge_patch(
        held, {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
    )
    o = seen()
    response = hold(o, typed(held), typed(applied), applied)
    stored = json_patch(applied, list(response.patch))
    assert response.outcome is Outcome.REPAIRED
    assert stored["spec"]["updateStrategy"] == held["spec"]["updateStrategy"]
    assert users_strategy(typed(stored), KEYS).type == "OnDelete"
    assert "type OnDelete" in response.warnings[0]
    assert hold(o, typed(held), typed(stored), stored) == ALLOWED
