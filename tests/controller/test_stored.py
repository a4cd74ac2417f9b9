"""What the caches keep, and what they must not: thousands of objects lie there for months."""

from __future__ import annotations

import msgspec

from rollout_lws.controller.stored import stored_revision
from rollout_lws.workload.revisions import recorded_version


def revision(owner: str) -> bytes:
    template = {"workerTemplate": {"spec": {"containers": [{"name": "vllm", "image": "vllm:v1"}]}}}
    reference = {"apiVersion": "v1", "kind": owner, "name": "llama", "uid": "1", "controller": True}
    metadata = {"name": "llama-1", "ownerReferences": [reference], "managedFields": [{"manager": "m" * 1000}]}
    return msgspec.json.encode(
        {"metadata": metadata, "revision": 3, "data": {"spec": {"leaderWorkerTemplate": template}}}
    )


def test_the_version_inside_an_lws_revision_is_kept_without_the_rest_of_its_json() -> None:
    body = revision("LeaderWorkerSet")
    kept = stored_revision(body)
    version = recorded_version(kept)
    assert version is not None
    assert b"vllm:v1" in bytes(kept.data)
    assert kept.data.copy() is kept.data, "the data must own its bytes, not point into the object's JSON"
    assert kept.revision == 3


def test_of_a_stateful_sets_revision_no_data_is_kept() -> None:
    kept = stored_revision(revision("StatefulSet"))
    assert bytes(kept.data) == b""
    assert recorded_version(kept) is None
    assert (kept.metadata.name, kept.revision) == ("llama-1", 3)
