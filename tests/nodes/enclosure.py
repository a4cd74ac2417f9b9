"""Runs a command in network, mount and process namespaces of its own, and clears up what outlives them.

Usage: python -m tests.nodes.enclosure DIRECTORY COMMAND ... Processes, networks, mounts and what is set in them go with
the namespaces, in whatever state they are. The run's directory and the control groups of its name do not: this process
stays outside, waits for the end of the command, or of its own standard input when whoever started it was killed, and
removes them then. What a killed one has left, the next one removes.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.e2e import tools
from tests.kubectl.programs import tied_to_us
from tests.nodes import cgroups

#: The environment variable that tells a command where its run's directory is.
DIRECTORY = "ROLLOUT_LWS_NODES_DIRECTORY"
#: What the directory and the control groups of a run are called, before some characters of its own.
PREFIX = "rollout-lws-nodes-"
_LOCK = "lock"
#: Memory that others share goes with the namespaces too.
_PRIVATE = ("sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "enclosed")
#: What a command begins with that has namespaces of its own, and ends with all that is in them.
NAMESPACES = ("unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child=KILL", "--mount-proc")


@contextmanager
def directory(rooms: Path) -> Iterator[Path]:
    """A new run's directory in ``rooms``; those of runs that are no more are cleared up first."""
    sweep(rooms)
    with ExitStack() as stack:
        with _alone(rooms):
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=rooms))
            lock = stack.enter_context((path / _LOCK).open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        stack.callback(_clear, path)
        yield path


def sweep(rooms: Path) -> None:
    """Clear up what is left in ``rooms`` of runs that are no more."""
    with _alone(rooms):
        for old in rooms.glob(f"{PREFIX}*"):
            with (old / _LOCK).open("w") as lock, suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _clear(old)


@contextmanager
def _alone(rooms: Path) -> Iterator[None]:
    """No other run makes or clears up a directory meanwhile: a new one is not locked at once."""
    rooms.mkdir(parents=True, exist_ok=True)
    with (rooms / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _clear(path: Path) -> None:
    """What a run leaves that has no process any more."""
    cgroups.remove(path.name)
    shutil.rmtree(path, ignore_errors=True)


def rooms() -> Path:
    """Where directories of runs are: on a disk, which images and containers of nodes need."""
    return tools.cache() / "runs"


def start(rooms: Path, *command: str) -> subprocess.Popen[bytes]:
    """``command`` enclosed, in a process that ends it when its standard input ends, and so when we are killed.

    The path of the run's directory is in the environment variable DIRECTORY. Its exit code is the command's.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "tests.nodes.enclosure", str(rooms), *command], stdin=subprocess.PIPE
    )


def run(rooms: Path, command: Sequence[str]) -> int:
    """The exit code of ``command``, which has run enclosed; all of it is gone."""
    # The terminal's Ctrl-C is for the command, which then comes to its own end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with directory(rooms) as path:
        process = subprocess.Popen(
            [*tied_to_us(), *NAMESPACES, "--", *_PRIVATE, *command],
            stdin=subprocess.DEVNULL,
            env={**os.environ, DIRECTORY: str(path)},
            preexec_fn=_interruptible,
        )
        ended = os.pidfd_open(process.pid)
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.register(sys.stdin.fileno(), select.POLLIN)
        while ended not in (ready := [each for each, _ in poll.poll()]):
            if sys.stdin.fileno() in ready and not os.read(sys.stdin.fileno(), 4096):
                poll.unregister(sys.stdin.fileno())
                _end(process.pid)
        os.close(ended)
        return process.wait()


def children(process: int) -> list[int]:
    """What a process with one thread has started and not awaited yet."""
    return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end(outer: int) -> None:
    """Kill the first process inside; with it all others end, and when they have ended unshare does."""
    for each in children(outer) or [outer]:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
