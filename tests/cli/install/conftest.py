"""What every test of an installation starts from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import World


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[World]:
    """A cluster with LeaderWorkerSet, and without anything of ours in the usual group."""
    made = World(tmp_path, "rollouts.unrelated.org")
    yield made
    made.close()
