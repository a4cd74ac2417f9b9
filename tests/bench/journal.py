"""What the API server itself saw, with the moment: requests of the controller, batches whose last pod became ready, and
routes that were accepted.

Latencies are told from the server's side only. A controller that measured itself would leave out what it waits for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import EVENTS, HTTP_ROUTES, LEADER_WORKER_SETS, LWS_NAME, PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import WRITES
from rollout_lws.sandbox.request_pipeline import Gate
from rollout_lws.sandbox.routes import Request, Response, target_of, verb_of
from rollout_lws.sandbox.store import Event
from tests.json_patch import as_merge

#: What a write is for: the release itself, a promotion window opened or closed, a leader's labels, or an Event.
RELEASE, WINDOW, LABEL, EVENT = "release", "window", "label", "event"


@dataclass(frozen=True, slots=True)
class Write:
    """One write of a client when it arrived, at ``at`` seconds of the machine's clock; ``code`` is its answer's."""

    at: float
    verb: str
    resource: str
    namespace: str
    name: str
    subresource: str
    code: int
    body: Mapping[str, Any]

    @property
    def purpose(self) -> str:
        if self.resource == EVENTS.plural:
            return EVENT
        if self.verb == "patch" and self.resource == PODS.plural:
            return LABEL
        spec = self.body.get("spec") or {}
        if self.verb == "patch" and self.resource == LEADER_WORKER_SETS.plural and "rolloutStrategy" in spec:
            return WINDOW
        return RELEASE

    @property
    def accepted(self) -> bool:
        return self.code < 400

    @property
    def what(self) -> str:
        """Verb and resource, as in ``patch rollouts/status``."""
        return f"{self.verb} {self.resource}" + (f"/{self.subresource}" if self.subresource else "")


@dataclass(frozen=True, slots=True)
class Ready:
    """The moment at which the last pod that an LWS asks for was stored as Ready."""

    at: float
    namespace: str
    lws: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """The moment at which the Gateway's word on an HTTPRoute as it stands now was stored."""

    at: float
    namespace: str
    route: str


@dataclass(frozen=True, slots=True)
class Counted:
    """The moment at which the StatefulSets of an LWS were stored as having all its pods ready between them."""

    at: float
    namespace: str
    lws: str


Entry: TypeAlias = Write | Ready | Counted | Accepted


class Moments:
    """Tells ``add`` of pods and routes that have become what a release waits for, as their objects are stored.

    ``wanted`` is how many pods an LWS (namespace, name) asks for, -1 while there is none.
    """

    def __init__(self, add: Callable[[Ready | Counted | Accepted], None], wanted: Callable[[str, str], int]) -> None:
        self._add = add
        self._wanted = wanted
        self._counts: dict[tuple[str, str], dict[str, int]] = {}
        self._ready: dict[tuple[str, str], set[str]] = {}
        self._accepted: dict[tuple[str, str], int] = {}

    def pod_stored(self, at: float, pod: Mapping[str, Any], *, gone: bool) -> None:
        """A pod as it was stored at ``at``, or as it was when it went."""
        meta = pod["metadata"]
        lws = (meta.get("labels") or {}).get(LWS_NAME)
        if not lws:
            return
        ready = self._ready.setdefault((meta["namespace"], lws), set())
        if gone or "deletionTimestamp" in meta or not _is_ready(pod):
            ready.discard(meta["name"])
        elif meta["name"] not in ready:
            ready.add(meta["name"])
            if len(ready) == self._wanted(meta["namespace"], lws):
                self._add(Ready(at, meta["namespace"], lws))

    def set_stored(self, at: float, stateful_set: Mapping[str, Any], *, gone: bool) -> None:
        """A StatefulSet as it was stored at ``at``, or as it was when it went."""
        meta = stateful_set["metadata"]
        lws = (meta.get("labels") or {}).get(LWS_NAME)
        if not lws:
            return
        counts = self._counts.setdefault((meta["namespace"], lws), {})
        before = sum(counts.values())
        counts[meta["name"]] = 0 if gone else int((stateful_set.get("status") or {}).get("readyReplicas", 0))
        if sum(counts.values()) != before and sum(counts.values()) == self._wanted(meta["namespace"], lws):
            self._add(Counted(at, meta["namespace"], lws))

    def route_stored(self, at: float, route: Mapping[str, Any]) -> None:
        meta, generation = route["metadata"], int(route["metadata"]["generation"])
        key = (meta["namespace"], meta["name"])
        if _is_accepted(route) and self._accepted.get(key) != generation:
            self._accepted[key] = generation
            self._add(Accepted(at, *key))


def pods_wanted(lws: Mapping[str, Any]) -> int:
    """How many pods an LWS asks for."""
    spec = lws["spec"]
    return int(spec["replicas"]) * int(spec["leaderWorkerTemplate"].get("size", 1))


class Journal:
    """Entries in the order in which they happened, by namespace: each release of the benchmark has one of its own."""

    def __init__(self, server: ApiServer) -> None:
        self.entries: dict[str, list[Entry]] = {}
        self._server = server
        self._moments = Moments(self.add, self._wanted)

    def follow(self) -> None:
        self._server.store.subscribe(self._stored)

    def add(self, entry: Entry) -> None:
        self.entries.setdefault(entry.namespace, []).append(entry)

    def _stored(self, event: Event) -> None:
        if event.resource == HTTP_ROUTES:
            self._moments.route_stored(time.time(), event.object)
        if event.resource == PODS:
            self._moments.pod_stored(time.time(), event.object, gone=event.type == "DELETED")

    def _wanted(self, namespace: str, lws: str) -> int:
        try:
            return pods_wanted(self._server.get(LEADER_WORKER_SETS, namespace, lws))
        except ApiError:
            return -1


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _is_accepted(route: Mapping[str, Any]) -> bool:
    generation = route["metadata"]["generation"]
    parents = (route.get("status") or {}).get("parents") or ()
    told = [each for parent in parents for each in parent["conditions"]]
    return bool(told) and all(each["status"] == "True" and each["observedGeneration"] == generation for each in told)


class RecordingGate(Gate):
    """The server's door, with every write that comes through it put on record as of its arrival."""

    def __init__(self, server: ApiServer, journal: Journal) -> None:
        super().__init__(server)
        self._journal = journal

    async def answer(self, request: Request) -> Response:
        arrived = time.time()
        response = await super().answer(request)
        try:
            target = target_of(self.server, request.path)
        except ApiError:
            return response
        verb = verb_of(request, target)
        if verb in WRITES:
            body = as_merge(msgspec.json.decode(request.body) if request.body else None)
            meta = body.get("metadata") or {}
            self._journal.add(
                Write(
                    arrived,
                    verb,
                    target.served.resource.plural,
                    target.namespace,
                    target.name or str(meta.get("name", "")),
                    target.subresource,
                    response.status,
                    body,
                )
            )
        return response
