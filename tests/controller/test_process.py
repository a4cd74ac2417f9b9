"""The controller as a process: how it ends, whenever it is asked to."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
import yaml

from rollout_lws.api import crd
from rollout_lws.cli.install.manifests import objects
from rollout_lws.cli.install.options import Installation
from rollout_lws.controller import process
from rollout_lws.controller.health import Readiness
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    LEADER_WORKER_SETS,
    LEASES,
    MUTATING_WEBHOOKS,
    SELF_SUBJECT_REVIEWS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.definitions import lws_crd
from rollout_lws.sandbox.faults import Effect, Faults
from rollout_lws.sandbox.http import Server
from tests.admission.test_review import review
from tests.kubectl.programs import ROLLOUT_LWS, Program, held_port
from tests.notifications.receiver import directory

FORBIDDEN = Effect(refusal=ApiError(403, "Forbidden", "this account may not list anything"))
NO_SERVERS = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")


@asynccontextmanager
async def controller(
    api: ApiServer, directory: Path, *flags: str, faults: Faults | None = None
) -> AsyncIterator[Program]:
    """One that runs beside an API server, to the end of the block."""
    server = Server(api, faults=faults)
    await server.start()
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(server.kubeconfig()))
    program = await Program.start(ROLLOUT_LWS, "controller", "--kubeconfig", str(kubeconfig), *flags)
    try:
        yield program
    finally:
        await program.kill()
        await server.stop()


REVIEWS = {
    "metadata": {
        "name": "selfsubjectreviews.authentication.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a double of what is built in"},
    },
    "spec": {
        "group": "authentication.k8s.io",
        "scope": "Cluster",
        "names": {"plural": "selfsubjectreviews", "kind": "SelfSubjectReview"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_controller_whose_caches_never_fill_ends_when_asked(number: signal.Signals, tmp_path: Path) -> None:
    faults = Faults()
    faults.add(FORBIDDEN, "list", count=None)
    async with controller(ApiServer(time.time), tmp_path, *NO_SERVERS, faults=faults) as program:
        await program.says("this account may not list anything")
        program.signal(number)
        assert await program.end(10) == 0


async def test_a_guard_outside_of_a_pod_has_to_be_told_how_it_is_reached(tmp_path: Path) -> None:
    guard = "--guard", "--guard-bind-address=:0"
    async with controller(ApiServer(time.time), tmp_path, *guard, *NO_SERVERS) as program:
        assert await program.end(20) == 1
        assert program.lines[-1] == (
            "rollout-lws: --guard: outside of a pod nothing says how API servers reach it: name it with --guard-host"
        )


async def test_a_destination_that_cannot_be_read_is_one_error_at_the_start(tmp_path: Path) -> None:
    where = directory(tmp_path / "hook", "https://user:verysecret@hooks.invalid/")
    async with controller(ApiServer(time.time), tmp_path, "--notify", where, *NO_SERVERS) as program:
        assert await program.end(20) == 1
        assert program.lines == [
            f"rollout-lws: {where}/url: is no URL of a receiver: write https://host/path, in one line and without a"
            " login or a fragment"
        ]


async def test_a_destination_is_told_at_the_start_by_its_host_alone(tmp_path: Path) -> None:
    where = directory(tmp_path / "hook", "https://hooks.invalid/services/verysecret")
    async with controller(ApiServer(time.time), tmp_path, "--notify", where, *NO_SERVERS) as program:
        line = await program.says("notifications are sent")
        assert "destination=hook format=cloudevents host=https://hooks.invalid signing_keys=1" in line
        assert "secret" not in program.output


class Introducing(ApiServer):
    """One that tells an account who it is, as every API server does and the sandbox does not."""

    def create(self, resource: Resource, body: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        if resource.kind == SELF_SUBJECT_REVIEWS.kind:
            body = {**body, "metadata": {"name": "me"}, "status": {"userInfo": {"username": "controller"}}}
        return super().create(resource, body, **options)


def trusting() -> ApiServer:
    """An API server with all that a guard needs."""
    api = Introducing(time.time)
    for definition in (*crd.render(), lws_crd.manifest(), REVIEWS):
        api.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        made = objects(Installation("rollout-lws:1", extras=("guard",)))
        api.create(resource, next(each for each in made if each["kind"] == resource.kind))
    return api


@pytest.mark.parametrize("again", [True, pytest.param(False, marks=pytest.mark.long)])
async def test_a_guard_that_ends_judges_on_until_nobody_asks_it_any_more(again: bool, tmp_path: Path) -> None:
    health, guard, api = held_port(), held_port(), trusting()
    flags = ["--metrics-bind-address", "0", "--health-probe-bind-address", f"127.0.0.1:{health}"]
    flags += ["--guard", f"--guard-bind-address=127.0.0.1:{guard}", "--guard-host=127.0.0.1"]
    flags += ["--leader-elect", "--leader-elect-resource-namespace=default"]
    lws = LEADER_WORKER_SETS.manifest("llama", "prod", spec={"replicas": 1})
    edit = review(request={"object": lws, "oldObject": lws, "userInfo": {"username": "ann"}})
    async with controller(api, tmp_path, *flags) as program, aiohttp.ClientSession() as session:

        async def ready() -> tuple[int, str]:
            async with session.get(f"http://127.0.0.1:{health}/readyz") as answer:
                return answer.status, await answer.text()

        await program.says("leading")
        async with asyncio.timeout(20):
            while (await ready())[0] != 200:  # noqa: ASYNC110 - nothing tells when
                await asyncio.sleep(0.05)
        program.signal(signal.SIGTERM)
        await program.says("guard judges on while its Service turns elsewhere")
        assert await ready() == (503, "stopping\n")
        assert [each["spec"].get("holderIdentity", "") for each in api.list(LEASES, "default")] == [""]
        async with session.post(f"https://127.0.0.1:{guard}/hold", data=edit, ssl=False) as answer:
            assert (answer.status, answer.headers["Connection"]) == (200, "close")
            # One that knows nothing any more lets pass with a warning.
            assert (await answer.json())["response"] == {"uid": "1", "allowed": True}
        if again:
            program.signal(signal.SIGTERM)
        assert await program.end(20) == (-signal.SIGTERM if again else 0)


class Part:
    """What a process asks a part of it."""

    missing = untold = ""


@pytest.mark.parametrize("which", ["controller", "elector", "bundles"])
def test_a_right_that_is_lost_later_takes_no_readiness_away(which: str) -> None:
    parts: dict[str, Any] = {each: Part() for each in ("controller", "elector", "bundles")}
    part = parts[which]
    it = process._Process(parts["controller"], parts["elector"], cast(Any, SimpleNamespace(bundles=parts["bundles"])))
    part.untold = "pods: you may not\n"
    assert it.readiness() == Readiness(False, part.untold)
    part.untold, part.missing = "", "pods: the first list is on its way\n"
    assert it.readiness() == Readiness(False, part.missing)
    part.missing = ""
    assert it.readiness() == Readiness(True, "")
    part.untold = "pods: you may not\n"
    assert it.readiness() == Readiness(True, part.untold)
    part.missing = "stopping\n"
    assert it.readiness() == Readiness(False, part.missing + part.untold)


async def test_who_leaves_is_not_ready() -> None:
    it = process._Process(cast(Any, Part()), None)
    assert it.readiness().ready
    await it.leave()
    assert it.readiness() == Readiness(False, "stopping\n")


def test_with_another_c_library_than_glibc_memory_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    monkeypatch.setattr(ctypes, "CDLL", asked.append)
    process._give_back()
    assert asked == [None]
