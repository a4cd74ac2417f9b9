"""How what behaviours want is asked of a real API server, which the sandbox's own need not be so particular about.

Inside the sandbox a decision and its writes are one moment. Here others write in between, so a write says which object
it means, and leaves alone what it does not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rollout_lws.controller.apply import target, verb
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.objects.json_patch import merge_patch
from rollout_lws.objects.resources import NODES, PODS, Resource
from rollout_lws.objects.writes import Create, Delete, Patch, Replace, Write
from rollout_lws.sandbox.behaviours.base import Object, View
from tests.e2e.following import Following


@dataclass(frozen=True, slots=True)
class Request:
    """A behaviour's ``write``, and what is ``asked`` of the API server instead."""

    write: Write
    asked: Write

    @property
    def answered_by_object(self) -> bool:
        """Whether the answer is the object that was written, as it is now."""
        return self.asked.resource == self.write.resource and getattr(self.asked, "subresource", "") in ("", "status")


def request(write: Write, view: View) -> Request:
    """What to ask for ``write``; ``view`` must be the one that it was decided from."""
    if not isinstance(write, Patch | Replace):
        return Request(write, write)
    seen = view.get(write.resource, write.namespace, write.name)
    if seen is None or write.subresource == "scale":
        return Request(write, write)
    if isinstance(write, Replace):
        return Request(write, _of_the_same(_changes(write, seen), seen))
    node = (write.body.get("spec") or {}).get("nodeName")
    if write.resource == PODS and not write.subresource and node:
        return Request(write, _binding(write, seen, node))
    return Request(write, _of_the_same(write, seen))


def _changes(write: Replace, seen: Object) -> Patch:
    """Only what differs, whatever others wrote meanwhile: the LeaderWorkerSet controller applies its StatefulSets, and
    a status that comes in between is no conflict for that.
    """
    changes = merge_patch(seen, write.body)
    return Patch(write.resource, write.namespace, write.name, changes, write.reason, subresource=write.subresource)


def _of_the_same(patch: Patch, seen: Object) -> Patch:
    """With the uid as a condition: another object may have the name by now."""
    metadata = {**patch.body.get("metadata", {}), "uid": seen["metadata"]["uid"]}
    return replace(patch, body={**patch.body, "metadata": metadata})


def _binding(write: Patch, pod: Object, node: str) -> Create:
    """A pod's node is set by its ``binding`` and by nothing else."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": write.name, "namespace": write.namespace, "uid": pod["metadata"]["uid"]},
        "target": {"apiVersion": NODES.api_version, "kind": NODES.kind, "name": node},
    }
    return Create(Resource("", "v1", "Binding", f"{PODS.plural}/{write.name}/binding"), body, write.reason)


async def carry_out(request: Request, client: Client, following: Following) -> None:
    """Send it and take the answer in; ApiError or Unreachable when it was not, or may not have been, carried out.

    Where the answer is something else than the object, that is read: the next decision must know of what was done, as
    a scheduler of the room that it has given away.
    """
    write = request.write
    try:
        answer = await client.send(request.asked)
    except ApiError as error:
        if error.code == 404 and isinstance(write, Delete):
            return
        raise
    if not request.answered_by_object and isinstance(write, Patch):
        answer = await client.get(write.resource, write.namespace, write.name)
    following.absorb(write.resource, answer)


def told(write: Write) -> str:
    """A write in one line, for logs."""
    unnamed = isinstance(write, Create) and "name" not in write.body["metadata"]
    return f"{verb(write)} {write.resource if unnamed else target(write)}: {write.reason}"
