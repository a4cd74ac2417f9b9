"""`rollout-lws dashboard` as a person runs it."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.sandbox.faults import Effect
from tests.cli.conftest import World
from tests.cli.states import LOADING

pytestmark = pytest.mark.rare(2)

MAIN = (sys.executable, "-c", "from rollout_lws.cli.main import main; main()")


@contextmanager
def running(
    world: World, *arguments: str, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program, and the address that it has printed."""
    command = [*MAIN, "--kubeconfig", str(world.kubeconfig), "dashboard", "--port", "0", *arguments]
    pipe, variables = subprocess.PIPE, {**os.environ, **environment}
    # A shell has jobs in the background ignore SIGINT, of which these tests may be one.
    heeding = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=variables, preexec_fn=heeding) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = re.search(r"http://\S+", line)
            assert found, line + (process.stderr.read() if process.stderr is not None else "")
            yield process, found[0]
        finally:
            process.kill()


def ended(process: subprocess.Popen[str], number: int) -> tuple[int, str]:
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    return process.returncode, said.strip()


@contextmanager
def answer_of(url: str, path: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    with closing(connection):
        connection.request("GET", path, headers=headers)
        with connection.getresponse() as answer:
            yield answer


def cookie_of(url: str) -> str:
    parts = urlsplit(url)
    with answer_of(url, f"{parts.path}?{parts.query}") as answer:
        assert answer.status == 303
        return str(answer.headers["Set-Cookie"]).partition(";")[0]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_prints_where_it_is_and_ends_at_once_though_a_page_is_open(world: World, number: int, code: int) -> None:
    world.release(**LOADING)
    with running(world, "llama", "--no-browser") as (process, url):
        parts = urlsplit(url)
        assert (parts.hostname, parts.path) == ("127.0.0.1", "/default/llama")
        with answer_of(url, "/-/stream/release/default/llama", Cookie=cookie_of(url)) as answer:
            assert answer.readline() == b"event: hello\n"
            began = time.monotonic()
            assert ended(process, number) == (code, "Ctrl-C ends it")
            assert time.monotonic() - began < 5


def test_it_ends_at_once_though_the_api_server_does_not_answer(world: World) -> None:
    world.release(**LOADING)
    with running(world, "--no-browser") as (process, url):
        asked = threading.Event()
        world.on_request("list", "controllerrevisions", asked.set)
        world.http.gate.faults.add(Effect(delay=20), "list", "controllerrevisions")
        with closing(http.client.HTTPConnection(urlsplit(url).netloc)) as connection:
            connection.request("GET", "/-/history/default/llama", headers={"Cookie": cookie_of(url)})
            assert asked.wait(30)
            began = time.monotonic()
            assert ended(process, signal.SIGINT)[0] == 130
            assert time.monotonic() - began < 5


def test_it_opens_the_browser_without_a_secret_among_the_arguments(world: World, tmp_path: Path) -> None:
    told, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {told}.new && mv {told}.new {told}\n')
    browser.chmod(0o755)
    with running(world, environment={"BROWSER": str(browser), "HOME": str(tmp_path)}) as (process, printed):
        while not told.exists():
            assert process.poll() is None
            time.sleep(0.02)
        opened = told.read_text().strip()
        assert opened.startswith(tmp_path.as_uri())
        assert "token" not in opened
        file = Path(opened.removeprefix("file://"))
        found = re.search(r'href="(http://[^"]+)"', file.read_text())
        assert found and found[1] != printed
        assert cookie_of(found[1]) == cookie_of(printed)
        while file.parent.exists():
            assert process.poll() is None
            time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_no_browser_is_told_and_nothing_is_left_in_the_home(world: World, tmp_path: Path, number: int) -> None:
    environment = {"BROWSER": "/bin/false", "PATH": str(tmp_path), "HOME": str(tmp_path)}
    with running(world, environment=environment) as (process, _):
        assert process.stderr is not None
        assert process.stderr.readline() == "Ctrl-C ends it\n"
        assert "no browser could be opened here: open the address above yourself" in process.stderr.readline()
        ended(process, number)
    assert not list(tmp_path.glob("rollout-lws-*"))


def test_an_address_that_is_not_loopback_is_warned_of_and_asks_for_the_token_all_the_same(world: World) -> None:
    with running(world, "--no-browser", "--address", "0.0.0.0", "--host", "wall.example") as (process, url):
        port = urlsplit(url).port
        codes = []
        for host in ("wall.example", "evil.example"):
            with answer_of(f"http://127.0.0.1:{port}", "/", Host=f"{host}:{port}") as answer:
                codes.append(answer.status)
        assert codes == [401, 421]
        _, said = ended(process, signal.SIGINT)
    assert "rollout-lws: 0.0.0.0 is not loopback: all who have that address act with your rights" in said


def test_who_may_not_list_everywhere_gets_the_namespace_of_the_context(world: World) -> None:
    world.release(**LOADING)
    refused = Effect(refusal=ApiError(403, "Forbidden", 'rollouts is forbidden: User "jane" cannot list'))
    world.http.gate.faults.add(refused, "list", "rollouts")
    with running(world, "--no-browser") as (process, url):
        with answer_of(url, "/-/stream/list", Cookie=cookie_of(url)) as answer:
            lines = [answer.readline() for _ in range(2)]
        assert b'"namespace":"default"' in lines[1]
        _, said = ended(process, signal.SIGINT)
    assert "Of namespace default alone: you may not list the Rollouts of all of them" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nobody",), "there is no Rollout 'nobody' in namespace 'default'"),
        (("--address", "192.0.2.1"), "cannot be listened on"),
        (("--address", "no.such.name.invalid"), "cannot be listened on"),
    ],
)
def test_what_cannot_be_shown_is_told_in_a_line(world: World, arguments: tuple[str, ...], words: str) -> None:
    result = world.run("dashboard", "--no-browser", "--port", "0", *arguments)
    assert (result.exit_code, words in str(result.exception)) == (1, True)
