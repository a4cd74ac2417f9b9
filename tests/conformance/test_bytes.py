"""What a server keeps, and compares, in the bytes in which it was sent: the data of a ControllerRevision."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects import go_json
from rollout_lws.objects.resources import CONTROLLER_REVISIONS
from tests.conformance.asking import JSON_PATCH, MERGE, STRATEGIC, Asking, Object

_DATA: Object = {
    "spec": {"command": ["sh", "-c", "a && b > c 2>&1"], "args": ["<x>", "one\u2028two\u2029three", 'ä "\\/\x7f\x01']}
}
_ANNOTATED: Object = {"metadata": {"annotations": {"a": "b"}}}
_PATCHES: dict[str, tuple[str, Any]] = {
    "merge": (MERGE, _ANNOTATED),
    "JSON": (JSON_PATCH, [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]),
    "strategic": (STRATEGIC, _ANNOTATED),
}
_SPELLED = go_json.encoded(_DATA).decode()


def record(data: str, name: str = "version") -> bytes:
    """A ControllerRevision whose data is spelled like this."""
    kind = f'"apiVersion":"{CONTROLLER_REVISIONS.api_version}","kind":"{CONTROLLER_REVISIONS.kind}"'
    return f'{{{kind},"metadata":{{"name":"{name}"}},"revision":1,"data":{data}}}'.encode()


def immutable(value: str) -> tuple[int, str, str]:
    told = f"data: Invalid value: {value}: field is immutable"
    return 422, "Invalid", f'ControllerRevision.apps "version" is invalid: {told}'


@pytest.mark.parametrize("kind", _PATCHES)
async def test_data_as_go_spells_it_can_be_patched(server: Asking, kind: str) -> None:
    (await server.create(CONTROLLER_REVISIONS, record(_SPELLED))).ok()
    content_type, body = _PATCHES[kind]
    patched = (await server.patch(CONTROLLER_REVISIONS, "version", body, content_type)).ok()
    assert patched["metadata"]["annotations"] == {"a": "b"}
    assert patched["data"] == _DATA


@pytest.mark.parametrize("kind", _PATCHES)
@pytest.mark.parametrize("character", ["&", "<", ">", "\u2028", "\u2029"])
async def test_data_in_another_spelling_can_never_be_patched(server: Asking, kind: str, character: str) -> None:
    made = (await server.create(CONTROLLER_REVISIONS, record(f'{{"command":"{character}"}}'))).ok()
    content_type, body = _PATCHES[kind]
    refused = await server.patch(CONTROLLER_REVISIONS, "version", body, content_type)
    assert refused.refusal == immutable(go_json.encoded({"command": character}).decode())
    assert (await server.get(CONTROLLER_REVISIONS, "version")).ok() == made


async def test_a_patch_that_changes_nothing_is_refused_alike(server: Asking) -> None:
    (await server.create(CONTROLLER_REVISIONS, record('{"a":"&"}'))).ok()
    refused = await server.patch(CONTROLLER_REVISIONS, "version", {"revision": 1})
    assert refused.refusal == immutable('{"a":"\\u0026"}')


async def test_the_order_of_members_counts_where_a_patch_sorts_them(server: Asking) -> None:
    (await server.create(CONTROLLER_REVISIONS, record('{"b":1,"a":2}'))).ok()
    (await server.patch(CONTROLLER_REVISIONS, "version", _ANNOTATED)).ok()
    refused = await server.patch(CONTROLLER_REVISIONS, "version", {"metadata": {"labels": {"a": "b"}}}, STRATEGIC)
    assert refused.refusal == immutable('{"a":2,"b":1}')


async def test_the_same_bytes_can_replace_an_object_and_no_others(server: Asking) -> None:
    raw = '{"a": "&"}'
    (await server.create(CONTROLLER_REVISIONS, record(raw))).ok()
    path = CONTROLLER_REVISIONS.path(server.namespace, "version")
    (await server.ask("PUT", path, record(raw).replace(b'"revision":1', b'"revision":2'))).ok()
    refused = await server.ask("PUT", path, record('{"a":"\\u0026"}'))
    assert refused.refusal == immutable('{"a":"\\u0026"}')


async def test_answers_are_spelled_as_go_spells_them(server: Asking) -> None:
    (await server.create(CONTROLLER_REVISIONS, record(_SPELLED))).ok()
    answer = await server.raw(CONTROLLER_REVISIONS, "version")
    assert _SPELLED.encode() in answer
