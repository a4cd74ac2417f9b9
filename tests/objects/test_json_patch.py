"""A merge patch as operations: it demands the object that was seen, and changes what the merge patch would."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.json_patch import is_stale, operations
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.objects.writes import Patch
from rollout_lws.sandbox.patching.patches import json_patch, merge_patch

_META = {"uid": "u1", "generation": 3, "resourceVersion": "7", "annotations": {"a/b": "1", "c~d": "2"}}
_SEEN: dict[str, Any] = {"metadata": _META, "spec": {"replicas": 2, "nested": {"partition": 0, "kept": True}}}


def patch(body: dict[str, Any]) -> Patch:
    return Patch(LEADER_WORKER_SETS, "prod", "llama", body, "why", uid="u1", generation=3)


@pytest.mark.parametrize(
    "body",
    [
        {"spec": {"replicas": 5}},
        {"spec": {"nested": {"partition": 4, "new": [1, 2]}}},
        {"metadata": {"annotations": {"a/b": None, "e/f~g": "3"}}, "spec": {"nested": {"partition": 1000000}}},
        {"metadata": {"annotations": {"c~d": "other"}}},
    ],
)
def test_the_operations_change_what_the_merge_patch_changes(body: dict[str, Any]) -> None:
    assert json_patch(_SEEN, operations(patch(body))) == merge_patch(_SEEN, body)


@pytest.mark.parametrize("moved", [{"uid": "u2"}, {"generation": 4}])
def test_another_object_or_another_spec_refuses_them_whole(moved: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        json_patch({**_SEEN, "metadata": {**_META, **moved}}, operations(patch({"spec": {"replicas": 5}})))
    assert caught.value.code == 422


def test_a_status_that_was_written_meanwhile_does_not_matter() -> None:
    live = {**_SEEN, "metadata": {**_META, "resourceVersion": "8"}, "status": {"readyReplicas": 2}}
    assert json_patch(live, operations(patch({"spec": {"replicas": 5}})))["spec"]["replicas"] == 5


@pytest.mark.parametrize(
    ("there", "stale"),
    [
        (_SEEN, False),
        ({**_SEEN, "metadata": {**_META, "resourceVersion": "8"}}, False),
        ({**_SEEN, "metadata": {**_META, "uid": "u2"}}, True),
        ({**_SEEN, "metadata": {**_META, "generation": 4}}, True),
        ({**_SEEN, "metadata": {**_META, "annotations": {}}}, True),
        ({**_SEEN, "metadata": {"uid": "u1", "generation": 3}}, True),
        ({"metadata": _META, "spec": {}}, True),
    ],
    ids=[
        "as seen",
        "status written",
        "another object",
        "another spec",
        "what is removed is gone",
        "no annotations",
        "no strategy",
    ],
)
def test_it_is_stale_where_something_is_gone_that_it_was_made_for(there: dict[str, Any], stale: bool) -> None:
    wanted = patch({"metadata": {"annotations": {"a/b": None}}, "spec": {"nested": {"partition": 1}}})
    assert is_stale(wanted, there) is stale
