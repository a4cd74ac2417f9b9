"""Prometheus' own tool, where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.metrics.rules import MONITORING

_PROGRAM = os.environ.get("PROMTOOL") or shutil.which("promtool")

needs_promtool = pytest.mark.skipif(
    _PROGRAM is None,
    reason="needs promtool: apt-get download prometheus && dpkg -x prometheus_*.deb DIRECTORY, then"
    " PROMTOOL=DIRECTORY/usr/bin/promtool",
)


def promtool(*arguments: str, given: str = "") -> None:
    """Run it, and fail with what it says if it is not content."""
    assert _PROGRAM is not None
    done = subprocess.run(
        [_PROGRAM, *arguments], input=given, capture_output=True, text=True, check=False, cwd=MONITORING
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
