"""Child processes: started with this interpreter, heard line by line, measured from outside, ended by their id."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
#: Longest line that a child tells.
_LINE = 2**20
_LAST_WORDS = 2000
_GRACE_SECONDS = 10.0

#: The program as its console script runs it, whatever directory that was installed to.
PROGRAM = ("-c", "from rollout_lws.cli.main import main; main()")

Progress = Callable[[str], None]


class Failed(Exception):
    """A child ended, or said nothing for too long, before it had told what was waited for."""


@dataclass(frozen=True, slots=True)
class Usage:
    """A process by the kernel's books: ``cpu`` seconds so far, ``memory`` and ``peak`` in MB (10^6 bytes) resident."""

    cpu: float
    memory: float
    peak: float


@dataclass(frozen=True, slots=True)
class Child:
    name: str
    process: asyncio.subprocess.Process
    log: Path

    async def told(self, key: str, progress: Progress, seconds: float) -> Any:
        """The value of the next line that has ``key``; lines of progress are passed on. Failed after ``seconds``."""
        assert self.process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                async for line in self.process.stdout:
                    said = json.loads(line)
                    if "progress" in said:
                        progress(said["progress"])
                    if key in said:
                        return said[key]
        except TimeoutError:
            raise Failed(f"{self.name} told no {key} within {seconds:g} s\n{self.last_words()}") from None
        raise Failed(f"{self.name} ended without telling {key}\n{self.last_words()}")

    async def rest_of(self, key: str) -> list[Any]:
        """End the child and give the values of all lines with ``key`` that it told and nobody has read yet."""
        self.process.send_signal(signal.SIGTERM)
        told, _ = await self.process.communicate()
        lines = [json.loads(line) for line in told.splitlines()]
        return [line[key] for line in lines if key in line]

    async def logged(self, words: str, seconds: float) -> None:
        """Wait for a line with ``words`` on standard error, of a child that was started with ``listen=True``."""
        assert self.process.stderr is not None
        try:
            async with asyncio.timeout(seconds):
                async for line in self.process.stderr:
                    with self.log.open("ab") as log:
                        log.write(line)
                    if words in line.decode(errors="replace"):
                        return
        except TimeoutError:
            raise Failed(f"{self.name} did not log {words!r} within {seconds:g} s\n{self.last_words()}") from None
        raise Failed(f"{self.name} ended without logging {words!r}\n{self.last_words()}")

    def usage(self) -> Usage:
        proc = Path("/proc") / str(self.process.pid)
        # The second field, in parentheses, is the program's name and may hold anything.
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
        memory, peak = (int(status[key].split()[0]) * 1024 / 1e6 for key in ("VmRSS", "VmHWM"))
        return Usage((int(fields[11]) + int(fields[12])) / _TICKS, memory, peak)

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-_LAST_WORDS:] if self.log.exists() else ""


@asynccontextmanager
async def child(name: str, *arguments: str, logs: Path, listen: bool = False) -> AsyncIterator[Child]:
    """A process from here to the end of the block; ``listen`` pipes its standard error instead of filing it."""
    path = logs / f"{name}.log"
    with path.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if listen else log,
            limit=_LINE,
        )
    try:
        yield Child(name, process, path)
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(_GRACE_SECONDS):
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
