"""Everything an operator can set about one controller process, checked once at start and never changed afterwards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rollout_lws.errors import UsageError

DEFAULT_API_GROUP = "rollouts.kruise.io"
LOG_FORMATS = ("text", "json")

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL)
_GROUP = re.compile(rf"{_LABEL}(\.{_LABEL})+")


def check_api_group(group: str) -> None:
    """UsageError unless ``group`` can be one."""
    if len(group) > 253 or not _GROUP.fullmatch(group):
        raise UsageError(f"--api-group {group!r} is no API group: use a DNS name such as {DEFAULT_API_GROUP}")


def check_namespaces(names: Sequence[str], flag: str) -> None:
    """UsageError, which names ``flag``, unless each of ``names`` can be a namespace, and is there once."""
    for name in names:
        if not _NAMESPACE.fullmatch(name):
            raise UsageError(f"{flag} {name!r} is no namespace name: use lower-case letters, digits and '-'")
    if len(set(names)) != len(names):
        raise UsageError(f"{flag} names the same namespace twice: name each one once")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens; an empty host is every interface, port 0 lets the system choose a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, flag: str) -> Address | None:
        """``host:port`` or ``:port``; "0" is None, the server is then not started. UsageError names ``flag``."""
        if text == "0":
            return None
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdigit() or int(port) > 65535:
            raise UsageError(f"{flag} {text!r} is no address: write host:port, :port, or 0 to switch it off")
        return cls(host.strip("[]"), int(port))


@dataclass(frozen=True, slots=True)
class Settings:
    """One controller process.

    ``namespaces`` are the ones whose Rollouts are managed, () means all. ``workers`` Rollouts are decided at a time.
    ``request_timeout`` is the longest time, in seconds, that one request may take; watches have their own deadlines.
    ``health`` and ``metrics`` are None when switched off.
    """

    api_group: str = DEFAULT_API_GROUP
    namespaces: tuple[str, ...] = ()
    workers: int = 4
    request_timeout: float = 30.0
    health: Address | None = None
    metrics: Address | None = None
    log_format: str = "text"
    kubeconfig: str | None = None
    context: str | None = None

    def __post_init__(self) -> None:
        check_api_group(self.api_group)
        check_namespaces(self.namespaces, "--namespace")
        if self.workers < 1:
            raise UsageError(f"--workers {self.workers} would decide nothing: use 1 or more")
        if self.request_timeout <= 0:
            raise UsageError(
                f"--request-timeout {self.request_timeout:g} leaves no time: use a number of seconds above 0"
            )
        if self.log_format not in LOG_FORMATS:
            raise UsageError(f"--log-format {self.log_format!r} is not known: use one of {', '.join(LOG_FORMATS)}")
