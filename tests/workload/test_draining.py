"""The record on the pods of a group that is about to go: what it says, and that the labels come back as they were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from rollout_lws.api.resources import keys
from rollout_lws.objects.workloads import Pod
from rollout_lws.workload.draining import Draining, draining, lost_labels, put_back, taken_out
from tests.workload.build import KEYS, NOW, pod

LABELS = {"app": "helper", "role": "leader"}
RECORD = Draining({"app": "helper"}, NOW)


def patched(before: Pod, body: dict[str, Any]) -> Pod:
    """The pod after a merge patch of its labels and annotations."""
    meta = before.metadata
    merged = {
        field: {key: value for key, value in {**getattr(meta, field), **changed}.items() if value is not None}
        for field, changed in body["metadata"].items()
    }
    return structs.replace(before, metadata=structs.replace(meta, **merged))


def noted(text: str) -> Pod:
    return patched(pod(0), {"metadata": {"annotations": {KEYS.draining: text}}})


def test_a_pod_without_a_record_does_not_drain() -> None:
    assert draining(pod(0), KEYS) is None


@pytest.mark.parametrize("worker", [0, 1])
def test_labels_that_were_taken_come_back_as_they_were(worker: int) -> None:
    before = pod(0, worker, labels=LABELS)
    without = patched(before, taken_out(RECORD, KEYS))
    assert without.metadata.labels.keys() == before.metadata.labels.keys() - {"app"}
    assert draining(without, KEYS) == RECORD
    assert patched(without, put_back(RECORD.labels, KEYS)) == before


@given(
    st.dictionaries(st.text(min_size=1, max_size=63), st.text(max_size=63), max_size=4),
    st.integers(0, 10**9).map(lambda tenths: NOW + timedelta(milliseconds=100 * tenths)),
)
def test_every_record_is_read_as_it_was_written(labels: dict[str, str], since: datetime) -> None:
    record = Draining(labels, since)
    assert draining(patched(pod(0, labels=labels), taken_out(record, KEYS)), KEYS) == record


def test_nothing_but_labels_and_the_record_is_written() -> None:
    # Both are merge patches, so what other clients have on the pod stays.
    assert taken_out(RECORD, KEYS) == {
        "metadata": {
            "labels": {"app": None},
            "annotations": {KEYS.draining: '{"labels":{"app":"helper"},"since":"2026-03-01T12:00:00Z"}'},
        }
    }
    assert put_back(RECORD.labels, KEYS) == {
        "metadata": {"labels": {"app": "helper"}, "annotations": {KEYS.draining: None}},
    }


def test_a_record_under_another_group_is_that_of_another_controller() -> None:
    other = keys("releases.example.org")
    without = patched(pod(0, labels=LABELS), taken_out(RECORD, other))
    assert draining(without, KEYS) is None
    assert draining(without, other) == RECORD


def test_another_time_zone_is_the_same_moment() -> None:
    text = '{"labels":{"app":"helper"},"since":"2026-03-01T13:30:00+01:30"}'
    found = draining(noted(text), KEYS)
    assert found == RECORD
    assert found is not None and found.since.astimezone(UTC) == NOW
    assert found.since == NOW.astimezone(timezone(timedelta(hours=1, minutes=30)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "7",
        '"text"',
        "{}",
        '{"labels":{"app":"helper"}}',
        '{"since":"2026-03-01T12:00:00Z"}',
        '{"labels":["app"],"since":"2026-03-01T12:00:00Z"}',
        '{"labels":{"app":1},"since":"2026-03-01T12:00:00Z"}',
        '{"labels":{"app":null},"since":"2026-03-01T12:00:00Z"}',
        '{"labels":{"app":"helper"},"since":1772366400}',
        '{"labels":{"app":"helper"},"since":"noon"}',
        # Without a zone it says no moment.
        '{"labels":{"app":"helper"},"since":"2026-03-01T12:00:00"}',
        '{"labels":{"app":"helper"},"since":"2026-03-01T12:00:00Z"} and more',
        "[" * 100_000,
        '{"x":' + "[" * 100_000,
        "\\u0000\x1b[2J",
    ],
    ids=lambda text: text[:60],
)
def test_a_record_that_cannot_be_read_is_none(text: str) -> None:
    assert draining(noted(text), KEYS) is None


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        ({"app": "helper", "example.org/role": "leader-1", "empty": ""}, True),
        ({"a b": "x"}, False),
        ({"app": "%%"}, False),
        ({"": "x"}, False),
        ({"a/b/c": "x"}, False),
        ({"a" * 64: "x"}, False),
        ({"app": "x" * 64}, False),
        ({"leaderworkerset.sigs.k8s.io/name": "other"}, False),
    ],
    ids=str,
)
def test_only_labels_that_may_have_been_removed_count(labels: dict[str, str], kept: bool) -> None:
    reserved = ("leaderworkerset.sigs.k8s.io/",)
    assert lost_labels(Draining(labels, NOW), reserved) == (labels if kept else {})
