"""What a release has made, and so deletes again, told from what others have a Rollout own; and what one has left."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import (
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    SERVICES,
    Resource,
)
from rollout_lws.objects.workloads import Pod
from rollout_lws.objects.writes import Delete, Patch, Write
from rollout_lws.traffic import marks, pools, services
from rollout_lws.traffic.copies.ingress import annotated
from rollout_lws.traffic.marked import Marked
from rollout_lws.traffic.names import ManagedRef, Names
from rollout_lws.traffic.services import canary_service
from rollout_lws.traffic.split import Split
from tests.traffic import test_ingress
from tests.traffic.build import KEYS, OWNER, A, B, service
from tests.workload.build import NEW, OLD, pod

CONTROLLER = OWNER | {"controller": True, "blockOwnerDeletion": False}
NAMES = Names(service="llama-api", refs=(ManagedRef(kind="Ingress", name="llama"),))
#: After an edit of the spec, when the status has been lost.
OTHERS = Names(service="other-api", refs=(ManagedRef(kind="Ingress", name="other"),))


def stored(made: Any, **meta: Any) -> Any:
    """As the API server gives it back."""
    first = {"namespace": "prod", "uid": "c", "resourceVersion": "7"}
    return {**made, "metadata": {**made["metadata"], **first, **meta}}


def copied(**meta: Any) -> Any:
    changes = {LWS_NAME: "llama-canary"}
    made = canary_service(service(), A, KEYS, name="llama-api-canary", changes=changes, owner=CONTROLLER)
    return stored(made, **meta)


def second(**meta: Any) -> Any:
    made = test_ingress.made(test_ingress.ingress(), Split(20))
    return stored(annotated(made, A, KEYS), **{"ownerReferences": [CONTROLLER], **meta})


def plain(name: str = "tool", **meta: Any) -> Any:
    """What nobody has noted anything on."""
    return stored({"metadata": {"name": name}, "spec": {}}, **{"ownerReferences": [CONTROLLER], **meta})


def forged(name: str) -> Any:
    return stored(marks.put_made(plain(name), A, KEYS))


def given_back(resource: Resource, live: Any, names: Names | None) -> list[Write]:
    return [*Marked(A, KEYS, {resource: (live,)}, frozenset({A}), names=names).give_back("over")]


@pytest.mark.parametrize("names", [NAMES, OTHERS, None], ids=["named", "named otherwise", "unnamed"])
@pytest.mark.parametrize(("resource", "live"), [(SERVICES, copied()), (INGRESSES, second())], ids=str)
def test_what_is_marked_as_made_is_deleted_whatever_the_spec_names(resource: Resource, live: Any, names: Any) -> None:
    [write] = given_back(resource, live, names)
    assert isinstance(write, Delete) and write.name == live["metadata"]["name"]


@pytest.mark.parametrize(("resource", "live"), [(SERVICES, copied()), (INGRESSES, second())], ids=str)
def test_without_its_mark_it_is_known_by_its_name_alone(resource: Resource, live: Any) -> None:
    bare = marks.without(live, A, KEYS)
    assert [type(each) for each in given_back(resource, bare, NAMES)] == [Delete]
    assert given_back(resource, bare, OTHERS) == given_back(resource, bare, None) == []


@pytest.mark.parametrize(
    ("resource", "live"),
    [
        (SERVICES, plain()),
        (SERVICES, plain("llama-api-canary", ownerReferences=[OWNER])),
        (SERVICES, plain("llama-api-canary", ownerReferences=[CONTROLLER | {"kind": "BatchRelease"}])),
        (SERVICES, plain("llama-api-canary", ownerReferences=[CONTROLLER | {"apiVersion": "argoproj.io/v1alpha1"}])),
        (SERVICES, plain("llama-api-canary", ownerReferences=[CONTROLLER | {"uid": B}])),
        (SERVICES, copied(name="copy-by-hand")),
        (SERVICES, copied(ownerReferences=[])),
        (INGRESSES, plain()),
        (INGRESSES, second(name="copy-by-hand")),
        (HTTP_ROUTES, plain("llama-api-canary")),
        (HTTP_ROUTES, forged("llama")),
        (INFERENCE_POOLS, plain("llama-canary")),
        (INFERENCE_POOLS, forged("llama")),
    ],
    ids=lambda each: str(each) if isinstance(each, Resource) else None,
)
def test_what_a_rollout_owns_otherwise_is_never_deleted(resource: Resource, live: Any) -> None:
    assert [write for write in given_back(resource, live, NAMES) if isinstance(write, Delete)] == []
    assert Marked(A, KEYS, {resource: (live,)}, names=NAMES).any_own is (marks.read(live, A, KEYS) is not None)


def test_what_a_rollout_that_is_gone_had_made_is_left_to_the_garbage_collector() -> None:
    left = Marked(B, KEYS, {SERVICES: (copied(),), INGRESSES: (second(),)}, frozenset({B}))
    assert (left.deleted_uids, [*left.take_back(A, "llama", "gone")]) == ((), [])


# What a deleted Rollout has pinned

BY_LWS, TO_CANARY = {LWS_NAME: "llama"}, {LWS_NAME: "llama-canary"}
BY_REVISION = {LWS_NAME: "llama", LWS_REVISION: OLD}


def behind(workload: str = "llama", **more: Any) -> Pod:
    return pod(0, workload=workload, labels={"app": "llama"}, **more)


OLD_ONE, NEW_ONE, CANARY, GOING = behind(), behind(revision=NEW), behind("llama-canary"), behind(terminating=True)
CANARY_GOING, FOREIGN = behind("llama-canary", terminating=True), behind("mistral")


def left(resource: Resource, written: dict[str, Any], *pods: Pod, unknown: bool = False, foreign: str = "") -> Marked:
    """What Rollout A, which is gone, has pinned, as B sees it."""
    if resource == SERVICES:
        live = services.pin(service(), A, KEYS, written)
    else:
        pool = {
            "metadata": {"name": "llama-api", "namespace": "prod"},
            "spec": {"selector": {"matchLabels": {"app": "llama"}}},
        }
        live = pools.pin(pool, A, KEYS, written)
    missing = {"llama-canary": ""} if unknown else {}
    foreigners = frozenset({foreign} - {""})
    return Marked(
        B, KEYS, {resource: (stored(live),)}, frozenset({B}), pods=pods, unknown_pods=missing, foreign=foreigners
    )


@pytest.mark.parametrize(
    ("resource", "written", "pods", "kept"),
    [
        (SERVICES, BY_LWS, (OLD_ONE, CANARY), ("llama", (CANARY,))),
        (SERVICES, BY_LWS, (OLD_ONE, NEW_ONE), None),
        (SERVICES, BY_LWS, (CANARY,), None),
        (SERVICES, BY_LWS, (OLD_ONE, FOREIGN), None),
        (SERVICES, BY_LWS, (OLD_ONE, CANARY_GOING), None),
        (INFERENCE_POOLS, BY_LWS, (OLD_ONE, CANARY_GOING), ("llama", (CANARY_GOING,))),
        (SERVICES, TO_CANARY, (OLD_ONE, CANARY), ("llama", (CANARY,))),
        (SERVICES, TO_CANARY, (GOING, CANARY), None),
        (SERVICES, BY_REVISION, (OLD_ONE, NEW_ONE), ("llama", (NEW_ONE,))),
        (SERVICES, BY_REVISION, (NEW_ONE,), None),
        (INFERENCE_POOLS, BY_REVISION, (OLD_ONE, GOING, NEW_ONE), ("llama", (NEW_ONE,))),
        # A workload that rolls by itself: nothing would answer behind the pool.
        (INFERENCE_POOLS, BY_REVISION, (GOING, NEW_ONE), None),
        (INFERENCE_POOLS, TO_CANARY, (OLD_ONE, CANARY_GOING), ("llama", (CANARY_GOING,))),
        (SERVICES, {LWS_WORKER_INDEX: "0"}, (OLD_ONE, CANARY), None),
    ],
)
def test_what_would_lead_to_two_versions_stays_pinned(
    resource: Resource, written: dict[str, Any], pods: tuple[Pod, ...], kept: Any
) -> None:
    seen = left(resource, written, *pods)
    assert [(each.workload, each.pods) for each in seen.kept(A, "llama")] == ([] if kept is None else [kept])
    writes = [*seen.take_back(A, "llama", "gone")]
    assert any(isinstance(each, Patch) and _bare(each) for each in writes) is (kept is None)


def _bare(write: Patch) -> bool:
    """Whether it takes our note away."""
    annotations: dict[str, Any] | None = write.body["metadata"]["annotations"]
    return annotations is None or annotations[KEYS.original] is None


def test_what_led_to_a_canary_that_goes_leads_to_its_lws() -> None:
    [write] = left(SERVICES, TO_CANARY, OLD_ONE, CANARY).take_back(A, "llama", "gone")
    assert isinstance(write, Patch) and write.body["spec"] == {"selector": {LWS_NAME: "llama"}}
    # Of another LWS nobody knows what is to become of it.
    assert [*left(SERVICES, TO_CANARY, OLD_ONE, CANARY).take_back(A, "mistral", "gone")] == []


def test_an_lws_that_is_only_called_like_a_canary_is_none() -> None:
    seen = left(SERVICES, BY_LWS, OLD_ONE, CANARY, foreign="llama-canary")
    assert [*seen.kept(A, "llama")] == []
    assert [_bare(each) for each in seen.take_back(A, "llama", "gone") if isinstance(each, Patch)] == [True]
    # What a release of that LWS has pinned to it does not wait for the other one, is never pinned to that, and is none
    # of its releases' business.
    seen = left(SERVICES, TO_CANARY, OLD_ONE, CANARY, foreign="llama-canary")
    assert [*seen.kept(A, "llama")] == []
    assert not seen.concerns(A, "llama")
    assert seen.concerns(A, "llama-canary")


def test_a_service_keeps_the_annotation_by_which_a_pool_that_stays_pinned_is_found() -> None:
    pool = left(INFERENCE_POOLS, BY_LWS).objects[INFERENCE_POOLS]
    pinned = left(SERVICES, BY_LWS).objects[SERVICES]
    both = {INFERENCE_POOLS: pool, SERVICES: pinned}
    seen = Marked(B, KEYS, both, frozenset({B}), pods=(OLD_ONE, CANARY_GOING))
    [write] = seen.take_back(A, "mistral", "gone")
    assert isinstance(write, Patch) and write.resource == SERVICES and not _bare(write)
    assert write.body["spec"] == {"selector": {LWS_NAME: None}}
    both[SERVICES] = tuple(services.pin(each, A, KEYS, {}) for each in pinned)
    assert [*Marked(B, KEYS, both, frozenset({B}), pods=(OLD_ONE, CANARY_GOING)).take_back(A, "mistral", "gone")] == []
    writes = [*Marked(B, KEYS, both, frozenset({B}), pods=(OLD_ONE,)).take_back(A, "mistral", "gone")]
    assert [each.resource for each in writes] == [INFERENCE_POOLS]


def test_nothing_is_unpinned_before_all_pods_are_known() -> None:
    seen = left(SERVICES, BY_LWS, OLD_ONE, unknown=True)
    assert [each.pods for each in seen.kept(A, "llama")] == [()]
    assert [*seen.take_back(A, "llama", "gone")] == []
