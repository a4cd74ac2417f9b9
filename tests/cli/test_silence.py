"""Servers that take a connection and say nothing, or end every answer at once: who waits says so, and rests."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.cli.watch import stream
from rollout_lws.cli.watch.cache import WatchCache
from rollout_lws.cli.watch.stream import follow
from rollout_lws.kubeconfig.context import Context

ROLLOUT = {"metadata": {"name": "llama", "namespace": "default", "uid": "u", "resourceVersion": "7"}}
LIST = b'{"metadata":{"resourceVersion":"7"},"items":[]}'


class Listener:
    """Counts connections; ``answers`` are what each gets that is not a watch, None for silence."""

    def __init__(self, server: socket.socket, answer: bytes | None) -> None:
        self.url = f"http://127.0.0.1:{server.getsockname()[1]}"
        self.watches = 0
        self._server, self._answer = server, answer
        self._kept: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._kept.append(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            while asked := connection.recv(65536):
                watch = b"watch=true" in asked
                self.watches += watch
                if self._answer is None:
                    continue
                body = b"" if watch else self._answer
                head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)


@contextmanager
def listening(answer: bytes | None) -> Iterator[Listener]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Listener(server, answer)


def transport(listener: Listener, timeout: float = 0.1) -> Transport:
    return Transport(Context("main", listener.url, "default"), timeout, {})


def test_a_gate_says_that_nobody_answers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "RECONNECT", 0.01)
    with listening(None) as silent, transport(silent) as asked:
        seen = list(follow(asked, rollouts_of("rollouts.kruise.io"), ROLLOUT, time.monotonic() + 0.5))
    assert seen == [ROLLOUT]
    assert f"the watch on {silent.url} broke: timed out; trying again" in capsys.readouterr().err


def test_a_mirror_says_that_nobody_answers_and_ends_when_it_is_told_to() -> None:
    changed = threading.Event()
    with listening(None) as silent, transport(silent) as asked:
        mirror = WatchCache(asked, "/api/v1/pods", {}, dict, changed)
        assert changed.wait(30)
        assert "no answer from" in mirror.trouble
        mirror.stop()
        began = time.monotonic()
        mirror.join()
        assert time.monotonic() - began < 5


def test_watches_that_end_at_once_are_not_begun_without_a_pause() -> None:
    changed = threading.Event()
    with listening(LIST) as hasty, transport(hasty, 5) as asked:
        mirror = WatchCache(asked, "/api/v1/pods", {}, dict, changed)
        assert changed.wait(30)
        time.sleep(0.5)
        mirror.stop()
        mirror.join()
    assert hasty.watches <= 2
    assert mirror.objects() == []
