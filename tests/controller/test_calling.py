"""What gates ask by HTTP on the wire: what is sent, what is read, and what is never asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from rollout_lws.analysis.calls import LONGEST, Call, Calls, Said
from rollout_lws.analysis.criterion import Criterion, Verdict
from rollout_lws.analysis.kinds import Signal
from rollout_lws.analysis.trial import Trial
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.kube.transport import Relay, TooLong
from rollout_lws.measuring.calling import OF_ONE, HttpCalls, NoAnswer, PodCaller, ProxyCaller, Target
from rollout_lws.measuring.pods import PodFigures
from rollout_lws.measuring.rounds import Measuring
from rollout_lws.objects.resources import ENDPOINT_SLICES, PODS, SERVICES, Resource
from rollout_lws.rollout.decision import Endpoint, Measurement, Question
from rollout_lws.settings import SCRAPE_EVERY
from tests.kube.fakes import Reply
from tests.virtual_time import LoopClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POST = Call("POST", "/gate", headers=(("content-type", "application/json"),), body='{"name": "llama"}', seconds=5.0)
POD = Endpoint("uid-a", "llama-0", "10.0.0.7", 8000, "/gate")
PASSED = Said(Verdict.PASSED, "answered 200")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(handler: Handler) -> AsyncIterator[tuple[PodCaller, Target]]:
    """A caller, and a server on this machine as if it were a pod."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    caller = PodCaller("")
    try:
        yield caller, Target("llama-0", "127.0.0.1", runner.addresses[0][1], "approvals.prod.svc")
    finally:
        await caller.close()
        await runner.cleanup()


def answering(response: Callable[[], web.Response]) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        return response()

    return handler


async def test_a_request_has_what_the_gate_says_and_nothing_of_the_controller() -> None:
    seen: list[tuple[str, str, dict[str, str], str]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): text for name, text in request.headers.items()}
        seen.append((request.method, request.path, headers, await request.text()))
        return web.json_response({"result": "Passed", "message": "CHG-7"}, headers={"set-cookie": "a=b"})

    call = replace(POST, headers=(*POST.headers, ("x-team", "a"), ("authorization", "b"), ("host", "evil")))
    async with served(handler) as (caller, target):
        assert await caller.ask("prod", target, call) == Said(Verdict.PASSED, "answered Passed", "CHG-7")
        await caller.ask("prod", target, call)
    assert seen[0] == seen[1]
    assert seen[0] == (
        "POST",
        "/gate",
        {
            "host": "approvals.prod.svc",
            "user-agent": "rollout-lws",
            "accept": "application/json, */*",
            "content-type": "application/json",
            "x-team": "a",
            "accept-encoding": "identity",
            "content-length": "17",
            "connection": "close",
        },
        '{"name": "llama"}',
    )


async def test_a_redirect_is_not_followed_and_named() -> None:
    asked = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=307, headers={"location": "http://169.254.169.254/"})

    async with served(handler) as (caller, target):
        told = await caller.ask("prod", target, POST)
    assert told == Said(None, "answered 307: a redirect to http://169.254.169.254/ is not followed")
    assert asked == ["/gate"]


async def test_proxies_and_logins_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / "netrc").write_text("default login a password b")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500 if "authorization" in request.headers else 200)

    async with served(handler) as (caller, target):
        assert await caller.ask("prod", target, POST) == PASSED


@pytest.mark.parametrize("size", [LONGEST, LONGEST + 1])
async def test_an_answer_is_read_up_to_its_limit(size: int) -> None:
    async with served(answering(lambda: web.Response(body=b"x" * size))) as (caller, target):
        if size <= LONGEST:
            assert await caller.ask("prod", target, POST) == PASSED
        else:
            with pytest.raises(NoAnswer, match="answered more than 64 KiB"):
                await caller.ask("prod", target, POST)


async def test_an_answer_without_end_is_left() -> None:
    sent = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while sent < 2**30:
            await response.write(b"x" * 65_536)
            sent += 65_536
        return response

    async with served(handler) as (caller, target):
        with pytest.raises(NoAnswer, match="more than 64 KiB"):
            await caller.ask("prod", target, POST)
    assert sent < 64 * 2**20


async def test_an_answer_is_not_unfolded() -> None:
    packed = web.Response(body=b'{"result": "Failed"}')
    packed.enable_compression(web.ContentCoding.gzip)
    async with served(answering(lambda: packed)) as (caller, target):
        with pytest.raises(NoAnswer, match="answered 200 in the encoding gzip, which was not asked for"):
            await caller.ask("prod", target, POST)


@pytest.mark.parametrize("drips", [False, True])
async def test_a_pod_that_hangs_is_left_when_its_time_is_over(drips: bool) -> None:
    ended = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        while drips and not ended.is_set():
            if not response.prepared:
                await response.prepare(request)
            await response.write(b"x")
            await asyncio.sleep(0.02)
        await ended.wait()
        return response

    async with served(handler) as (caller, target):
        try:
            with pytest.raises(NoAnswer, match=r"gave no answer in 0\.2 s"):
                await caller.ask("prod", target, replace(POST, seconds=0.2))
        finally:
            ended.set()


async def test_a_port_on_which_nothing_listens() -> None:
    caller = PodCaller("")
    with pytest.raises(NoAnswer, match="cannot be asked on port 1: "):
        await caller.ask("prod", Target("llama-0", "127.0.0.1", 1), POST)
    await caller.close()


@pytest.mark.parametrize(("server", "address"), [("10.96.0.1", "10.96.0.1"), ("fd00::1", "[fd00::1]")])
async def test_the_api_server_is_not_asked(server: str, address: str) -> None:
    """Though a pod's status names its address."""
    with pytest.raises(NoAnswer, match="the API server's address"):
        await PodCaller(server).ask("prod", Target("llama-0", address, 443), POST)


class Answers:
    """A caller that notes what it is to ask; a pod that ``hangs`` answers a minute later."""

    def __init__(self) -> None:
        self.asked: list[tuple[Target, Call]] = []
        self.hangs = False
        self.now = self.most = 0

    async def ask(self, namespace: str, target: Target, call: Call) -> Said:
        assert namespace == "prod"
        self.asked.append((target, call))
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(60 if self.hangs else 0)
        self.now -= 1
        return PASSED

    async def close(self) -> None:
        return


class Lists:
    """An API server's lists, as the source reads them."""

    def __init__(self, objects: Mapping[Resource, list[dict[str, Any]]] | Exception) -> None:
        self._objects = objects
        self.params: list[Mapping[str, str]] = []

    async def list(self, resource: Resource, namespace: str, params: Mapping[str, str]) -> bytes:
        assert namespace == "prod"
        self.params.append(params)
        if isinstance(self._objects, Exception):
            raise self._objects
        return json.dumps({"items": self._objects[resource]}).encode()


SERVICE = {
    "metadata": {"name": "approvals"},
    "spec": {"selector": {"app": "approvals"}, "ports": [{"port": 80, "targetPort": 8080}]},
}
SLICE = {
    "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "approvals"}},
    "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
    "endpoints": [
        {"addresses": ["10.0.0.9"], "targetRef": {"kind": "Pod", "namespace": "prod", "name": "b-0", "uid": "b"}}
    ],
}
LIVE = {"metadata": {"name": "b-0", "uid": "b"}, "status": {"podIP": "10.0.0.9", "hostIP": "10.1.0.1"}}
ALL = {SERVICES: [SERVICE], ENDPOINT_SLICES: [SLICE], PODS: [LIVE]}


async def round_of(call: Call, *endpoints: Endpoint, lists: Any = None, answers: Answers | None = None) -> Calls:
    """What one round of a gate comes to."""
    source = HttpCalls(lists or Lists({}), answers or Answers(), SCRAPE_EVERY)
    question = Question("g", NOW, call)
    assert source.takes(question.asks)
    folds = await source.round("prod", (Measurement(question, endpoints),), {})
    (fold,) = folds.values()
    calls = fold(None, 5.0)
    assert isinstance(calls, Calls)
    return calls


async def test_a_leader_is_asked_at_its_address() -> None:
    answers = Answers()
    calls = await round_of(POST, POD, answers=answers)
    assert (calls.answers, calls.began) == ({"uid-a": PASSED}, 5.0)
    assert answers.asked == [(Target("llama-0", "10.0.0.7", 8000), POST)]


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        (
            replace(POD, port=0),
            "is not asked: its template declares no such container port: name one in the gate's http.port",
        ),
        (replace(POD, port=10250), "is not asked: port 10250 is a node's own: a pod that is asked needs another"),
        (replace(POD, port=6443), "is not asked: port 6443 is a node's own: a pod that is asked needs another"),
        (replace(POD, address=""), "is not asked: it has no address yet"),
        *(
            (replace(POD, address=address), f"is not asked: {told} is not a pod's address")
            for address, told in (
                *(("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("169.254.169.254", "169.254.169.254")),
                *(("0.0.0.0", "0.0.0.0"), ("224.0.0.1", "224.0.0.1"), ("::ffff:127.0.0.1", "127.0.0.1")),
            )
        ),
        (replace(POD, address="metadata.internal"), "is not asked: 'metadata.internal' is no address"),
    ],
)
async def test_pods_that_are_never_asked(endpoint: Endpoint, why: str) -> None:
    answers = Answers()
    calls = await round_of(POST, endpoint, answers=answers)
    assert calls.answers == {"uid-a": Said(None, why)}
    assert answers.asked == []


async def test_a_path_that_would_lead_elsewhere_is_not_asked() -> None:
    answers = Answers()
    calls = await round_of(replace(POST, path="/../../secrets"), POD, answers=answers)
    assert calls.answers == {"uid-a": Said(None, "'/../../secrets' is no path")}
    assert answers.asked == []


OF_SERVICE = replace(POST, service="approvals")
BOARD = Endpoint("approvals", "approvals", "", 0, "/gate")


async def test_a_service_is_asked_at_the_address_of_a_pod_that_it_selects() -> None:
    answers, lists = Answers(), Lists(ALL)
    calls = await round_of(OF_SERVICE, BOARD, lists=lists, answers=answers)
    assert calls.answers == {"approvals": PASSED}
    assert [target for target, _ in answers.asked] == [Target("b-0", "10.0.0.9", 8080, "approvals.prod.svc")]
    assert lists.params == [
        {"fieldSelector": "metadata.name=approvals"},
        {"labelSelector": "kubernetes.io/service-name=approvals", "limit": "16"},
        {"fieldSelector": "metadata.name=b-0"},
    ]


async def test_a_services_pods_are_asked_in_turn() -> None:
    endpoints = [
        {"addresses": [f"10.0.0.{n}"], "targetRef": {"kind": "Pod", "namespace": "prod", "name": f"b-{n}"}}
        for n in (1, 2, 3)
    ]
    pods = {
        f"metadata.name=b-{n}": {"metadata": {"name": f"b-{n}"}, "status": {"podIP": f"10.0.0.{n}"}} for n in (1, 3)
    }

    class Some(Lists):
        async def list(self, resource: Resource, namespace: str, params: Mapping[str, str]) -> bytes:
            if resource != PODS:
                return await super().list(resource, namespace, params)
            found = pods.get(params["fieldSelector"])
            return json.dumps({"items": [found] if found else []}).encode()

    answers = Answers()
    source = HttpCalls(Some({**ALL, ENDPOINT_SLICES: [{**SLICE, "endpoints": endpoints}]}), answers, SCRAPE_EVERY)  # type: ignore[arg-type]
    for _ in range(3):
        await source.round("prod", (Measurement(Question("g", NOW, OF_SERVICE), (BOARD,)),), {})
    assert [target.pod for target, _ in answers.asked] == ["b-3", "b-3", "b-1"], "the second is not there"


@pytest.mark.parametrize(
    ("lists", "why"),
    [
        ({**ALL, SERVICES: []}, "does not exist in the Rollout's namespace"),
        (
            {**ALL, SERVICES: [{**SERVICE, "spec": {"type": "ExternalName", "externalName": "x"}}]},
            "is of type ExternalName, which leads elsewhere: it needs a selector",
        ),
        ({**ALL, ENDPOINT_SLICES: []}, "has no ready pod"),
        ({**ALL, PODS: []}, "has no pod that can be asked: b-0 does not exist any more"),
        (
            {**ALL, PODS: [{**LIVE, "status": {"podIP": "10.0.0.10"}}]},
            "has no pod that can be asked: b-0 has another address than its Service's endpoints say",
        ),
        ({**ALL, PODS: [{"metadata": {"name": 7}}]}, "is not known: pods cannot be read"),
        (ApiError(403, "Forbidden", "no"), "is not known: no"),
        (Unreachable("the server is away"), "is not known: the server is away"),
    ],
)
async def test_services_that_are_not_asked(lists: Any, why: str) -> None:
    answers = Answers()
    calls = await round_of(OF_SERVICE, BOARD, lists=Lists(lists), answers=answers)
    assert calls.answers["approvals"].verdict is None
    assert calls.answers["approvals"].why.startswith(why)
    assert answers.asked == []


@pytest.mark.looptime
async def test_so_many_pods_of_a_rollout_are_asked_at_once_and_no_more() -> None:
    answers = Answers()
    answers.hangs = True
    calls = await round_of(POST, *(replace(POD, uid=f"{n}") for n in range(3 * OF_ONE)), answers=answers)
    assert (len(calls.answers), answers.most) == (3 * OF_ONE, OF_ONE)


class Silent:
    """A scraper of pods that expose nothing."""

    def __init__(self) -> None:
        self.asked = 0

    async def metrics(self, namespace: str, endpoint: Endpoint) -> str:
        self.asked += 1
        return ""

    async def close(self) -> None:
        return


@pytest.mark.looptime
async def test_an_answer_that_takes_long_holds_up_no_scrape() -> None:
    answers, scraper = Answers(), Silent()
    answers.hangs = True
    tasks: set[asyncio.Task[None]] = set()

    def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        tasks.add(task)
        return task

    sources = [PodFigures(scraper, SCRAPE_EVERY), HttpCalls(Lists({}), answers, SCRAPE_EVERY)]  # type: ignore[arg-type]
    measuring = Measuring(sources, LoopClock(NOW), start, lambda _: None)
    queue = Criterion(Signal.QUEUE_LENGTH, limit=8.0, window=60)
    wanted = tuple(Measurement(Question("g", NOW, asks), (POD,)) for asks in (POST, queue))
    await measuring.want(("prod", "llama"), wanted)
    await asyncio.sleep(3 * SCRAPE_EVERY + 1)
    assert (scraper.asked, len(answers.asked)) == (4, 1)
    assert [type(each) for each in measuring.answers("prod", "llama").values()] == [Trial]
    await asyncio.sleep(30)
    assert {type(each) for each in measuring.answers("prod", "llama").values()} == {Trial, Calls}
    await measuring.close()
    assert all(task.done() for task in tasks)


class Relays:
    """A transport that answers one request for a pod."""

    def __init__(self, answer: Reply | Exception) -> None:
        self._answer = answer
        self.asked: list[tuple[str, Relay]] = []

    async def relay(self, path: str, relay: Relay, guard: Any = None) -> Reply:
        assert (guard is None) == (relay.method == "GET"), "a POST goes out only from the leader"
        self.asked.append((path, relay))
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def status(code: int, message: str) -> Reply:
    return Reply(code, json.dumps({"kind": "Status", "code": code, "message": message}).encode())


DENIED = 'pods "llama-0" is forbidden: User "x" cannot create resource "pods/proxy" in API group "" in the namespace'


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Reply(200, b'{"result": "Failed"}'), Said(Verdict.FAILED, "answered Failed")),
        (Reply(302, b"", {"location": "/x"}), Said(None, "answered 302: a redirect to /x is not followed")),
        (Reply(503, b"busy"), Said(None, "answered 503")),
        (Reply(403, b'{"message": "the board says no"}'), Said(None, "answered 403", "the board says no")),
    ],
)
async def test_answers_through_the_api_server(answer: Reply, told: Said) -> None:
    transport = Relays(answer)
    caller = ProxyCaller(Client(transport))  # type: ignore[arg-type]
    assert await caller.ask("prod", Target("llama-0", "10.0.0.7", 8000, "a.prod.svc"), POST) == told
    ((path, relay),) = transport.asked
    assert path == "/api/v1/namespaces/prod/pods/llama-0%3A8000/proxy/gate"
    assert (relay.method, relay.body, relay.seconds, relay.longest) == ("POST", b'{"name": "llama"}', 5.0, LONGEST)
    assert "host" not in relay.headers


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (status(403, DENIED), "allow the controller's account to create pods/proxy in namespace prod"),
        (
            status(503, "error trying to reach service"),
            "is not reached by the API server: error trying to reach service",
        ),
        (status(404, 'pods "llama-0" not found'), "is not reached by the API server"),
        (TooLong("more than 64 KiB"), "answered more than 64 KiB"),
        (Unreachable("cut"), "gave no answer through the API server: cut"),
    ],
)
async def test_no_answer_through_the_api_server(answer: Reply | Exception, why: str) -> None:
    """Though the gate names the API server's own code as one that fails a version."""
    caller = ProxyCaller(Client(Relays(answer)))  # type: ignore[arg-type]
    with pytest.raises(NoAnswer, match=why):
        await caller.ask("prod", Target("llama-0", "10.0.0.7", 8000), replace(POST, fail_on=frozenset({403, 404, 503})))
