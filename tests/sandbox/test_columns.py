"""Cells of `kubectl get`: ages, JSON paths, states of pods."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import CONTROLLER_REVISIONS, PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.printing.jsonpath import find
from rollout_lws.sandbox.printing.printers import age, cells_of
from tests.sandbox.conftest import Clock, pod

BORN = 1_767_225_600


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (185, "3m5s"),
        (3600, "60m"),
        (4 * 3600 + 60, "4h1m"),
        (30 * 3600, "30h"),
        (3 * 86400 + 7200, "3d2h"),
        (800 * 86400, "2y"),
    ],
)
def test_ages_are_told_as_kubectl_tells_them(seconds: int, shown: str) -> None:
    assert age("2026-01-01T00:00:00Z", BORN + seconds) == shown


def test_an_age_that_is_no_time_is_marked() -> None:
    assert (age("", 0), age("soon", 0)) == ("<unknown>", "<invalid>")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.n", [1]),
        (".spec.missing", []),
        (".spec.list[0].name", ["a"]),
        (".spec.list[*].name", ["a", "b"]),
        ('.spec.list[?(@.name=="b")].value', [2]),
        (".spec.labels.a\\.b/c", ["x"]),
        (".spec.labels['a.b/c']", ["x"]),
        ("{.spec.n}", [1]),
        (".spec..n(", []),
    ],
)
def test_json_paths_of_printer_columns(path: str, found: list[Any]) -> None:
    items = [{"name": "a", "value": 1}, {"name": "b", "value": 2}]
    assert find({"spec": {"n": 1, "list": items, "labels": {"a.b/c": "x"}}}, path) == found


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Running"}, "Running"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}, "CrashLoopBackOff"),
    ],
)
def test_a_pod_shows_what_is_wrong_with_it(server: ApiServer, clock: Clock, status: dict[str, Any], shown: str) -> None:
    server.create(PODS, pod())
    made = server.patch(PODS, "default", "web-0", {"status": status}, subresource="status")
    assert cells_of(server.lookup(PODS), made, clock())[2] == shown


def test_a_revision_shows_its_owner(server: ApiServer, clock: Clock) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1", "controller": True}
    body = {"metadata": {"name": "r", "namespace": "default", "ownerReferences": [owner]}, "revision": 4}
    made = server.create(CONTROLLER_REVISIONS, body)
    assert cells_of(server.lookup(CONTROLLER_REVISIONS), made, clock())[1:3] == ["statefulset.apps/db", 4]
