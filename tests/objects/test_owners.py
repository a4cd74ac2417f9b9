"""Who has stated a member besides us, as the API server's records tell."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.owners import is_claimed, records

MARK = "example.org/original"
#: fieldsV1 of somebody who owns spec.low.
LOW = {"f:spec": {"f:low": {}}}
EXPORTED = LOW | {"f:metadata": {"f:annotations": {f"f:{MARK}": {}}}}


def entry(manager: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": "Apply", "fieldsV1": fields, **more}


@pytest.mark.parametrize(
    ("entries", "claimed"),
    [
        ([], False),
        ([entry("rollout-lws", LOW)], False),
        ([entry("rollout-lws", LOW), entry("argocd", LOW)], True),
        ([entry("kubectl-edit", LOW)], True),
        ([entry("argocd", {"f:spec": {}})], True),
        ([entry("argocd", {"f:spec": {"f:high": {}}})], False),
        ([entry("argocd", {"f:spec": {"f:low": {"f:inner": {}}}})], False),
        ([entry("argocd", EXPORTED)], False),
        ([entry("argocd", EXPORTED), entry("kubectl", LOW)], True),
        ([entry("before-first-apply", LOW)], False),
        ([entry("ancient-changes", LOW)], False),
        ([{"fieldsV1": LOW}], False),
        ([{"manager": "argocd"}], False),
    ],
)
def test_a_member_is_claimed_by_whoever_has_stated_it_since(entries: list[dict[str, Any]], claimed: bool) -> None:
    live = {"metadata": {"managedFields": entries}}
    assert is_claimed(records(live), ("spec", "low"), MARK) is claimed


def test_without_records_nothing_is_claimed() -> None:
    assert not is_claimed(records({"metadata": {}}), ("spec", "low"), MARK)
