"""The same kubeconfigs given to the command line, to the controller and to kubectl: each reaches the same server as the
same user, or each refuses.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollout_lws.cli.access.transport import Transport
from rollout_lws.errors import RolloutLwsError, UsageError
from rollout_lws.kube.connection import connect
from rollout_lws.kubeconfig.target import Target
from tests.cli.access.servers import Asked, api_server, http_proxy
from tests.cli.access.test_transport import data, server_side
from tests.e2e.certificates import Authority

_VERSION = "client.authentication.k8s.io/v1"


@dataclass
class Place:
    """Where kubeconfigs lead: an API server that knows clients by their certificates, and a proxy to it."""

    directory: Path
    asked: Asked
    by: Asked
    files: dict[str, str] = field(default_factory=dict)

    def fill(self, value: Any) -> Any:
        """``value`` with what stands in angle brackets filled in."""
        if isinstance(value, dict):
            return {name: self.fill(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.fill(each) for each in value]
        for name, text in self.files.items() if isinstance(value, str) else ():
            value = value.replace(f"<{name}>", text)
        return value

    def seen(self) -> dict[str, Any]:
        """What the server was asked last, as whom, and how."""
        told = {name.lower(): sorted(values) for name, values in self.asked.headers[-1].items()}
        seen: dict[str, Any] = {
            name: values for name, values in told.items() if name.startswith(("authorization", "impersonate-"))
        }
        if self.asked.clients[-1]:
            seen["client"] = self.asked.clients[-1]
        if self.asked.names[-1] not in (None, "127.0.0.1"):
            seen["name"] = self.asked.names[-1]
        if self.by.destinations:
            seen["proxy"] = True
        return seen


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory, authority = tmp_path_factory.mktemp("readers"), Authority("tests")
    tls = server_side(authority, directory, "127.0.0.1", "api.internal", clients=True)
    tls.verify_mode = ssl.CERT_OPTIONAL
    asked, by = Asked(), Asked()
    client = authority.client("jane")
    (directory / "ca.crt").write_bytes(authority.certificate)
    (directory / "client.crt").write_bytes(client.certificate)
    (directory / "client.key").write_bytes(client.key)
    (directory / "token").write_text("of the file")
    given = {"clientCertificateData": client.certificate.decode(), "clientKeyData": client.key.decode()}
    (directory / "certificate.json").write_text(_credential(**given))
    login = directory / "login"
    login.write_text(f"#!/bin/sh\necho '{_credential(token='beside')}'\n")
    login.chmod(0o755)
    with api_server(asked, tls) as port, http_proxy(by, port) as at:
        place = Place(directory, asked, by)
        place.files = {
            "server": f"https://127.0.0.1:{port}",
            "proxy": f"http://127.0.0.1:{at}",
            "dir": str(directory),
            "ca": data(authority.certificate),
            "other-ca": data(Authority("others").certificate),
            "crt": data(client.certificate),
            "key": data(client.key),
        }
        yield place


def _credential(version: str = _VERSION, **status: str) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def program(script: str, **more: Any) -> dict[str, Any]:
    shell = {"command": "sh", "args": ["-c", script], "interactiveMode": "Never"}
    return {"exec": {"apiVersion": _VERSION, **shell, **more}}


def said(**status: str) -> dict[str, Any]:
    return program(f"echo '{_credential(**status)}'")


def config(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": "<server>", **(_CA if cluster is None else cluster)}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user or {}}],
        **more,
    }


_CA = {"certificate-authority-data": "<ca>"}
_TOKEN = {"token": "t"}
_BEARER = {"authorization": ["Bearer t"]}
_FILES = {"client-certificate": "client.crt", "client-key": "<dir>/client.key"}
_ASKS_OF_CLUSTER = f"""
server=$(echo "$KUBERNETES_EXEC_INFO" | grep -o '"https://[^"]*"')
echo '{{"apiVersion": "{_VERSION}", "kind": "ExecCredential", "status": {{"token": '"$server"'}}}}'
"""

#: Kubeconfigs, and what the server sees of their reader.
REACHES: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "token": ([config(user=_TOKEN)], _BEARER),
    "token file": ([config(user={"tokenFile": "token"})], {"authorization": ["Bearer of the file"]}),
    "token and its file": (
        [config(user={"tokenFile": "<dir>/token"} | _TOKEN)],
        {"authorization": ["Bearer of the file"]},
    ),
    "token for a file that is not there": ([config(user={"tokenFile": "/not/there"} | _TOKEN)], _BEARER),
    "password": ([config(user={"username": "me", "password": "word"})], {"authorization": ["Basic bWU6d29yZA=="]}),
    "user without password": ([config(user={"username": "me"})], {"authorization": ["Basic bWU6"]}),
    "certificate": (
        [config(user={"client-certificate-data": "<crt>", "client-key-data": "<key>"})],
        {"client": "jane"},
    ),
    "certificate of files": ([config(user=_FILES)], {"client": "jane"}),
    "key of a file": (
        [config(user={"client-certificate-data": "<crt>", "client-key": "client.key"})],
        {"client": "jane"},
    ),
    "certificate and token": ([config(user=_FILES | _TOKEN)], {"client": "jane"} | _BEARER),
    "authority of a file": ([config({"certificate-authority": "ca.crt"}, _TOKEN)], _BEARER),
    "authority of a file and empty data": (
        [config({"certificate-authority": "<dir>/ca.crt", "certificate-authority-data": ""}, _TOKEN)],
        _BEARER,
    ),
    "any server": ([config({"insecure-skip-tls-verify": True}, _TOKEN)], _BEARER),
    "name": ([config(_CA | {"tls-server-name": "api.internal"}, _TOKEN)], {"name": "api.internal"} | _BEARER),
    "proxy": ([config(_CA | {"proxy-url": "<proxy>"}, _TOKEN)], {"proxy": True} | _BEARER),
    "path": ([config(_CA | {"server": "<server>/clusters/c-1/"}, _TOKEN)], _BEARER),
    "program": ([config(user=said(token="made"))], {"authorization": ["Bearer made"]}),
    "program that gives a certificate": ([config(user=program("cat <dir>/certificate.json"))], {"client": "jane"}),
    "program and token": ([config(user=said(token="made") | _TOKEN)], _BEARER),
    "program and certificate": ([config(user=said(token="made") | _FILES)], {"client": "jane"}),
    "program beside its kubeconfig": (
        [config(user={"exec": {"apiVersion": _VERSION, "command": "./login", "interactiveMode": "Never"}})],
        {"authorization": ["Bearer beside"]},
    ),
    "program and its environment": (
        [
            config(
                user=program(
                    f"echo '{_credential(token='of-')}' | sed s/of-/of-$WHOM/", env=[{"name": "WHOM", "value": "us"}]
                )
            )
        ],
        {"authorization": ["Bearer of-us"]},
    ),
    "program that is told of the cluster": (
        [config(user=program(_ASKS_OF_CLUSTER, provideClusterInfo=True))],
        {"authorization": ["Bearer <server>"]},
    ),
    "somebody else": (
        [config(user=_TOKEN | {"as": "joe", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"team": ["x"]}})],
        _BEARER
        | {"impersonate-user": ["joe"], "impersonate-uid": ["7"], "impersonate-group": ["a", "b"]}
        | {"impersonate-extra-team": ["x"]},
    ),
    "several files, of which the first wins": (
        [
            config(user=_TOKEN),
            config({"server": "https://other"}, {"token": "other"}, **{"current-context": "other"}),
        ],
        _BEARER,
    ),
    "several files, each with a part": (
        [
            {"current-context": "main", "users": [{"name": "u", "user": _TOKEN}]},
            config(user={"token": "other"}),
        ],
        _BEARER,
    ),
}

_MISSING = "not exist|No such"
#: Kubeconfigs, and what their reader is told.
REFUSED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "gcp": ([config(user={"auth-provider": {"name": "gcp"}})], "has an auth-provider"),
    "token and password": ([config(user={"username": "me"} | _TOKEN)], "both token and username"),
    "authority and none": ([config(_CA | {"insecure-skip-tls-verify": True})], "both certificate-authority-data and"),
    "authority twice": ([config(_CA | {"certificate-authority": "ca.crt"})], "both certificate-authority and"),
    "certificate twice": (
        [config(user=_FILES | {"client-certificate-data": "<crt>"})],
        "both client-certificate and client-certificate-data",
    ),
    "key twice": ([config(user=_FILES | {"client-key-data": "<key>"})], "both client-key and client-key-data"),
    "certificate without key": ([config(user={"client-certificate-data": "<crt>"})], "context .main."),
    "no certificate": (
        [config(user={"client-certificate": "/not/there", "client-key": "/not/there"})],
        _MISSING,
    ),
    "no authority": ([config({"certificate-authority": "/not/there"})], _MISSING),
    "another authority": ([config({"certificate-authority-data": "<other-ca>"}, _TOKEN)], "certificate verify failed"),
    "an authority that nobody knows": ([config({}, _TOKEN)], "certificate verify failed"),
    "another name": ([config(_CA | {"tls-server-name": "elsewhere"}, _TOKEN)], "certificate verify failed"),
    "no token file": ([config(user={"tokenFile": "/not/there"})], "No such file"),
    "two lines as a token": ([config(user={"token": "t\nt"})], "characters that no header may have"),
    "proxy of no kind": ([config(_CA | {"proxy-url": "ftp://proxy"}, _TOKEN)], "proxy-url"),
    "no program": ([config(user=program("true") | {"exec": {"apiVersion": _VERSION}})], "has no command"),
    "program without a version": ([config(user=program("true", apiVersion=""))], "has no apiVersion"),
    "program that is not there": ([config(user=program("true", command="no-such-login"))], "no-such-login"),
    "program that fails": ([config(user=program("exit 3"))], "3"),
    "program that says nothing": ([config(user=program("true"))], "login program failed|failed to decode"),
    "program of another version": ([config(user=said(version="other/v1", token="t"))], "other/v1"),
    "program that asks": ([config(user=program("true", interactiveMode="Always"))], "has to ask you something"),
    "group of nobody": ([config(user=_TOKEN | {"as-groups": ["a"]})], "give --as as well"),
    "no current context": ([config(**{"current-context": ""})], "no context is current"),
    "no such context": ([config(**{"current-context": "other"})], "no context 'other'"),
    "no such user": ([config(users=[])], "no user 'u'"),
    "no such cluster": ([config(clusters=[])], "no cluster 'c'"),
    "no server": ([config({"server": ""})], "cluster 'c' has no http:// or https:// server"),
}

#: Refused here, and not by kubectl.
STRICTER: dict[str, tuple[list[dict[str, Any]], str]] = {
    "oidc": ([config(user={"auth-provider": {"name": "oidc", "config": {"id-token": "t"}}})], "has an auth-provider"),
    "server without a scheme": ([config(_CA | {"server": "127.0.0.1:1"})], "no http:// or https:// server"),
}


def by_command_line() -> None:
    with Transport.to(Target(request_timeout=5)) as transport:
        transport.get("/version")


def by_controller() -> None:
    async def ask() -> None:
        connection = await connect()
        try:
            answer = await connection.request(
                "GET", "/version", params={}, body=None, content_type="application/json", timeout=5
            )
            assert answer.status == 200
        finally:
            await connection.close()

    asyncio.run(ask())


def by_kubectl() -> None:
    subprocess.run(["kubectl", "get", "--raw", "/version"], check=True, capture_output=True, timeout=60)


OURS = pytest.mark.parametrize("ask", [by_command_line, by_controller])


@pytest.fixture
def written(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[list[dict[str, Any]]], None]]:
    """Has $KUBECONFIG name these files, each in the place's directory, and the servers forget what they were asked."""
    paths: list[Path] = []

    def write(contents: list[dict[str, Any]]) -> None:
        for number, content in enumerate(contents):
            paths.append(place.directory / f"config-{number}")
            paths[-1].write_text(yaml.safe_dump(place.fill(content)))
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
        for annotated in (place.asked.headers, place.asked.clients, place.asked.names, place.by.destinations):
            annotated.clear()

    for name in ("HTTPS_PROXY", "https_proxy", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(place.directory))
    yield write
    for path in paths:
        path.unlink()


@OURS
@pytest.mark.parametrize("name", REACHES)
def test_the_same_server_is_reached_as_the_same_user(
    place: Place, written: Any, ask: Callable[[], None], name: str
) -> None:
    files, expected = REACHES[name]
    written(files)
    ask()
    assert place.seen() == place.fill(expected)


@OURS
@pytest.mark.parametrize("name", [*REFUSED, *STRICTER])
def test_what_cannot_be_meant_is_refused(place: Place, written: Any, ask: Callable[[], None], name: str) -> None:
    files, told = (REFUSED | STRICTER)[name]
    written(files)
    with pytest.raises(RolloutLwsError, match=told):
        ask()
    assert not place.asked.headers, "nothing was asked"


@pytest.mark.kubectl
@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", [*REACHES, *REFUSED])
def test_kubectl_does_the_same(place: Place, written: Any, name: str) -> None:
    written((REACHES | REFUSED)[name][0])  # type: ignore[operator]
    if name in REFUSED:
        with pytest.raises(subprocess.CalledProcessError):
            by_kubectl()
        assert not place.asked.headers, "nothing was asked"
    else:
        by_kubectl()
        assert place.seen() == place.fill(REACHES[name][1])


def test_the_controller_has_no_way_through_a_socks_proxy(written: Any) -> None:
    """The command line has."""
    written([config(_CA | {"proxy-url": "socks5://127.0.0.1:1080"})])
    with pytest.raises(
        UsageError, match=r"'socks5://127\.0\.0\.1:1080' is a SOCKS proxy, which neither the controller nor"
    ):
        by_controller()
