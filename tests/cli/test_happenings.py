"""Which Events belong to a release, and how they read: pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rollout_lws.cli.events.event_log import Happening, document, happening, lines, merged, row
from rollout_lws.cli.events.scope import scope_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROUTINGS = {
    "service": "api",
    "gateway": {"httpRouteName": "chat", "inferencePool": {"stable": "pool", "canary": "pool-new"}},
    "ingress": {"name": "web"},
}


def rollout(**canary: Any) -> dict[str, Any]:
    spec = {"workloadRef": {"name": "llama"}, "strategy": {"canary": canary}}
    return {"metadata": {"name": "chat", "namespace": "default"}, "spec": spec}


def event(**more: Any) -> dict[str, Any]:
    meta = {"name": "llama.1", "uid": "1", "creationTimestamp": "2026-01-01T12:00:00Z"}
    about = {"kind": "Pod", "name": "llama-0"}
    return {"metadata": meta, "involvedObject": about, "reason": "Started", "message": "ok", "type": "Normal"} | more


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("Rollout", "chat"), ("BatchRelease", "chat"), ("LeaderWorkerSet", "llama")),
        *(("LeaderWorkerSet", "llama-canary"), ("StatefulSet", "llama"), ("StatefulSet", "llama-3")),
        *(("Pod", "llama-0"), ("Pod", "llama-9-1"), ("Pod", "llama-canary-0-1"), ("Service", "llama")),
        *(("Service", "api"), ("Service", "api-canary"), ("HTTPRoute", "chat"), ("InferencePool", "pool-new")),
        *(("Ingress", "web"), ("Ingress", "web-canary")),
    ],
)
def test_what_belongs_to_a_release(kind: str, name: str) -> None:
    assert scope_of(rollout(trafficRoutings=[ROUTINGS])).has(kind, name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("Rollout", "llama"), ("Pod", "llama"), ("Pod", "llama-api-0"), ("Pod", "xllama-0"), ("Service", "web")),
        *(("StatefulSet", "llama-0-1"), ("Pod", "llama-0-1-2"), ("Node", "llama"), ("Deployment", "llama")),
    ],
)
def test_what_does_not(kind: str, name: str) -> None:
    assert not scope_of(rollout(trafficRoutings=[ROUTINGS])).has(kind, name)


COUNTED = {
    "core": {"count": 3, "firstTimestamp": "2026-01-01T11:55:00Z", "lastTimestamp": "2026-01-01T12:05:00Z"},
    "events.k8s.io": {
        "eventTime": "2026-01-01T11:55:00.000000Z",
        "firstTimestamp": None,
        "lastTimestamp": None,
        "series": {"count": 3, "lastObservedTime": "2026-01-01T12:05:00.000000Z"},
    },
}


@pytest.mark.parametrize("api", COUNTED)
def test_both_ways_to_count_read_the_same(api: str) -> None:
    told = happening(event(**COUNTED[api]))
    assert (told.first, told.last, told.count) == (NOON - timedelta(minutes=5), NOON + timedelta(minutes=5), 3)
    assert row(told, NOON + timedelta(minutes=6)) == ("1m", "Normal", "Started", "Pod/llama-0", "ok (x3 over 10m)")


def test_an_event_without_any_time_but_that_of_its_making_is_told_at_that() -> None:
    assert happening(event()).last == NOON


def told(minute: int, message: str = "ok", **more: Any) -> Happening:
    moment = NOON + timedelta(minutes=minute)
    return Happening(moment, moment, "Normal", "Started", "Pod/llama-0", message, **more)


def test_the_same_in_several_events_is_told_once_and_all_in_the_order_of_time() -> None:
    found = merged([told(5), told(2, "other"), told(1, count=2)])
    assert [(each.message, each.count, each.first, each.last) for each in found] == [
        ("other", 1, NOON + timedelta(minutes=2), NOON + timedelta(minutes=2)),
        ("ok", 3, NOON + timedelta(minutes=1), NOON + timedelta(minutes=5)),
    ]


def test_what_a_container_says_steers_no_terminal() -> None:
    assert happening(event(message="a\n\x1b[31mred\x07\tb  c")).message == "a [31mred b c"


def test_the_form_for_machines() -> None:
    assert document(told(0, by="kubelet", count=2)) == {
        "time": "2026-01-01T12:00:00.000Z",
        "firstTime": "2026-01-01T12:00:00.000Z",
        "type": "Normal",
        "reason": "Started",
        "object": "Pod/llama-0",
        "message": "ok",
        "count": 2,
        "from": "kubelet",
    }


WARNING = replace(told(1, "back-off"), type="Warning")


def test_lines_have_ages_under_a_header_or_times_that_can_follow_others() -> None:
    assert lines([told(0), WARNING], NOON + timedelta(hours=1), following=False, coloured=False) == [
        "AGE   TYPE      REASON    OBJECT        MESSAGE",
        "1h    Normal    Started   Pod/llama-0   ok",
        "59m   Warning   Started   Pod/llama-0   back-off",
    ]
    [line] = lines([told(0)], None, following=True, coloured=False)
    assert line.split() == ["2026-01-01T12:00:00.000Z", "Normal", "Started", "Pod/llama-0", "ok"]
    assert line.index("ok") == 24 + 3 + 7 + 3 + 18 + 3 + 28 + 3


def test_warnings_alone_are_coloured() -> None:
    normal, warning = lines([told(0), WARNING], None, following=True, coloured=True)
    assert "\x1b" not in normal
    assert warning.startswith("\x1b[33m")
    assert warning.endswith("back-off\x1b[0m")
