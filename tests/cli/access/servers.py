"""Servers on loopback that tell how they were reached: an API server with or without TLS, and proxies of each kind."""

from __future__ import annotations

import json
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    """What a server was asked: each request's headers, and the TLS name it was called by."""

    headers: list[dict[str, list[str]]] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    #: Subjects of the clients' certificates.
    clients: list[str] = field(default_factory=list)
    #: Destinations that a proxy was asked for, and as whom.
    destinations: list[tuple[str, int]] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    #: Tokens that are good; None when nobody asks.
    tokens: set[str] | None = None
    #: What whoever is known is told.
    answer: bytes = b"{}"
    #: Codes and Retry-After headers of the refusals that come before any other answer.
    busy: list[tuple[int, str]] = field(default_factory=list)
    #: Whether a connection that nobody used was ended.
    closed: threading.Event = field(default_factory=threading.Event)


_SAID = {401: "Unauthorized", 429: "storage is (re)initializing", 503: "not now"}


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]  # type: ignore[index, misc]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@contextmanager
def _secured(request: socket.socket, tls: ssl.SSLContext | None) -> Iterator[socket.socket]:
    """In the thread of the request: a handshake that does not come must not stop the others."""
    if tls is None:
        yield request
        return
    with tls.wrap_socket(request, server_side=True) as wire:
        yield wire


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    tls: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        with suppress(OSError), _secured(request, self.tls) as wire:
            super().finish_request(wire, client_address)


@contextmanager
def api_server(asked: Asked, tls: ssl.SSLContext | None = None, idle: float | None = None) -> Iterator[int]:
    """Answers every GET and PATCH as ``asked`` says and notes it there; yields its port. Connections that nobody uses
    for ``idle`` seconds are ended.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = idle

        def finish(self) -> None:
            super().finish()
            self.connection.close()
            asked.closed.set()

        def do_GET(self) -> None:
            told: dict[str, list[str]] = {}
            for name, value in self.headers.items():
                told.setdefault(name, []).append(value)
            asked.headers.append(told)
            if isinstance(self.connection, ssl.SSLSocket):
                certificate: Any = self.connection.getpeercert()
                subject = [value for part in (certificate or {}).get("subject", ()) for _, value in part]
                asked.clients.append(",".join(subject))
            known = asked.tokens is None or told.get("Authorization", [""])[0].removeprefix("Bearer ") in asked.tokens
            code, after = asked.busy.pop(0) if asked.busy else (200 if known else 401, "")
            body = asked.answer if code == 200 else json.dumps({"message": _SAID[code]}).encode()
            self.send_response(code)
            if after:
                self.send_header("Retry-After", after)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PATCH(self) -> None:
            asked.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: asked.names.append(name)
        server.tls = tls
    with _serving(server) as port:
        yield port


@contextmanager
def http_proxy(asked: Asked, to: int, tls: ssl.SSLContext | None = None, status: str = "200 OK") -> Iterator[int]:
    """Connects whoever asks for any destination with port ``to`` of this machine."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            _, authority, _ = self.rfile.readline().decode().split(" ")
            host, _, port = authority.rpartition(":")
            asked.destinations.append((host, int(port)))
            while line := self.rfile.readline().strip():
                name, _, value = line.decode().partition(": ")
                if name == "Proxy-Authorization":
                    asked.authorizations.append(value)
            self.wfile.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
            if status.startswith("200"):
                _join(self.connection, to)

    with _serving(_proxy(Handler, tls)) as port:
        yield port


@contextmanager
def socks_proxy(asked: Asked, to: int) -> Iterator[int]:
    """A SOCKS5 proxy that wants user and password and is asked for names, not addresses."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            _, count = self.rfile.read(2)
            assert 2 in self.rfile.read(count), "user and password are offered"
            self.wfile.write(b"\x05\x02")
            _, length = self.rfile.read(2)
            user = self.rfile.read(length)
            word = self.rfile.read(self.rfile.read(1)[0])
            asked.authorizations.append(f"{user.decode()}:{word.decode()}")
            self.wfile.write(b"\x01\x00")
            _, _, _, kind = self.rfile.read(4)
            assert kind == 3, "the proxy resolves the name"
            host = self.rfile.read(self.rfile.read(1)[0]).decode()
            asked.destinations.append((host, int.from_bytes(self.rfile.read(2))))
            self.wfile.write(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x01")
            _join(self.connection, to)

    with _serving(_proxy(Handler, None)) as port:
        yield port


def _proxy(handler: Any, tls: ssl.SSLContext | None) -> socketserver.BaseServer:
    class Proxy(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def finish_request(self, request: Any, client_address: Any) -> None:
            with suppress(OSError), _secured(request, tls) as wire:
                super().finish_request(wire, client_address)

    return Proxy(("127.0.0.1", 0), handler)


def _join(wire: socket.socket, port: int) -> None:
    """Bytes both ways until either side ends."""
    with socket.create_connection(("127.0.0.1", port)) as other:
        back = threading.Thread(target=_pour, args=(other, wire), daemon=True)
        back.start()
        _pour(wire, other)
        back.join(10)


def _pour(source: socket.socket, sink: socket.socket) -> None:
    try:
        while part := source.recv(65536):
            sink.sendall(part)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return
