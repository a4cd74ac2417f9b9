"""Tasks of the event loop, and how they are ended."""

from __future__ import annotations

import asyncio
from collections.abc import Collection


async def end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel all and wait for their end; a cancellation of the caller meanwhile is raised to it."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
