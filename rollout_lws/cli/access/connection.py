"""One HTTP connection to an API server, through a proxy and with TLS as configured, with the user's credentials."""

from __future__ import annotations

import http.client
import socket
from typing import Any
from urllib.parse import urlsplit

from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig import proxies
from rollout_lws.kubeconfig.context import Context
from rollout_lws.kubeconfig.login import Login
from rollout_lws.kubeconfig.urls import is_header_value

JSON = "application/json"


class Connection(http.client.HTTPConnection):
    """Connects to the server of ``context``, through ``proxy`` (a URL) if set, with TLS for https."""

    def __init__(self, context: Context, login: Login, proxy: str, timeout: float) -> None:
        url = urlsplit(context.server)
        super().__init__(url.hostname or "", url.port or (443 if url.scheme == "https" else 80), timeout=timeout)
        self._context, self._login, self._proxy = context, login, proxy
        self._secure = url.scheme == "https"
        # http.client drops its socket for an answer that ends with the connection; this reference stays.
        self._wire: Any = None

    def ask(self, method: str, target: str, body: bytes | None, content_type: str) -> http.client.HTTPResponse:
        """Send one request with the current credentials; UsageError when these are unreadable or invalid."""
        self.putrequest(method, target, skip_accept_encoding=True)
        try:
            headers = self._login.headers
        except OSError as error:
            raise _unreadable(self._context, error) from error
        for name, value in (*headers, ("Accept", JSON), ("User-Agent", "rollout-lws")):
            # http.client's own error would quote the value, which may be a secret.
            if not is_header_value(value):
                raise _no_header(self._context, name)
            self.putheader(name, value)
        if body is not None:
            self.putheader("Content-Type", content_type)
            self.putheader("Content-Length", str(len(body)))
        self.endheaders(body)
        return self.getresponse()

    def be_patient(self, seconds: float) -> None:
        """Set the timeout for each further read of the answer."""
        if self._wire is not None:
            self._wire.settimeout(seconds)

    def hang_up(self) -> None:
        """Abort reads from any thread."""
        if self._wire is not None:
            # urllib3's TLS-in-TLS object keeps the underlying socket.
            getattr(self._wire, "socket", self._wire).shutdown(socket.SHUT_RDWR)

    def connect(self) -> None:
        tls = None
        if self._secure:
            from rollout_lws.kubeconfig.tls import context as tls_context

            try:
                tls = tls_context(self._context.cluster, self._login.certificate)
            except (OSError, ValueError) as error:
                raise _unreadable(self._context, error) from error
        self.sock = proxies.dial(self.host, self.port, self.timeout, self._proxy)
        if tls is not None:
            name = self._context.cluster.get("tls-server-name") or self.host
            self.sock = proxies.wrapped(self.sock, tls, str(name))
        self._wire = self.sock


def _unreadable(context: Context, error: Exception) -> UsageError:
    return UsageError(
        f"the certificates or the token of context {context.name!r} cannot be read: {error}; correct the kubeconfig"
    )


def _no_header(context: Context, name: str) -> UsageError:
    what = "token" if name == "Authorization" else f"value of the header {name}"
    return UsageError(
        f"the {what} for context {context.name!r} has characters that no header may have; correct the kubeconfig, or"
        " what its login program gives"
    )
