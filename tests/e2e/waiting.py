"""Waiting for an object of an API server to become what is expected: told by a watch that outlives the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from rollout_lws.kube.client import Client
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.meta import Meta, Struct
from rollout_lws.objects.resources import Resource

Object = dict[str, Any]


class _Named(Struct, frozen=True):
    metadata: Meta


@dataclass(frozen=True, slots=True)
class _Seen:
    metadata: Meta
    body: Object


async def until(
    client: Client,
    resource: Resource,
    namespace: str,
    name: str,
    holds: Callable[[Object | None], bool],
    seconds: float = 30.0,
) -> Object | None:
    """The object as soon as ``holds`` is true of it; None stands for one that does not exist.

    TimeoutError, with the object as it was last seen, after ``seconds``.
    """
    following = Informer(client, resource, _decode, namespace=namespace, field_selector=f"metadata.name={name}")
    changed = asyncio.Event()
    following.on_change(lambda _old, _new: changed.set())
    following.on_news(changed.set)

    def now() -> Object | None:
        seen = following.get(namespace, name)
        return None if seen is None else seen.body

    running = asyncio.create_task(following.run())
    try:
        async with asyncio.timeout(seconds):
            while not (following.is_synced and holds(now())):
                await changed.wait()
                changed.clear()
        return now()
    except TimeoutError:
        last = json.dumps(now()) if following.is_synced else following.trouble or "no answer"
        raise TimeoutError(f"{resource} {namespace}/{name} is not as expected after {seconds:g} s: {last}") from None
    finally:
        running.cancel()
        await asyncio.wait([running])


def condition(obj: Object | None, kind: str) -> str:
    """Status of the condition ``kind`` ("True", "False", "Unknown"); empty when there is none."""
    conditions = (obj or {}).get("status", {}).get("conditions") or []
    return next((str(each["status"]) for each in conditions if each["type"] == kind), "")


def _decode(body: bytes) -> _Seen:
    return _Seen(msgspec.json.decode(body, type=_Named).metadata, json.loads(body))
