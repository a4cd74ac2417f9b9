"""What a run prints when it has ended, besides what pytest does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_MODULE = "test_traffic_late_gateway"


def test_a_run_prints_with_which_providers_traffic_stories_were_told() -> None:
    asked = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/scenarios/{_MODULE}.py")
    run = subprocess.run(asked, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("providers: "))
    columns, row = lines[head + 1 : head + 3]
    assert columns.split()[0] == "HTTPRoute"
    assert row.split()[:2] == [_MODULE, "ok"]
