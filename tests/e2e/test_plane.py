"""The control plane itself: what the stories lean on is really there, before any story is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from rollout_lws.api.resources import rollouts
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS, STATEFUL_SETS
from rollout_lws.objects.writes import Create, Delete
from tests.e2e import audit, tools
from tests.e2e.plane import ControlPlane, connected, control_plane
from tests.e2e.waiting import condition, until
from tests.kubectl_tool import Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

CRDS = Path(__file__).parents[2] / "crds"
#: Somebody whom no role knows, and whose requests are written down.
STRANGER = "stranger"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlPlane]:
    logs = tmp_path_factory.mktemp("plane")
    async with control_plane(tools.directory(), logs, audited=[STRANGER], scheduler=True) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def admin(plane: ControlPlane) -> AsyncIterator[Client]:
    async with connected(plane.admin) as connection:
        yield Client(connection)


async def test_our_definitions_are_accepted_and_served(admin: Client) -> None:
    for path in sorted(CRDS.glob("*.yaml")):
        body = yaml.safe_load(path.read_text())
        await admin.send(Create(CUSTOM_RESOURCE_DEFINITIONS, body, "the stories release with it"))
        name = body["metadata"]["name"]
        await until(admin, CUSTOM_RESOURCE_DEFINITIONS, "", name, lambda obj: condition(obj, "Established") == "True")
    assert json.loads(await admin.list(rollouts()))["items"] == []


async def test_who_has_no_rights_is_refused_and_written_down(plane: ControlPlane, admin: Client) -> None:
    await namespace(admin, "forbidden")
    async with connected(plane.kubeconfig_for(STRANGER, ["strangers"])) as connection:
        stranger = Client(connection)
        with pytest.raises(ApiError, match='User "stranger" cannot create resource "configmaps"') as refused:
            await stranger.send(Create(CONFIG_MAPS, config_map("forbidden", "mine"), "to see whether it may"))
        assert (refused.value.code, refused.value.reason) == (403, "Forbidden")
        with pytest.raises(ApiError):
            await stranger.get(STATEFUL_SETS, "forbidden", "chat")
    told = [(each.verb, each.resource, each.namespace, each.name, each.code) for each in audit.read(plane.audit_log)]
    assert told == [
        ("create", "configmaps", "forbidden", "", 403),
        ("get", "statefulsets.apps", "forbidden", "chat", 403),
    ]
    assert {each.user for each in audit.read(plane.audit_log)} == {STRANGER}


async def test_an_api_server_that_is_killed_comes_back_with_its_data(plane: ControlPlane, admin: Client) -> None:
    await namespace(admin, "killed")
    body = await admin.send(Create(CONFIG_MAPS, config_map("killed", "kept"), "to be found again"))
    await plane.kill_api_server()
    with pytest.raises(Unreachable):
        await admin.send(Create(CONFIG_MAPS, config_map("killed", "lost"), "nobody is there"))
    await plane.restart_api_server()
    assert json.loads(await admin.get(CONFIG_MAPS, "killed", "kept")) == json.loads(body)
    await pods_appear(admin, "killed")


async def test_the_real_controllers_make_pods_and_clear_up(admin: Client) -> None:
    await namespace(admin, "controlled")
    uid = await pods_appear(admin, "controlled")
    await admin.send(Delete(STATEFUL_SETS, "controlled", "chat", uid, "its pod is to go with it"))
    await until(admin, PODS, "controlled", "chat-0", lambda pod: pod is None)


async def test_the_real_scheduler_says_that_nothing_fits(admin: Client) -> None:
    await namespace(admin, "scheduled")
    await pods_appear(admin, "scheduled")
    pod = await until(admin, PODS, "scheduled", "chat-0", lambda obj: condition(obj, "PodScheduled") == "False")
    assert pod is not None
    assert "no nodes available to schedule pods" in pod["status"]["conditions"][0]["message"]


async def test_nothing_is_left_of_a_plane_whose_block_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with control_plane(tools.directory(), tmp_path) as failing:
            data = failing.admin.parent
            assert set(failing.usage()) == {"etcd", "kube-apiserver", "kube-controller-manager"}
            assert len(mentioning(data)) > len(failing.usage())
            raise ZeroDivisionError
    assert mentioning(data) == []
    assert not data.exists()
    assert names_in(tmp_path) >= {"etcd.log", "kube-apiserver.log", "kube-controller-manager.log", "audit.log"}


@pytest.mark.kubectl
async def test_kubectl_finds_the_version_that_was_built(plane: ControlPlane, tmp_path: Path) -> None:
    told = await Kubectl(plane.admin, tmp_path).run("version")
    assert f"Server Version: {tools.kubernetes_version()}" in told.splitlines()


def mentioning(data: Path) -> list[str]:
    """Command lines of the processes of this machine that were told of ``data``."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if str(data) in line]


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


async def namespace(admin: Client, name: str) -> None:
    await admin.send(Create(NAMESPACES, {"metadata": {"name": name}}, "a room for one test"))


async def pods_appear(admin: Client, namespace: str) -> str:
    """Create a StatefulSet, wait for the pod that its controller makes, and give the set's uid."""
    made = json.loads(await admin.send(Create(STATEFUL_SETS, stateful_set(namespace), "to get a pod")))
    pod = await until(admin, PODS, namespace, "chat-0", lambda obj: obj is not None)
    assert pod is not None
    owner = pod["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"]) == ("StatefulSet", made["metadata"]["uid"])
    return str(owner["uid"])


def config_map(namespace: str, name: str) -> dict[str, Any]:
    return {"metadata": {"namespace": namespace, "name": name}, "data": {"key": "value"}}


def stateful_set(namespace: str) -> dict[str, Any]:
    labels = {"app": "chat"}
    return {
        "metadata": {"namespace": namespace, "name": "chat"},
        "spec": {
            "serviceName": "chat",
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "server", "image": "registry.example/chat:1"}],
                },
            },
        },
    }
