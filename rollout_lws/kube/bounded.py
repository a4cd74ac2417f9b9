"""Reads of an answer as much as is wanted: the other side may send without end."""

from __future__ import annotations

import aiohttp

from rollout_lws.kube.transport import TooLong

_UNITS = ((2**20, "MiB"), (2**10, "KiB"), (1, "bytes"))


async def whole(content: aiohttp.StreamReader, longest: int) -> bytes:
    """All of an answer, TooLong beyond so many bytes."""
    body = bytearray()
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > longest:
            size, unit = next(each for each in _UNITS if longest % each[0] == 0)
            raise TooLong(f"more than {longest // size} {unit}")
    return bytes(body)
