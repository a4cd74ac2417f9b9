"""What people wait for at the command line: help, a look, and a picture that follows a large release."""

from __future__ import annotations

import asyncio
import compileall
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import rollout_lws
from rollout_lws.cli.access.transport import Transport
from rollout_lws.kubeconfig.target import Target
from tests.bench.figures import Figure
from tests.bench.manifests import NAME, ROLLOUTS
from tests.bench.processes import PROGRAM, Progress, child, usage_of
from tests.terminal import Program

#: The release that is watched: groups, and pods of each.
GROUPS, SIZE = 100, 16
_RUNS, _CHANGES = 15, 20
_REST_SECONDS = 10.0
_PATIENCE_SECONDS = 120.0


async def of_commands(directory: Path, progress: Progress) -> list[Figure]:
    """Medians of starts, and what a watch at a terminal takes; the API server is a process of its own."""
    kubeconfig = directory / "big.kubeconfig"
    arguments = ("-m", "tests.bench.big", str(kubeconfig), str(GROUPS), str(SIZE))
    async with child("big", *arguments, logs=directory) as server:
        await server.told("ready", progress, _PATIENCE_SECONDS)
        progress(f"command line: help, get, and get -w of {GROUPS} groups of {SIZE}")
        figures = await asyncio.to_thread(_starts, kubeconfig)
        return figures + await asyncio.to_thread(_watched, kubeconfig)


def _starts(kubeconfig: Path) -> list[Figure]:
    def median(*arguments: str) -> float:
        command = [sys.executable, *PROGRAM, *arguments]
        took = [_timed(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)) for _ in range(_RUNS)]
        return 1000 * statistics.median(took)

    # As it is installed: a clone in which nothing may be written down is compiled at every start.
    compileall.compile_dir(Path(rollout_lws.__file__).parent, quiet=1)
    at = ("--kubeconfig", str(kubeconfig))
    return [
        Figure(f"rollout-lws --help, median of {_RUNS}", median("--help"), 80, "ms"),
        Figure(f"rollout-lws get, median of {_RUNS}", median("get", *at), 120, "ms"),
        Figure(
            f"rollout-lws get NAME, {GROUPS} groups of {SIZE}, median of {_RUNS}", median("get", NAME, *at), None, "ms"
        ),
    ]


def _watched(kubeconfig: Path) -> list[Figure]:
    transport = Transport.to(Target(kubeconfig=str(kubeconfig)))
    path = ROLLOUTS.path("default", NAME, "status")

    def say(message: str) -> None:
        status = {"phase": "Progressing", "message": message, "summary": {"state": "Loading"}}
        transport.merge_patch(path, {"status": status})

    say("about to be watched")
    command = [sys.executable, *PROGRAM, "get", NAME, "-w", "--kubeconfig", str(kubeconfig)]
    with transport, Program(command, os.environ) as program:
        program.shows(lambda text: "about to be watched" in text and f"groups 0-{GROUPS - 1}" in text)
        before = usage_of(program.process.pid)
        time.sleep(_REST_SECONDS)
        at_rest = (usage_of(program.process.pid).cpu - before.cpu) / _REST_SECONDS
        waits = []
        for number in range(_CHANGES):
            words = f"change {number} of {_CHANGES}"
            began = time.monotonic()
            say(words)
            waits.append(program.shows(lambda text, words=words: words in text) - began)
        memory = usage_of(program.process.pid).memory
    name = f"rollout-lws get -w of {GROUPS} groups of {SIZE}"
    return [
        Figure(f"{name}: a change is asked for → drawn, longest of {_CHANGES}", 1000 * max(waits), 250, "ms"),
        Figure(f"{name}: CPU at rest, of one core", 100 * at_rest, 5, "%"),
        Figure(f"{name}: resident memory", memory, None, "MB"),
    ]


def _timed(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began
