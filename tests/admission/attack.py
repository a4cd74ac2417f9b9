"""What strangers do to the ports of a controller, until it is ended; when it has begun it says so.

python -m tests.admission.attack HEALTH_PORT GUARD_PORT

It keeps 1,000 connections open to each port, or as many as it is allowed to, that send headers a byte at a time; and it
posts reviews of 5 MB, 16 at a time, and smaller ones that are expensive to read.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import aiohttp

SLOW = 1000
POSTS = 16
#: Seconds between two bytes of a slow connection, and until one that was thrown out comes back.
_BEAT, _BACK = 1.0, 5.0


def review(**members: Any) -> bytes:
    asked = {"uid": "1", "operation": "CREATE", "namespace": "prod", "name": "m", "userInfo": {"username": "eve"}}
    asked |= members
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()


def rollout(steps: list[Any], namespace: str = "prod") -> dict[str, Any]:
    ref = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "m"}
    spec = {"workloadRef": ref, "strategy": {"canary": {"steps": steps}}}
    return {"metadata": {"name": "m", "namespace": namespace}, "spec": spec}


def expressions(steps: int) -> dict[str, Any]:
    """A Rollout with 256 expressions in each step, all of them different, that take long to be read."""
    made = rollout([])
    style = made["spec"]["strategy"]["canary"]
    style["trafficRoutings"] = [{"service": "m", "gateway": {"httpRouteName": "m"}}]
    style["steps"] = [
        {
            "replicas": 1,
            "matches": [
                {
                    "headers": [
                        {"type": "RegularExpression", "name": "x", "value": f"{'()' * 500}{step}.{match}.{header}"}
                        for header in range(16)
                    ]
                }
                for match in range(16)
            ],
        }
        for step in range(steps)
    ]
    return made


def lws(variables: int) -> dict[str, Any]:
    variable = {"name": "a", "value": "1"}
    template = {"workerTemplate": {"spec": {"containers": [{"name": "a", "env": [variable] * variables}]}}}
    return {"metadata": {"name": "m"}, "spec": {"leaderWorkerTemplate": template}}


def reviews() -> list[tuple[str, bytes]]:
    return [
        # Of what is refused by its length alone.
        ("plan", review(object=rollout([{"a": 1}] * 500_000))),
        ("hold", review(object={"x": "y" * 5_000_000})),
        # Of what is read.
        ("plan", review(operation="UPDATE", object=expressions(4), oldObject=expressions(3))),
        ("plan", review(object=rollout([{"a": 1}] * 3_300))),
        ("plan", review(object=rollout([{"a": 1}] * 20_000))),
        ("hold", review(object=lws(5_000), oldObject=lws(5_000))),
        ("pending", review(object=lws(40_000), oldObject=lws(40_000))),
        ("hold", review(object={"x": "y" * 3_000_000})),
        ("hold", b"[" * 3_000_000),
    ]


async def slow(port: int, context: ssl.SSLContext | None) -> None:
    """Again and again, whenever it is thrown out."""
    while True:
        with suppress(OSError, ssl.SSLError):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(b"POST /hold HTTP/1.1\r\nHost: a\r\nX-A: ")
            while not writer.is_closing():
                writer.write(b"a")
                await writer.drain()
                await asyncio.sleep(_BEAT)
        await asyncio.sleep(_BACK)


async def post(session: aiohttp.ClientSession, port: int, made: Sequence[tuple[str, bytes]], number: int) -> None:
    while True:
        path, body = made[number % len(made)]
        with suppress(aiohttp.ClientError, OSError):
            async with session.post(f"https://127.0.0.1:{port}/{path}", data=body) as answer:
                await answer.read()
        number += 1


async def main(health: int, guard: int) -> None:
    context = ssl._create_unverified_context()
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    made = reviews()
    sys.stdout.write("attacking\n")
    sys.stdout.flush()
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as tasks:
        for number in range(POSTS):
            tasks.create_task(post(session, guard, made, number))
        for _ in range(SLOW):
            tasks.create_task(slow(guard, context))
            tasks.create_task(slow(health, None))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
