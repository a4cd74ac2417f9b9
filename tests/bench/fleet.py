"""The process of an API server that holds a fleet at rest: lists in pages, watches on which nothing happens.

Made from one release at rest that a sandbox recorded, copied into as many namespaces as are asked for; a sandbox with
thousands of pods would need the core that the controller is measured on.
Usage: python -m tests.bench.fleet KUBECONFIG TEMPLATE ROLLOUTS. It tells each write that it is asked for, and refuses
it.
"""

from __future__ import annotations

import asyncio
import gc
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from rollout_lws.api.resources import keys
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, DEFAULT_API_GROUP
from rollout_lws.objects.workloads import ControllerRevision
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.definitions import lws_crd
from rollout_lws.workload.revisions import recorded_version
from tests.bench.lines import tell
from tests.bench.manifests import IMAGE
from tests.bench.wire import PAGE_LIMIT, bookmark, listening, page, write_kubeconfig

#: Seconds between the bookmarks of a watch; API servers send about one a minute, so this is rather too many.
_BOOKMARK_SECONDS = 10.0
_HASH = keys(DEFAULT_API_GROUP).template_hash
#: What the namespaces of copies begin with.
COPY = "team-"
#: Marks in JSON, which has no such characters but escaped; those of hashes follow.
_NAMESPACE, _UID_BEGINS, _IMAGE, _HASHES = "\0", "\1", "\2", 3
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(slots=True)
class Stored:
    namespace: str
    labels: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Fleet:
    """Objects by plural and group, as ``pods`` or ``statefulsets.apps``; ``version`` is newer than any of them."""

    objects: dict[str, list[Stored]] = field(default_factory=dict)
    version: int = 0

    def select(self, resource: str, selector: str) -> list[Stored]:
        """Those with labels as in ``key`` or ``key=value``, joined by commas."""
        terms = [term.partition("=") for term in selector.split(",") if term]
        return [
            each
            for each in self.objects.get(resource, ())
            if all(key in each.labels and (not value or each.labels[key] == value) for key, _, value in terms)
        ]


def recorded(server: ApiServer, namespace: str) -> list[dict[str, Any]]:
    """Each object of a namespace of a sandbox, with what it is."""
    return [
        {"resource": str(resource), "object": server.lookup(resource).shown(obj)}
        for resource, obj in server.store.index.contents(namespace)
    ]


def copied(template: Iterable[dict[str, Any]], copies: int, first: int = 0) -> Fleet:
    """``copies`` of the objects of one namespace, each in a namespace, with UIDs and with images of its own: equal
    templates would be remembered once for all of them. They are numbered from ``first`` on. The name of the recorded
    namespace must be a word that stands for nothing else.
    """
    fleet = Fleet()
    kept = [entry for entry in template if not entry["resource"].startswith("events")]
    objects = [entry["object"] for entry in kept]
    stored = {
        marks[_HASH]: msgspec.json.encode(obj).decode()
        for obj in objects
        if _HASH in (marks := obj["metadata"].get("annotations") or {})
    }
    entries = [(entry["resource"], entry["object"]["metadata"], _marked(entry["object"], stored)) for entry in kept]
    fleet.version = 1 + max(int(meta["resourceVersion"]) for _, meta, _ in entries)
    for number in range(first, first + copies):
        namespace, uid, image = f"{COPY}{number:05}", f"{number:08x}", f"{IMAGE}-{number:05}"
        hashes = [_hash(record.replace(IMAGE, image)) for record in stored.values()]
        for resource, meta, text in entries:
            own = text.replace(_NAMESPACE, namespace).replace(_UID_BEGINS, uid).replace(_IMAGE, image)
            for place, version in enumerate(hashes):
                own = own.replace(chr(_HASHES + place), version)
            fleet.objects.setdefault(resource, []).append(Stored(namespace, meta.get("labels") or {}, own.encode()))
    definition = {**lws_crd.manifest()}
    definition["metadata"] = {**definition["metadata"], "uid": "definition", "resourceVersion": "1"}
    fleet.objects[str(CUSTOM_RESOURCE_DEFINITIONS)] = [Stored("", {}, msgspec.json.encode(definition))]
    return fleet


def _marked(obj: dict[str, Any], hashes: Iterable[str]) -> str:
    """JSON with marks where each copy differs: its namespace, also where that is spoken of, as in the command that a
    message names, the beginnings of UIDs, its images, and our ``hashes`` of its versions.
    """
    text = msgspec.json.encode(obj).decode().replace(obj["metadata"]["namespace"], _NAMESPACE).replace(IMAGE, _IMAGE)
    for place, version in enumerate(hashes):
        text = text.replace(version, chr(_HASHES + place))
    return _UID.sub(lambda uid: _UID_BEGINS + uid[0][8:], text)


def _hash(record: str) -> str:
    """Our hash of the version that a ControllerRevision stores."""
    version = recorded_version(msgspec.json.decode(record, type=ControllerRevision))
    assert version is not None
    return version.template_hash


class Server:
    """Answers lists and watches of all namespaces; anything else is told, and refused."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._select = cache(fleet.select)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        resource = resource_of(request.path)
        if request.method != "GET" or resource is None:
            tell(write=f"{request.method} {request.path}")
            return web.json_response({"kind": "Status", "status": "Failure", "code": 403}, status=403)
        if request.query.get("watch") == "true":
            return await self._watch(request)
        found = self._select(resource, request.query.get("labelSelector", ""))
        start, limit = int(request.query.get("continue", "0")), int(request.query.get("limit", PAGE_LIMIT))
        rest = str(start + limit) if start + limit < len(found) else ""
        items = [each.body for each in found[start : start + limit]]
        return web.Response(body=page(items, self._fleet.version, rest), content_type="application/json")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        while True:
            await asyncio.sleep(_BOOKMARK_SECONDS)
            await response.write(bookmark(self._fleet.version))


def resource_of(path: str) -> str | None:
    """``plural.group`` of a collection in all namespaces, None for any other path."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) == 3:
        return parts[2]
    if parts[0] == "apis" and len(parts) == 4:
        return f"{parts[3]}.{parts[1]}"
    return None


async def main(path: Path, fleet: Fleet) -> None:
    async with listening(Server(fleet).serve) as url:
        write_kubeconfig(path, url)
        counts = Counter({resource: len(objects) for resource, objects in fleet.objects.items()})
        tell(listening=url, objects=dict(counts.most_common()))
        await asyncio.Event().wait()


if __name__ == "__main__":
    everything = copied(msgspec.json.decode(Path(sys.argv[2]).read_bytes()), int(sys.argv[3]))
    gc.freeze()
    asyncio.run(main(Path(sys.argv[1]), everything))
