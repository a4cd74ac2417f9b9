"""A run that is killed leaves nothing on the machine, whichever of its processes it was, and whenever.

These tests are not enclosed: they look at the machine. Each starts a run of its own.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.kubectl.programs import tied_to_us
from tests.nodes import traces
from tests.nodes.enclosure import children
from tests.nodes.stories import ALL

pytestmark = [pytest.mark.nodes(everything=True), pytest.mark.timeout(300)]

#: What is done inside is of no interest here, as long as pods run meanwhile.
_RUN = (sys.executable, "-m", "tests.nodes", "-k", "test_users_of_a_release", "-x")
_PATIENCE_MS = 60_000


@contextmanager
def _run() -> Iterator[subprocess.Popen[str]]:
    """The lane, by a process that is the first of three that stand for it on this machine."""
    environment = {**os.environ, ALL: "", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen([*tied_to_us(), *_RUN], stdout=subprocess.PIPE, env=environment, text=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.communicate()


def _processes(first: int) -> list[int]:
    """The one that was started, the one that clears up, the one that has the namespaces, and pytest in them."""
    found = [first]
    while len(found) < 4:
        (child,) = children(found[-1])
        found.append(child)
    return found


@pytest.mark.parametrize(
    ("moment", "victim"),
    [("the control plane is ready", 0), ("2 nodes are Ready", 1), ("is available", 3)],
    ids=["first-process-while-nodes-start", "keeper-while-pods-start", "tests-while-users-ask"],
)
def test_nothing_is_left_of_a_run_that_is_killed(moment: str, victim: int) -> None:
    before = traces.seen()
    with _run() as run:
        assert run.stdout is not None
        lines = []
        for line in run.stdout:
            lines.append(line)
            if moment in line:
                break
        else:
            pytest.fail("".join(lines))
        processes = _processes(run.pid)
        ends = [os.pidfd_open(each) for each in processes]
        assert traces.seen() - before, "nothing would have been left"
        os.kill(processes[victim], signal.SIGKILL)
        for each in ends:
            assert select.select([each], [], [], _PATIENCE_MS / 1000)[0], "a process of the run goes on"
            os.close(each)
    assert sorted(traces.seen() - before) == []
