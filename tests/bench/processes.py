"""Child processes: started with this interpreter, heard line by line, measured from outside, ended by their id."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kubectl.programs import tied_to_us

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


class Errors:
    """What a child says on standard error: filed at ``path`` line by line, and waited for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[str] = []
        self._more = asyncio.Event()

    async def file(self, stream: asyncio.StreamReader) -> None:
        with self.path.open("w", buffering=1) as log:
            async for line in stream:
                self._lines.append(line.decode(errors="replace"))
                log.write(self._lines[-1])
                self._more.set()

    async def said(self, words: str) -> None:
        while not any(words in line for line in self._lines):
            self._more.clear()
            await self._more.wait()


@dataclass(frozen=True, slots=True)
class Child:
    name: str
    process: asyncio.subprocess.Process
    errors: Errors

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
        assert self.process.stdout is not None
        told = await self.process.stdout.read()
        lines = [json.loads(line) for line in told.splitlines()]
        return [line[key] for line in lines if key in line]

    async def logged(self, words: str, seconds: float) -> None:
        """Wait for a line with ``words`` on standard error; what comes later is filed as well."""
        try:
            async with asyncio.timeout(seconds):
                await self.errors.said(words)
        except TimeoutError:
            raise Failed(f"{self.name} did not log {words!r} within {seconds:g} s\n{self.last_words()}") from None

    def usage(self) -> Usage:
        return usage_of(self.process.pid)

    def last_words(self) -> str:
        return self.errors.path.read_text(errors="replace")[-_LAST_WORDS:]


@asynccontextmanager
async def child(name: str, *arguments: str, logs: Path) -> AsyncIterator[Child]:
    """A process from here to the end of the block; its standard error is filed in ``logs``."""
    process = await asyncio.create_subprocess_exec(
        *tied_to_us(),
        sys.executable,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_LINE,
    )
    errors = Errors(logs / f"{name}.log")
    assert process.stderr is not None
    filing = asyncio.create_task(errors.file(process.stderr))
    try:
        yield Child(name, process, errors)
    finally:
        await _end(process)
        await filing


def usage_of(pid: int) -> Usage:
    """What a process has used."""
    proc = Path("/proc") / str(pid)
    # The second field, in parentheses, is the program's name and may hold anything.
    fields = (proc / "stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    memory, peak = (int(status[key].split()[0]) * 1024 / 1e6 for key in ("VmRSS", "VmHWM"))
    return Usage((int(fields[11]) + int(fields[12])) / _TICKS, memory, peak)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(_GRACE_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def busy_seconds() -> tuple[float, float]:
    """Seconds of CPU that this machine has spent so far, and those of them that went to this process and the children
    it has ended.
    """
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    own = os.times()
    ours = own.user + own.system + own.children_user + own.children_system
    return (user + nice + system + irq + softirq) / _TICKS, ours
