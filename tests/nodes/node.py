"""A real node: containerd, a kubelet and kube-proxy in network, mount and process namespaces of their own.

Its programs use their usual paths, which there are directories of the run. SIGKILL for its first process is a node that
loses its power: with it go the programs and all containers.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.kubectl.programs import tied_to_us
from tests.nodes import cgroups, images, network, settings
from tests.nodes.enclosure import NAMESPACES, children

_SCRIPT = Path(__file__).with_name("node.sh")


class Node:
    """Node ``number`` of a run, called n1, n2, ...; ``node`` makes one.

    ``directory`` holds its files and, in ``logs``, what its programs say. ``neighbours`` are the numbers of all nodes,
    ``store`` is the containerd directory with all images that its own begins as (tests.nodes.images).
    """

    def __init__(
        self,
        number: int,
        neighbours: Iterable[int],
        directory: Path,
        programs: Path,
        store: Path,
        identity: settings.Identity,
    ) -> None:
        self.number = number
        self.name = f"n{number}"
        self.address = network.node_address(number)
        self.directory = directory
        self.logs = directory / "logs"
        self._programs = programs
        self._store = store
        self._identity = identity
        self._neighbours = [each for each in neighbours if each != number]
        self._outside: asyncio.subprocess.Process | None = None
        self._first = 0

    async def start(self) -> None:
        """Its programs start; the node is Ready a second or two later."""
        if not self.directory.exists():
            images.copy(self._store, self.directory / "root/var/lib/containerd")
        self._write_files()
        script = ("sh", str(_SCRIPT), str(self.directory), f"{self.address}/24", network.PLANE)
        with (self.logs / "node.log").open("ab") as log:
            self._outside = await asyncio.create_subprocess_exec(
                *(*tied_to_us(), *NAMESPACES, *script),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._outside.stdin is not None
        assert self._outside.stdout is not None
        # It says that its namespaces are there, and waits for its end of the cable.
        if await self._outside.stdout.readline() != b"here\n":
            raise RuntimeError(f"node {self.name} does not start; see {self.logs / 'node.log'}")
        (self._first,) = children(self._outside.pid)
        await network.connect(self.number, self._first)
        self._outside.stdin.write(b"connected\n")

    async def lose_power(self) -> None:
        """All of it ends at once, and nothing says goodbye. ``start`` starts it again, with its disk as it was."""
        if self._outside is None or self._outside.returncode is not None:
            return
        with suppress(RuntimeError):
            await network.remove(self.number)
        with suppress(ProcessLookupError):
            os.kill(self._first, signal.SIGKILL)
        await self._outside.wait()

    async def run(self, *command: str) -> str:
        """What ``command`` prints on the node. RuntimeError with its words when it fails."""
        inside = ("nsenter", "--target", str(self._first), "--mount", "--net", "--pid", "--uts", "--ipc", "--")
        process = await asyncio.create_subprocess_exec(
            *inside, *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        told, _ = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"{self.name}: {shlex.join(command)}: {told.decode(errors='replace')}")
        return told.decode()

    def _write_files(self) -> None:
        group = self.directory.parent.name
        cgroups.make(group, self.name)
        for folder in (self.logs, self.directory / "networks"):
            folder.mkdir(parents=True, exist_ok=True)
        routes = (f"{network.pods_of(each)} {network.node_address(each)}\n" for each in self._neighbours)
        files = {
            "routes": "".join(routes),
            "containerd.toml": settings.containerd(self.directory),
            "networks/pods.conflist": settings.pods_network(self.number),
            "kubelet.yaml": settings.kubelet(self.number, self._identity, f"/{group}/{self.name}", self.directory),
            "kube-proxy.yaml": settings.kube_proxy(self.name, self.address, self._identity.proxy),
        }
        for name, content in files.items():
            (self.directory / name).write_text(content)
        self._write_script("containerd", "containerd", "--config", str(self.directory / "containerd.toml"))
        self._write_script(
            "kubelet",
            str(self._programs / "kubelet"),
            f"--config={self.directory / 'kubelet.yaml'}",
            f"--kubeconfig={self._identity.kubeconfig}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
        )
        self._write_script(
            "kube-proxy", str(self._programs / "kube-proxy"), f"--config={self.directory / 'kube-proxy.yaml'}"
        )

    def _write_script(self, name: str, *command: str) -> None:
        path = self.directory / f"{name}.sh"
        path.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n")
        path.chmod(0o755)


@asynccontextmanager
async def node(
    number: int,
    neighbours: Iterable[int],
    directory: Path,
    programs: Path,
    store: Path,
    identity: settings.Identity,
) -> AsyncIterator[Node]:
    """Node ``number`` from here to the end of the block; ``directory`` lies in the run's own."""
    made = Node(number, neighbours, directory, programs, store, identity)
    await made.start()
    try:
        yield made
    finally:
        await made.lose_power()
