"""What a release has made, and so deletes again, told from what others have a Rollout own."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import HTTP_ROUTES, INFERENCE_POOLS, INGRESSES, LWS_NAME, SERVICES, Resource
from rollout_lws.objects.writes import Delete, Write
from rollout_lws.traffic import marks
from rollout_lws.traffic.ingress import noted
from rollout_lws.traffic.marked import Marked
from rollout_lws.traffic.names import Names
from rollout_lws.traffic.services import canary_service
from rollout_lws.traffic.split import Split
from tests.traffic import test_ingress
from tests.traffic.build import KEYS, OWNER, A, B, service

CONTROLLER = OWNER | {"controller": True, "blockOwnerDeletion": False}
NAMES = Names(service="llama-api", ingress="llama")
#: After an edit of the spec, when the status has been lost.
OTHERS = Names(service="other-api", ingress="other")


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
    return stored(noted(made, A, KEYS), **{"ownerReferences": [CONTROLLER], **meta})


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
    assert (left.ghost, [*left.take_back(A, "gone")]) == (None, [])
