"""What an API server does to its etcd every five minutes, at once: forget all history before now.

Whoever was away for longer than that is answered 410, and no test can wait for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp

#: etcd has to rewrite what is left.
_ANSWER_SECONDS = 30.0


async def compact(socket: Path) -> int:
    """Compact the etcd that listens at ``socket`` up to its newest revision, which is given, and wait until it is done.

    aiohttp.ClientError when etcd does not do it.
    """
    timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
    connector = aiohttp.UnixConnector(str(socket))
    async with aiohttp.ClientSession("http://etcd", connector=connector, timeout=timeout) as session:
        revision = int((await _asked(session, "/v3/maintenance/status", {}))["header"]["revision"])
        await _asked(session, "/v3/kv/compaction", {"revision": str(revision), "physical": True})
    return revision


async def _asked(session: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> dict[str, Any]:
    async with session.post(path, json=body, raise_for_status=True) as response:
        answer: dict[str, Any] = await response.json()
        return answer
