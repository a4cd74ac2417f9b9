"""The canary LWS: a name that fits and is nobody else's, and a body that is the pending version without its marks."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.api.resources import keys
from rollout_lws.objects.meta import OwnerReference
from rollout_lws.targets.table import stored_version
from rollout_lws.workload.canary import NAME_BUDGET, canary_body, canary_name
from tests.workload.build import KEYS, NAMESPACE, UID, WORKER, lws

OWNER = {"apiVersion": "a/v1", "kind": "BatchRelease", "name": "llama", "uid": UID, "controller": True}
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def name_of(stable: str) -> str:
    return canary_name(lws(name=stable))


@pytest.mark.parametrize(("stable", "name"), [("llama", "llama-canary"), ("a" * 41, "a" * 41 + "-canary")])
def test_a_short_name_gets_a_suffix(stable: str, name: str) -> None:
    assert name_of(stable) == name


@given(st.from_regex(_DNS_1035, fullmatch=True).filter(lambda name: len(name) <= 63))
def test_every_name_fits_the_budget_and_is_one_that_lws_accepts(stable: str) -> None:
    name = name_of(stable)
    assert len(name) <= NAME_BUDGET
    assert _DNS_1035.fullmatch(name)
    assert name == name_of(stable)
    # <stable>-<digits> are the names of its groups.
    assert not re.fullmatch(re.escape(stable) + r"-\d+", name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a" * 42, "a" * 43),
        ("a" * 50 + "b", "a" * 50 + "c"),
        ("a" * 34 + "-b" + "c" * 8, "a" * 34 + "b" + "c" * 8),
        ("a" * 33 + "-" + "b" * 10, "a" * 33 + "--" + "b" * 9),
    ],
)
def test_long_names_that_begin_alike_get_different_canaries(one: str, other: str) -> None:
    assert name_of(one) != name_of(other)


def test_worker_pods_of_the_canary_can_carry_their_stateful_sets_revision() -> None:
    # The label value controller-revision-hash is <set name>-<hash of ten>, the set is called <lws>-<ordinal>.
    longest = name_of("a" * 63)
    assert len(f"{longest}-999-0123456789") <= 63


def body(stable: Any = None, **arguments: Any) -> dict[str, Any]:
    return canary_body(stable or lws(), KEYS, owner=OWNER, replicas=arguments.pop("replicas", 1), **arguments)


def test_the_body_is_a_new_lws_that_belongs_to_its_batch_release() -> None:
    made = body(replicas=3)
    assert (made["apiVersion"], made["kind"]) == ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
    meta = made["metadata"]
    assert (meta["name"], meta["namespace"]) == ("llama-canary", NAMESPACE)
    assert meta["ownerReferences"] == [OWNER]
    assert meta["finalizers"] == ["finalizer.rollouts.kruise.io/batch-release"]
    assert meta["labels"] == {"rollouts.kruise.io/canary-leaderworkerset": "llama"}
    assert made["spec"]["replicas"] == 3
    assert "status" not in made


def test_nothing_else_of_the_stable_objects_metadata_comes_along() -> None:
    stable = lws(
        finalizers=("example.org/keep",),
        owner_references=(OwnerReference(kind="App", name="a", uid="u"),),
        partition=1_000_000,
        unavailable="50%",
        surge=0,
    )
    made = body(stable)
    assert set(made["metadata"]) == {"name", "namespace", "labels", "annotations", "ownerReferences", "finalizers"}
    assert made["metadata"]["finalizers"] == [KEYS.canary_finalizer]
    assert [owner["kind"] for owner in made["metadata"]["ownerReferences"]] == ["BatchRelease"]
    assert made["spec"]["rolloutStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0},
    }


_MARKS = {
    "app": True,
    "team.example.org/owner": True,
    "leaderworkerset.sigs.k8s.io/exclusive-topology": True,
    "kueue.x-k8s.io/queue-name": True,
    "kueue.x-k8s.io/priority-class": True,
    "kueue.x-k8s.io/queue-name-of-mine": False,
    "kueue.x-k8s.io/managed": False,
    "kueue.x-k8s.io/multikueue-origin": False,
    "kueue.x-k8s.io/multikueue-origin-uid": False,
    "kueue.x-k8s.io/admission-gated-by": False,
    "rollouts.kruise.io/original": False,
    "rollouts.kruise.io/aborted": False,
    "rollouts.kruise.io/held": False,
    "rollouts.kruise.io/release-hold": False,
    "rollouts.kruise.io/rollout-id": False,
    "rollouts.kruise.io/workload-type": False,
    "kubectl.kubernetes.io/last-applied-configuration": False,
    "kubectl.kubernetes.io/restartedAt": True,
    "argocd.argoproj.io/tracking-id": False,
    "argocd.argoproj.io/sync-wave": False,
    "app.kubernetes.io/instance": False,
    "app.kubernetes.io/managed-by": False,
    "app.kubernetes.io/name": True,
    "kustomize.toolkit.fluxcd.io/name": False,
    "helm.toolkit.fluxcd.io/namespace": False,
    "meta.helm.sh/release-name": False,
    "helm.sh/chart": False,
    "config.kubernetes.io/origin": False,
    "config.k8s.io/owning-inventory": False,
}


@pytest.mark.parametrize("kind", ["labels", "annotations"])
@pytest.mark.parametrize(("mark", "copied"), _MARKS.items())
def test_marks_by_which_tools_know_their_objects_stay_behind(kind: str, mark: str, copied: bool) -> None:
    found = body(lws(**{kind: {mark: "x"}}))["metadata"][kind]
    assert (found.get(mark) == "x") is copied


def test_marks_of_openkruise_stay_behind_under_another_group_too() -> None:
    # Its webhooks go by its label, whatever our group is.
    others = keys("rollouts.example.org")
    stable = lws(
        labels={"rollouts.kruise.io/workload-type": "x", "rollouts.example.org/rollout-id": "7", "app": "llama"}
    )
    made = canary_body(stable, others, owner=OWNER, replicas=1)["metadata"]
    assert made["labels"] == {"rollouts.example.org/canary-leaderworkerset": "llama", "app": "llama"}
    assert made["finalizers"] == ["finalizer.rollouts.example.org/batch-release"]


LEADER = {"metadata": {"labels": {"role": "leader"}}, "spec": {"containers": [{"name": "server", "image": "model:2"}]}}


@pytest.mark.parametrize("network", [None, {"subdomainPolicy": "UniquePerReplica"}])
@pytest.mark.parametrize(
    "template", [{"size": 2, "workerTemplate": WORKER, "leaderTemplate": LEADER}, {"workerTemplate": WORKER}]
)
def test_template_and_network_are_the_pending_version_to_the_letter(template: Any, network: Any) -> None:
    spec = body(lws(template=template, network=network))["spec"]
    assert spec["leaderWorkerTemplate"] == template
    assert spec.get("networkConfig") == network
    assert stored_version(spec) == stored_version({"leaderWorkerTemplate": template, "networkConfig": network})


def test_the_start_up_policy_is_copied() -> None:
    assert body()["spec"]["startupPolicy"] == "LeaderCreated"


PATCH = {"labels": {"track": "canary", "role": "new"}, "annotations": {"note": "x"}}


def test_a_metadata_patch_goes_into_the_leader_template_alone() -> None:
    template = {"size": 2, "workerTemplate": WORKER, "leaderTemplate": LEADER}
    made = body(lws(template=template), metadata_patch=PATCH)["spec"]["leaderWorkerTemplate"]
    assert made["workerTemplate"] == WORKER
    assert made["leaderTemplate"] == {
        "metadata": {"labels": {"role": "new", "track": "canary"}, "annotations": {"note": "x"}},
        "spec": LEADER["spec"],
    }


def test_without_a_leader_template_the_patch_makes_one_of_the_worker_template() -> None:
    made = body(lws(template={"size": 2, "workerTemplate": WORKER}), metadata_patch=PATCH)["spec"][
        "leaderWorkerTemplate"
    ]
    assert made["workerTemplate"] == WORKER
    assert made["leaderTemplate"]["spec"] == WORKER["spec"]
    assert made["leaderTemplate"]["metadata"]["labels"] == PATCH["labels"]


@pytest.mark.parametrize("patch", [None, {}, {"labels": {}}, {"labels": {}, "annotations": {}}])
def test_an_empty_metadata_patch_leaves_the_version_as_it_is(patch: Any) -> None:
    made = body(metadata_patch=patch)["spec"]["leaderWorkerTemplate"]
    assert made == {"size": 2, "workerTemplate": WORKER}
