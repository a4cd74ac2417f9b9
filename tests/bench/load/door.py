"""How one controller reaches the cluster: a door of its own, so that what it sends is known and it can be cut off.

Behind it are the live releases of a sandbox, and beside them, in lists, what only stands there. Watches tell of the
live ones alone: nothing else changes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.objects.resources import LEASES, LWS_WORKER_INDEX, PODS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import WRITES, Effect
from rollout_lws.sandbox.request_pipeline import Gate
from rollout_lws.sandbox.routes import Request, Response, Target, target_of, verb_of
from tests.bench.fleet import COPY
from tests.bench.load.still import Still
from tests.bench.wire import PAGE_LIMIT, page

#: What the token of a page begins with; a list of the sandbox alone has tokens of its own.
_NEXT = "still-"


class _Live(msgspec.Struct):
    items: list[msgspec.Raw]


@dataclass(slots=True)
class Sent:
    """What came through one door since ``begin``: ``writes`` but for the Lease, ``first`` when the first of them
    arrived (seconds of the machine's clock), and in ``wrong`` those that were not allowed to: of who does not hold the
    Lease, or held it by a renewal of more than ``deadline`` seconds ago; or of something on which nothing happens.
    """

    deadline: float
    writes: int = 0
    first: float | None = None
    wrong: list[str] = field(default_factory=list)
    #: Requests that would have listed worker pods of Rollouts at rest, which are not there.
    unserved: list[str] = field(default_factory=list)
    #: The name that the controller gives itself, from its first claim on, and when its last one was granted.
    name: str = ""
    granted: float = 0.0

    def begin(self) -> None:
        """Another time is looked at; the controller is the same."""
        self.writes, self.first = 0, None

    def claimed(self, arrived: float, body: Mapping[str, Any]) -> None:
        """A write of the Lease was carried out."""
        if holder := body["spec"].get("holderIdentity"):
            self.name, self.granted = holder, arrived

    def wrote(self, arrived: float, what: str, holder: str) -> None:
        self.writes += 1
        self.first = self.first or arrived
        if holder != self.name:
            self.wrong.append(f"{what} of {self.name or 'who never led'} while {holder or 'nobody'} leads")
        elif arrived - self.granted > self.deadline:
            self.wrong.append(f"{what} {arrived - self.granted:.1f} s after the last renewal")
        if f"/namespaces/{COPY}" in what:
            self.wrong.append(f"{what}, where nothing has changed")


class Door(Gate):
    """``still`` may be exchanged while nobody is connected."""

    def __init__(self, server: ApiServer, deadline: float) -> None:
        super().__init__(server)
        self.still = Still()
        self.sent = Sent(deadline)
        self._cut = False

    async def answer(self, request: Request) -> Response:
        if self._cut:
            raise Unreachable(f"{request.method} {request.path} did not get through")
        arrived = time.time()
        try:
            target = target_of(self.server, request.path)
        except ApiError:
            return await super().answer(request)
        verb = verb_of(request, target)
        if verb == "list":
            return await self._list(request, target)
        if verb not in WRITES:
            return await super().answer(request)
        if target.served.resource != LEASES:
            self.sent.wrote(arrived, f"{request.method} {request.path}", holder(self.server))
            return await super().answer(request)
        response = await super().answer(request)
        if response.status < 400:
            self.sent.claimed(arrived, msgspec.json.decode(request.body))
        return response

    async def _list(self, request: Request, target: Target) -> Response:
        """A page of what stands there, and after the last one, in the same, what lives."""
        params, resource = dict(request.params), str(target.served.resource)
        token, selector = params.pop("continue", ""), params.get("labelSelector", "")
        found = self.still.select(resource, target.namespace, selector)
        if (token and not token.startswith(_NEXT)) or not found:
            return await super().answer(request)
        if resource == str(PODS) and not target.namespace and f"{LWS_WORKER_INDEX}=0" not in selector:
            self.sent.unserved.append(f"{request.path} {selector}")
        start, limit = int(token.removeprefix(_NEXT) or 0), int(params.pop("limit", PAGE_LIMIT))
        items, version, rest = [each.body for each in found[start : start + limit]], self.server.store.version, ""
        if start + limit < len(found):
            rest = f"{_NEXT}{start + limit}"
        else:
            live = await super().answer(replace(request, params=params))
            if live.status >= 400:
                return live
            items += msgspec.json.decode(live.body, type=_Live).items
        return Response(200, page(items, version, rest), {"content-type": "application/json"})

    def cut(self) -> None:
        """Nothing gets through, either way; what had arrived is carried out."""
        self._cut = True
        self.faults.add(Effect(lost=True), count=None)
        self.faults.cut_watches()

    def mend(self) -> None:
        self._cut = False
        self.faults.restore()


def holder(server: ApiServer) -> str:
    """Who leads, by the Lease; "" when nobody does."""
    found = [each["spec"].get("holderIdentity") or "" for each in server.list(LEASES, "default")]
    return found[0] if found else ""
