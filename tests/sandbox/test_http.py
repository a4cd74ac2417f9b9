"""The HTTP face: who may come in, what is told about the server, and how it stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Effect
from rollout_lws.sandbox.http import Server
from tests.sandbox.conftest import config_map, lws

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def served(lws_server: ApiServer) -> AsyncIterator[Server]:
    served = Server(lws_server)
    await served.start()
    yield served
    await served.stop()


@pytest.fixture
async def client(served: Server) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"authorization": f"Bearer {served.token}"}
    async with aiohttp.ClientSession(served.url, headers=headers) as session:
        yield session


async def test_a_token_is_asked_for_but_not_by_health_checks(served: Server) -> None:
    async with aiohttp.ClientSession() as session:
        for path, status in ((MAPS, 401), (f"/token/wrong{MAPS}", 401), ("/readyz", 200), ("/version", 200)):
            async with session.get(served.url + path) as answer:
                assert answer.status == status, path
        url = served.kubeconfig()["clusters"][0]["cluster"]["server"]
        async with session.get(url + MAPS) as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api", 200),
        ("/apis", 200),
        ("/api/v1", 200),
        ("/apis/apps", 200),
        ("/apis/apps/v1", 200),
        ("/openapi/v3", 200),
        ("/openapi/v3/apis/apps/v1", 200),
        ("/apis/apps/v9", 404),
        ("/api/v1/podlets", 404),
        (f"{MAPS}/a/b/c", 404),
        (f"{MAPS}?limit=many", 400),
        (f"{MAPS}?labelSelector=((", 400),
        (f"{MAPS}?watch=true&resourceVersion=new", 500),
    ],
)
async def test_paths_answer(client: aiohttp.ClientSession, path: str, status: int) -> None:
    async with client.get(path) as answer:
        body = await answer.json()
        assert answer.status == status
        assert (body["kind"] == "Status") if status >= 400 else body


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"k8s\x00garbage", "application/vnd.kubernetes.protobuf", 415),
        (b'{"kind":"Pod","metadata":{"name":"a"}}', "application/json", 400),
        (b'{"metadata":{"name":"a","namespace":"other"}}', "application/json", 400),
        (b'{"metadata":7}', "application/json", 400),
    ],
)
async def test_bodies_that_make_no_sense_are_refused(
    client: aiohttp.ClientSession, body: bytes, content_type: str, status: int
) -> None:
    async with client.post(MAPS, data=body, headers={"content-type": content_type}) as answer:
        assert answer.status == status
        assert (await answer.json())["status"] == "Failure"


async def test_an_unknown_field_is_warned_about(client: aiohttp.ClientSession) -> None:
    path = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets"
    body = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, **lws(shape="round")}
    async with client.post(path, json=body) as answer:
        assert answer.status == 201
        assert answer.headers["warning"] == '299 - "unknown field \\"spec.shape\\""'


@pytest.mark.parametrize(
    ("form", "kind"), [("Table", "Table"), ("PartialObjectMetadataList", "PartialObjectMetadataList")]
)
async def test_lists_come_in_the_form_that_is_asked_for(
    client: aiohttp.ClientSession, lws_server: ApiServer, form: str, kind: str
) -> None:
    lws_server.create(CONFIG_MAPS, config_map(a="1"))
    headers = {"accept": f"application/json;as={form};v=v1;g=meta.k8s.io,application/json"}
    async with client.get(MAPS, headers=headers) as answer:
        body: dict[str, Any] = await answer.json()
    assert body["kind"] == kind
    entry = body["rows"][0]["object"] if kind == "Table" else body["items"][0]
    assert entry["metadata"]["name"] == "settings"
    assert "data" not in entry


async def test_stopping_ends_the_watches(lws_server: ApiServer) -> None:
    served = Server(lws_server)
    await served.start()
    async with (
        aiohttp.ClientSession(headers={"authorization": f"Bearer {served.token}"}) as session,
        session.get(f"{served.url}{MAPS}?watch=true") as answer,
    ):
        lws_server.create(CONFIG_MAPS, config_map())
        assert b'"ADDED"' in await asyncio.wait_for(answer.content.readline(), 5)
        await asyncio.wait_for(served.stop(), 5)
        assert await answer.content.readline() == b""


async def test_a_client_that_leaves_its_watch_is_no_error(
    served: Server, client: aiohttp.ClientSession, lws_server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with client.get(f"{MAPS}?watch=true") as answer:
        assert answer.status == 200
        lws_server.create(CONFIG_MAPS, config_map())
        answer.close()
    served.gate.faults.cut_watches()
    async with client.get(MAPS) as answer:
        assert answer.status == 200
    await served.stop()
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_lost_answer_is_a_closed_connection(served: Server, client: aiohttp.ClientSession) -> None:
    served.gate.faults.add(Effect(lost=True))
    with pytest.raises(aiohttp.ClientError):
        await client.post(MAPS, json=config_map())
    async with client.get(MAPS) as answer:
        assert (await answer.json())["items"] == []
