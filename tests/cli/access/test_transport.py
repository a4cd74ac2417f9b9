"""Requests over a real wire: TLS both ways, names, proxies of each kind, and logins that end."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.cli.access.transport import Transport
from rollout_lws.errors import ApiError, Unreachable, UsageError
from rollout_lws.kubeconfig.context import Context
from tests.cli.access.servers import Asked, api_server, http_proxy, socks_proxy
from tests.e2e.certificates import Authority, Certificate

NO_PEM = base64.b64encode(b"no certificate").decode()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("tests")


def data(content: bytes) -> str:
    return base64.b64encode(content).decode()


def server_side(authority: Authority, directory: Path, *names: str, clients: bool = False) -> ssl.SSLContext:
    issued = authority.server(*names)
    chain = directory / f"{'-'.join(names)}.pem"
    chain.write_bytes(issued.certificate + issued.key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(chain)
    if clients:
        tls.load_verify_locations(cadata=authority.certificate.decode())
        tls.verify_mode = ssl.CERT_REQUIRED
    return tls


def ask(
    server: str, user: dict[str, Any] | None = None, environment: dict[str, str] | None = None, **cluster: Any
) -> Any:
    context = Context("main", server, "default", cluster, user or {})
    with Transport(context, 10, environment or {}) as transport:
        return transport.get("/version")


@contextmanager
def secured(authority: Authority, directory: Path, asked: Asked, *names: str, **more: Any) -> Iterator[str]:
    with api_server(asked, server_side(authority, directory, *names, **more)) as port:
        yield f"https://127.0.0.1:{port}"


def test_every_header_arrives_also_those_of_one_name() -> None:
    asked = Asked()
    user = {"token": "t", "as": "jane", "as-groups": ["dev", "ops"]}
    with api_server(asked) as port:
        assert ask(f"http://127.0.0.1:{port}", user) == {}
    (told,) = asked.headers
    assert told["Authorization"] == ["Bearer t"]
    assert (told["Impersonate-User"], told["Impersonate-Group"]) == (["jane"], ["dev", "ops"])


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ({"token": "SECRET\nSECRET"}, "the token for context 'main' has characters that no header may have"),
        ({"token": "SECRET€"}, "the token for context 'main' has characters"),
        ({"token": "t", "as": "SECRET\r\nx: y"}, "the value of the header Impersonate-User for context 'main' has"),
    ],
)
def test_what_no_header_may_have_is_not_quoted(user: dict[str, Any], told: str) -> None:
    with api_server(Asked()) as port, pytest.raises(UsageError, match=told) as refused:
        ask(f"http://127.0.0.1:{port}", user)
    assert "SECRET" not in str(refused.value)


def test_an_answer_that_is_nested_too_deep_is_read_without_its_depths() -> None:
    deep = b'{"a":' * 9_999 + b"1" + b"}" * 9_999
    with api_server(Asked(answer=b'{"items":[{"data":' + deep + b'},{"revision":2}]}')) as port:
        found = ask(f"http://127.0.0.1:{port}")
    assert found["items"][1] == {"revision": 2}
    assert found["items"][0]["data"]["a"]


def test_a_server_is_known_by_its_authority(authority: Authority, tmp_path: Path) -> None:
    asked = Asked()
    with secured(authority, tmp_path, asked, "127.0.0.1") as server:
        assert ask(server, **{"certificate-authority-data": data(authority.certificate)}) == {}
        with pytest.raises(Unreachable, match="certificate verify failed"):
            ask(server)
        assert ask(server, **{"insecure-skip-tls-verify": True}) == {}


def test_a_server_may_have_another_name_than_its_address(authority: Authority, tmp_path: Path) -> None:
    asked = Asked()
    known = {"certificate-authority-data": data(authority.certificate)}
    with secured(authority, tmp_path, asked, "api.internal") as server:
        with pytest.raises(Unreachable, match="certificate verify failed"):
            ask(server, **known)
        assert ask(server, **known, **{"tls-server-name": "api.internal"}) == {}
    assert asked.names[-1] == "api.internal"


@pytest.mark.parametrize("as_files", [False, True])
def test_a_client_is_known_by_its_certificate(authority: Authority, tmp_path: Path, as_files: bool) -> None:
    asked, issued = Asked(), authority.client("jane")
    with secured(authority, tmp_path, asked, "127.0.0.1", clients=True) as server:
        ask(server, _as_user(issued, tmp_path, as_files), **{"certificate-authority-data": data(authority.certificate)})
    assert asked.clients == ["jane"]


def _as_user(issued: Certificate, directory: Path, as_files: bool) -> dict[str, Any]:
    if not as_files:
        return {"client-certificate-data": data(issued.certificate), "client-key-data": data(issued.key)}
    (directory / "client.crt").write_bytes(issued.certificate)
    (directory / "client.key").write_bytes(issued.key)
    return {"client-certificate": str(directory / "client.crt"), "client-key": str(directory / "client.key")}


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"certificate-authority": "/not/there"}, {}),
        ({"certificate-authority-data": NO_PEM}, {}),
        ({"certificate-authority-data": "a"}, {}),
        ({}, {"tokenFile": "/not/there"}),
        ({}, {"client-certificate": "/not/there"}),
        ({}, {"client-certificate-data": NO_PEM, "client-key-data": NO_PEM}),
    ],
)
def test_credentials_that_cannot_be_read_are_one_clear_error(
    authority: Authority, tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    trust = cluster or {"certificate-authority-data": data(authority.certificate)}
    with (
        secured(authority, tmp_path, Asked(), "127.0.0.1") as server,
        pytest.raises(UsageError, match=r"of context 'main' cannot be read: .*; correct the kubeconfig"),
    ):
        ask(server, user, **trust)


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
def test_a_server_behind_a_proxy(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """The proxy is asked for the server's name, which nobody here can resolve."""
    asked, by = Asked(), Asked()
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(ca))
    known = {"certificate-authority-data": data(authority.certificate)}
    with secured(authority, tmp_path, asked, "api.nowhere.invalid") as server:
        port = int(server.rpartition(":")[2])
        way = {
            "http": lambda: http_proxy(by, port),
            "https": lambda: http_proxy(by, port, server_side(authority, tmp_path, "127.0.0.1")),
            "socks5": lambda: socks_proxy(by, port),
        }[scheme]()
        with way as at:
            proxy = f"{scheme}://me:p%40ss@127.0.0.1:{at}"
            assert ask("https://api.nowhere.invalid:6443", {"token": "t"}, **known, **{"proxy-url": proxy}) == {}
            assert ask("https://api.nowhere.invalid:6443", {"token": "t"}, {"HTTPS_PROXY": proxy}, **known) == {}
    assert by.destinations == [("api.nowhere.invalid", 6443)] * 2
    told = {"socks5": "me:p@ss"}.get(scheme, "Basic " + data(b"me:p@ss"))
    assert by.authorizations == [told] * 2
    assert [each["Authorization"] for each in asked.headers] == [["Bearer t"]] * 2


def test_a_proxy_that_refuses_is_named() -> None:
    with (
        http_proxy(Asked(), 0, status="407 Proxy Authentication Required") as at,
        pytest.raises(Unreachable, match=r"the proxy 127\.0\.0\.1 answered 407 Proxy Authentication Required"),
    ):
        ask("https://api.nowhere.invalid", **{"proxy-url": f"http://127.0.0.1:{at}"})


def _read(transport: Transport) -> None:
    transport.get("/version")


def _watched(transport: Transport) -> None:
    list(transport.watch("/api/v1/pods", "1"))


@pytest.mark.parametrize("asked", [_read, _watched])
@pytest.mark.parametrize("path", ["/token/SECRET", "/token/SECRET with blanks"])
def test_who_does_not_answer_is_named_without_the_secrets_of_its_url(
    asked: Callable[[Transport], None], path: str
) -> None:
    with Transport(Context("main", f"http://bob:hunter2@127.0.0.1:1{path}", "default"), 10, {}) as transport:
        with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:1") as told:
            asked(transport)
        assert transport.cluster == "main (http://127.0.0.1:1)"
    assert not [each for each in ("bob", "hunter2", "SECRET") if each in str(told.value)]


def test_a_login_that_ended_is_asked_for_once_more(tmp_path: Path) -> None:
    asked, token = Asked(tokens={"new"}), tmp_path / "token"
    token.write_text("old")
    user = {"tokenFile": str(token)}
    with (
        api_server(asked) as port,
        Transport(Context("main", f"http://127.0.0.1:{port}", "default", {}, user), 10, {}) as transport,
    ):
        with pytest.raises(ApiError, match="Unauthorized; log in again") as caught:
            transport.get("/version")
        assert caught.value.code == 401
        assert len(asked.headers) == 2, "once more, and no more"
        token.write_text("new")
        assert transport.get("/version") == {}


def test_a_connection_that_the_server_has_ended_meanwhile_is_made_anew() -> None:
    asked = Asked()
    with (
        api_server(asked, idle=0.2) as port,
        Transport(Context("main", f"http://127.0.0.1:{port}", "default"), 10, {}) as transport,
    ):
        assert transport.get("/version") == {}
        assert asked.closed.wait(30), "the server ends a connection that nobody uses"
        assert transport.get("/version") == {}
    assert len(asked.headers) == 2


ROLLOUT = "/apis/rollouts.kruise.io/v1beta1/namespaces/prod/rollouts/llama"
BUSY = (429, "0.01")


@contextmanager
def reached(asked: Asked, timeout: float = 10) -> Iterator[Transport]:
    with (
        api_server(asked) as port,
        Transport(Context("main", f"http://127.0.0.1:{port}", "default", {}, {}), timeout, {}) as transport,
    ):
        yield transport


@pytest.mark.parametrize("busy", [BUSY, (503, "0.01")], ids=["429", "503"])
def test_a_server_that_is_busy_is_asked_again_when_it_says(busy: tuple[int, str]) -> None:
    asked = Asked(busy=[busy] * 10)
    with reached(asked) as transport:
        assert transport.get(ROLLOUT) == {}
    assert len(asked.headers) == 11


def test_a_write_that_was_not_done_is_sent_again() -> None:
    asked = Asked(busy=[BUSY, BUSY])
    with reached(asked) as transport:
        assert transport.merge_patch(f"{ROLLOUT}/status", {"status": {}}) == {}
    assert asked.bodies == [b'{"status":{}}'] * 3


def test_a_server_that_stays_busy_is_told_with_what_was_asked_for() -> None:
    with reached(Asked(busy=[BUSY] * 20)) as transport, pytest.raises(ApiError) as raised:
        transport.merge_patch(f"{ROLLOUT}/status", {"status": {}})
    assert raised.value.code == 429
    assert raised.value.message == (
        f"the API server is too busy for PATCH {ROLLOUT}/status, asked 11 times: storage is (re)initializing; nothing"
        " was done: try again, and look at the API server's load if it stays so"
    )


@pytest.mark.parametrize("after", ["2", ""], ids=["as it says", "without a word"])
def test_no_request_lasts_longer_than_its_timeout(after: str) -> None:
    asked = Asked(busy=[(429, after)] * 20)
    with reached(asked, timeout=0.5) as transport, pytest.raises(ApiError, match="namespaces/prod/pods, asked once"):
        transport.get("/api/v1/namespaces/prod/pods")
    assert len(asked.headers) == 1


def test_no_request_is_repeated_beyond_the_end_of_its_command() -> None:
    asked = Asked(busy=[(429, "2")] * 20)
    with reached(asked) as transport, pytest.raises(ApiError, match="too busy for GET /api/v1/nodes, asked once"):
        transport.until(time.monotonic() + 1)
        transport.get("/api/v1/nodes")
    assert len(asked.headers) == 1


def test_any_other_refusal_is_told_at_once() -> None:
    asked = Asked(busy=[(503, "")])
    with reached(asked) as transport, pytest.raises(ApiError, match=r"^not now$"):
        transport.get(ROLLOUT)
    assert len(asked.headers) == 1
