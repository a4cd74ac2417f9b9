"""Refusals that people read and programs look at, as far as no other page here has them."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import (
    CONFIG_MAPS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    PODS,
    Resource,
)
from tests.conformance.asking import MERGE, Asking, Object
from tests.conformance.objects import config_map, lws, pod
from tests.conformance.words import LABEL, NAME_PART, SUBDOMAIN

_NOWHERE = (404, "NotFound", "the server could not find the requested resource")
_NO_METHOD = (405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


@pytest.mark.parametrize(
    ("resource", "body", "kind"),
    [
        (CONFIG_MAPS, config_map("A_b"), "ConfigMap"),
        (PODS, pod("A_b"), "Pod"),
        (LEADER_WORKER_SETS, lws("A_b"), "LeaderWorkerSet.leaderworkerset.x-k8s.io"),
    ],
    ids=["ConfigMap", "Pod", "LeaderWorkerSet"],
)
async def test_a_name_is_a_subdomain(server: Asking, resource: Resource, body: Object, kind: str) -> None:
    refused = await server.create(resource, body)
    text = f'Invalid value: "A_b": {SUBDOMAIN}'
    assert refused.refusal == (422, "Invalid", f'{kind} "A_b" is invalid: metadata.name: {text}')
    assert refused.causes == [("FieldValueInvalid", "metadata.name", text)]


async def test_a_name_has_an_end(server: Asking) -> None:
    refused = await server.create(CONFIG_MAPS, config_map("x" * 254))
    text = f'metadata.name: Invalid value: "{"x" * 254}": must be no more than 253 characters'
    assert refused.refusal[2] == f'ConfigMap "{"x" * 254}" is invalid: {text}'


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({"labels": {"a": "b c"}}, f'metadata.labels: Invalid value: "b c": {LABEL}'),
        ({"labels": {"a": "b" * 64}}, f'metadata.labels: Invalid value: "{"b" * 64}": must be no more than 63 bytes'),
        ({"labels": {"a b": "c"}}, f'metadata.labels: Invalid value: "a b": {NAME_PART}'),
        ({"labels": {"A_b/c": "d"}}, f'metadata.labels: Invalid value: "A_b/c": prefix part {SUBDOMAIN}'),
        (
            {"labels": {"b" * 64: "c"}},
            f'metadata.labels: Invalid value: "{"b" * 64}": name part must be no more than 63 bytes',
        ),
        ({"labels": {"/c": "d"}}, 'metadata.labels: Invalid value: "/c": prefix part must be non-empty'),
        ({"annotations": {"a b": "c"}}, f'metadata.annotations: Invalid value: "a b": {NAME_PART}'),
        ({"annotations": {"a": "b" * 262144}}, "metadata.annotations: Too long: may not be more than 262144 bytes"),
        ({"generateName": "chat."}, f'metadata.generateName: Invalid value: "chat.": {SUBDOMAIN}'),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": ""}]},
            'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
        ),
        (
            {"ownerReferences": [{"apiVersion": "", "kind": "Pod", "name": "x", "uid": "y"}]},
            'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
        ),
    ],
    ids=[
        "value",
        "long",
        "key",
        "domain",
        "long key",
        "no domain",
        "annotation",
        "size",
        "prefix",
        "owner",
        "owner's version",
    ],
)
async def test_what_stands_in_metadata_is_looked_at(server: Asking, metadata: Object, text: str) -> None:
    refused = await server.create(CONFIG_MAPS, config_map("x", **metadata))
    assert refused.refusal == (422, "Invalid", f'ConfigMap "x" is invalid: {text}')


async def test_an_object_has_one_controller(server: Asking) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "controller": True}
    owners = [{**owner, "name": name, "uid": name} for name in ("a", "b")]
    refused = await server.create(CONFIG_MAPS, config_map(ownerReferences=owners))
    assert refused.refusal[:2] == (422, "Invalid")
    ((_, field, message),) = refused.causes
    assert field == "metadata.ownerReferences"
    why = "Only one reference can have Controller set to true"
    assert message.endswith(f'{why}. Found "true" in references for Pod/a and Pod/b')


async def test_all_that_is_wrong_is_told_at_once(server: Asking) -> None:
    refused = await server.create(CONFIG_MAPS, config_map("A_b", labels={"a": "b c"}))
    texts = [f'metadata.name: Invalid value: "A_b": {SUBDOMAIN}', f'metadata.labels: Invalid value: "b c": {LABEL}']
    assert refused.refusal[2] == f'ConfigMap "A_b" is invalid: [{texts[0]}, {texts[1]}]'
    assert [field for _, field, _ in refused.causes] == ["metadata.name", "metadata.labels"]


@pytest.mark.parametrize("resource", [CONFIG_MAPS, LEADER_WORKER_SETS], ids=str)
@pytest.mark.parametrize("metadata", [{"labels": {"a": 1}}, {"labels": ["a"]}, {"name": 5}], ids=str)
async def test_metadata_of_another_shape_is_refused(server: Asking, resource: Resource, metadata: Object) -> None:
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "x", **metadata}}
    refused = await server.create(resource, body)
    assert refused.refusal[:2] == (400, "BadRequest")


@pytest.mark.parametrize("body", [{"metadata": 5}, {"metadata": {"labels": 7}}, 5], ids=str)
async def test_a_patch_to_another_shape_is_refused(server: Asking, body: Any) -> None:
    (await server.create(LEADER_WORKER_SETS, lws())).ok()
    assert (await server.patch(LEADER_WORKER_SETS, "llama", body)).code in (400, 422)


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b""], ids=repr)
async def test_a_body_that_is_no_object_is_refused(server: Asking, body: bytes) -> None:
    refused = await server.create(LEADER_WORKER_SETS, body)
    assert refused.refusal[:2] == (400, "BadRequest")


async def test_a_body_of_another_kind_is_refused(server: Asking) -> None:
    refused = await server.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})
    assert refused.refusal[:2] == (400, "BadRequest")
    assert refused.refusal[2].startswith('Pod in version "v1" cannot be handled as a ConfigMap: ')
    refused = await server.create(LEADER_WORKER_SETS, {**lws(), "kind": "Other"})
    text = 'kind: Invalid value: "Other": must be LeaderWorkerSet'
    assert refused.refusal == (422, "Invalid", f'Other.leaderworkerset.x-k8s.io "llama" is invalid: {text}')
    refused = await server.create(LEADER_WORKER_SETS, {**lws(), "apiVersion": "leaderworkerset.x-k8s.io/v2"})
    text = "the API version in the data (leaderworkerset.x-k8s.io/v2) does not match the expected API version"
    assert refused.refusal == (400, "BadRequest", f"{text} (leaderworkerset.x-k8s.io/v1)")


async def test_a_custom_resource_says_what_it_is(server: Asking) -> None:
    body = lws()
    del body["kind"]
    refused = await server.create(LEADER_WORKER_SETS, body)
    assert refused.refusal[:2] == (400, "BadRequest")
    assert "(must be of type LeaderWorkerSet): Object 'Kind' is missing in " in refused.refusal[2]


async def test_methods_fit_what_they_are_asked_of(server: Asking) -> None:
    collection, single = CONFIG_MAPS.path(server.namespace), CONFIG_MAPS.path(server.namespace, "settings")
    assert (await server.ask("POST", single, {})).refusal == _NO_METHOD
    assert (await server.ask("PUT", collection, {})).refusal == _NO_METHOD
    assert (await server.ask("PATCH", collection, {}, MERGE)).refusal == _NO_METHOD


async def test_a_kind_that_is_not_served_is_not_found(server: Asking) -> None:
    assert (await server.ask("GET", "/api/v1/namespaces/x/podlets")).refusal == _NOWHERE
    assert (await server.ask("GET", "/apis/apps/v1/namespaces/x/podlets")).refusal == _NOWHERE
    assert (await server.ask("GET", "/apis/apps/v9")).refusal == _NOWHERE


@pytest.mark.parametrize(
    "path",
    [
        "/apis/example.com/v1/namespaces/x/widgets",
        "/apis/leaderworkerset.x-k8s.io/v1/namespaces/x/widgets",
        "/apis/leaderworkerset.x-k8s.io/v9/namespaces/x/leaderworkersets",
        "/apis/example.com",
        "/apis/example.com/v1",
        "/apis/leaderworkerset.x-k8s.io/v9",
        "/nowhere",
    ],
)
async def test_a_path_of_nobody_is_answered_without_a_status(server: Asking, path: str) -> None:
    answer = await server.ask("GET", path)
    assert (answer.code, answer.body) == (404, b"404 page not found\n")


async def test_nothing_is_created_in_a_namespace_that_is_not_there(server: Asking) -> None:
    refused = await server.ask("POST", CONFIG_MAPS.path("none"), config_map())
    assert refused.refusal == (404, "NotFound", 'namespaces "none" not found')
    assert refused.body["details"] == {"name": "none", "kind": "namespaces"}


async def test_nothing_is_created_in_a_namespace_that_is_going(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map("last", finalizers=["example.com/held"]))).ok()
    (await server.delete(NAMESPACES, server.namespace)).ok()
    refused = await server.create(CONFIG_MAPS, config_map())
    text = f"unable to create new content in namespace {server.namespace} because it is being terminated"
    assert refused.refusal == (403, "Forbidden", f'configmaps "settings" is forbidden: {text}')
    told = f"namespace {server.namespace} is being terminated"
    assert refused.causes == [("NamespaceTerminating", "metadata.namespace", told)]
    (await server.patch(CONFIG_MAPS, "last", {"metadata": {"finalizers": None}})).ok()
    await server.gone(NAMESPACES, server.namespace)
