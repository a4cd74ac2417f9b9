"""Names and marks under one group: on a cluster with OpenKruise Rollouts nothing of ours may look like its own."""

from __future__ import annotations

import re

import pytest

from rollout_lws.api import Keys, batch_releases, keys, rollouts
from rollout_lws.api.resources import Key

MARKS = [name for name, member in vars(Keys).items() if isinstance(member, Key)]
#: A label or annotation key: an optional DNS prefix and a name of at most 63.
_KEY = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def test_the_kinds_are_called_as_openkruise_calls_them() -> None:
    assert (str(rollouts()), rollouts().api_version) == ("rollouts.rollouts.kruise.io", "rollouts.kruise.io/v1beta1")
    assert str(batch_releases()) == "batchreleases.rollouts.kruise.io"
    assert str(rollouts("example.org")) == "rollouts.example.org"


def test_the_marks_of_the_default_group_are_those_of_openkruise() -> None:
    marks = {name: getattr(keys(), name) for name in MARKS}
    assert marks == {
        "original": "rollouts.kruise.io/original",
        "aborted": "rollouts.kruise.io/aborted",
        "held": "rollouts.kruise.io/held",
        "release_hold": "rollouts.kruise.io/release-hold",
        "canary_leader_worker_set": "rollouts.kruise.io/canary-leaderworkerset",
        "side": "rollouts.kruise.io/side",
        "made": "rollouts.kruise.io/made-statefulset",
        "stands_for": "rollouts.kruise.io/stands-for",
        "leave_as_is": "rollouts.kruise.io/leave-as-is",
        "replicas": "rollouts.kruise.io/replicas",
        "draining": "rollouts.kruise.io/draining",
        "rollout_id": "rollouts.kruise.io/rollout-id",
        "rollout_batch_id": "rollouts.kruise.io/rollout-batch-id",
        "history": "rollouts.kruise.io/history",
        "rollback_reason": "rollouts.kruise.io/rollback-reason",
        "template_hash": "rollouts.kruise.io/template-hash",
        "revision": "rollouts.kruise.io/revision",
        "gate_of": "rollouts.kruise.io/gate-of",
        "gate": "rollouts.kruise.io/gate",
        "rollout_finalizer": "rollouts.kruise.io/rollout",
        "batch_release_finalizer": "rollouts.kruise.io/batch-release-finalizer",
        "canary_finalizer": "finalizer.rollouts.kruise.io/batch-release",
    }


@pytest.mark.parametrize("mark", MARKS)
def test_every_mark_carries_the_group_and_is_a_valid_key(mark: str) -> None:
    key = getattr(keys("releases.example.org"), mark)
    assert key.partition("/")[0].endswith("releases.example.org")
    assert _KEY.fullmatch(key)


@pytest.mark.parametrize(
    ("key", "ours"),
    [
        ("rollouts.kruise.io/anything", True),
        ("rollouts.kruise.io", False),
        ("x.rollouts.kruise.io/anything", False),
        ("rollouts.kruise.iox/anything", False),
        ("app", False),
    ],
)
def test_a_key_is_ours_by_its_prefix(key: str, ours: bool) -> None:
    assert keys().owns(key) is ours
