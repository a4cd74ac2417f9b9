"""Lists: in what order and form, which objects, and in how many pages."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS, PODS, Resource
from tests.conformance.asking import Asking, Object
from tests.conformance.objects import config_map, lws, pod

_APPS = {"a": {"app": "chat", "tier": "web"}, "b": {"app": "chat"}, "c": {"app": "code", "tier": "db"}, "d": {}}


def names(listed: Object) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def make_pods(server: Asking) -> None:
    for name, labels in _APPS.items():
        (await server.create(PODS, pod(name, labels=labels))).ok()


async def test_a_list_is_ordered_by_name_and_tells_its_version(server: Asking) -> None:
    versions = [(await server.create(LEADER_WORKER_SETS, lws(name))).ok() for name in ("b", "c", "a")]
    listed = (await server.list(LEADER_WORKER_SETS)).ok()
    assert (listed["kind"], listed["apiVersion"]) == ("LeaderWorkerSetList", LEADER_WORKER_SETS.api_version)
    assert names(listed) == ["a", "b", "c"]
    assert int(listed["metadata"]["resourceVersion"]) >= int(versions[-1]["metadata"]["resourceVersion"])
    assert not listed["metadata"].get("continue")


async def test_items_of_built_in_kinds_do_not_repeat_their_kind(server: Asking) -> None:
    (await server.create(PODS, pod())).ok()
    (await server.create(LEADER_WORKER_SETS, lws())).ok()
    (item,) = (await server.list(PODS)).ok()["items"]
    assert "kind" not in item
    assert "apiVersion" not in item
    (item,) = (await server.list(LEADER_WORKER_SETS)).ok()["items"]
    assert (item["kind"], item["apiVersion"]) == ("LeaderWorkerSet", LEADER_WORKER_SETS.api_version)


async def test_an_empty_list_is_no_error(server: Asking) -> None:
    listed = (await server.list(LEADER_WORKER_SETS)).ok()
    assert listed["items"] == []
    elsewhere = await server.ask("GET", LEADER_WORKER_SETS.path("no-such-namespace"))
    assert elsewhere.ok()["items"] == []


async def test_all_namespaces_are_listed_together(server: Asking) -> None:
    (await server.create(CONFIG_MAPS, config_map(labels={"room": server.namespace}))).ok()
    selector = f"room={server.namespace}"
    listed = (await server.ask("GET", CONFIG_MAPS.path(), labelSelector=selector)).ok()
    assert [item["metadata"]["namespace"] for item in listed["items"]] == [server.namespace]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=chat", "ab"),
        ("app==chat", "ab"),
        ("app!=chat", "cd"),
        ("app in (chat, code)", "abc"),
        ("app notin (chat)", "cd"),
        ("tier", "ac"),
        ("!tier", "bd"),
        ("app=chat,!tier", "b"),
        ("app in (chat),tier notin (web)", "b"),
        ("app=", ""),
        ("none=none", ""),
        ("", "abcd"),
    ],
)
async def test_labels_select(server: Asking, selector: str, expected: str) -> None:
    await make_pods(server)
    assert names((await server.list(PODS, labelSelector=selector)).ok()) == list(expected)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=b", "b"),
        ("metadata.name!=b", "acd"),
        ("metadata.name==b,status.phase=Pending", "b"),
        ("status.phase=Running", ""),
        ("spec.nodeName=", "abcd"),
    ],
)
async def test_fields_select(server: Asking, selector: str, expected: str) -> None:
    await make_pods(server)
    assert names((await server.list(PODS, fieldSelector=selector)).ok()) == list(expected)


@pytest.mark.parametrize("resource", [PODS, LEADER_WORKER_SETS], ids=str)
async def test_a_field_that_cannot_be_selected_by_is_refused(server: Asking, resource: Resource) -> None:
    refused = await server.list(resource, fieldSelector="spec.wanted=1")
    assert refused.refusal == (400, "BadRequest", "field label not supported: spec.wanted")


@pytest.mark.parametrize("selector", ["((", "a in b", "a=b=c", "a b"])
async def test_a_selector_that_cannot_be_read_is_refused(server: Asking, selector: str) -> None:
    assert (await server.list(PODS, labelSelector=selector)).refusal[:2] == (400, "BadRequest")
    refused = await server.list(PODS, fieldSelector="x")
    assert refused.refusal == (400, "BadRequest", "invalid selector: 'x'; can't understand 'x'")


async def test_a_list_comes_in_pages_of_one_moment(server: Asking) -> None:
    for name in "abcde":
        (await server.create(LEADER_WORKER_SETS, lws(name))).ok()
    first = (await server.list(LEADER_WORKER_SETS, limit="2")).ok()
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    (await server.create(LEADER_WORKER_SETS, lws("bb"))).ok()
    (await server.delete(LEADER_WORKER_SETS, "c")).ok()
    second = (await server.list(LEADER_WORKER_SETS, **{"limit": "2", "continue": first["metadata"]["continue"]})).ok()
    assert names(second) == ["c", "d"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert second["metadata"]["remainingItemCount"] == 1
    third = (await server.list(LEADER_WORKER_SETS, **{"limit": "2", "continue": second["metadata"]["continue"]})).ok()
    assert names(third) == ["e"]
    assert not third["metadata"].get("continue")
    assert "remainingItemCount" not in third["metadata"]


async def test_pages_of_a_selection_do_not_tell_how_many_are_left(server: Asking) -> None:
    await make_pods(server)
    page = (await server.list(PODS, labelSelector="app", limit="1")).ok()
    assert names(page) == ["a"]
    assert page["metadata"]["continue"]
    assert "remainingItemCount" not in page["metadata"]
    again = {"labelSelector": "app", "limit": "5", "continue": page["metadata"]["continue"]}
    assert names((await server.list(PODS, **again)).ok()) == ["b", "c"]


async def test_a_page_that_no_list_has_is_refused(server: Asking) -> None:
    refused = await server.list(PODS, **{"continue": "made-up"})
    assert refused.refusal[:2] == (400, "BadRequest")
    assert refused.refusal[2].startswith("invalid continue token: continue key is not valid: ")


async def test_a_list_may_be_asked_from_any_version_that_was(server: Asking) -> None:
    made = (await server.create(LEADER_WORKER_SETS, lws())).ok()
    # The first one waits until the server's cache is as new; any older version may be answered from an older cache.
    for version in (made["metadata"]["resourceVersion"], "0", "1"):
        assert names((await server.list(LEADER_WORKER_SETS, resourceVersion=version)).ok()) == ["llama"]


async def test_a_version_that_is_no_number_is_refused(server: Asking) -> None:
    refused = await server.list(PODS, resourceVersion="new")
    text = 'resourceVersion: Invalid value: "new": strconv.ParseUint: parsing "new": invalid syntax'
    assert refused.refusal == (400, "BadRequest", f"invalid resource version: {text}")
    assert (await server.list(PODS, limit="many")).refusal == (
        400,
        "BadRequest",
        'strconv.ParseInt: parsing "many": invalid syntax',
    )


async def test_a_version_that_is_yet_to_come_is_not_waited_for_long(server: Asking) -> None:
    refused = await server.list(LEADER_WORKER_SETS, resourceVersion="999999999999")
    code, reason, message = refused.refusal
    assert (code, reason) == (504, "Timeout")
    assert message.startswith("Timeout: Too large resource version: 999999999999, current: ")
    assert refused.causes == [("ResourceVersionTooLarge", "", "Too large resource version")]
    assert refused.body["details"]["retryAfterSeconds"] == 1
