"""`rollout-lws install` on a real control plane, and a controller under the identity that it has made."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from rollout_lws.api.resources import rollouts
from rollout_lws.cli.install.manifests import arguments, objects
from rollout_lws.cli.install.options import DEFAULT_NAMESPACE, Installation
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import (
    CLUSTER_ROLES,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    Resource,
)
from rollout_lws.objects.writes import Create
from rollout_lws.sandbox.definitions import gateway_api, lws_crd
from tests.e2e import audit, rights, tools
from tests.e2e.cluster import cluster, role
from tests.e2e.defining import define
from tests.e2e.plane import ControlPlane, connected
from tests.e2e.waiting import until
from tests.kubectl.programs import ROLLOUT_LWS, Program, Programs

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

Object = dict[str, Any]
IMAGE = "registry.example.com/rollout-lws:0.1.0"
#: How the controller is known to the API server.
ACCOUNT = f"system:serviceaccount:{DEFAULT_NAMESPACE}:{CONTROLLER}"
STEPS = [{"replicas": 1, "pause": {}}, {"replicas": "100%"}]


async def _without_us(admin: Client) -> None:
    await define(admin, (lws_crd.manifest(), *gateway_api.manifests()), "the cluster has it before we come")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlPlane]:
    logs = tmp_path_factory.mktemp("plane")
    async with cluster(tools.directory(), logs, nodes=4, audited=[ACCOUNT], install=_without_us) as running:
        yield running.plane


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(plane: ControlPlane) -> AsyncIterator[Client]:
    async with connected(plane.admin) as connection:
        yield Client(connection)


@pytest_asyncio.fixture(loop_scope="module")
async def programs() -> AsyncIterator[Programs]:
    started = Programs()
    yield started
    await started.close()


async def run(plane: ControlPlane, programs: Programs, *given: str) -> list[str]:
    """What the command tells its administrator."""
    program = await programs.start(ROLLOUT_LWS, "--kubeconfig", str(plane.admin), *given)
    assert await program.end(120) == 0, program.output
    return program.lines


async def install(plane: ControlPlane, programs: Programs, *more: str) -> list[str]:
    return await run(plane, programs, "install", "--image", IMAGE, *more)


async def get(admin: Client, resource: Resource, name: str, namespace: str = "") -> Object:
    found: Object = json.loads(await admin.get(resource, namespace, name))
    return found


async def begin(
    plane: ControlPlane, admin: Client, programs: Programs, chosen: Installation, namespace: str, directory: Path
) -> tuple[Program, str]:
    """A controller with the rendered arguments under the rendered identity, a canary of it in ``namespace`` that waits
    for approval, and the stable revision. It leads at once: the Deployment's pods are not real.
    """
    async with connected(plane.admin) as connection:
        who = await rights.login(connection, plane.admin, chosen.namespace, CONTROLLER, directory)
    given = [each.replace("=:8081", "=0").replace("=:8080", "=0") for each in arguments(chosen)]
    given.append(f"--leader-elect-resource-namespace={chosen.namespace}")
    controller = await programs.start(ROLLOUT_LWS, *given, "--kubeconfig", str(who))
    await controller.says("controller started")
    meta = {"namespace": namespace, "name": "llama"}
    template = {"spec": {"containers": [{"name": "server", "image": "llama:v1"}]}}
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
    await admin.send(Create(LEADER_WORKER_SETS, made(LEADER_WORKER_SETS, meta, spec), "released here"))
    reference = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": "llama"}
    kind = rollouts(chosen.api_group)
    plan = {"workloadRef": reference, "strategy": {"canary": {"steps": STEPS}}}
    await admin.send(Create(kind, made(kind, meta, plan), "its steps"))
    await until(admin, kind, namespace, "llama", lambda obj: state(obj) == "Healthy", 60)
    before = (await get(admin, kind, "llama", namespace))["status"]["stable"]["revision"]
    await run(plane, programs, "-n", namespace, "set", "image", "llama", "server=llama:v2")
    await until(admin, kind, namespace, "llama", lambda obj: state(obj) == "AwaitingApproval", 60)
    return controller, str(before)


async def release(
    plane: ControlPlane, admin: Client, programs: Programs, chosen: Installation, namespace: str, directory: Path
) -> None:
    """One from its start to its end."""
    controller, before = await begin(plane, admin, programs, chosen, namespace, directory)
    kind = rollouts(chosen.api_group)
    await run(plane, programs, "-n", namespace, "promote", "llama")
    await until(admin, kind, namespace, "llama", lambda obj: state(obj) == "Healthy", 60)
    assert (await get(admin, kind, "llama", namespace))["status"]["stable"]["revision"] != before
    assert await controller.stop() == 0


def made(resource: Resource, metadata: Object, spec: Object) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def forbidden(plane: ControlPlane) -> list[audit.Entry]:
    """What the controller has asked and may not."""
    return [each for each in audit.read(plane.audit_log) if each.user == ACCOUNT and each.code == 403]


def state(rollout: Object | None) -> str:
    return str((((rollout or {}).get("status") or {}).get("summary") or {}).get("state"))


async def test_a_cluster_with_nothing_gets_everything_and_a_controller_that_runs(
    plane: ControlPlane, admin: Client, programs: Programs, tmp_path: Path
) -> None:
    told = await install(plane, programs)
    assert told[-1] == f"deployment.apps/{CONTROLLER} is available"
    assert sum(line.endswith(" created") for line in told) == len(objects(Installation(IMAGE)))
    again = await install(plane, programs)
    assert {line.rpartition(" ")[2] for line in again[:-1]} == {"unchanged"}, again
    await release(plane, admin, programs, Installation(IMAGE), "default", tmp_path)
    assert forbidden(plane) == []


async def test_the_stories_of_this_lane_run_under_the_role_that_is_installed(admin: Client) -> None:
    assert (await get(admin, CLUSTER_ROLES, CONTROLLER))["rules"] == role()["rules"]


async def test_people_have_their_rights_by_aggregation(admin: Client) -> None:
    def rights_of(rules: Any) -> set[tuple[str, str]]:
        return {
            (resource, verb)
            for rule in rules or ()
            if "rollouts.kruise.io" in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    await until(
        admin, CLUSTER_ROLES, "", "edit", lambda obj: ("rollouts", "create") in rights_of((obj or {}).get("rules"))
    )
    view = rights_of((await get(admin, CLUSTER_ROLES, "view"))["rules"])
    assert view == {(kind, verb) for kind in ("rollouts", "batchreleases") for verb in ("get", "list", "watch")}


async def test_an_upgrade_replaces_the_pods_one_by_one(plane: ControlPlane, admin: Client, programs: Programs) -> None:
    told = await install(plane, programs, "--image", "registry.example.com/rollout-lws:0.2.0")
    assert [line for line in told if line.endswith("configured")] == [f"deployment.apps/{CONTROLLER} configured"]
    deployment = await get(admin, DEPLOYMENTS, CONTROLLER, DEFAULT_NAMESPACE)
    assert deployment["status"]["updatedReplicas"] == deployment["status"]["replicas"] == 2


async def test_rights_in_some_namespaces_are_enough_for_a_release_there_and_end_there(
    plane: ControlPlane, admin: Client, programs: Programs, tmp_path: Path
) -> None:
    for name in ("team-a", "team-b"):
        await admin.send(Create(NAMESPACES, {"metadata": {"name": name}}, "people live there"))
    await install(plane, programs, "--watch-namespace", "team-a")
    before = len(forbidden(plane))
    await release(plane, admin, programs, Installation(IMAGE, watch_namespaces=("team-a",)), "team-a", tmp_path)
    assert forbidden(plane)[before:] == []
    async with connected(plane.admin) as connection:
        who = await rights.login(connection, plane.admin, DEFAULT_NAMESPACE, CONTROLLER, tmp_path)
    async with connected(who) as connection:
        controller = Client(connection)
        await controller.list(POD_DISRUPTION_BUDGETS, "team-a")
        with pytest.raises(ApiError, match="forbidden"):
            await controller.list(POD_DISRUPTION_BUDGETS, "team-b")
