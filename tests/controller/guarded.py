"""A controller under a role that may lack something, over the sandbox's API and in virtual time."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from rollout_lws.cli.install import rbac as installed
from rollout_lws.controller.controller import Controller
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.sandbox import codec
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.patching.patches import JSON_PATCH
from rollout_lws.sandbox.routes import Response
from rollout_lws.sandbox.transport import DirectTransport
from rollout_lws.settings import Settings
from tests.controller.test_controller import ORIGIN
from tests.virtual_time import LoopClock

_PATH = re.compile(
    r"^/apis?/(?:(?P<group>[^/]+)/)?v[^/]+(?:/namespaces/(?P<namespace>[^/]+))?/(?P<resource>[^/]+)(?P<rest>/.*)?$"
)
_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


class Right(NamedTuple):
    """``resource`` is with its subresource."""

    group: str
    resource: str
    verb: str

    @property
    def kind(self) -> str:
        """As messages name it: ``rollouts.rollouts.kruise.io/status``."""
        plural, slash, subresource = self.resource.partition("/")
        return (f"{plural}.{self.group}" if self.group else plural) + slash + subresource

    def __str__(self) -> str:
        return f"{self.verb} {self.kind}"


def granted() -> set[Right]:
    return {
        Right(group, resource, verb)
        for rule in installed.controller_role()["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@dataclass(frozen=True, slots=True)
class Asked:
    """What an API server would ask its authorizer."""

    right: Right
    namespace: str
    name: str

    @property
    def refusal(self) -> ApiError:
        """In Kubernetes' words."""
        group, resource, verb = self.right
        kind = resource.partition("/")[0] + (f".{group}" if group else "")
        place = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return ApiError(
            403,
            "Forbidden",
            f'{kind} {f"{chr(34)}{self.name}{chr(34)} " if self.name else ""}is forbidden: User "controller" cannot'
            f' {verb} resource "{resource}" in API group "{group}" {place}',
        )


def asked(method: str, path: str, watch: bool = False) -> Asked:
    match = _PATH.match(path)
    assert match is not None, path
    _, name, *sub = (match["rest"] or "").split("/") if match["rest"] else ("", "")
    verb = _VERBS.get(method) or ("watch" if watch else "get" if name else "list")
    right = Right(match["group"] or "", "/".join([match["resource"], *sub]), verb)
    return Asked(right, match["namespace"] or "", name)


class Guarded(DirectTransport):
    """A transport under ``rights``, which may change; ``used`` are those that were needed, ``missed`` is how often each
    that was not there has been asked for.

    A person edits the strategy just before the first window is opened, which is refused then.
    """

    def __init__(self, server: ApiServer, rights: set[Right]) -> None:
        super().__init__(server)
        self.rights, self._of = rights, server
        self.used: set[Right] = set()
        self.missed: Counter[Right] = Counter()
        self.first_missed = asyncio.Event()
        self._edited = False

    def _refusal(self, asked: Asked) -> ApiError | None:
        if asked.right in self.rights:
            self.used.add(asked.right)
            return None
        self.missed[asked.right] += 1
        self.first_missed.set()
        return asked.refusal

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if options.get("content_type") == JSON_PATCH and path.endswith("/llama") and not self._edited:
            self._edited = True
            strategy = {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 2}}}
            self._of.patch(LEADER_WORKER_SETS, "default", "llama", {"spec": strategy})
        error = self._refusal(asked(method, path))
        if error is None:
            return await super().request(method, path, **options)
        refused = codec.refused(error)
        return Response(refused.status, refused.body, refused.headers)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        params: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - the interface of the client's transports
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        error = self._refusal(asked("GET", path, watch=True))
        if error is not None:
            raise error
        async with super().stream(path, params=params, timeout=timeout) as lines:
            yield lines


@dataclass(frozen=True, slots=True)
class Running:
    controller: Controller
    transport: Guarded
    metrics: Metrics

    @property
    def unready(self) -> str:
        """All that a process tells of it at /readyz."""
        return self.controller.missing + self.controller.untold


@asynccontextmanager
async def guarded(server: ApiServer, rights: set[Right]) -> AsyncIterator[Running]:
    """A controller that runs with ``rights``, or waits for what it lacks of them."""
    transport, metrics = Guarded(server, rights), Metrics()
    controller = Controller(Client(transport), Settings(), LoopClock(ORIGIN), metrics)

    async def run() -> None:
        async with controller.running():
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    try:
        yield Running(controller, transport, metrics)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
