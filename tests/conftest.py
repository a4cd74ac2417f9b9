"""What all tests share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_loop_left_behind() -> Iterator[None]:
    """The virtual-time plugin asks for a current loop even in synchronous tests, and would leave it open."""
    asyncio.set_event_loop(None)
    yield
