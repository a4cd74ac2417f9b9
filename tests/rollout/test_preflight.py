"""Refusals that are decided between objects: who is in charge, and which members of a version may not change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from rollout_lws.rollout.decision import FieldRef
from rollout_lws.rollout.observation import Capabilities
from rollout_lws.rollout.preflight import NAME_LIMIT, all_refusals, cannot_manage, cannot_release, refused_by_spec
from rollout_lws.rollout.reasons import Reason
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.workload.facts import Facts, NamedObject
from tests.rollout.build import at_rest, draft, held, in_step, rollout
from tests.workload.build import OLD, WORKER, facts, lws, revision_record

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def reason(refusal: Any) -> Reason | None:
    return refusal.reason if refusal else None


@pytest.mark.parametrize(
    ("created", "uid", "expected"),
    [
        (DAY.replace(hour=1), "a", Reason.SECOND_ROLLOUT),
        (DAY.replace(hour=3), "a", None),
        (DAY.replace(hour=2), "uid-a", Reason.SECOND_ROLLOUT),
        (DAY.replace(hour=2), "uid-z", None),
    ],
    ids=["older", "younger", "same second, smaller uid", "same second, greater uid"],
)
def test_of_two_rollouts_exactly_one_is_in_charge(created: datetime, uid: str, expected: Reason | None) -> None:
    mine = rollout(metadata={"creationTimestamp": DAY.replace(hour=2)})
    rival = rollout(metadata={"name": "rival", "uid": uid, "creationTimestamp": created})
    assert reason(cannot_manage(draft(mine, rivals=(rival.metadata,)))) == expected
    mirrored = cannot_manage(draft(rival, rivals=(mine.metadata,)))
    assert (reason(mirrored) is None) == (expected is not None)


@pytest.mark.parametrize(("length", "expected"), [(NAME_LIMIT, None), (NAME_LIMIT + 1, Reason.NAME_TOO_LONG)])
def test_a_name_is_as_long_as_a_label_may_be(length: int, expected: Reason | None) -> None:
    assert reason(cannot_manage(draft(rollout(metadata={"name": "n" * length})))) == expected


def pending(**members: Any) -> Facts:
    """An LWS whose own record of stable has size 2 and the Shared network."""
    stable = {"spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": WORKER}}}
    network = members.pop("network", None)
    workload = lws(template={"size": 2, "workerTemplate": WORKER, **members}, network=network)
    return facts(workload, revisions=(revision_record("r1", OLD, data=stable),))


CLAIM = [{"metadata": {"name": "cache"}}]


@pytest.mark.parametrize(
    ("changed", "expected", "named"),
    [
        ({}, None, ""),
        ({"size": 4}, Reason.UNSAFE_PENDING, "changes its size"),
        ({"network": {"subdomainPolicy": "UniquePerReplica"}}, Reason.UNSAFE_PENDING, "changes its networkConfig"),
        ({"network": {"subdomainPolicy": "Shared"}}, None, ""),
        ({"subGroupPolicy": {"subGroupSize": 2}}, Reason.UNSAFE_PENDING, "changes its subGroupPolicy"),
        ({"volumeClaimTemplates": CLAIM}, Reason.CLAIMS_CHANGED, "changes volumeClaimTemplates"),
        ({"volumeClaimTemplates": []}, None, ""),
    ],
)
def test_what_would_damage_held_groups_is_refused(changed: dict[str, Any], expected: Reason | None, named: str) -> None:
    refusal = refused_by_spec(draft(rollout(status=in_step()), stable=pending(**changed)))
    assert reason(refusal) == expected
    assert named in (refusal.message if refusal else "")


def test_an_lws_with_group_identity_may_change_its_shape() -> None:
    d = draft(rollout(status=in_step()), stable=pending(size=4), capabilities=Capabilities(group_identity=True))
    assert refused_by_spec(d) is None


@pytest.mark.parametrize(("kind", "expected"), [("LeaderWorkerSet", Reason.NAME_TAKEN), ("StatefulSet", None)])
def test_only_a_foreign_lws_takes_the_name_and_leftovers_are_waited_for(kind: str, expected: Reason | None) -> None:
    d = draft(rollout(status=at_rest()), stable=held(), remains=(NamedObject(kind, "llama-canary"),))
    assert reason(cannot_release(d)) == expected


def test_whoever_looks_before_a_release_is_told_everything_each_at_its_place() -> None:
    mine = rollout(metadata={"name": "n" * (NAME_LIMIT + 1), "creationTimestamp": DAY.replace(hour=2)})
    rival = rollout(metadata={"name": "rival", "uid": "a", "creationTimestamp": DAY})
    taken = (NamedObject("LeaderWorkerSet", "llama-canary"),)
    d = draft(mine, rivals=(rival.metadata,), stable=held(), remains=taken)
    assert [(each.reason, each.field) for each in all_refusals(d)] == [
        (Reason.NAME_TOO_LONG, FieldRef("metadata.name")),
        (Reason.SECOND_ROLLOUT, FieldRef("spec.workloadRef.name")),
        (Reason.NAME_TAKEN, FieldRef("metadata.name", "LeaderWorkerSet", "llama-canary")),
    ]
    assert len(list(all_refusals(draft(mine, rivals=(rival.metadata,))))) == 2


@pytest.mark.parametrize(
    ("capacity", "replicas", "expected", "words"),
    [
        ("Surge", 4, Reason.INVALID_SPEC, "a LeaderWorkerSet has no surge groups: use capacity InPlace"),
        ("InPlace", 4, None, ""),
        ("InPlace", 1, Reason.TOO_FEW_GROUPS, "or use capacity ExtraWorkload"),
    ],
)
def test_a_kind_without_surge_groups_is_not_given_any(
    monkeypatch: pytest.MonkeyPatch, capacity: str, replicas: int, expected: Reason | None, words: str
) -> None:
    monkeypatch.setattr(LeaderWorkerSet, "surges", False)
    plan = rollout(canary={"capacity": capacity, "steps": [{"replicas": 1}]}, status=at_rest())
    refusal = refused_by_spec(draft(plan, stable=held(replicas)))
    assert reason(refusal) is expected
    assert refusal is None or words in refusal.message
