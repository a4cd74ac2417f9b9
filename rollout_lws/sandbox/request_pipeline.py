"""The request pipeline of both transports: injected faults first, then the REST API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.sandbox import codec
from rollout_lws.sandbox.access_reviews import is_review, review
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.definitions import crds
from rollout_lws.sandbox.faults import READS, Effect, Faults
from rollout_lws.sandbox.model_servers import PATH, ModelServers
from rollout_lws.sandbox.pod_answers import answer_of
from rollout_lws.sandbox.rest import Rest
from rollout_lws.sandbox.routes import BEHIND_VERBS, Behind, Request, Response, behind, target_of, verb_of
from rollout_lws.sandbox.store import Event
from rollout_lws.sandbox.watches import Watch


class Gate:
    """One server as its clients reach it, faults included."""

    def __init__(self, server: ApiServer, faults: Faults | None = None) -> None:
        self.server = server
        self.faults = faults or Faults()
        self._rest = Rest(server)
        self.models = ModelServers(server)
        #: By plural: until this time (server clock) reads of a custom resource get "storage is (re)initializing".
        self._ready: dict[str, float] = {}
        server.store.subscribe(self._follow)

    async def answer(self, request: Request) -> Response:
        """The response to any request but a watch; Unreachable when a fault drops it."""
        verb, resource = self._named(request)
        effect = self._effect(verb, resource)
        if effect.delay:
            await asyncio.sleep(effect.delay)
        if effect.refusal is not None:
            return codec.refused(effect.refusal)
        if effect.lost and not effect.carried_out:
            raise Unreachable(f"{request.method} {request.path} got no answer")
        asked = behind(request)
        if is_review(request):
            response = review(request, self.faults)
        else:
            response = self._rest.handle(request) if asked is None else self._proxied(asked)
        if effect.lost:
            raise Unreachable(f"{request.method} {request.path} was carried out, but its answer was lost")
        return response

    @asynccontextmanager
    async def watch(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch; ApiError when the server refuses it, Unreachable when a fault drops the request."""
        target = target_of(self.server, request.path)
        effect = self._effect("watch", target.served.resource.plural)
        if effect.delay:
            await asyncio.sleep(effect.delay)
        if effect.refusal is not None:
            raise effect.refusal
        if effect.lost:
            raise Unreachable(f"watch of {request.path} got no answer")
        watch = Watch(self.server, request, target)
        forget = self.faults.on_cut(watch.cut)
        lines = self._disturbed(watch.lines(), effect)
        try:
            yield lines
        finally:
            forget()
            watch.close()
            await lines.aclose()

    async def _disturbed(self, lines: AsyncGenerator[bytes, None], effect: Effect) -> AsyncGenerator[bytes, None]:
        """``lines`` with the effect applied: silent, delayed or duplicated."""
        async with aclosing(lines):
            async for line in lines:
                if effect.silent:
                    continue
                if effect.event_delay:
                    await asyncio.sleep(effect.event_delay)
                for _ in range(effect.copies):
                    yield line

    def _proxied(self, asked: Behind) -> Response:
        """What the pod answers by its annotations, or its model server; an API server answers 503 for one that does
        not.
        """
        answer = answer_of(self.server, asked)
        if answer is not None:
            return answer
        told = self.models.metrics(asked.namespace, asked.pod)
        if told is None:
            return codec.refused(ApiError(503, "ServiceUnavailable", f"error trying to reach pod {asked.pod}"))
        if asked.path != PATH or asked.method != "GET":
            return Response(404, b"Not Found", {"content-type": "text/plain"})
        return Response(200, told.encode(), {"content-type": "text/plain; version=0.0.4; charset=utf-8"})

    def _effect(self, verb: str, resource: str) -> Effect:
        if verb in READS and self.server.clock() < self._ready.get(resource, 0.0):
            return Effect(refusal=ApiError(429, "TooManyRequests", "storage is (re)initializing", 1.0))
        return self.faults.consult(verb, resource)

    def _follow(self, event: Event) -> None:
        if event.resource != crds.RESOURCE or event.type == "DELETED":
            return
        if event.previous is None or event.previous["spec"] != event.object["spec"]:
            self._ready[event.object["spec"]["names"]["plural"]] = self.server.clock() + self.faults.reinitializing

    def _named(self, request: Request) -> tuple[str, str]:
        if behind(request) is not None:
            return BEHIND_VERBS[request.method], "pods/proxy"
        try:
            target = target_of(self.server, request.path)
        except ApiError:
            return "", ""
        return verb_of(request, target), target.served.resource.plural
