"""How the meter's proxies route by a VirtualService, as Istio's do."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import DESTINATION_RULES, ENDPOINT_SLICES, PODS, SERVICES, VIRTUAL_SERVICES, Resource
from rollout_lws.sandbox.meter.client import Client
from rollout_lws.sandbox.meter.seen import Key, Object, Seen
from rollout_lws.sandbox.meter.split import reads, split

USERS = Client("users", virtual_service="llama", path="/v1/chat")


def at(resource: Resource, name: str, **parts: Any) -> tuple[Key, Object]:
    return (resource, "default", name), parts


def service(name: str, *uids: str) -> list[tuple[Key, Object]]:
    pods = [at(PODS, uid, uid=uid, labels={"app": uid[0]}, ready=True) for uid in uids]
    return [at(SERVICES, name, ports=[{"port": 80}]), at(ENDPOINT_SLICES, f"{name}-x", service=name, uids=uids), *pods]


def to(host: str, weight: int | None = None, **more: Any) -> dict[str, Any]:
    return {"destination": {"host": host, **more}} | ({} if weight is None else {"weight": weight})


KNOWN = [*service("a", "a1", "b1"), *service("b", "c1")]


def told(
    *http: dict[str, Any], client: Client = USERS, known: list[tuple[Key, Object]] | None = None
) -> dict[str, str]:
    seen = Seen([at(VIRTUAL_SERVICES, "llama", spec={"http": list(http)}), *(KNOWN if known is None else known)])
    found = split(seen, client)
    assert sum(found.values()) == 1
    return {target.uid or target.error: str(share) for target, share in found.items()}


@pytest.mark.parametrize(
    ("routes", "shares"),
    [
        ([to("a")], {"a1": "1/2", "b1": "1/2"}),
        ([to("a", 0)], {"a1": "1/2", "b1": "1/2"}),
        ([to("a", 80), to("b", 20)], {"a1": "2/5", "b1": "2/5", "c1": "1/5"}),
        ([to("a"), to("b", 1)], {"c1": "1"}),
        ([to("a"), to("b")], {"no destination of VirtualService llama has weight": "1"}),
        ([to("b.default.svc.cluster.local")], {"c1": "1"}),
        ([to("b", 3), to("c", 1)], {"c1": "3/4", 'Service "c" not found': "1/4"}),
        ([to("b", 1), to("b.default", 1)], {"c1": "1/2", "host b.default is no Service": "1/2"}),
        ([to("b", port={"number": 81})], {'Service "b" has no port 81': "1"}),
        # Nobody gets there, so that it is not known does no harm.
        ([to("b", 1), to("b", 0, subset="x")], {"c1": "1"}),
    ],
)
def test_destinations_share_by_weight(routes: list[Any], shares: dict[str, str]) -> None:
    assert told({"route": routes}) == shares


def test_a_subset_is_the_pods_with_its_labels() -> None:
    subsets = [{"name": "blue", "labels": {"app": "a"}}, {"name": "none", "labels": {"app": "z"}}]
    rule = at(DESTINATION_RULES, "any", spec={"host": "a.default.svc.cluster.local", "subsets": subsets})
    known = [*KNOWN, rule]
    assert told({"route": [to("a", subset="blue")]}, known=known) == {"a1": "1"}
    assert told({"route": [to("a", subset="none")]}, known=known) == {
        'no ready endpoint of subset none of Service "a"': "1"
    }
    assert told({"route": [to("b", subset="blue")]}, known=known) == {
        "no DestinationRule says what subset blue of b is": "1"
    }


@pytest.mark.parametrize(
    ("match", "request_", "fits"),
    [
        ({"uri": {"prefix": "/v1"}}, {}, True),
        ({"uri": {"prefix": "/v1/c"}}, {}, True),
        ({"uri": {"exact": "/v1"}}, {}, False),
        ({"uri": {"regex": "/v[12]/.*"}}, {}, True),
        ({"uri": {"regex": "/v[12]"}}, {}, False),
        ({"uri": {"regex": "("}}, {}, False),
        ({"headers": {"x-canary": {"exact": "yes"}}}, {"headers": {"X-Canary": "yes"}}, True),
        ({"headers": {"x-canary": {"exact": "yes"}}}, {}, False),
        ({"headers": {"x-canary": {}}}, {"headers": {"x-canary": ""}}, True),
        ({"headers": {"x-canary": {}}}, {}, False),
        ({"withoutHeaders": {"x-canary": {}}}, {}, True),
        ({"queryParams": {"v": {"exact": "2"}}}, {"query": {"v": "2"}}, True),
        ({"method": {"exact": "GET"}}, {}, False),
    ],
)
def test_the_first_rule_that_matches_decides(match: dict[str, Any], request_: dict[str, Any], fits: bool) -> None:
    client = Client("users", virtual_service="llama", path="/v1/chat", **request_)
    rules = {"match": [{"uri": {"exact": "/nowhere"}}, match], "route": [to("b")]}, {"route": [to("a")]}
    assert ("c1" in told(*rules, client=client)) is fits
    assert told(rules[1], rules[0], client=client) == {"a1": "1/2", "b1": "1/2"}


def test_without_a_rule_or_an_object_requests_fail() -> None:
    assert told({"match": [{"uri": {"exact": "/"}}], "route": [to("a")]}) == {
        "no rule of VirtualService llama matches /v1/chat": "1"
    }
    assert {each.error for each in split(Seen(KNOWN), USERS)} == {"VirtualService llama not found"}
    assert {VIRTUAL_SERVICES, DESTINATION_RULES, PODS} <= reads(USERS)
