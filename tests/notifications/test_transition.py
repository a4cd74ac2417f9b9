"""What a notification says of a transition, and by what it is known again."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import jsonschema
import pytest

from rollout_lws.notifications.cloudevents import cloud_event
from rollout_lws.notifications.data import SCHEMA
from rollout_lws.notifications.schema import PATH
from rollout_lws.notifications.transition import Transition, notification
from rollout_lws.rollout.decision import ReleaseEvent
from rollout_lws.rollout.reasons import EventReason
from tests.notifications.samples import AT, STATUS, rollout, transition


def told(given: Transition) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(cloud_event(notification(given)))
    return decoded


def closed(schema: Any) -> Any:
    """The schema, with no members but those that it names."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(part) for name, part in schema.items()}
    return {**found, "additionalProperties": False} if "properties" in found else found


def test_all_of_it() -> None:
    event = told(transition())
    assert event.pop("id") == notification(transition()).id
    assert event == {
        "specversion": "1.0",
        "source": "/apis/rollouts.kruise.io/v1beta1/namespaces/prod/rollouts/llama",
        "type": "io.rollout-lws.GateFailed",
        "subject": "Rollout/llama",
        "time": "2026-11-29T12:00:00.250000Z",
        "datacontenttype": "application/json",
        "dataschema": SCHEMA,
        "data": {
            "reason": "GateFailed",
            "type": "Warning",
            "message": "gate latency: too slow",
            "about": {"kind": "Rollout", "name": "llama"},
            "rollout": {"namespace": "prod", "name": "llama", "uid": "uid-1"},
            "workload": {"kind": "LeaderWorkerSet", "name": "llama"},
            "time": "2026-11-29T12:00:00.250000Z",
            "phase": "Progressing",
            "state": "Stalled",
            "verdict": {
                "condition": "Stalled",
                "reason": "GateFailed",
                "message": "the release waits",
                "needsPerson": True,
            },
            "step": {"index": 2, "of": 3, "state": "StepMetricsAnalysis"},
            "weight": {"desired": 20, "applied": 5},
            "versions": {
                "stable": {"templateHash": "old-hash", "revision": "old-revision"},
                "new": {"templateHash": "new-hash", "revision": "new-revision", "release": "r-7"},
            },
            "groups": {"stable": {"ready": 4, "total": 4}, "new": {"ready": 0, "total": 1}},
            "gates": [
                {
                    "name": "latency",
                    "kind": "metric",
                    "result": "Failed",
                    "seconds": 61.5,
                    "message": "p95 of the time to first token 2.09s, at most 1s",
                    "value": "2.09s",
                    "stableValue": "700ms",
                    "limit": "1s",
                    "samples": 300,
                    "stableSamples": 1200,
                    "share": "42%",
                    "shareFrom": "32%",
                    "shareTo": "48%",
                    "shareLimit": "5%",
                }
            ],
            "next": [
                "kubectl rollout-lws abort llama -n prod",
                "kubectl rollout-lws retry llama -n prod",
                "kubectl rollout-lws skip llama latency -n prod",
                "kubectl rollout-lws skip llama errors -n prod",
            ],
        },
    }


def test_a_rollout_without_a_status_has_little_to_tell() -> None:
    data = told(transition(EventReason.ADOPTED, gates=(), rollout=rollout({}), verdict=None))["data"]
    assert {"phase", "state", "verdict", "step", "weight", "versions", "groups", "gates", "next"}.isdisjoint(
        {name for name, value in data.items() if value}
    )


@pytest.mark.parametrize(
    ("task", "reason", "applied", "share"),
    [
        ("Promote", "Success", 40, None),
        ("Promote", "Success", 100, 100),
        ("RollBackPromotion", "Aborted", 40, None),
        ("RollBackSteps", "Aborted", 40, 40),
        ("CleanUp", "Aborted", 0, 0),
        ("CleanUp", "Success", 0, None),
    ],
)
def test_a_weight_is_told_only_where_it_is_the_share_of_the_new_version(
    task: str, reason: str, applied: int, share: int | None
) -> None:
    weight = {"weight": applied}
    status = STATUS | {
        "finalising": {"task": task, "reason": reason},
        "traffic": {"desired": weight, "applied": weight},
    }
    found = told(transition(rollout=rollout(status)))["data"].get("weight") or {}
    assert found.get("applied") == share


def test_at_rest_there_is_no_new_version() -> None:
    status = {"phase": "Healthy", "observedTemplateHash": "hash", "stable": {"templateHash": "hash"}}
    assert told(transition(rollout=rollout(status)))["data"]["versions"] == {"stable": {"templateHash": "hash"}}


def test_the_workload_is_the_one_that_serves() -> None:
    data = told(transition(rollout=rollout({"active": "llama-b"})))["data"]
    assert data["workload"] == {"kind": "LeaderWorkerSet", "name": "llama-b"}


@pytest.mark.parametrize("reason", list(EventReason))
def test_each_reason_of_events_is_told_as_the_schema_says(reason: EventReason) -> None:
    schema = json.loads(PATH.read_text())
    for about in ("Rollout", "LeaderWorkerSet"):
        for given in (transition(reason, about=about), transition(reason, about=about, rollout=rollout({}), gates=())):
            event = told(given)
            jsonschema.validate(event["data"], closed(schema), cls=jsonschema.Draft202012Validator)
            assert event["type"] == f"io.rollout-lws.{reason.value}"
            assert event["dataschema"] == schema["$id"] == SCHEMA


def test_the_closed_schema_refuses_what_it_does_not_name() -> None:
    data = told(transition())["data"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data | {"extra": 1}, closed(json.loads(PATH.read_text())))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data | {"type": "Error"}, json.loads(PATH.read_text()))


def test_the_cluster_is_in_the_source_where_it_has_a_name() -> None:
    event = told(transition(cluster="prod-eu"))
    assert event["source"] == "/clusters/prod-eu/apis/rollouts.kruise.io/v1beta1/namespaces/prod/rollouts/llama"
    assert event["data"]["rollout"]["cluster"] == "prod-eu"


def test_the_id_is_the_same_whoever_tells_it_and_when() -> None:
    again = transition(at=AT + timedelta(hours=1), rollout=rollout({}), cluster="prod-eu", verdict=None)
    assert notification(again).id == notification(transition()).id


def test_the_id_is_another_for_anything_that_makes_it_another_transition() -> None:
    given = transition()
    event = given.event
    uid = given.rollout.metadata.model_copy(update={"uid": "uid-2"})
    others = [
        given,
        replace(given, resource_version="12"),
        replace(given, about="llama-canary"),
        replace(given, rollout=given.rollout.model_copy(update={"metadata": uid})),
        replace(given, event=ReleaseEvent(event.reason, "another note", event.type, event.about)),
        replace(given, event=ReleaseEvent("Stalled", event.note, event.type, event.about)),
        replace(given, event=ReleaseEvent(event.reason, event.note, event.type, "LeaderWorkerSet")),
    ]
    assert len({notification(each).id for each in others}) == len(others)
