"""Words on a number of groups that does not stay: they name whoever wrote the other one, or show how to find out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rollout_lws.objects.meta import ManagedField
from rollout_lws.rollout.autoscaling import replicas
from rollout_lws.rollout.draft import Draft
from rollout_lws.workload.hold import HOLD
from tests.rollout.build import at_rest, draft, held, rollout
from tests.workload.build import NOW, facts, leader_set, pod


def entry(manager: str, seconds: int, **spec: Any) -> ManagedField:
    fields = msgspec.Raw(msgspec.json.encode({"f:spec": spec}))
    return ManagedField(manager, "Update", NOW - timedelta(seconds=seconds), fields)


def contested(*entries: ManagedField, tries: int = 5, seen: bool = True) -> Draft:
    stable = held(3, managed_fields=entries)
    scaling = {"workloadUID": stable.workload.metadata.uid, "replicas": 4, "seen": seen, "tries": tries, "triedAt": NOW}
    d = draft(rollout(status=at_rest(scaling=scaling)), stable=stable)
    spec = d.o.rollout.spec.model_copy(update={"replicas": 4})
    return draft(d.o.rollout.model_copy(update={"spec": spec}), stable=stable)


REPLICAS: dict[str, Any] = {"f:replicas": {}}


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ((), "--dry-run=server"),
        ((entry("helm", 1, **REPLICAS), entry("rollout-lws", 9, **REPLICAS)), "helm writes over it"),
        ((entry("helm", 9, **REPLICAS), entry("rollout-lws", 1, **REPLICAS)), "--dry-run=server"),
        ((entry("helm", 1, **{"f:leaderWorkerTemplate": {}}),), "--dry-run=server"),
    ],
    ids=["unknown", "another client", "refused since", "another field"],
)
def test_who_has_written_the_other_number_is_named(entries: tuple[ManagedField, ...], words: str) -> None:
    told = replicas.told(contested(*entries))
    assert told.contested
    assert told.text.startswith("LeaderWorkerSet llama has 3 replicas, and 4 does not stay: ")
    assert words in told.text


def test_nothing_is_told_of_the_first_tries() -> None:
    assert replicas.told(contested(tries=replicas.SAID_FROM - 1)) == replicas.Told("")


def test_whoever_has_made_the_workload_has_not_written_over_a_number_that_was_never_there() -> None:
    told = replicas.told(contested(entry("kubectl-client-side-apply", 99, **REPLICAS), seen=False))
    assert "--dry-run=server" in told.text


@pytest.mark.parametrize(
    ("leaders", "waits"),
    [
        ((pod(0), pod(1), pod(2)), False),
        ((pod(0, since=None), pod(1), pod(2)), False),
        ((pod(0, since=None), pod(1, since=None), pod(2)), True),
        ((pod(0, terminating=True), pod(1, since=None), pod(2)), True),
        ((pod(0, since=None), pod(1, since=None), pod(2, since=None)), False),
    ],
    ids=["all ready", "one that stays", "none that stays", "the one that stays goes", "none at all"],
)
def test_the_groups_that_serve_do_not_all_go(leaders: tuple[Any, ...], waits: bool) -> None:
    stable = facts(held(3).workload, *leaders, leader_set=leader_set(partition=HOLD))
    d = draft(rollout(status=at_rest()), stable=stable)
    spec = d.o.rollout.spec.model_copy(update={"replicas": 2})
    d = draft(d.o.rollout.model_copy(update={"spec": spec}), stable=stable)
    assert (replicas.scale(d) is None, "would go" in replicas.told(d).text) == (waits, waits)
