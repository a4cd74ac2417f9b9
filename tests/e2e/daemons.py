"""The processes of a control plane: each logs straight to a file, and none outlives whoever started it.

Their data is thrown away, so they are ended with SIGKILL: nothing would be gained by letting them tidy up.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.bench.processes import Child, Errors
from tests.kubectl.programs import tied_to_us

#: Bytes that etcd may come to; containers often have 64 MB of shared memory, which its log alone is larger than.
_ROOM = 2 * 2**30


@asynccontextmanager
async def daemon(program: Path, *arguments: str, logs: Path) -> AsyncIterator[Child]:
    """``program`` from here to the end of the block; what it says is added to a log of its name in ``logs``.

    A session of its own keeps a Ctrl-C at the terminal from it, so that it ends when the block does and not before.
    """
    said = Errors(logs / f"{program.name}.log")
    with said.path.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *tied_to_us(),
            str(program),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    running = Child(program.name, process, said)
    try:
        yield running
    finally:
        await kill(running)


async def kill(running: Child) -> None:
    """SIGKILL, and the end of it; nothing for a process that has ended."""
    if running.process.returncode is None:
        running.process.kill()
    await running.process.wait()


@contextmanager
def reserved_port() -> Iterator[int]:
    """A loopback port for a server that shares ports: nobody else is given it, also while that server is restarted."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


@asynccontextmanager
async def data_directory() -> AsyncIterator[Path]:
    """A directory that goes with the block, and with whoever entered it, however that ends.

    It lies in memory where there is room: etcd is as slow as its disk, and nothing in it is worth a disk.
    """
    shared = Path("/dev/shm")
    roomy = os.access(shared, os.W_OK | os.X_OK) and shutil.disk_usage(shared).free >= _ROOM
    path = tempfile.mkdtemp(prefix="rollout-lws-", dir=shared if roomy else None)
    # Its standard input ends when ours closes it, and also when we are killed.
    remover = await asyncio.create_subprocess_exec(
        "sh", "-c", 'cat; exec rm -rf "$0"', path, stdin=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert remover.stdin is not None
    try:
        yield Path(path)
    finally:
        remover.stdin.close()
        await remover.wait()
