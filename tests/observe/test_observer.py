"""Cache → Observation: which of a namespace's objects belong to one Rollout's picture, and where in it they stand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from rollout_lws.api.resources import batch_releases, keys
from rollout_lws.api.resources import rollouts as rollouts_of
from rollout_lws.errors import Unreadable
from rollout_lws.objects.kueue import JOB_UID
from rollout_lws.objects.meta import Meta, OwnerReference
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    KUEUE_CHECKS,
    KUEUE_WORKLOADS,
    KUEUE_WORKLOADS_BEFORE,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_WORKER_INDEX,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.workloads import ControllerRevision, Pod, StatefulSet
from rollout_lws.observe.cache_types import StoredObject, StoredRollout, stored_object, stored_rollout
from rollout_lws.observe.explanations import DECODERS
from rollout_lws.observe.observer import observe
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.rollout.observation import Observation
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.workload.canary import canary_name
from rollout_lws.workload.facts import Listing, NamedObject

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEYS = keys()
ROLLOUTS = rollouts_of(KEYS.group)


def meta(name: str, lws: str = "", owner: str = "", labels: dict[str, str] | None = None) -> Meta:
    owners = (OwnerReference(uid=owner, controller=True),) if owner else ()
    marks = ({LWS_NAME: lws} if lws else {}) | (labels or {})
    return Meta(name=name, namespace="prod", uid=f"uid-{name}", labels=marks, owner_references=owners)


def rollout(name: str, workload: str = "llama", replicas: Any = 1) -> StoredRollout:
    body: dict[str, Any] = {
        "apiVersion": f"{KEYS.group}/v1beta1",
        "kind": "Rollout",
        "metadata": {"name": name, "namespace": "prod", "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {
            "workloadRef": {
                "apiVersion": "leaderworkerset.x-k8s.io/v1",
                "kind": "LeaderWorkerSet",
                "name": workload,
            },
            "strategy": {"canary": {"steps": [{"replicas": replicas}]}},
        },
    }
    return stored_rollout(json.dumps(body).encode())


def leader(name: str, lws: str = "llama") -> Pod:
    return Pod(metadata=meta(name, lws, labels={LWS_WORKER_INDEX: "0"}))


def namespace(
    *,
    rollouts: Iterable[StoredRollout] | None = None,
    workloads: Iterable[LeaderWorkerSet] | None = None,
    pods: Iterable[Pod] = (),
    sets: Iterable[StatefulSet] = (),
    revisions: Iterable[ControllerRevision] = (),
    services: Iterable[StoredObject] = (),
    batches: Iterable[StoredObject] = (),
    kinds: Mapping[Resource, Iterable[StoredObject]] | None = None,
    absent: frozenset[Resource] = frozenset(),
    refused: Mapping[Resource, str] | None = None,
) -> Snapshot:
    """What a test puts there; by default Rollout llama and the LWS that it names."""
    there: dict[Resource, Iterable[Any]] = {
        ROLLOUTS: [rollout("llama")] if rollouts is None else rollouts,
        LEADER_WORKER_SETS: [LeaderWorkerSet(metadata=meta("llama"))] if workloads is None else workloads,
        PODS: pods,
        STATEFUL_SETS: sets,
        CONTROLLER_REVISIONS: revisions,
        SERVICES: services,
        batch_releases(): batches,
        **(kinds or {}),
    }
    objects = {resource: [plain(each) for each in found] for resource, found in there.items()}
    return Snapshot(KEYS, objects, absent=absent, refused=refused or {})


def plain(each: Any) -> dict[str, Any]:
    stored = isinstance(each, StoredObject | StoredRollout)
    found: dict[str, Any] = json.loads(each.body if stored else msgspec.json.encode(each))
    return found


def seen(world: Snapshot, name: str = "llama") -> Observation:
    found = observe(world, name, NOW)
    assert found is not None
    return found


def service(name: str) -> StoredObject:
    return stored_object(msgspec.json.encode({"metadata": meta(name, name)}))


PLACE = canary_name(LeaderWorkerSet(metadata=meta("llama")))


def canary(name: str = PLACE) -> LeaderWorkerSet:
    return LeaderWorkerSet(metadata=meta(name, labels={KEYS.canary_leader_worker_set: "llama"}))


def names(objects: Iterable[Any]) -> list[str]:
    return [each.metadata.name for each in objects]


def test_a_rollout_that_does_not_exist_has_no_picture() -> None:
    assert observe(namespace(), "other", NOW) is None


def test_the_picture_carries_the_moment_it_was_taken_at() -> None:
    assert seen(namespace()).now == NOW


def test_sets_are_told_apart_by_who_controls_them() -> None:
    world = namespace(
        pods=[leader("llama-1"), leader("llama-0")],
        sets=[
            StatefulSet(metadata=meta("llama-1", "llama", owner="uid-llama-1")),
            StatefulSet(metadata=meta("llama", "llama", owner="uid-llama")),
            StatefulSet(metadata=meta("llama-9", "llama", owner="uid-of-a-pod-that-is-gone")),
        ],
    )
    facts = seen(world).stable
    assert facts is not None
    assert facts.leader_set is not None
    assert facts.leader_set.metadata.name == "llama"
    assert names(facts.worker_sets) == ["llama-1"]
    assert names(facts.leaders) == ["llama-0", "llama-1"]


def test_a_set_of_the_right_name_that_somebody_else_controls_is_no_leader_set() -> None:
    facts = seen(namespace(sets=[StatefulSet(metadata=meta("llama", "llama", owner="uid-other"))])).stable
    assert facts is not None
    assert facts.leader_set is None


def test_revisions_of_the_lws_and_of_its_leader_set_are_told_apart() -> None:
    world = namespace(
        sets=[StatefulSet(metadata=meta("llama", "llama", owner="uid-llama-lws"))],
        workloads=[LeaderWorkerSet(metadata=Meta(name="llama", namespace="prod", uid="uid-llama-lws"))],
        revisions=[
            ControllerRevision(metadata=meta("by-lws", "llama", owner="uid-llama-lws")),
            ControllerRevision(metadata=meta("by-set", "llama", owner="uid-llama")),
            ControllerRevision(metadata=meta("by-nobody", "llama")),
        ],
    )
    facts = seen(world).stable
    assert facts is not None
    assert (names(facts.revisions), names(facts.set_revisions)) == (["by-lws"], ["by-set"])


def test_the_canary_needs_both_the_mark_and_the_name() -> None:
    stable = LeaderWorkerSet(metadata=meta("llama"))
    found = seen(namespace(workloads=[stable, canary()])).canary
    assert found is not None
    assert found.name == PLACE
    assert seen(namespace(workloads=[stable, canary("marked-only")])).canary is None
    assert seen(namespace(workloads=[stable, LeaderWorkerSet(metadata=meta(PLACE))])).canary is None


def test_a_canary_is_still_seen_when_its_stable_lws_is_gone() -> None:
    picture = seen(namespace(workloads=[canary()]))
    assert picture.stable is None
    assert picture.canary is not None


def test_everything_in_a_new_canarys_place_is_named_once() -> None:
    world = namespace(
        workloads=[LeaderWorkerSet(metadata=meta("llama")), LeaderWorkerSet(metadata=meta(PLACE))],
        sets=[StatefulSet(metadata=meta(PLACE, PLACE))],
        pods=[leader(f"{PLACE}-0", PLACE), Pod(metadata=meta(f"{PLACE}-0-1", PLACE))],
        services=[service(PLACE), service("llama")],
        revisions=[ControllerRevision(metadata=meta("r1", PLACE))],
    )
    assert seen(world).remains == (
        NamedObject("LeaderWorkerSet", PLACE),
        NamedObject("StatefulSet", PLACE),
        NamedObject("Service", PLACE),
        NamedObject("Pod", f"{PLACE}-0"),
        NamedObject("Pod", f"{PLACE}-0-1"),
        NamedObject("ControllerRevision", "r1"),
    )


def test_a_living_canary_is_nobodys_remains() -> None:
    world = namespace(
        workloads=[LeaderWorkerSet(metadata=meta("llama")), canary()], sets=[StatefulSet(metadata=meta(PLACE, PLACE))]
    )
    assert seen(world).remains == ()


def test_rivals_are_the_other_rollouts_of_the_same_lws() -> None:
    world = namespace(rollouts=[rollout("llama"), rollout("second"), rollout("elsewhere", "mistral")])
    assert [each.name for each in seen(world).rivals] == ["second"]


def test_what_is_no_rollout_is_told_with_its_place_and_stops_no_rival() -> None:
    world = namespace(rollouts=[rollout("llama"), rollout("second", replicas="many")])
    assert [each.name for each in seen(world).rivals] == ["second"]
    with pytest.raises(Unreadable, match=r"Rollout second cannot be read: spec\.strategy\.canary\.steps\.0\.replicas"):
        seen(world, "second")


def test_the_batch_release_is_the_one_that_a_rollout_of_this_name_made() -> None:
    def batch(name: str, owner: str = "Rollout", of: str = "llama") -> StoredObject:
        spec = {"workloadRef": {"apiVersion": "v1", "kind": "K", "name": "llama"}, "releasePlan": {"batches": []}}
        reference = {"apiVersion": "v1", "kind": owner, "name": of, "uid": "uid-older", "controller": True}
        metadata = {"name": name, "namespace": "prod", "uid": name, "resourceVersion": "1"}
        body = {"metadata": {**metadata, "ownerReferences": [reference]}, "spec": spec}
        return stored_object(json.dumps(body).encode())

    assert seen(namespace(batches=[batch("other")])).batch_release is None
    assert seen(namespace(batches=[batch("llama", owner="Deployment")])).batch_release is None
    assert seen(namespace(batches=[batch("llama", of="other")])).batch_release is None
    found = seen(namespace(batches=[batch("other"), batch("llama")])).batch_release
    assert found is not None
    assert found.metadata.uid == "llama"


def stored(resource: Resource, name: str, **body: Any) -> StoredObject:
    head = {"name": name, "namespace": "prod", "uid": f"uid-{name}", "resourceVersion": "1", **body.pop("metadata", {})}
    return DECODERS[resource](json.dumps({"metadata": head, **body}).encode())


def refusal(name: str, uid: str) -> StoredObject:
    return stored(CORE_EVENTS, name, involvedObject={"kind": "StatefulSet", "uid": uid}, message="create Pod")


def queued(name: str, owner: str, resource: Resource = KUEUE_WORKLOADS, **status: Any) -> StoredObject:
    owners = [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": owner}]
    metadata = {"ownerReferences": owners, "labels": {JOB_UID: owner}}
    return stored(resource, name, metadata=metadata, spec={"podSets": [{"template": {}}]}, status=status)


def test_refusals_are_those_of_its_own_stateful_sets() -> None:
    world = namespace(
        sets=[StatefulSet(metadata=meta("llama", "llama", owner="uid-llama"))],
        kinds={CORE_EVENTS: [refusal("mine", "uid-llama"), refusal("others", "uid-other")]},
    )
    facts = seen(world).stable
    assert facts is not None
    assert names(facts.refusals) == ["mine"]


def test_workloads_are_those_that_it_or_its_leaders_own() -> None:
    workloads = [queued("by-lws", "uid-llama"), queued("by-leader", "uid-llama-0"), queued("others", "uid-other")]
    world = namespace(pods=[leader("llama-0")], kinds={KUEUE_WORKLOADS: workloads})
    facts = seen(world).stable
    assert facts is not None
    assert names(facts.queued) == ["by-lws", "by-leader"]
    assert b"podSets" not in workloads[0].body


def test_kueue_is_read_in_the_version_that_is_served() -> None:
    kinds = {KUEUE_WORKLOADS_BEFORE: [queued("older", "uid-llama", KUEUE_WORKLOADS_BEFORE)]}
    queues = seen(namespace(kinds=kinds, absent=frozenset({KUEUE_WORKLOADS}))).queues
    assert (queues.served, names(queues.workloads)) == (KUEUE_WORKLOADS_BEFORE, ["older"])


def test_admission_checks_are_pending_while_they_are_on_their_way_and_not_where_they_may_not_be_listed() -> None:
    kinds = {KUEUE_WORKLOADS: [queued("one", "uid-llama", admissionChecks=[{"name": "dispatch"}])]}
    assert seen(namespace(kinds=kinds, refused={KUEUE_CHECKS: ""})).queues.checks_pending
    checks = [stored(KUEUE_CHECKS, "dispatch", spec={"controllerName": "kueue.x-k8s.io/multikueue"})]
    queues = seen(namespace(kinds={**kinds, KUEUE_CHECKS: checks})).queues
    assert (queues.checks_pending, queues.dispatching) == (False, frozenset({"dispatch"}))
    assert not seen(namespace(kinds=kinds, refused={KUEUE_CHECKS: "forbidden"})).queues.checks_pending
    assert seen(namespace(refused={KUEUE_WORKLOADS: ""})).queues.listing is Listing.PENDING
    assert seen(namespace(refused={KUEUE_WORKLOADS: "forbidden"})).queues.listing is Listing.REFUSED


def test_history_is_what_this_very_rollout_owns() -> None:
    kept = {KEYS.history: "llama"}
    world = namespace(
        revisions=[
            ControllerRevision(metadata=meta("mine", owner="uid-llama", labels=kept)),
            ControllerRevision(metadata=meta("of-a-predecessor", owner="uid-older", labels=kept)),
        ]
    )
    assert names(seen(world).history) == ["mine"]


def autoscaler(name: str, target: str, kind: str = "LeaderWorkerSet", mark: str = "") -> StoredObject:
    reference = {"apiVersion": f"{LEADER_WORKER_SETS.group}/v1", "kind": kind, "name": target}
    metadata: dict[str, Any] = {"name": name, "namespace": "prod", "uid": name, "resourceVersion": "1"}
    if mark:
        metadata["annotations"] = {KEYS.original: json.dumps({mark: {"original": {}, "written": {}}})}
    body = {"metadata": metadata, "spec": {"scaleTargetRef": reference, "maxReplicas": 3}}
    return stored_object(json.dumps(body).encode())


def test_autoscalers_are_those_of_the_lws_and_those_that_carry_a_mark() -> None:
    found = [
        autoscaler("b", "llama"),
        autoscaler("a", "llama"),
        autoscaler("deployment", "llama", kind="Deployment"),
        autoscaler("other", "mistral"),
        autoscaler("pointed-elsewhere", "mistral", mark="uid-llama"),
        autoscaler("of-a-neighbour", "mistral", mark="uid-mistral"),
    ]
    facts = seen(namespace(kinds={HORIZONTAL_POD_AUTOSCALERS: found})).autoscalers
    assert [live["metadata"]["name"] for live in facts.objects] == ["a", "b", "pointed-elsewhere"]
    assert (facts.synced, facts.living) == (True, {"uid-llama"})


def test_autoscalers_that_are_not_listed_yet_are_not_taken_for_none() -> None:
    facts = seen(namespace(refused={HORIZONTAL_POD_AUTOSCALERS: "forbidden"})).autoscalers
    assert (facts.objects, facts.synced, facts.trouble) == ((), False, "forbidden")
