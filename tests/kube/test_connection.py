"""The real wire, against a small server on the loopback, and kubeconfig files as people write them."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from rollout_lws.errors import ApiError, NotLeading, Unreachable, UsageError
from rollout_lws.kube.connection import Connection, connect
from rollout_lws.kube.transport import Relay, TooLong

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def kubeconfig(folder: Path, server: str, user: dict[str, Any] | None = None, **cluster: Any) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user or {}}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return str(path)


@asynccontextmanager
async def connected(
    folder: Path, handler: Handler, user: dict[str, Any] | None = None, **cluster: Any
) -> AsyncIterator[Connection]:
    async with serving(handler) as server:
        connection = await connect(kubeconfig(folder, server, user, **cluster))
        try:
            yield connection
        finally:
            await connection.close()


@pytest.fixture
def nowhere() -> Iterator[str]:
    """The address of a server that is not there; nobody else can take its port meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


async def ask(connection: Connection, method: str = "GET", body: bytes | None = None, timeout: float = 5.0) -> Any:  # noqa: ASYNC109
    return await connection.request(
        method, "/api/v1/pods", params={"limit": "5"}, body=body, content_type="application/json", timeout=timeout
    )


async def read(connection: Connection, silence: float = 5.0) -> list[bytes]:
    async with connection.stream("/api/v1/pods", params={"a": "b"}, timeout=silence) as lines:
        return [line async for line in lines]


def streaming(*chunks: bytes, cut: bool = False, stay: bool = False) -> Handler:
    """A watch that sends ``chunks`` and ends, is cut without an end, or stays open in silence."""

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0.005)
        if stay:
            await asyncio.sleep(5)
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return handle


async def echo(request: web.Request) -> web.Response:
    seen = {
        "method": request.method,
        "query": dict(request.query),
        "body": (await request.read()).decode(),
        "headers": {name.lower(): value for name, value in request.headers.items()},
    }
    return web.json_response(seen, headers={"Retry-After": "7"})


async def test_a_request_arrives_as_it_was_meant_and_header_names_of_the_answer_are_lower_case(tmp_path: Path) -> None:
    async with connected(tmp_path, echo, {"token": "secret"}) as connection:
        answer = await ask(connection, "POST", b'{"a":1}')
    seen = json.loads(answer.body)
    assert (answer.status, answer.headers["retry-after"]) == (200, "7")
    assert (seen["method"], seen["query"], seen["body"]) == ("POST", {"limit": "5"}, '{"a":1}')
    assert seen["headers"]["content-type"] == "application/json"
    assert seen["headers"]["authorization"] == "Bearer secret"
    assert seen["headers"]["user-agent"] == "rollout-lws"


async def test_a_token_is_sent_without_its_line_end_and_one_that_no_header_may_have_is_not_quoted(
    tmp_path: Path,
) -> None:
    async with connected(tmp_path, echo, {"token": "secret\n"}) as connection:
        seen = json.loads((await ask(connection)).body)
    assert seen["headers"]["authorization"] == "Bearer secret"
    async with connected(tmp_path, echo, {"token": "secret\nsecret"}) as connection:
        for asked in (ask(connection), read(connection)):
            with pytest.raises(Unreachable, match="token has characters that no header may have") as told:
                await asked
            assert "secret" not in str(told.value)


async def test_a_user_with_a_password_is_authenticated(tmp_path: Path) -> None:
    async with connected(tmp_path, echo, {"username": "me", "password": "word"}) as connection:
        seen = json.loads((await ask(connection)).body)
    assert seen["headers"]["authorization"] == "Basic bWU6d29yZA=="


async def test_a_login_program_gives_the_token(tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1"
    program = tmp_path / "login.py"
    program.write_text(
        f'print(\'{{"apiVersion": "{version}", "kind": "ExecCredential", "status": {{"token": "made"}}}}\')'
    )
    user = {"exec": {"apiVersion": version, "command": sys.executable, "args": [str(program)]}}
    async with connected(tmp_path, echo, user) as connection:
        seen = json.loads((await ask(connection)).body)
    assert seen["headers"]["authorization"] == "Bearer made"


@pytest.mark.looptime
async def test_a_token_file_that_changed_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    connection = await connect(kubeconfig(tmp_path, "http://127.0.0.1:1", {"tokenFile": str(token)}))
    token.write_text("new")
    assert dict(await connection._headers(None))["authorization"] == "Bearer old"
    await asyncio.sleep(61)
    assert dict(await connection._headers(None))["authorization"] == "Bearer new"
    await connection.close()


async def test_environment_proxies_are_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with connected(tmp_path, echo) as connection:
        assert (await ask(connection)).status == 200


async def test_the_proxy_of_the_kubeconfig_is_asked(tmp_path: Path) -> None:
    async with serving(echo) as proxy:
        connection = await connect(kubeconfig(tmp_path, "http://cluster.invalid", **{"proxy-url": proxy}))
        seen = json.loads((await ask(connection)).body)
        await connection.close()
    assert seen["headers"]["host"] == "cluster.invalid"


async def test_what_does_not_answer_is_named_without_the_secrets_of_its_url(tmp_path: Path, nowhere: str) -> None:
    """A proxy that wants another password, and a server that does not answer in time."""

    async def refused(_: web.Request) -> web.Response:
        return web.Response(status=407)

    async def silent(_: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async with serving(refused) as proxy, serving(silent) as server:
        secret = proxy.replace("://", "://bob:hunter2@")
        ways: list[tuple[str, dict[str, str]]] = [
            ("https://cluster.invalid/SECRET", {"proxy-url": secret}),
            (f"{nowhere}/SECRET", {"proxy-url": "http://bob:hunter2@127.0.0.1:1"}),
            (f"{server}/SECRET", {}),
        ]
        for host, cluster in ways:
            connection = await connect(kubeconfig(tmp_path, host, **cluster))
            for path in ("/version", "watch"):
                with pytest.raises(Unreachable) as told:
                    if path == "watch":
                        async with connection.stream("/api/v1/pods", params={}, timeout=0.2):
                            pass
                    else:
                        await connection.request(
                            "GET", path, params={}, body=None, content_type="application/json", timeout=0.2
                        )
                assert not [each for each in ("bob", "hunter2", "SECRET") if each in str(told.value)], str(told.value)
            await connection.close()


async def test_the_tls_server_name_of_the_kubeconfig_is_asked_for(tmp_path: Path, nowhere: str) -> None:
    names: list[Any] = []
    connection = await connect(kubeconfig(tmp_path, nowhere, **{"tls-server-name": "api.internal"}))
    original = connection._session._request

    async def spy(*args: Any, **kwargs: Any) -> Any:
        names.append(kwargs.get("server_hostname"))
        return await original(*args, **kwargs)

    connection._session._request = spy  # type: ignore[method-assign]
    with pytest.raises(Unreachable):
        await ask(connection)
    with pytest.raises(Unreachable):
        await read(connection)
    await connection.close()
    assert names == ["api.internal", "api.internal"]


async def test_an_error_status_is_an_answer_and_not_an_exception(tmp_path: Path) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=502, text="<html>Bad Gateway</html>", content_type="text/html")

    async with connected(tmp_path, refuse) as connection:
        answer = await ask(connection)
        assert (answer.status, answer.body) == (502, b"<html>Bad Gateway</html>")
        with pytest.raises(ApiError, match="HTTP 502 Bad Gateway") as caught:
            await read(connection)
        assert caught.value.code == 502


RELAY = Relay("POST", {"accept": "*/*", "x-team": "a"}, b"{}", 5.0, 1024)
BEHIND = "/api/v1/namespaces/prod/pods/a%3A80/proxy/gate"


async def test_a_request_for_a_pod_has_its_own_headers_and_the_clients_credentials(tmp_path: Path) -> None:
    asked = replace(RELAY, headers={**RELAY.headers, "Authorization": "Bearer other", "impersonate-user": "root"})
    user = {"token": "ours", "as": "me"}
    async with connected(tmp_path, echo, user) as connection:
        answer = await connection.relay(BEHIND, replace(asked, longest=4096))
    told = json.loads(answer.body)
    assert (told["method"], told["body"]) == ("POST", "{}")
    headers = {name.lower(): text for name, text in told["headers"].items()}
    assert {name: headers.get(name) for name in ("authorization", "impersonate-user", "accept", "x-team")} == {
        "authorization": "Bearer ours",
        "impersonate-user": "me",
        "accept": "*/*",
        "x-team": "a",
    }


async def test_a_redirect_of_a_pod_is_an_answer(tmp_path: Path) -> None:
    seen = []

    async def moved(request: web.Request) -> web.Response:
        seen.append(request.path)
        return web.Response(status=302, headers={"location": "/api/v1/namespaces/prod/secrets"})

    async with connected(tmp_path, moved) as connection:
        answer = await connection.relay(BEHIND, replace(RELAY, method="GET", body=None))
    assert (answer.status, answer.headers["location"]) == (302, "/api/v1/namespaces/prod/secrets")
    assert len(seen) == 1


async def test_of_a_pods_answer_no_more_is_read_than_is_asked_for(tmp_path: Path) -> None:
    async def long(_: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1025)

    async with connected(tmp_path, long) as connection:
        with pytest.raises(TooLong, match="more than 1 KiB"):
            await connection.relay(BEHIND, RELAY)
        assert len((await connection.relay(BEHIND, replace(RELAY, longest=1025))).body) == 1025


async def test_a_packed_answer_of_a_pod_stays_packed(tmp_path: Path) -> None:
    async def packed(_: web.Request) -> web.Response:
        response = web.Response(body=b"x" * 2**20)
        response.enable_compression(web.ContentCoding.gzip)
        return response

    async with connected(tmp_path, packed) as connection:
        answer = await connection.relay(BEHIND, replace(RELAY, longest=4096))
    assert answer.headers["content-encoding"] == "gzip"
    assert len(answer.body) < 4096


async def test_a_pod_that_is_not_there_is_unreachable(tmp_path: Path, nowhere: str) -> None:
    connection = await connect(kubeconfig(tmp_path, nowhere))
    with pytest.raises(Unreachable, match=r"POST .*/proxy/gate: no answer"):
        await connection.relay(BEHIND, RELAY)
    await connection.close()


async def test_a_refused_watch_raises_its_status(tmp_path: Path) -> None:
    async def gone(_: web.Request) -> web.Response:
        status = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}
        return web.json_response(status, status=410)

    async with connected(tmp_path, gone) as connection:
        with pytest.raises(ApiError, match="too old") as caught:
            await read(connection)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


async def test_no_server_and_no_answer_in_time_are_both_unreachable(tmp_path: Path, nowhere: str) -> None:
    async with connected(tmp_path, streaming(stay=True)) as connection:
        with pytest.raises(Unreachable, match="GET /api/v1/pods"):
            await ask(connection, timeout=0.05)
    connection = await connect(kubeconfig(tmp_path, nowhere))
    with pytest.raises(Unreachable):
        await ask(connection)
    with pytest.raises(Unreachable):
        await read(connection)
    await connection.close()


async def test_a_watch_whose_server_does_not_take_the_connection_is_given_up_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollout_lws.kube.connection._CONNECT_SECONDS", 0.1)
    with socket.socket() as deaf, socket.socket() as first, socket.socket() as second:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        connection = await connect(kubeconfig(tmp_path, f"http://127.0.0.1:{deaf.getsockname()[1]}"))
        async with asyncio.timeout(5):
            with pytest.raises(Unreachable, match="did not begin"):
                await read(connection, silence=60)
        await connection.close()


async def test_lines_are_found_wherever_the_chunks_are_cut(tmp_path: Path) -> None:
    async with connected(tmp_path, streaming(b'{"a', b'":1}\n{"b":2}\n{', b'"c":3}\n')) as connection:
        assert await read(connection) == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


async def test_a_watch_asks_for_a_watch(tmp_path: Path) -> None:
    async with connected(tmp_path, echo) as connection:
        (line,) = await read(connection)
    assert json.loads(line)["query"] == {"a": "b", "watch": "true"}


async def test_a_line_may_be_longer_than_any_buffer_but_not_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = b"x" * 3_000_000
    async with connected(tmp_path, streaming(long + b"\n")) as connection:
        assert await read(connection) == [long]
        monkeypatch.setattr("rollout_lws.kube.connection._LINE_LIMIT", 1_000_000)
    async with connected(tmp_path, streaming(long, long)) as connection:
        with pytest.raises(Unreachable, match="line without end"):
            await read(connection)


@pytest.mark.parametrize("handler", [streaming(b'{"a":1}\n', stay=True), streaming(b'{"a":1}\n', cut=True)])
async def test_a_watch_that_falls_silent_or_is_cut_is_unreachable(tmp_path: Path, handler: Handler) -> None:
    got: list[bytes] = []
    async with connected(tmp_path, handler) as connection:
        with pytest.raises(Unreachable, match="was cut"):
            async with connection.stream("/api/v1/pods", params={}, timeout=0.1) as lines:
                async for line in lines:
                    got.append(line)
    assert got == [b'{"a":1}']


async def test_a_watch_whose_server_never_begins_to_answer_is_unreachable(tmp_path: Path) -> None:
    async def hang(_: web.Request) -> web.Response:
        await asyncio.sleep(5)
        raise AssertionError

    async with connected(tmp_path, hang) as connection:
        with pytest.raises(Unreachable, match="did not begin"):
            await read(connection, silence=0.1)


async def test_errors_of_whoever_reads_a_watch_stay_what_they_are(tmp_path: Path) -> None:
    async with connected(tmp_path, streaming(b'{"a":1}\n', stay=True)) as connection:
        with pytest.raises(TimeoutError, match="mine"):
            async with connection.stream("/api/v1/pods", params={}, timeout=5) as lines:
                async for _ in lines:
                    raise TimeoutError("mine")


async def test_many_watches_do_not_keep_requests_waiting(tmp_path: Path) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        return await (streaming(b"{}\n", stay=True) if "watch" in request.query else echo)(request)

    async with connected(tmp_path, serve) as connection:
        open_watches = asyncio.Semaphore(0)

        async def follow() -> None:
            async with connection.stream("/api/v1/pods", params={}, timeout=30) as lines:
                async for _ in lines:
                    open_watches.release()

        watches = [asyncio.create_task(follow()) for _ in range(130)]
        try:
            async with asyncio.timeout(20):
                for _ in watches:
                    await open_watches.acquire()
            assert (await ask(connection)).status == 200
        finally:
            for each in watches:
                each.cancel()
            await asyncio.gather(*watches, return_exceptions=True)


async def test_a_401_makes_the_login_be_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollout_lws.kube.login._REFUSED_SECONDS", 0.0)
    token = tmp_path / "token"
    token.write_text("old")

    async def choosy(request: web.Request) -> web.Response:
        return web.Response(status=200 if request.headers.get("authorization") == "Bearer new" else 401)

    async with connected(tmp_path, choosy, {"tokenFile": str(token)}) as connection:
        assert (await ask(connection)).status == 401
        token.write_text("new")
        assert (await ask(connection)).status == 200


async def test_a_context_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="elsewhere"):
        await connect(kubeconfig(tmp_path, "http://127.0.0.1:1"), "elsewhere")


async def test_a_login_that_cannot_be_had_names_its_context(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-login"}}
    with pytest.raises(UsageError, match=r"no access to a cluster by context 'main': .*no-such-login.*--kubeconfig"):
        await connect(kubeconfig(tmp_path, "http://127.0.0.1:1", user))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("passes", [True, False], ids=["passes", "stopped"])
async def test_a_guard_is_asked_as_the_bytes_go_out_and_may_keep_them_all(
    method: str, passes: bool, tmp_path: Path
) -> None:
    """By a server that looks at every byte: what a process wrote that was stopped must not be half a request."""
    arrived, ended = bytearray(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(1 << 16):
            arrived.extend(chunk)
            if arrived.endswith(b"the body"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
                break
        writer.close()
        ended.set()

    asked: list[bytes] = []

    def guard() -> None:
        asked.append(bytes(arrived))
        if not passes:
            raise NotLeading("not now")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    connection = await connect(kubeconfig(tmp_path, address))
    try:
        sending = connection.request(
            method, "/x", params={}, body=b"the body", content_type="text/plain", timeout=5.0, guard=guard
        )
        if passes:
            assert (await sending).status == 200
        else:
            with pytest.raises(Unreachable):
                await sending
        await ended.wait()
    finally:
        await connection.close()
        server.close()
    # It was asked before anything had arrived, and nothing has where it said no.
    assert asked == [b""]
    assert bool(arrived) is passes


async def test_a_pods_answer_without_end_is_left(tmp_path: Path) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while request.transport is not None and not request.transport.is_closing():
            await response.write(b"a" * 65_536)
        return response

    async with connected(tmp_path, handle) as connection:
        with pytest.raises(TooLong, match="more than 1 KiB"):
            await connection.relay(BEHIND, RELAY)


async def test_a_pod_that_answers_a_byte_now_and_then_is_left_after_the_whole_time(tmp_path: Path) -> None:
    async with connected(tmp_path, streaming(*([b"a"] * 1_000))) as connection:
        with pytest.raises(Unreachable, match="no answer"):
            await connection.relay(BEHIND, replace(RELAY, seconds=0.2))
