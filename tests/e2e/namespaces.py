"""Takes a story's namespace away again, whatever state the story was left in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rollout_lws.api.resources import batch_releases, rollouts
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import LEADER_WORKER_SETS, NAMESPACES, Resource
from rollout_lws.objects.writes import Delete, Patch
from tests.e2e.waiting import until
from tests.scenarios.names import KEYS

#: Pods of real machines may take their whole grace of 30 s, and what they stand for goes after them.
_GONE_SECONDS = 180.0
#: What a controller of ours takes away itself, as long as it lives.
_FINALIZERS = (KEYS.rollout_finalizer, KEYS.batch_release_finalizer, KEYS.canary_finalizer)


async def remove(client: Client, name: str) -> None:
    """Delete a namespace and wait until it is gone; one that does not exist is gone.

    Its controllers must have ended: what they would do before an object goes is not waited for. TimeoutError, with what
    the namespace says of itself, when it is there after three minutes.
    """
    for resource in (rollouts(), batch_releases(), LEADER_WORKER_SETS):
        with _gone_is_good():
            for obj in json.loads(await client.list(resource, name))["items"]:
                await _let_go(client, resource, obj["metadata"])
    with _gone_is_good():
        uid = json.loads(await client.get(NAMESPACES, "", name))["metadata"]["uid"]
        await client.send(Delete(NAMESPACES, "", name, uid, "the story is told"))
    await until(client, NAMESPACES, "", name, lambda obj: obj is None, _GONE_SECONDS)


async def _let_go(client: Client, resource: Resource, meta: dict[str, Any]) -> None:
    held = meta.get("finalizers", ())
    kept = [each for each in held if each not in _FINALIZERS]
    if len(kept) < len(held):
        body = {"metadata": {"finalizers": kept or None}}
        with _gone_is_good():
            await client.send(Patch(resource, meta["namespace"], meta["name"], body, "its controller has ended"))


@contextmanager
def _gone_is_good() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        if error.code != 404:
            raise
