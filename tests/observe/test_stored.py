"""What the caches keep of our own kinds, and what they must not: thousands of objects lie there for months."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from rollout_lws.observe.cache_types import stored_object, stored_rollout

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def body(**metadata: Any) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": "rollouts.kruise.io/v1beta1",
            "kind": "Rollout",
            "metadata": {"name": "llama", "namespace": "team", "resourceVersion": "7", **metadata},
            "spec": {"workloadRef": {"name": "llama"}, "strategy": {"canary": {"steps": [{"replicas": "50%"}]}}},
            "status": {"message": "größer\n"},
        }
    )


def test_a_rollout_is_kept_without_what_is_noted_about_its_writers() -> None:
    kept = stored_rollout(
        body(
            managedFields=[{"manager": "m" * 1000}],
            annotations={LAST_APPLIED: "{}" * 500, "team": "inference"},
            finalizers=["rollouts.kruise.io/rollout"],
        )
    )
    expected = body(annotations={"team": "inference"}, finalizers=["rollouts.kruise.io/rollout"])
    assert msgspec.json.decode(kept.body) == msgspec.json.decode(expected)
    assert sys.getsizeof(kept.body) < 600
    assert kept.metadata.finalizers == ("rollouts.kruise.io/rollout",)
    assert (kept.metadata.namespace, kept.metadata.name, kept.workload) == ("team", "llama", "llama")


def test_a_rollout_without_such_notes_is_kept_as_it_is() -> None:
    assert msgspec.json.decode(stored_rollout(body()).body) == msgspec.json.decode(body())


def test_services_concern_a_rollout_that_names_one_and_every_release() -> None:
    """Without trafficRoutings it is up to Services who reaches the new version, and that is told."""
    whole = msgspec.json.decode(body())
    assert not stored_rollout(body()).routes
    for phase, concerned in (("Healthy", False), ("Progressing", True)):
        assert stored_rollout(msgspec.json.encode({**whole, "status": {"phase": phase}})).routes is concerned
    whole["spec"]["strategy"]["canary"]["trafficRoutings"] = [{"service": "llama-api"}]
    assert stored_rollout(msgspec.json.encode(whole)).routes


def test_of_a_foreign_object_that_is_written_to_its_writers_are_kept() -> None:
    whole = body(managedFields=[{"manager": "argocd"}])
    assert stored_object(whole).body == whole
