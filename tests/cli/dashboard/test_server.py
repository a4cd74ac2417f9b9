"""The page's server over HTTP, on a cluster: what it answers, and in which headers."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from rollout_lws import __version__
from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.dashboard import server
from rollout_lws.cli.dashboard.protection import HEADERS, Door, judge
from rollout_lws.cli.dashboard.serving import Place, serving
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import PODS
from rollout_lws.sandbox import codec
from rollout_lws.sandbox.faults import Effect
from rollout_lws.sandbox.routes import Request, Response
from tests.cli.conftest import World
from tests.cli.dashboard.pages import PATIENCE, Browser, dashboard, eventually, page_of
from tests.cli.get.objects import pod
from tests.cli.states import AWAITING, HEALTHY
from tests.cli.test_edits import store

Object = dict[str, Any]


def watches() -> int:
    return sum(each.name.startswith("watch ") for each in threading.enumerate())


async def test_every_answer_has_the_headers_that_protect_the_page(world: World) -> None:
    world.release(**AWAITING)
    async with dashboard(world) as page, aiohttp.ClientSession() as stranger:
        requests = [
            (page.session, "GET", "/", 200),
            (page.session, "GET", "/default/llama?groups=open", 200),
            (page.session, "GET", "/-/files/app.js", 200),
            (page.session, "GET", "/-/files/nothing.js", 404),
            (page.session, "GET", "/-/files/..%2fserver.py", 404),
            (page.session, "GET", "/nothing/at/all/here", 404),
            (page.session, "GET", "/DEFAULT/llama", 404),
            (page.session, "DELETE", "/", 405),
            (page.session, "GET", "/-/stream/list", 200),
            (page.session, "HEAD", "/-/stream/list", 200),
            (page.session, "GET", "/-/stream/release/default/llama", 200),
            (page.session, "HEAD", "/-/stream/release/default/llama", 200),
            (page.session, "GET", "/-/rights/default/llama", 200),
            (page.session, "GET", "/-/history/default/llama", 200),
            (page.session, "GET", "/-/history/default/nobody", 409),
            (page.session, "GET", "/-/groups/default/llama/llama/0", 200),
            (page.session, "GET", "/-/groups/default/llama/another/0", 409),
            (page.session, "POST", "/-/actions/default/llama", 400),
            (stranger, "GET", "/", 401),
            (stranger, "GET", "/-/stream/list", 401),
            (stranger, "GET", "/?token=wrong", 401),
        ]
        for session, method, path, code in requests:
            own = {"Origin": page.base} if method not in ("GET", "HEAD") else {}
            sent = {"json": []} if method not in ("GET", "HEAD") else {}
            async with session.request(method, page.base + path, headers=own, allow_redirects=False, **sent) as answer:
                assert (path, answer.status) == (path, code)
                assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, path
                if code >= 400:
                    assert answer.content_type == "application/json"
                    assert (await answer.json())["refused"]
    await eventually(lambda: watches() == 0)


async def test_an_address_of_a_release_is_never_one_of_the_servers_own(world: World) -> None:
    async with dashboard(world) as page:
        _, index = await page.get("/")
        for namespace in ("files", "stream", "groups", "history", "rights", "actions"):
            for name in ("list", "app.js", "llama"):
                assert await page.get(f"/{namespace}/{name}") == (200, index)


async def test_a_page_can_tell_whether_it_is_of_the_servers_version(world: World) -> None:
    async with dashboard(world) as page, page.stream("/-/stream/list") as stream:
        _, index = await page.get("/")
        assert f'<meta name="version" content="{__version__}">' in index
        assert (await stream.until("hello"))["version"] == __version__


async def test_the_first_address_gives_a_ticket_and_is_left_at_once(world: World) -> None:
    async with serving(page_of(world), Place(), "default/llama") as served:
        async with aiohttp.ClientSession() as session, session.get(served.url, allow_redirects=False) as answer:
            assert answer.status == 303
            assert answer.headers["Location"] == "/default/llama"
            ticket = answer.headers["Set-Cookie"]
            assert "HttpOnly" in ticket and "SameSite=Lax" in ticket and f"-{urlsplit(served.url).port}=" in ticket
        token = served.url.rpartition("=")[2]
        assert token not in ticket
        # It keeps the rest of the address, and never leads to another server.
        base = served.url.partition("/default")[0]
        async with aiohttp.ClientSession() as session:
            for path, leads in (
                (f"/?q=a%26b&token={token}", "/?q=a%26b"),
                (f"//evil.example/?token={token}", "/evil.example/"),
                (f"/a%0d%0ab?token={token}", "/a%0d%0ab"),
            ):
                asked = aiohttp.client.URL(base + path, encoded=True)
                async with session.get(asked, allow_redirects=False) as answer:
                    assert (answer.status, answer.headers["Location"]) == (303, leads)


async def test_the_ticket_of_another_dashboard_is_worth_nothing_here(world: World) -> None:
    async with dashboard(world) as one, dashboard(world) as other, one.session.get(other.base + "/") as answer:
        assert answer.status == 401


async def test_a_failure_of_the_server_is_told_in_words_and_ends_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.release(**HEALTHY)

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a flaw")

    monkeypatch.setattr("rollout_lws.cli.dashboard.server.fetch_history", fail)
    async with dashboard(world) as page:
        code, answer = await page.get("/-/history/default/llama")
        assert (code, "a flaw" in answer["refused"]) == (500, True)
        assert (await page.get("/-/rights/default/llama"))[0] == 200
    assert "ZeroDivisionError" in capsys.readouterr().err


async def test_what_the_api_server_refuses_is_refused_with_its_words(world: World) -> None:
    world.release(**HEALTHY)
    faults = world.http.gate.faults
    async with dashboard(world) as page:
        said = 'pods is forbidden: User "jane" cannot list resource "pods"'
        faults.add(Effect(refusal=_forbidden(said)), "list", "pods")
        code, answer = await page.get("/-/groups/default/llama/llama/0")
        assert (code, said in answer["refused"]) == (403, True)
        # A page takes 401 for a ticket that is not good any more.
        faults.add(Effect(refusal=_unauthorized()), "list", "pods", count=2)
        code, answer = await page.get("/-/groups/default/llama/llama/0")
        assert (code, "log in again" in answer["refused"]) == (502, True)
        world.do(lambda: setattr(faults, "stopped", True))
        code, answer = await page.get("/-/groups/default/llama/llama/0")
        assert (code, "no answer from" in answer["refused"]) == (502, True)


class Stalling(BaseHTTPRequestHandler):
    """An API server that begins an answer, and sends the rest of it only once it may."""

    protocol_version = "HTTP/1.1"
    began, may = threading.Event(), threading.Event()

    def do_GET(self) -> None:
        stalls, watches = self.path == "/stalled", "watch=true" in self.path
        body = b"" if watches else b'{"metadata": {"resourceVersion": "1"}, "items": []}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.flush()
        if stalls:
            self.began.set()
            self.may.wait(PATIENCE)
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class ThreadingServer(ThreadingHTTPServer):
    daemon_threads = True
    # Connections that are kept need not be waited for.
    block_on_close = False


@pytest.mark.parametrize("path", ["/-/groups/default/llama/llama/0", "/-/history/default/llama"])
async def test_a_page_that_goes_while_it_is_answered_holds_up_no_other(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    outcomes = list[object]()

    def fetch(transport: Transport, *_: object) -> object:
        try:
            outcomes.append(transport.get("/stalled"))
        except BaseException as error:
            outcomes.append(error)
            raise
        return outcomes[-1]

    monkeypatch.setattr(server, "fetch_group", fetch)
    monkeypatch.setattr(server, "fetch_history", fetch)
    Stalling.began.clear()
    Stalling.may.clear()
    with ThreadingServer(("127.0.0.1", 0), Stalling) as api:
        threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        told = re.sub(r"http://[^ \n]+", f"http://127.0.0.1:{api.server_port}", world.kubeconfig.read_text())
        (tmp_path / "stalling").write_text(told)
        monkeypatch.setattr(world, "kubeconfig", tmp_path / "stalling")
        async with dashboard(world) as page:
            asked = asyncio.create_task(page.get(path))
            await eventually(Stalling.began.is_set)
            # The reader has come to the body, and waits for it.
            await eventually(lambda: _waits_in("read"))
            asked.cancel()
            try:
                for _ in range(3):
                    assert (await asyncio.wait_for(page.get("/"), 5))[0] == 200
            finally:
                Stalling.may.set()
            await eventually(lambda: bool(outcomes))
        api.shutdown()
    assert [type(each) for each in outcomes] == [dict]


def _waits_in(function: str) -> bool:
    """Whether a thread that reads for a page is in this function of the HTTP client."""
    for frame in sys._current_frames().values():
        names = [each.f_code.co_name for each, _ in traceback.walk_stack(frame)]
        if "fetch" in names and function in names:
            return True
    return False


def _forbidden(said: str) -> Any:
    from rollout_lws.errors import ApiError

    return ApiError(403, "Forbidden", said)


def _unauthorized() -> Any:
    from rollout_lws.errors import ApiError

    return ApiError(401, "Unauthorized", "Unauthorized")


def put(world: World, made: Object) -> None:
    status = made.pop("status")
    for member in ("uid", "creationTimestamp"):
        made["metadata"].pop(member, None)
    world.do(lambda: world.server.create(PODS, made))
    name = made["metadata"]["name"]
    world.do(lambda: world.server.patch(PODS, "default", name, {"status": status}, subresource="status"))


async def test_the_pods_of_a_group_are_told_with_what_is_wrong_and_what_to_type(world: World) -> None:
    world.release(**AWAITING)
    put(world, pod("llama", 0, "old", size=2))
    crashed = {
        "name": "vllm-worker",
        "ready": False,
        "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137, "message": "<script>alert(1)</script>"}},
    }
    put(world, pod("llama", 0, "old", worker=1, ready=False, size=2, containerStatuses=[crashed]))
    put(world, pod("llama", 1, "old"))
    async with dashboard(world) as page:
        code, found = await page.get("/-/groups/default/llama/llama/0")
    assert code == 200
    assert [(each["name"], each["leader"], each["ready"]) for each in found["pods"]] == [
        ("llama-0", True, True),
        ("llama-0-1", False, False),
    ]
    worker = found["pods"][1]
    assert (worker["reason"], worker["container"], worker["previous"]) == ("CrashLoopBackOff", "vllm-worker", True)
    assert worker["containers"] == [
        {
            "name": "vllm-worker",
            "ready": False,
            "restarts": 3,
            "state": "CrashLoopBackOff",
            "message": "back-off 40s; ended last with OOMKilled (exit 137): <script>alert(1)</script>",
        }
    ]
    assert found["commands"] == [
        "kubectl logs llama-0-1 -c vllm-worker -p --namespace default",
        "kubectl describe pod llama-0-1 --namespace default",
    ]


async def test_the_history_tells_what_each_version_changed_and_why_one_was_left(world: World) -> None:
    old, new = store(world, 1, "v1"), store(world, 2, "v2")
    world.release(**AWAITING | {"stable": {"templateHash": old}, "observedTemplateHash": new})
    async with dashboard(world) as page:
        code, found = await page.get("/-/history/default/llama")
    assert code == 200
    told = [(each["number"], each["role"], each["images"], each["change"]) for each in found["versions"]]
    assert told == [(2, "new", ["vllm:v2"], "vllm v1 -> v2 (leader, worker)"), (1, "stable", ["vllm:v1"], "")]


async def rights(page: Browser) -> Object:
    code, found = await page.get("/-/rights/default/llama")
    assert code == 200
    return dict(found)


async def test_rights_say_which_permission_is_missing(world: World) -> None:
    world.release(**AWAITING)
    faults = world.http.gate.faults
    async with dashboard(world) as page:
        assert await rights(page) == {"act": "", "undo": ""}
        faults.add(Effect(refusal=_forbidden("no")), "patch", "rollouts", count=None)
        told = "you may not patch rollouts.rollouts.kruise.io/status llama in namespace default: ask an administrator"
        assert await rights(page) == {"act": f"{told} for that permission", "undo": ""}
        faults.add(Effect(refusal=_forbidden("no")), "patch", "leaderworkersets", count=None)
        found = await rights(page)
        assert "leaderworkersets.leaderworkerset.x-k8s.io llama in namespace default" in found["undo"]
        released = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "llama"}
        change = {"spec": {"workloadRef": released}}
        world.do(lambda: world.server.patch(world.rollouts, "default", "llama", change))
        assert (await rights(page))["undo"] == ""
        assert (await page.get("/-/rights/default/another"))[0] == 409
        # Where it cannot be asked, the API server refuses the request itself.
        world.do(lambda: setattr(faults, "stopped", True))
        assert (await page.get("/-/rights/default/llama"))[0] == 502


async def test_a_role_for_single_objects_is_enough(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """By resourceNames: the Rollout's for its status, the workload's for that."""
    role = {("rollouts", "status"): {"llama"}, ("leaderworkersets", ""): {"chat"}}

    def allows(asked: Object) -> bool:
        kind = asked["resource"], asked.get("subresource") or ""
        return (asked["verb"], asked["namespace"]) == ("patch", "default") and asked.get("name") in role[kind]

    def review(request: Request, _: object) -> Response:
        asked = codec.body_of(request)
        return codec.answer({**asked, "status": {"allowed": allows(asked["spec"]["resourceAttributes"])}}, 201)

    monkeypatch.setattr("rollout_lws.sandbox.request_pipeline.review", review)
    world.release(**AWAITING)
    async with dashboard(world) as page:
        found = await rights(page)
        assert (found["act"], "leaderworkersets.leaderworkerset.x-k8s.io llama" in found["undo"]) == ("", True)
        refers = {"spec": {"workloadRef": {"name": "chat"}}}
        world.do(lambda: world.server.patch(world.rollouts, "default", "llama", refers))
        assert await rights(page) == {"act": "", "undo": ""}


async def test_a_page_that_is_read_only_acts_on_nothing(world: World) -> None:
    world.release(**AWAITING | {"observedRolloutID": "r7"})
    async with dashboard(world, read_only=True) as page:
        found = await rights(page)
        assert "--read-only" in found["act"] and "--read-only" in found["undo"]
        for action in ("approve", "undo", "pause"):
            code, answer = await page.act(action)
            assert (code, "--read-only" in answer["refused"]) == (403, True)
        async with page.stream("/-/stream/list") as stream:
            assert (await stream.until("hello"))["readOnly"] is True
    assert "requestedAction" not in world.status()


async def test_a_port_that_is_taken_is_told_with_what_to_do(world: World) -> None:
    async with serving(page_of(world), Place()) as served:
        port = urlsplit(served.url).port or 0
        with pytest.raises(UsageError, match="is taken by another rollout-lws dashboard: use that one's page"):
            async with serving(page_of(world), Place(port=port)):
                pass
    other = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with other:
        port = other.sockets[0].getsockname()[1]
        with pytest.raises(UsageError, match="Address already in use; give another --port"):
            async with serving(page_of(world), Place(port=port)):
                pass


@pytest.mark.parametrize(
    ("place", "hosts"),
    [
        (Place(), {"127.0.0.1:9", "localhost:9"}),
        (Place("localhost"), {"127.0.0.1:9", "localhost:9"}),
        (Place("::1"), {"[::1]:9", "localhost:9"}),
        (Place("10.0.0.5"), {"10.0.0.5:9"}),
        (Place("0.0.0.0", names=("Bastion", "wall:80")), {"0.0.0.0:9", "bastion:9", "wall:80", "wall"}),
        (Place(names=("localhost:9000", "[::1]")), {"127.0.0.1:9", "localhost:9", "localhost:9000", "[::1]:9"}),
    ],
    ids=lambda given: str(given) if isinstance(given, Place) else "",
)
def test_a_server_is_known_by_its_address_and_the_names_that_are_given(place: Place, hosts: set[str]) -> None:
    assert place.hosts(9) == hosts
    assert place.is_loopback == (place.address not in ("10.0.0.5", "0.0.0.0"))


def test_at_port_80_browsers_call_it_without_a_port() -> None:
    place = Place("::1", names=("wall", "bastion:8080"))
    hosts = {"[::1]:80", "[::1]", "localhost:80", "localhost", "wall:80", "wall", "bastion:8080"}
    assert place.hosts(80) == hosts
    door = Door(place.hosts(80), "token", "ticket", "cookie")
    asked = {"cookie": "cookie=ticket", "content-type": "application/json"}
    for host in hosts:
        assert judge(door, "POST", {**asked, "host": host, "origin": f"http://{host}"}, None) is None
    for host in ("localhost:9", "bastion", "[::1]:8080", "::1"):
        assert judge(door, "GET", {**asked, "host": host}, None) is not None


async def test_names_that_lead_elsewhere_in_the_api_are_no_addresses(world: World) -> None:
    asked: list[str] = []
    async with dashboard(world) as page:
        async with page.stream("/-/stream/list") as stream:
            await stream.until("rows")
        # The watch follows on the list.
        await eventually(lambda: world.do(lambda: bool(world.http.gate.faults._cuts)))
        world.on_request("*", "*", lambda: asked.append("x"))
        for path in (
            "/-/history/default/..%2f..%2fsecrets",
            "/-/history/default%2fx/llama",
            "/-/groups/default/llama/llama/0,app=x",
            "/-/groups/default/llama/llama%2cx/0",
            "/-/rights/a%3fb/llama",
            "/-/rights/default/llama%2cx",
            "/-/stream/release/default/llama%2cmetadata.name=x",
        ):
            assert (await page.get(path))[0] == 404, path
    assert not asked


async def test_a_browser_is_told_of_all_modules_at_once(world: World) -> None:
    """Of those that the page runs, each of which is reached from the first one, and of no other."""
    async with dashboard(world) as page:
        _, index = await page.get("/")
        asked, left = set[str](), ["app.js"]
        while left:
            asked.add(name := left.pop())
            code, module = await page.get(f"/-/files/{name}")
            assert code == 200, name
            left += {*re.findall(r'^(?:import|\}).*"\./(.+)";$', module, re.MULTILINE)} - asked
    told = re.findall('<link rel="modulepreload" href="/-/files/(.+)">', index)
    assert len(told) > 10
    assert sorted(asked) == told


def test_the_files_of_the_page_are_known_kinds_only() -> None:
    from importlib.resources import files

    names = {each.name for each in files("rollout_lws.cli.dashboard").joinpath("page").iterdir()}
    assert "index.html" in names
    assert all("." + each.rpartition(".")[2] in server._TYPES for each in names)
