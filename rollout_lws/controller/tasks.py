"""How background tasks of a controller are ended."""

from __future__ import annotations

import asyncio
from collections.abc import Collection


async def end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel all and wait for their end. Who is cancelled while waiting learns of it, and they end all the same."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
