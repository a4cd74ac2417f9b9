"""The lane with real nodes: `make e2e-nodes`, or python -m tests.nodes [what pytest takes].

Builds what is not built yet, then runs the tests that are marked ``nodes`` in namespaces of their own
(tests.nodes.enclosure). Where it cannot run it says so in one line, which is no failure.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.e2e import tools
from tests.e2e.tools import CannotBuild, Progress
from tests.nodes import enclosure, gateway, images, needs, traces
from tests.nodes.stories import everything

#: The environment variable that tells tests that they are not enclosed.
OUTSIDE = "ROLLOUT_LWS_NODES_OUTSIDE"
_HERE = Path(__file__).parent
_OUTSIDE = _HERE / "outside"
_PYTEST = (sys.executable, "-m", "pytest", "-m", "nodes")
_NONE_CHOSEN = 5


def build(progress: Progress) -> Path:
    """All programs and images of the lane that are not there yet; gives the store of the images. CannotBuild when one
    cannot be built.
    """
    for bundle in (tools.PLANE, tools.NODE, tools.DNS):
        tools.build(progress, bundle)
    gateway.build(progress)
    images.build(progress)
    return images.store()


def main(arguments: Sequence[str]) -> int:
    if why := needs.missing():
        print(f"skipped: the lane with real nodes: {why}")
        return 0
    try:
        os.environ[images.STORE] = str(build(functools.partial(print, flush=True)))
    except CannotBuild as error:
        print(f"no nodes: {error}", file=sys.stderr)
        return 1
    before = traces.seen()
    code = _enclosed(arguments)
    if everything():
        code = _outside(arguments) or code
    if left := sorted(traces.seen() - before):
        print("the run has left on this machine:", *left, sep="\n  ", file=sys.stderr)
        return code or 1
    return code


def _enclosed(arguments: Sequence[str]) -> int:
    """The exit code of pytest on the tests of the lane."""
    rooms = enclosure.rooms()
    enclosed = enclosure.start(rooms, *_PYTEST, str(_HERE), f"--ignore={_OUTSIDE}", *arguments)
    try:
        code = enclosed.wait()
    except KeyboardInterrupt:
        # The terminal has told pytest too, which comes to its end.
        code = enclosed.wait()
    # One that was killed has not cleared up after itself.
    enclosure.sweep(rooms)
    return code


def _outside(arguments: Sequence[str]) -> int:
    """The exit code of pytest on the tests that look at runs from outside; that none is chosen is no failure."""
    environment = {**os.environ, OUTSIDE: "1"}
    code = subprocess.run([*_PYTEST, str(_OUTSIDE), *arguments], env=environment).returncode
    return 0 if code == _NONE_CHOSEN else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
