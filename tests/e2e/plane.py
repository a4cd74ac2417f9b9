"""A real control plane on this machine: etcd, API server, controller manager, each with RBAC and certificates for real.

It comes without nodes: what a kubelet and the LWS manager would do is done by the sandbox's behaviours, as ordinary
clients, unless its ``Site`` says that real ones join (tests.nodes). Data lives in memory and goes with the block; logs
and the audit log stay where the caller wants them.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.errors import Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.kube.connection import Connection, connect
from rollout_lws.objects.resources import SERVICE_ACCOUNTS, Resource
from tests.bench.processes import Child, Failed, Usage
from tests.e2e import audit, etcd, flags
from tests.e2e.certificates import Authority, Certificate, signing_key
from tests.e2e.daemons import daemon, data_directory, kill, reserved_port
from tests.e2e.scenes import record
from tests.e2e.waiting import until

ADMINISTRATORS = "system:masters"

Install = Callable[[Client], Awaitable[None]]

_MANAGER = "kube-controller-manager"
#: Ready takes seven seconds on two idle cores; the rest is patience with a busy machine.
_READY_SECONDS = 120.0
#: While the API server starts there is nobody who could tell: its readiness is asked for again after this time.
_READY_BACK_OFF = 0.05
_ANSWER_SECONDS = 10.0


class ControlPlane:
    """A running control plane; ``control_plane`` makes one.

    ``url`` is where its API server listens, ``admin`` a kubeconfig that may do everything, ``authority`` the
    certificate that all of its own are signed by, ``logs`` the directory of the processes' logs, ``audit_log`` (see
    tests.e2e.audit) what the audited users have asked so far.
    """

    def __init__(
        self,
        tools: Path,
        data: Path,
        logs: Path,
        site: flags.Site,
        port: int,
        policy: Mapping[str, object],
        stack: AsyncExitStack,
    ) -> None:
        self.url = f"https://{site.host}:{port}"
        self.logs = logs
        self.audit_log = logs / "audit.log"
        self._tools = tools
        self._data = data
        self._site = site
        self._port = port
        self._authority = Authority("rollout-lws end-to-end")
        self._stack = stack
        self._running: dict[str, Child] = {}
        self._keep("audit-policy.yaml", yaml.safe_dump(policy).encode())
        self.authority = self._keep("ca.crt", self._authority.certificate)
        self._keep_certificate("server", self._authority.server(*site.names))
        self._keep_certificate(
            "kubelet-client", self._authority.client("kube-apiserver-kubelet-client", [ADMINISTRATORS])
        )
        tokens = signing_key()
        self._keep("tokens.key", tokens.private)
        self._keep("tokens.pub", tokens.public)
        self.admin = self.kubeconfig_for("admin", [ADMINISTRATORS])

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for ``user`` as a member of ``groups``, by a client certificate of its own.

        It may do what RBAC grants to that name and those groups, at first nothing. The file goes with the plane.
        """
        issued = self._authority.client(user, groups)
        # kubectl takes a colon in KUBECONFIG for the end of a path.
        name = re.sub(r"[^\w.-]", "_", "+".join([user, *groups])) + ".kubeconfig"
        return self._keep(name, yaml.safe_dump(self._kubeconfig(user, issued)).encode())

    def certificate_for(self, name: str, *addresses: str) -> tuple[Path, Path]:
        """Certificate and key of a server, PEM files, that is reached by ``addresses``; they go with the plane."""
        return self._keep_certificate(name, self._authority.server(*addresses))

    async def kill_api_server(self) -> None:
        """SIGKILL; requests are refused and watches cut until it is started again."""
        await kill(self._running["kube-apiserver"])

    async def restart_api_server(self) -> None:
        """Start the API server again, at the same address over the same data; returns when it is ready."""
        await self.kill_api_server()
        await self._start_api_server()

    async def restart(self) -> None:
        """SIGKILL for the API server and Kubernetes' own controllers, which then are started again, one after
        the other.

        On most clusters they live on one machine. With the API server alone killed, the garbage collector may never
        hear of what went while its watches were cut: a worker pod of a StatefulSet that was recreated under the same
        name stays in the way of its successor until the collector is started again.
        """
        await self.restart_api_server()
        await kill(self._running[_MANAGER])
        await self._start_controllers()

    async def compact(self) -> int:
        """Have etcd forget all history before now; gives the revision that is the oldest known from now on.

        An API server goes on answering from its own memory until it is started again.
        """
        return await etcd.compact(flags.etcd_socket(self._data))

    def usage(self) -> Mapping[str, Usage]:
        """CPU and memory of each process, by its name."""
        return {name: each.usage() for name, each in self._running.items() if each.process.returncode is None}

    async def _come_up(self, scheduler: bool, install: Install | None) -> None:
        await self._start("etcd", flags.etcd(self._data))
        await self._start_api_server()
        if install is not None:
            async with connected(self.admin) as connection:
                await install(Client(connection))
        await self._start_controllers()
        if scheduler:
            await self._start("kube-scheduler", flags.scheduler(self.kubeconfig_for("system:kube-scheduler")))
        await self._controlled()

    async def _start_controllers(self) -> None:
        manager = self.kubeconfig_for(f"system:{_MANAGER}")
        await self._start(_MANAGER, flags.controller_manager(self._data, self._site, manager))

    async def _start_api_server(self) -> None:
        await self._start("kube-apiserver", flags.api_server(self._data, self._site, self._port, self.audit_log))
        await self._ready()

    async def _start(self, name: str, values: Mapping[str, str]) -> None:
        arguments = [f"--{flag}={value}" for flag, value in values.items()]
        started = daemon(self._tools / name, *arguments, logs=self.logs)
        self._running[name] = await self._stack.enter_async_context(started)

    async def _ready(self) -> None:
        """Until the API server says that all of it is up. Failed when it ends, or does not become ready in time."""
        try:
            async with asyncio.timeout(_READY_SECONDS), connected(self.admin) as connection:
                while not await self._answers_ready(connection):
                    self._check_alive()
                    await asyncio.sleep(_READY_BACK_OFF)
        except TimeoutError:
            raise self._failed("kube-apiserver", f"is not ready after {_READY_SECONDS:g} s") from None

    @staticmethod
    async def _answers_ready(connection: Connection) -> bool:
        try:
            answer = await connection.request(
                "GET", "/readyz", params={}, body=None, content_type="", timeout=_ANSWER_SECONDS
            )
        except Unreachable:
            return False
        return answer.status == 200

    async def _controlled(self) -> None:
        """Until the controllers work: the first thing that theirs do is the service account that pods run as."""
        try:
            async with connected(self.admin) as connection:
                await until(Client(connection), SERVICE_ACCOUNTS, "default", "default", bool, _READY_SECONDS)
        except TimeoutError as error:
            self._check_alive()
            raise self._failed(_MANAGER, f"does not work ({error})") from None

    def _check_alive(self) -> None:
        for name, child in self._running.items():
            if child.process.returncode is not None:
                raise self._failed(name, f"ended with {child.process.returncode}")

    def _failed(self, name: str, how: str) -> Failed:
        return Failed(f"{name} {how}; see {self.logs}\n{self._running[name].last_words()}")

    def _kubeconfig(self, user: str, issued: Certificate) -> dict[str, Any]:
        cluster = {"server": self.url, "certificate-authority-data": _base64(self._authority.certificate)}
        login = {
            "client-certificate-data": _base64(issued.certificate),
            "client-key-data": _base64(issued.key),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": cluster}],
            "users": [{"name": user, "user": login}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}],
            "current-context": "e2e",
        }

    def _keep_certificate(self, name: str, issued: Certificate) -> tuple[Path, Path]:
        return self._keep(f"{name}.crt", issued.certificate), self._keep(f"{name}.key", issued.key)

    def _keep(self, name: str, content: bytes) -> Path:
        path = self._data / name
        path.write_bytes(content)
        return path


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Connection]:
    """A connection as ``kubeconfig`` says, from here to the end of the block."""
    connection = await connect(str(kubeconfig))
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def control_plane(
    tools: Path,
    logs: Path,
    *,
    audited: Sequence[str] = (),
    in_full: Sequence[Resource] = (),
    scheduler: bool = False,
    install: Install | None = None,
    site: flags.Site = flags.LOOPBACK,
) -> AsyncIterator[ControlPlane]:
    """A control plane from the programs in ``tools`` (tests.e2e.tools), ready, from here to the end of the block.

    ``logs`` must exist. The requests of the ``audited`` users go to the audit log, and all
    writes of the kinds ``in_full`` with what was asked and answered. ``install`` is done before the
    controllers start: the garbage collector looks for new kinds every 30 s only. Failed when a process does not come
    up; its last words are in the error.
    """
    async with AsyncExitStack() as stack:
        data = await stack.enter_async_context(data_directory())
        port = stack.enter_context(reserved_port())
        plane = ControlPlane(tools, data, logs, site, port, audit.policy(audited, in_full), stack)
        stack.enter_context(record.stage(logs, plane.audit_log))
        await plane._come_up(scheduler, install)
        yield plane


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
