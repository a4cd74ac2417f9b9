"""Processes as an operator starts them, whose lines are remembered and can be waited for."""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

ROLLOUT_LWS = str(Path(sys.executable).with_name("rollout-lws"))


class Program:
    """A running process: ``lines`` is all it has printed, stdout and stderr together."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, told: Callable[[str], None] | None) -> None:
        self.name = name
        self.lines: list[str] = []
        self._process = process
        self._told = told
        self._waiters: set[asyncio.Future[None]] = set()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls, *command: str, environment: dict[str, str] | None = None, told: Callable[[str], None] | None = None
    ) -> Program:
        """Start ``command``; ``told`` is called with each line as it comes."""
        process = await asyncio.create_subprocess_exec(
            *tied_to_us(),
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment or dict(os.environ),
            limit=1 << 22,
            start_new_session=True,
        )
        return cls(" ".join([Path(command[0]).name, *command[1:]]), process, told)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            text = line.decode().rstrip("\n")
            self.lines.append(text)
            if self._told:
                self._told(text)
            self._wake()
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def line(self, holds: Callable[[str], bool], after: int = 0, seconds: float = 30) -> str:
        """The first line from number ``after`` on of which ``holds`` is true."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    for text in self.lines[after:]:
                        if holds(text):
                            return text
                    assert not self._reading.done(), f"{self.name} has ended\n{self.output}"
                    after = len(self.lines)
                    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiters.add(waiter)
                    await waiter
        except TimeoutError:
            raise AssertionError(f"{self.name} did not print that line within {seconds} s\n{self.output}") from None

    async def says(self, text: str) -> str:
        """The first line that contains ``text``."""
        return await self.line(lambda line: text in line)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def cpu_seconds(self) -> float:
        """What it has computed so far: unlike time it does not depend on what else the machine does."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    async def end(self, seconds: float) -> int:
        """Its exit code, when it ends by itself within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                return await self._end()
        except TimeoutError:
            raise AssertionError(f"{self.name} did not end within {seconds} s\n{self.output}") from None

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def kill(self) -> None:
        """SIGKILL, for what it has started too, and the end of it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._end()

    async def stop(self) -> int:
        """SIGTERM; its exit code. One that does not end within 10 s is killed."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(10):
                return await self._end()
        except TimeoutError:
            await self.kill()
            raise AssertionError(f"{self.name} does not end on SIGTERM\n{self.output}") from None

    async def _end(self) -> int:
        code = await self._process.wait()
        await asyncio.shield(self._reading)
        return code


def tied_to_us() -> tuple[str, ...]:
    """What a command begins with so that the kernel, where it can, ends the process when ours is killed and nobody is
    left to end it.
    """
    if not _can_be_tied():
        return ()
    # We may be killed before the kernel has been told, and then somebody else is its parent already.
    orphaned = '[ "$PPID" = "$0" ] || exit; exec "$@"'
    return ("setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", orphaned, str(os.getpid()))


@functools.cache
def _can_be_tied() -> bool:
    """Whether there is a setpriv, and one that knows how."""
    if not shutil.which("setpriv"):
        return False
    return subprocess.run(["setpriv", "--pdeathsig", "KILL", "--", "true"], capture_output=True).returncode == 0


class Programs:
    """The processes of one test; their logs are printed at its end, which pytest shows when the test has failed."""

    def __init__(self) -> None:
        self.started: list[Program] = []

    async def start(
        self, *command: str, environment: dict[str, str] | None = None, told: Callable[[str], None] | None = None
    ) -> Program:
        program = await Program.start(*command, environment=environment, told=told)
        self.started.append(program)
        return program

    async def close(self) -> None:
        for program in reversed(self.started):
            await program.kill()

    def logs(self) -> Sequence[str]:
        """The last lines of those that are ours."""
        return [
            f"=== {program.name}\n" + "\n".join(program.lines[-200:])
            for program in self.started
            if program.name.startswith("rollout-lws")
        ]


def held_port() -> int:
    """A loopback port that only a server that is told of it can listen on, until this process ends.

    It stays bound here, and is no longer ours alone once it is found: a server that sets SO_REUSEADDR, as all of them
    do, may listen on it beside us, also when it is started again. Neither the kernel nor another test gives it away in
    the meantime. Other kernels than Linux refuse the second bind; there the port is merely free when it is told.
    """
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    port = int(held.getsockname()[1])
    if sys.platform == "linux":
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        atexit.register(held.close)
    else:
        held.close()
    return port
