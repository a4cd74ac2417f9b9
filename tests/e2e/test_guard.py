"""The guard on a real API server: what it makes of edits, how it comes to be trusted, and that nobody misses it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from rollout_lws.api.resources import keys, rollouts
from rollout_lws.cli.install.manifests import arguments
from rollout_lws.cli.install.options import DEFAULT_NAMESPACE, Installation
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.kube.connection import Connection
from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
    LWS_NAME,
    MUTATING_WEBHOOKS,
    PODS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from rollout_lws.objects.writes import Create, Delete, Replace
from rollout_lws.settings import DEFAULT_GUARD
from rollout_lws.workload.hold import HOLD
from tests.e2e import rights, tools
from tests.e2e.cluster import cluster
from tests.e2e.plane import ControlPlane, connected
from tests.e2e.test_install import _without_us, made, state
from tests.e2e.waiting import until
from tests.kubectl.programs import ROLLOUT_LWS, Program, Programs, held_port

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

Object = dict[str, Any]
CHOSEN = Installation("registry.example.com/rollout-lws:0.1.0", extras=("guard",))
ACCOUNT = f"system:serviceaccount:{DEFAULT_NAMESPACE}:{CONTROLLER}"
NAMESPACE, NAME = "default", "llama"
KEYS = keys()
CONFIGURATIONS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)


@dataclass
class World:
    """A cluster with a guarded LWS at rest; ``admin`` is a person, ``who`` the kubeconfig of the controller."""

    plane: ControlPlane
    connection: Connection
    admin: Client
    who: Path
    programs: Programs

    async def guard(self, port: int, health: str = "0") -> Program:
        """A controller with the rendered arguments under the rendered identity; ``health`` is where it tells whether it
        is ready.
        """
        given = [each.replace("=:8081", f"={health}").replace("=:8080", "=0") for each in arguments(CHOSEN)]
        given = [each.replace(":9443", f"127.0.0.1:{port}") for each in given]
        given += ["--guard-host=127.0.0.1", f"--leader-elect-resource-namespace={DEFAULT_NAMESPACE}"]
        program = await self.programs.start(ROLLOUT_LWS, *given, "--kubeconfig", str(self.who))
        await program.says("controller started")
        return program

    async def bundles(self, count: int) -> None:
        """Until both configurations have so many authorities."""
        for each in CONFIGURATIONS:
            await until(self.admin, each, "", DEFAULT_GUARD, lambda obj: authorities(obj) == {count})

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Object,
        content_type: str = "application/merge-patch+json",
        params: dict[str, str] | None = None,
    ) -> tuple[Object, str]:
        """What kubectl apply sends; the object, and the warnings that kubectl would print."""
        answer = await self.connection.request(
            "PATCH",
            resource.path(NAMESPACE, name),
            params=params or {},
            body=json.dumps(body).encode(),
            content_type=content_type,
            timeout=30,
        )
        said: Object = json.loads(answer.body)
        if answer.status >= 400:
            raise ApiError(answer.status, said["reason"], said["message"])
        return said, answer.headers.get("warning", "")

    async def apply(self, members: Object) -> tuple[Object, str]:
        """kubectl apply --server-side --force-conflicts of a manifest with these members of the strategy."""
        head = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind}
        body = {**head, "metadata": {"namespace": NAMESPACE, "name": NAME}, **strategy(maxUnavailable=1, **members)}
        return await self.patch(
            LEADER_WORKER_SETS,
            NAME,
            body,
            "application/apply-patch+yaml",
            {"fieldManager": "kubectl", "force": "true"},
        )

    async def lws(self) -> Object:
        found: Object = json.loads(await self.admin.get(LEADER_WORKER_SETS, NAMESPACE, NAME))
        return found

    async def pods(self) -> set[str]:
        listed = json.loads(await self.admin.list(PODS, NAMESPACE, {"labelSelector": f"{LWS_NAME}={NAME}"}))
        return {each["metadata"]["uid"] for each in listed["items"]}

    async def state(self, wanted: str, name: str = NAME) -> None:
        await until(self.admin, rollouts(), NAMESPACE, name, lambda obj: state(obj) == wanted, 60)


def authorities(configuration: Object | None) -> set[int]:
    """How many are in each bundle."""
    webhooks = (configuration or {}).get("webhooks") or ()
    return {base64.b64decode(each["clientConfig"].get("caBundle", "")).count(b"BEGIN CERTIFICATE") for each in webhooks}


def strategy(**members: Any) -> Object:
    return {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": members}}}


def partition(lws: Object) -> int:
    found: int = lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"]
    return found


def image(tag: str) -> Object:
    containers = [{"name": "server", "image": f"llama:{tag}"}]
    return {"spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": containers}}}}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlPlane]:
    logs = tmp_path_factory.mktemp("plane")
    async with cluster(tools.directory(), logs, nodes=4, audited=[ACCOUNT], install=_without_us) as running:
        yield running.plane


@pytest_asyncio.fixture(loop_scope="module")
async def programs() -> AsyncIterator[Programs]:
    started = Programs()
    yield started
    await started.close()


async def install(plane: ControlPlane, programs: Programs) -> set[str]:
    """What was done with the objects."""
    given = ("install", "--image", CHOSEN.image, "--replicas=0", "--with=guard")
    program = await programs.start(ROLLOUT_LWS, "--kubeconfig", str(plane.admin), *given)
    assert await program.end(120) == 0, program.output
    *written, start = program.lines
    assert start.startswith("no controller runs: kubectl")
    return {line.rpartition(" ")[2] for line in written}


async def lead_to(world: World, port: int, failure_policy: str = "Ignore") -> None:
    """No Service leads to a process on this machine."""
    for each in CONFIGURATIONS:
        found = json.loads(await world.admin.get(each, "", DEFAULT_GUARD))
        for webhook in found["webhooks"]:
            path = webhook["clientConfig"].pop("service")["path"]
            webhook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{path}"
            webhook["failurePolicy"] = failure_policy
        await world.admin.send(Replace(each, found, "who asks the guard"))


async def test_a_guarded_release_from_its_hold_to_a_cluster_without_guards(
    plane: ControlPlane, programs: Programs, tmp_path: Path
) -> None:
    port = held_port()
    async with connected(plane.admin) as connection:
        admin = Client(connection)
        await install(plane, programs)
        who = await rights.login(connection, plane.admin, DEFAULT_NAMESPACE, CONTROLLER, tmp_path)
        world = World(plane, connection, admin, who, programs)
        guard = await world.guard(port)
        await world.bundles(1)
        assert await install(plane, programs) == {"unchanged"}
        await world.bundles(1)
        await lead_to(world, port)
        await at_rest(world)
        await _edits_are_repaired(world)
        await _what_no_release_takes_is_denied(world)
        await _a_reset_bundle_is_filled_again(world)
        await guard.kill()
        await _without_a_guard_edits_pass(world)
        await _with_fail_only_the_controller_writes(world)
        assert "Traceback" not in guard.output


async def at_rest(world: World) -> None:
    meta = {"namespace": NAMESPACE, "name": NAME}
    template = {"spec": {"containers": [{"name": "server", "image": "llama:v1"}]}}
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
    await world.admin.send(Create(LEADER_WORKER_SETS, made(LEADER_WORKER_SETS, meta, spec), "released here"))
    await world.admin.send(Create(rollouts(), _rollout(NAME), "its steps"))
    await world.state("Healthy")
    assert partition(await world.lws()) == HOLD


def _rollout(name: str) -> Object:
    reference = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": NAME}
    steps = [{"replicas": 1, "pause": {}}, {"replicas": "100%"}]
    plan = {"workloadRef": reference, "strategy": {"canary": {"steps": steps}}}
    return made(rollouts(), {"namespace": NAMESPACE, "name": name}, plan)


async def _edits_are_repaired(world: World) -> None:
    """A manifest with another version and a partition would take the first group down in that very write."""
    before = await world.pods()
    stored, warning = await world.patch(
        LEADER_WORKER_SETS, NAME, {**image("v2"), **strategy_with(image("v2"), partition=0)}
    )
    assert partition(stored) == HOLD
    assert f"Rollout {NAME} holds LeaderWorkerSet {NAME}: partition 0 is what it gets back" in warning
    await world.state("AwaitingApproval")
    stored, warning = await world.patch(
        LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {KEYS.original: None}}, **strategy(partition=0)}
    )
    assert partition(stored) == HOLD and KEYS.original in stored["metadata"]["annotations"]
    # Server-side apply, which takes the field over, and then no longer states it.
    for stated in ({"partition": 0}, {}):
        stored, warning = await world.apply(stated)
        assert partition(stored) == HOLD, stored["metadata"]["managedFields"]
        assert "holds LeaderWorkerSet" in warning
    assert before <= await world.pods()
    conflicts = json.loads(await world.admin.get(rollouts(), NAMESPACE, NAME))["status"].get("holdConflicts")
    assert not conflicts


def strategy_with(body: Object, **members: Any) -> Object:
    return {"spec": {**body["spec"], **strategy(**members)["spec"]}}


async def _what_no_release_takes_is_denied(world: World) -> None:
    # One that waits for the first to go is none that nobody takes: that is how a name changes in Git.
    second = json.loads(await world.admin.send(Create(rollouts(), _rollout("second"), "one that waits")))
    await until(world.admin, rollouts(), NAMESPACE, "second", lambda obj: "SecondRollout" in json.dumps(obj))
    await world.admin.send(Delete(rollouts(), NAMESPACE, "second", second["metadata"]["uid"], "it may go"))
    await until(world.admin, rollouts(), NAMESPACE, "second", lambda obj: obj is None)
    with pytest.raises(ApiError, match="changes its size; up to LWS"):
        await world.patch(LEADER_WORKER_SETS, NAME, {"spec": {"leaderWorkerTemplate": {"size": 3}}})
    style = {"canary": None, "blueGreen": {"steps": [{"replicas": "100%"}]}}
    with pytest.raises(ApiError, match="the style of a release that is on cannot change"):
        await world.patch(rollouts(), NAME, {"spec": {"strategy": style}})
    steps = [{"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}}, {"replicas": "100%"}]
    edited, _ = await world.patch(rollouts(), NAME, {"spec": {"strategy": {"canary": {"steps": steps}}}})
    assert len(edited["spec"]["strategy"]["canary"]["steps"]) == 3


async def _a_reset_bundle_is_filled_again(world: World) -> None:
    """By a follower, too: a second replica has an authority of its own, whoever leads."""
    follower = await world.guard(held_port())
    await world.bundles(2)
    for each in CONFIGURATIONS:
        found = json.loads(await world.admin.get(each, "", DEFAULT_GUARD))
        for webhook in found["webhooks"]:
            webhook["clientConfig"].pop("caBundle")
        await world.admin.send(Replace(each, found, "somebody resets it"))
    await world.bundles(2)
    assert await follower.stop() == 0
    stored, warning = await world.patch(LEADER_WORKER_SETS, NAME, strategy(partition=0))
    assert (partition(stored), "holds LeaderWorkerSet" in warning) == (HOLD, True)


async def _without_a_guard_edits_pass(world: World) -> None:
    stored, warning = await world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {"team": "infra"}}})
    assert (stored["metadata"]["labels"]["team"], warning) == ("infra", "")
    stored, _ = await world.patch(LEADER_WORKER_SETS, NAME, strategy(partition=1))
    assert partition(stored) == 1


async def _with_fail_only_the_controller_writes(world: World) -> None:
    """It puts the hold back that was opened meanwhile, and releases, while nobody answers for anybody else."""
    for each in CONFIGURATIONS:
        found = json.loads(await world.admin.get(each, "", DEFAULT_GUARD))
        for webhook in found["webhooks"]:
            webhook["failurePolicy"] = "Fail"
        await world.admin.send(Replace(each, found, "edits that nobody judges are refused"))
    await _refused(world)
    given = ("--metrics-bind-address=0", "--health-probe-bind-address=0", "--kubeconfig", str(world.who))
    without = await world.programs.start(ROLLOUT_LWS, "controller", *given)
    await until(world.admin, LEADER_WORKER_SETS, NAMESPACE, NAME, lambda obj: partition(obj or {}) == HOLD, 60)
    await world.state("AwaitingApproval")
    await _run(world, "promote", NAME, "--full")
    await world.state("Healthy")
    assert (await world.lws())["status"]["updatedReplicas"] == 2
    # Whoever scales is not stopped either.
    scale = {"spec": {"replicas": 3}}
    answer = await world.connection.request(
        "PATCH",
        LEADER_WORKER_SETS.path(NAMESPACE, NAME, "scale"),
        params={},
        body=json.dumps(scale).encode(),
        content_type="application/merge-patch+json",
        timeout=30,
    )
    assert answer.status == 200, answer.body
    assert await without.stop() == 0


async def _refused(world: World) -> None:
    """An API server takes a moment until it knows of the policy."""
    async with asyncio.timeout(30):
        while True:
            try:
                await world.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"labels": {"team": "b"}}})
            except ApiError as error:
                assert "failed calling webhook" in error.message
                return


async def _run(world: World, *given: str) -> None:
    program = await world.programs.start(ROLLOUT_LWS, "--kubeconfig", str(world.plane.admin), *given)
    assert await program.end(60) == 0, program.output
