"""Real kubectl against real processes: each test has a sandbox of its own, told and watched over HTTP only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kubectl.operator import Operator
from tests.kubectl.programs import Programs


@pytest.fixture
async def programs() -> AsyncIterator[Programs]:
    started = Programs()
    yield started
    await started.close()
    print(*started.logs(), sep="\n")


@pytest.fixture
async def operator(programs: Programs, tmp_path: Path) -> Operator:
    """A person with a sandbox whose pods load for 0.2 s and whose controller runs in the same process."""
    someone = Operator(programs, tmp_path)
    await someone.start_sandbox("--controller")
    return someone
