"""Reads of an answer as much as is wanted: the other side may send without end."""

from __future__ import annotations

import aiohttp


async def at_most(content: aiohttp.StreamReader, limit: int) -> bytes:
    """The first ``limit`` bytes, or all of fewer."""
    body = bytearray()
    while len(body) < limit and (chunk := await content.read(min(65_536, limit - len(body)))):
        body += chunk
    return bytes(body)
