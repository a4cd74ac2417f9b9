"""Rules on autoscalers that no story can reach by itself: which style pins, what is on record, what a watch is for."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import HORIZONTAL_POD_AUTOSCALERS, LEADER_WORKER_SETS
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.autoscaling import autoscalers
from rollout_lws.rollout.draft import Draft, Persist
from rollout_lws.rollout.observation import Autoscalers
from tests.rollout.build import at_rest, draft, held, in_step, rollout
from tests.workload.build import BEFORE, NAME, NAMESPACE

ON_RECORD = {"autoscalers": {"since": BEFORE}}


def autoscaler(**metadata: Any) -> dict[str, Any]:
    target = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": NAME}
    return {
        "metadata": {"name": "hpa", "namespace": NAMESPACE, "resourceVersion": "7", **metadata},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9},
    }


def followed(status: dict[str, Any], *objects: Any, synced: bool = True, replicas: int = 4, **strategy: Any) -> Draft:
    d = draft(
        rollout(status=status, **strategy),
        stable=held(replicas),
        autoscalers=Autoscalers(objects or (autoscaler(),), synced=synced),
    )
    return autoscalers.follow(d)


def bounds(d: Draft) -> list[dict[str, Any]]:
    return [dict(write.body["spec"]) for write in d.writes if isinstance(write, Patch)]


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        ({}, {"minReplicas": 4}),
        ({"capacity": "ExtraWorkload"}, {"minReplicas": 4}),
        ({"capacity": "InPlace"}, {"minReplicas": 4, "maxReplicas": 4}),
        ({"capacity": "Surge"}, {"minReplicas": 4, "maxReplicas": 4}),
    ],
)
def test_where_both_versions_share_one_lws_its_size_is_pinned(
    capacity: dict[str, str], expected: dict[str, int]
) -> None:
    assert bounds(followed(in_step(**ON_RECORD, **capacity))) == [expected]


def test_that_something_may_be_held_is_on_record_before_it_is() -> None:
    first = followed(in_step())
    assert (first.writes, first.status.autoscalers is not None) == ((), True)
    second = followed(in_step(**ON_RECORD))
    assert len(second.writes) == 1
    assert second.status.autoscalers is not None
    assert second.status.autoscalers.held == ("hpa",)


def test_without_an_autoscaler_nothing_is_put_on_record() -> None:
    d = draft(rollout(status=in_step()), autoscalers=Autoscalers())
    d = autoscalers.follow(d)
    assert d.status.autoscalers is None


def test_what_is_not_known_yet_is_neither_held_nor_counted_as_given_back() -> None:
    assert followed(in_step(**ON_RECORD), synced=False).writes == ()
    unknown = followed(at_rest(**ON_RECORD), synced=False)
    assert unknown.status.autoscalers is not None
    assert autoscalers.watched(unknown) == (HORIZONTAL_POD_AUTOSCALERS,)
    known = followed(at_rest(**ON_RECORD))
    assert known.status.autoscalers is None
    assert autoscalers.watched(known) == ()


def test_a_status_that_is_written_first_does_not_say_given_back_before_it_is() -> None:
    d = draft(rollout(status=at_rest(**ON_RECORD)), autoscalers=Autoscalers((autoscaler(),)))
    d = d.but(persist=Persist.BEFORE_WRITES)
    d, nothing_left = autoscalers.restore(d)
    assert nothing_left
    assert d.status.autoscalers is not None
