"""Asks what gates of kind http ask: leader pods, and one pod of a Service, by their addresses or by the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

import aiohttp
import msgspec

from rollout_lws.analysis.calls import LONGEST, Call, Calls, Said, cleaned, is_reserved, said
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.bounded import whole
from rollout_lws.kube.client import VERBS, Client
from rollout_lws.kube.transport import Relay, TooLong
from rollout_lws.measuring.rounds import Fold
from rollout_lws.objects.addresses import declared, leads_elsewhere, pod_address
from rollout_lws.objects.meta import Struct
from rollout_lws.objects.permissions import Grant, Permission, allow, is_denied
from rollout_lws.objects.resources import ENDPOINT_SLICES, PODS, SERVICES, Resource
from rollout_lws.objects.workloads import SERVICE_NAME
from rollout_lws.rollout.decision import Answered, Asked, Endpoint, Measurement, Question
from rollout_lws.traffic.dialling import DialledPod, NotAsked, Service, Slice, candidates, dialled

#: Requests at the same time, of all Rollouts and of one: a namespace whose pods hang must not hold up the others.
AT_ONCE, OF_ONE = 64, 16
#: Pods of a Service that are looked at for one request, and EndpointSlices that are read.
_TRIES, _SLICES = 4, 16

_Kind = TypeVar("_Kind", bound=Struct)


class NoAnswer(Exception):
    """Why there is no answer, for a status."""


@dataclass(frozen=True, slots=True)
class Target:
    """A pod to ask. ``host`` is the Host header, "" for the address."""

    pod: str
    address: str
    port: int
    host: str = ""


class Caller(Protocol):
    """Sends a request."""

    async def ask(self, namespace: str, target: Target, call: Call) -> Said:
        """What was answered. Raises NoAnswer."""
        ...

    async def close(self) -> None:
        """End what is open."""
        ...


class PodCaller:
    """Asks pods at their addresses: no redirect, no proxy of the environment, no cookie, no name that DNS resolves, and
    not at ``api_server``, the API server's own address.
    """

    def __init__(self, api_server: str) -> None:
        self._api_server = api_server
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, namespace: str, target: Target, call: Call) -> Said:  # noqa: ARG002 - an address needs none
        if target.address.strip("[]") == self._api_server:
            raise NoAnswer(f"is not asked: {target.address} is the API server's address")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # A connection that is kept could be another pod's later.
                connector=aiohttp.TCPConnector(limit=0, force_close=True),
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        try:
            async with self._session.request(
                call.method,
                f"http://{target.address}:{target.port}{call.path}",
                data=call.body.encode() if call.body is not None else None,
                headers=_headers(call) | ({"host": target.host} if target.host else {}),
                timeout=aiohttp.ClientTimeout(total=call.seconds),
                allow_redirects=False,
            ) as response:
                return _read(call, response.status, response.headers, await whole(response.content, LONGEST))
        except TooLong as error:
            raise NoAnswer(f"answered {error}") from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if isinstance(error, TimeoutError):
                raise NoAnswer(f"gave no answer in {call.seconds:g} s") from error
            raise NoAnswer(f"cannot be asked on port {target.port}: {cleaned(str(error) or repr(error))}") from error

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class ProxyCaller:
    """Asks pods through the API server's proxy, which needs ``get`` on pods/proxy, ``create`` for a POST. Their Host
    header is the API server's, by which a gateway before it may choose where a request goes: a target's ``host`` is not
    sent.
    """

    def __init__(self, client: Client, grant: Grant = allow) -> None:
        self._client = client
        self._grant = grant

    async def ask(self, namespace: str, target: Target, call: Call) -> Said:
        body = call.body.encode() if call.body is not None else None
        try:
            answer = await self._client.relayed(
                namespace,
                f"{target.pod}:{target.port}",
                call.path,
                Relay(call.method, _headers(call), body, call.seconds, LONGEST),
            )
        except TooLong as error:
            raise NoAnswer(f"answered {error}") from error
        except ApiError as error:
            if is_denied(error, VERBS[call.method]):
                needs = Permission(VERBS[call.method], PODS, namespace, "proxy")
                raise NoAnswer(f"is not asked: {self._grant(needs.verb, needs.what)}") from error
            raise NoAnswer(f"is not reached by the API server: {cleaned(error.message)} ({error.code})") from error
        except Unreachable as error:
            raise NoAnswer(f"gave no answer through the API server: {cleaned(str(error))}") from error
        return _read(call, answer.status, answer.headers, answer.body)

    async def close(self) -> None:
        return


class HttpCalls:
    """Answers what is asked by HTTP, each target once a round, ``every`` so many seconds."""

    name = "call"

    def __init__(self, client: Client, caller: Caller, every: float) -> None:
        self.every = every
        self._client = client
        self._caller = caller
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._turn = 0

    def takes(self, asked: Asked) -> bool:
        return isinstance(asked, Call)

    async def close(self) -> None:
        await self._caller.close()

    async def round(
        self, namespace: str, wanted: tuple[Measurement, ...], _before: Mapping[Question, Answered]
    ) -> Mapping[Question, Fold]:
        of_one = asyncio.Semaphore(OF_ONE)
        asked = [(each.question, endpoint) for each in wanted for endpoint in each.new]
        heard = await asyncio.gather(
            *(self._heard(namespace, endpoint, cast(Call, question.asks), of_one) for question, endpoint in asked)
        )
        answers: dict[Question, dict[str, Said]] = {each.question: {} for each in wanted}
        for (question, endpoint), each in zip(asked, heard, strict=True):
            answers[question][endpoint.uid] = each
        return {question: _fold(of_question) for question, of_question in answers.items()}

    async def _heard(self, namespace: str, endpoint: Endpoint, call: Call, of_one: asyncio.Semaphore) -> Said:
        async with of_one, self._at_once:
            try:
                if leads_elsewhere(call.path):
                    raise NoAnswer(f"{call.path!r} is no path")
                target = await self._of_service(namespace, call) if call.service else _of_pod(endpoint)
                return await self._caller.ask(namespace, target, call)
            except (NoAnswer, NotAsked) as error:
                return Said(None, str(error))
            except ApiError as error:
                return Said(None, f"is not known: {error.message}")
            except Unreachable as error:
                return Said(None, f"is not known: {error}")

    async def _of_service(self, namespace: str, call: Call) -> Target:
        """One pod of a Service, another each time. All is read anew: what has changed since leads nowhere."""
        services = await self._list(SERVICES, Service, namespace, fieldSelector=f"metadata.name={call.service}")
        labelled = f"{SERVICE_NAME}={call.service}"
        slices = await self._list(ENDPOINT_SLICES, Slice, namespace, labelSelector=labelled, limit=str(_SLICES))
        found = candidates(services[0] if services else None, slices, namespace, call.port)
        self._turn += 1
        turn = self._turn % len(found)
        why = NotAsked("has no pod that can be asked")
        for candidate in (*found[turn:], *found[:turn])[:_TRIES]:
            pods = await self._list(PODS, DialledPod, namespace, fieldSelector=f"metadata.name={candidate.pod}")
            try:
                address = dialled(candidate, pods[0] if pods else None)
            except NotAsked as error:
                why = NotAsked(f"has no pod that can be asked: {candidate.pod} {error}")
                continue
            return Target(candidate.pod, address, candidate.port, f"{call.service}.{namespace}.svc")
        raise why

    async def _list(self, resource: Resource, kind: type[_Kind], namespace: str, **params: str) -> Sequence[_Kind]:
        body = await self._client.list(resource, namespace, params)
        try:
            items = msgspec.json.decode(body, type=dict[str, msgspec.Raw]).get("items", msgspec.Raw(b"[]"))
            return msgspec.json.decode(items, type=tuple[kind, ...])  # type: ignore[valid-type]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise NoAnswer(f"is not known: {resource} cannot be read ({error})") from error


def _of_pod(endpoint: Endpoint) -> Target:
    """A leader at a port that its template declares."""
    try:
        return Target(endpoint.pod, pod_address(endpoint.address), declared(endpoint.port, "the gate's http.port"))
    except ValueError as error:
        raise NoAnswer(f"is not asked: {error}") from error


def _read(call: Call, code: int, headers: Mapping[str, str], body: bytes) -> Said:
    """What an answer says; a compressed one would unfold to any length, and none was asked for."""
    coding = headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        raise NoAnswer(f"answered {code} in the encoding {cleaned(coding)}, which was not asked for")
    return said(call, code, body, headers.get("location", ""))


def _headers(call: Call) -> dict[str, str]:
    """The gate's, and ours."""
    given = {name: text for name, text in call.headers if not is_reserved(name)}
    return {"user-agent": "rollout-lws", "accept": "application/json, */*", **given, "accept-encoding": "identity"}


def _fold(heard: Mapping[str, Said]) -> Fold:
    def fold(before: Answered | None, now: float) -> Answered:
        calls = before if isinstance(before, Calls) else Calls(now)
        return calls.after(now, heard)

    return fold
