"""Settings of one controller process, checked once at start and never changed afterwards."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.origins import Allowed

#: The Lease of the controller's leader election.
DEFAULT_LEASE = "rollout-lws-controller"
#: The guard's webhook configurations and its Service.
DEFAULT_GUARD = "rollout-lws-guard"
LOG_FORMATS = ("text", "json")
#: Ways to the metrics of pods.
SCRAPE_THROUGH = ("pods", "api-server")
#: What queries of gates may read.
GATE_QUERIES = ("namespace", "any")
#: Seconds between two rounds of measurements.
SCRAPE_EVERY = 15.0

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL)
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_GROUP = re.compile(rf"{_LABEL}(\.{_LABEL})+")


def check_api_group(group: str) -> None:
    """UsageError unless ``group`` is a valid API group."""
    if len(group) > 253 or not _GROUP.fullmatch(group):
        raise UsageError(f"--api-group {group!r} is no API group: use a DNS name such as {DEFAULT_API_GROUP}")


def check_namespaces(names: Sequence[str], flag: str) -> None:
    """UsageError, which names ``flag``, unless each of ``names`` is a valid namespace name and unique."""
    for name in names:
        if not _NAMESPACE.fullmatch(name):
            raise UsageError(f"{flag} {name!r} is no namespace name: use lower-case letters, digits and '-'")
    if len(set(names)) != len(names):
        raise UsageError(f"{flag} names the same namespace twice: name each one once")


def check_notify(names: Sequence[str], cluster: str) -> None:
    """UsageError unless the last parts of ``names`` tell destinations apart, and ``cluster`` is a name or ""."""
    short = [PurePath(each).name for each in names]
    for name in short:
        if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
            raise UsageError(
                f"--notify: {name!r}, the last part of a directory, names its destination: use lower-case letters,"
                " digits, '-' and '.', as the names of Secrets have them"
            )
    if len(set(short)) != len(short):
        raise UsageError("--notify has two destinations of the same name: give their directories different ones")
    if cluster and (len(cluster) > 253 or not _SUBDOMAIN.fullmatch(cluster)):
        raise UsageError(f"--cluster-name {cluster!r} is no name: use lower-case letters, digits, '-' and '.'")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens; an empty host means every interface, port 0 lets the system choose a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, flag: str) -> Address | None:
        """``host:port`` or ``:port``; "0" gives None: the server is not started. UsageError names ``flag``."""
        if text == "0":
            return None
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdigit() or int(port) > 65535:
            raise UsageError(f"{flag} {text!r} is no address: write host:port, :port, or 0 to switch it off")
        return cls(host.strip("[]"), int(port))


@dataclass(frozen=True, slots=True)
class Election:
    """Leader election: of several replicas the one that holds the Lease ``name`` works, the others are on standby.

    ``namespace`` is the Lease's, None for that of the pod. In seconds: another replica may lead ``duration`` after the
    last renewal that it saw; the leader stops ``deadline`` after it asked for its last one; it asks every ``retry``.
    """

    namespace: str | None = None
    name: str = DEFAULT_LEASE
    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if self.namespace is not None:
            check_namespaces((self.namespace,), "--leader-elect-resource-namespace")
        if not _SUBDOMAIN.fullmatch(self.name) or len(self.name) > 253:
            raise UsageError(f"--leader-elect-resource-name {self.name!r} is no name of an object")
        if not 0 < self.retry < self.deadline < self.duration:
            raise UsageError(
                f"--leader-elect-retry-period {self.retry:g}s, --leader-elect-renew-deadline {self.deadline:g}s,"
                f" --leader-elect-lease-duration {self.duration:g}s: each must be above 0 and shorter than the next"
            )
        if self.duration != int(self.duration):
            raise UsageError(f"--leader-elect-lease-duration {self.duration:g}s: a lease lasts whole seconds")


@dataclass(frozen=True, slots=True)
class Guard:
    """The admission webhook. ``address`` is where it listens; ``hosts`` are the names or addresses at which API servers
    reach it, () its Service in the namespace of the pod. ``name`` is that of its webhook configurations.
    """

    address: Address
    hosts: tuple[str, ...] = ()
    name: str = DEFAULT_GUARD

    def __post_init__(self) -> None:
        for host in self.hosts:
            if not _SUBDOMAIN.fullmatch(host) and not _is_address(host):
                raise UsageError(f"--guard-host {host!r} is neither a host name nor an address")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def check_scripts(named: str) -> None:
    """UsageError unless ``named`` is a ConfigMap with scripts, as name or as namespace/name."""
    namespace, slash, name = named.rpartition("/")
    if slash:
        check_namespaces((namespace,), "--custom-network-scripts")
    if not _SUBDOMAIN.fullmatch(name) or len(name) > 253:
        raise UsageError(f"--custom-network-scripts {named!r} is no ConfigMap: write its name, or namespace/name")


@dataclass(frozen=True, slots=True)
class Settings:
    """One controller process.

    ``namespaces`` are those whose Rollouts are managed, () means all. ``workers`` is the number of concurrent
    reconciles. ``request_timeout`` limits each request, in seconds; watches have their own deadlines. ``health`` and
    ``metrics`` are None when switched off. ``scrape_through`` is how gates reach pods: at their addresses, or
    through the API server for a controller outside of the cluster. ``scrape_every`` is the number of seconds between
    two rounds of them; it has no flag, since verdicts were tried with slices of 15 s, and only the demo has less time.
    ``notify`` are directories, each with a receiver of notifications; ``cluster_name`` is what these call the cluster,
    "" for nothing. ``custom_network_scripts`` is the ConfigMap with scripts for objects of customNetworkRefs, as
    ``name`` in the namespace of the pod or as ``namespace/name``; "" has no scripts run. ``election`` is None without
    leader election, ``guard`` None without the admission webhook.
    """

    api_group: str = DEFAULT_API_GROUP
    namespaces: tuple[str, ...] = ()
    workers: int = 4
    request_timeout: float = 30.0
    health: Address | None = None
    metrics: Address | None = None
    scrape_through: str = "pods"
    scrape_every: float = SCRAPE_EVERY
    gate_addresses: tuple[str, ...] = ()
    prometheus: str = ""
    gate_queries: str = "namespace"
    notify: tuple[str, ...] = ()
    cluster_name: str = ""
    custom_network_scripts: str = ""
    log_format: str = "text"
    kubeconfig: str | None = None
    context: str | None = None
    election: Election | None = None
    guard: Guard | None = None

    @property
    def scripts(self) -> tuple[str, str] | None:
        """Namespace and name of the ConfigMap with scripts; None without one."""
        namespace, _, name = self.custom_network_scripts.rpartition("/")
        return (namespace, name) if name else None

    @property
    def allowed(self) -> tuple[Allowed, ...]:
        """What gates may ask by address."""
        named = [Allowed.parse(url, "--gate-addresses") for url in self.gate_addresses]
        return (*named, *([Allowed.parse(self.prometheus, "--prometheus")] if self.prometheus else ()))

    def __post_init__(self) -> None:
        if self.custom_network_scripts:
            check_scripts(self.custom_network_scripts)
        check_api_group(self.api_group)
        check_namespaces(self.namespaces, "--namespace")
        if self.workers < 1:
            raise UsageError(f"--workers {self.workers} would decide nothing: use 1 or more")
        if self.request_timeout <= 0:
            raise UsageError(
                f"--request-timeout {self.request_timeout:g} leaves no time: use a number of seconds above 0"
            )
        if self.scrape_through not in SCRAPE_THROUGH:
            raise UsageError(
                f"--scrape-through {self.scrape_through!r} is not known: use one of {', '.join(SCRAPE_THROUGH)}"
            )
        if self.gate_queries not in GATE_QUERIES:
            raise UsageError(f"--gate-queries {self.gate_queries!r} is not known: use one of {', '.join(GATE_QUERIES)}")
        # Raises for what is no URL.
        _ = self.allowed
        check_notify(self.notify, self.cluster_name)
        if self.log_format not in LOG_FORMATS:
            raise UsageError(f"--log-format {self.log_format!r} is not known: use one of {', '.join(LOG_FORMATS)}")
