"""Runs a script in a child process: ``run(script, input)`` gives its result, or why there is none.

Each script gets a process of its own, which ends with it: nothing of one Rollout's input can be seen from a script that
runs for another one. A process is started ahead, so that starting it costs no release anything. It inherits no
environment and no open file, and its bounds are in ``child``; here is the last of them, a second by the clock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from rollout_lws.errors import UsageError
from rollout_lws.traffic.custom.scripts import Failure, Outcome, Output

#: Seconds that a script may take, and a child to start.
DEADLINE_SECONDS = 1.0
_START_SECONDS = 20.0
#: No answer of a child is as long; its own limit is lower.
_MOST_BYTES = 2**20
_CHILD = Path(__file__).with_name("child.py")


def check_installed() -> None:
    """UsageError without lupa, the library that runs Lua."""
    if find_spec("lupa") is None:
        raise UsageError("--custom-network-scripts needs the extra lua: pip install 'rollout-lws[lua]'")


class Runner:
    """Runs one script after the other. ``run`` may be called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spare: subprocess.Popen[bytes] | None = None

    def run(self, script: str, given: Mapping[str, Any] | bytes) -> Outcome:
        """The result of the script for ``given``, the global ``obj`` of it, as JSON or its bytes. Blocks for a second
        at most, once a child has started.
        """
        body = given if isinstance(given, bytes) else json.dumps(given).encode()
        request = b'{"script":%s,"input":%s}' % (json.dumps(script).encode(), body)
        with self._lock:
            child, self._spare = self._spare, None
        child = child if child is not None and child.poll() is None else _start()
        try:
            return _asked(child, request)
        finally:
            _end(child)
            self._prepare()

    def close(self) -> None:
        """End the child that waits for a script."""
        with self._lock:
            child, self._spare = self._spare, None
        if child is not None:
            _end(child)

    def _prepare(self) -> None:
        with self._lock:
            if self._spare is None:
                self._spare = _start()


def _start() -> subprocess.Popen[bytes]:
    found = find_spec("lupa")
    assert found is not None and found.origin is not None, "check_installed was called"
    library = str(Path(found.origin).parent.parent)
    return subprocess.Popen(
        # Isolated, and without a site: no environment, no user's packages, no .pth file is read.
        [sys.executable, "-I", "-S", str(_CHILD), library],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env={},
        close_fds=True,
        start_new_session=True,
    )


def _asked(child: subprocess.Popen[bytes], request: bytes) -> Outcome:
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    starting = threading.Timer(_START_SECONDS, child.kill)
    starting.start()
    try:
        ready = child.stdout.readline(2)
    finally:
        starting.cancel()
    if ready != b"\n":
        child.kill()
        said = child.stderr.read(2000).decode(errors="replace").strip().rpartition("\n")[2]
        return Failure(f"the process for scripts does not start: {said or 'it says nothing'}", lasts=False)
    ending = threading.Timer(DEADLINE_SECONDS, child.kill)
    ending.start()
    try:
        try:
            child.stdin.write(request)
            child.stdin.close()
        except BrokenPipeError:
            pass
        answer = child.stdout.read(_MOST_BYTES + 1)
    finally:
        ending.cancel()
    return _outcome(answer, child)


def _outcome(answer: bytes, child: subprocess.Popen[bytes]) -> Outcome:
    try:
        told = msgspec.json.decode(answer, type=dict[str, Any]) if len(answer) <= _MOST_BYTES else {}
    except msgspec.DecodeError:
        told = {}
    if "output" in told:
        return Output(msgspec.json.encode(told["output"]))
    if "error" not in told:
        child.kill()
        code = child.wait()
        why = f"its process was ended by signal {-code}" if code < 0 else f"its process ended with status {code}"
        return Failure(f"{why}, as it takes too long or too much memory", lasts=False)
    return Failure(_worded(str(told["error"]), int(told.get("line") or 0)), lasts="late" not in told)


def _worded(error: str, line: int) -> str:
    """The error with its line in front, as "line 3: what is wrong"."""
    if error.startswith("script:"):
        number, _, error = error.removeprefix("script:").partition(":")
        return f"line {number}: {error.strip()}"
    if error.startswith("line ") or not line:
        return error
    return f"line {line}: {error}"


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.kill()
    child.wait()
    for each in (child.stdin, child.stdout, child.stderr):
        if each is not None:
            try:
                each.close()
            except OSError:
                # What was not written yet goes with the pipe.
                os.close(each.fileno()) if not each.closed else None
