"""Proxy selection and proxy connections."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig.urls import is_address, shown

_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


def proxy_of(server: str, cluster: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """The URL of the proxy to ``server``, "" for a direct connection.

    The kubeconfig's proxy-url takes precedence for its cluster. Otherwise $HTTPS_PROXY applies, except to hosts in
    $NO_PROXY and to this machine (the rules of Go's net/http, which kubectl uses). UsageError for a proxy of another
    kind.
    """
    scheme = urlsplit(server).scheme
    name = f"{scheme.upper()}_PROXY"
    proxy = str(cluster.get("proxy-url") or "")
    if not proxy and not _is_excepted(urlsplit(server), _of(environment, "NO_PROXY")):
        proxy = _of(environment, name)
        # Without a scheme it is HTTP, as in other programs.
        proxy = proxy if not proxy or "://" in proxy else f"http://{proxy}"
    if proxy and not is_address(proxy, _PORTS):
        where = "the kubeconfig's proxy-url" if cluster.get("proxy-url") else f"${name}"
        raise UsageError(
            f"{where} {shown(proxy)!r} is no http://, https:// or socks5:// URL with a host and, if any, a port:"
            " correct it (in a user's name and password %40 stands for @, %2F for /)"
        )
    return proxy


def _of(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower()) or ""


def _is_excepted(server: SplitResult, listed: str) -> bool:
    host, port = (server.hostname or "").lower(), server.port or (443 if server.scheme == "https" else 80)
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for entry in (each.strip().lower() for each in listed.split(",")):
        name, at = _name_and_port(entry)
        if entry == "*" or (name and at in (None, port) and _covers(name, host, address)):
            return True
    return False


def _name_and_port(entry: str) -> tuple[str, int | None]:
    name, colon, port = entry.rpartition(":")
    # The colons of an IPv6 address separate no port, unless it is in brackets.
    if colon and port.isdigit() and (":" not in name or name.endswith("]")):
        return name.strip("[]"), int(port)
    return entry.strip("[]"), None


def _covers(name: str, host: str, address: IPv4Address | IPv6Address | None) -> bool:
    if address is None:
        domain = name.removeprefix("*").removeprefix(".")
        return host.endswith(f".{domain}") or (host == domain and name == domain)
    try:
        return address in ip_network(name, strict=False)
    except ValueError:
        return False


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def dial(host: str, port: int, timeout: float | None, proxy: str) -> Any:
    """A socket to ``host``, through ``proxy`` if there is one; OSError or http.client's errors on failure."""
    if not proxy:
        return _connected((host, port), timeout)
    url = urlsplit(proxy)
    at = url.hostname or "", url.port or _PORTS[url.scheme]
    if url.scheme.startswith("socks5"):
        return _by_socks(url, at, host, port, timeout)
    wire: Any = _connected(at, timeout)
    if url.scheme == "https":
        wire = ssl.create_default_context().wrap_socket(wire, server_hostname=at[0])
    return _tunnel(wire, url, host, port)


def _connected(address: tuple[str, int], timeout: float | None) -> socket.socket:
    """With TCP_NODELAY: a body would otherwise wait for the acknowledgement of the headers, 40 ms."""
    wire = socket.create_connection(address, timeout)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return wire


def _tunnel(wire: Any, proxy: SplitResult, host: str, port: int) -> Any:
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if proxy.username is not None:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}")
    wire.sendall(("\r\n".join([*lines, "", ""])).encode())
    answer = http.client.HTTPResponse(wire, method="CONNECT")
    try:
        answer.begin()
        if answer.status != 200:
            raise OSError(f"the proxy {proxy.hostname} answered {answer.status} {answer.reason}")
    except BaseException:
        wire.close()
        raise
    return wire


def _by_socks(proxy: SplitResult, at: tuple[str, int], host: str, port: int, timeout: float | None) -> Any:
    from python_socks import ProxyError, ProxyTimeoutError, ProxyType
    from python_socks.sync import Proxy

    user, word = (unquote(each) if each else None for each in (proxy.username, proxy.password))
    try:
        way = Proxy(ProxyType.SOCKS5, *at, username=user, password=word, rdns=True)
        return way.connect(host, port, timeout=timeout)
    except (ProxyError, ProxyTimeoutError) as error:
        raise OSError(f"the proxy {proxy.hostname}: {error or 'does not answer'}") from error


def wrapped(wire: Any, tls: ssl.SSLContext, name: str) -> Any:
    """TLS over ``wire``, which may be TLS already."""
    if isinstance(wire, ssl.SSLSocket):
        from urllib3.util.ssltransport import SSLTransport

        return SSLTransport(wire, tls, server_hostname=name)
    return tls.wrap_socket(wire, server_hostname=name)
