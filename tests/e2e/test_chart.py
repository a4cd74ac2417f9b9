"""The chart on a real control plane, by Helm itself: taken as it is, upgraded, and its policy of deletions holds."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from rollout_lws.cli.install.options import DEFAULT_NAMESPACE as HOME
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LWS_WORKER_INDEX,
    PODS,
)
from rollout_lws.objects.writes import Create, Delete
from tests.chart.rendering import CHART, IMAGE, RELEASE
from tests.e2e import rights, tools
from tests.e2e.plane import ControlPlane, connected, control_plane
from tests.e2e.waiting import condition, until

pytestmark = [pytest.mark.e2e, pytest.mark.helm, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

Object = dict[str, Any]
VALUES = {"image": IMAGE, "networkPolicy": {"enabled": True}, "podDeletionPolicy": {"enabled": True}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlPlane]:
    async with control_plane(tools.directory(), tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(plane: ControlPlane) -> AsyncIterator[Client]:
    async with connected(plane.admin) as connection:
        yield Client(connection)


@pytest.fixture
def helm(plane: ControlPlane) -> Iterator[Any]:
    """Releases are remembered in Secrets, as they usually are."""
    import helm_python

    with helm_python.Config(kubeconfig_path=plane.admin, namespace=HOME) as config:
        yield config


async def test_helm_installs_and_upgrades_it(admin: Client, helm: Any) -> None:
    await asyncio.to_thread(helm.install, CHART, RELEASE, VALUES, namespace=HOME, create_namespace=True)
    for name in ("rollouts.rollouts.kruise.io", "batchreleases.rollouts.kruise.io"):
        await until(admin, CUSTOM_RESOURCE_DEFINITIONS, "", name, lambda obj: condition(obj, "Established") == "True")
    await asyncio.to_thread(helm.upgrade, CHART, RELEASE, {**VALUES, "replicas": 3}, namespace=HOME)
    # Pods are made, so the account is there that they run as.
    await until(
        admin, DEPLOYMENTS, HOME, CONTROLLER, lambda obj: ((obj or {}).get("status") or {}).get("updatedReplicas") == 3
    )


async def test_of_all_pods_the_controller_may_delete_leaders_only(
    plane: ControlPlane, admin: Client, tmp_path: Path
) -> None:
    async with connected(plane.admin) as connection:
        who = await rights.login(connection, plane.admin, HOME, CONTROLLER, tmp_path)
    async with connected(who) as connection:
        controller = Client(connection)
        # The API server follows its own policies a moment behind.
        async with asyncio.timeout(60):
            while (refusal := await _deletion(admin, controller, "1")) is None:
                pass
        assert refusal.code == 403
        assert "rollout-lws deletes leaders of LeaderWorkerSets and pods of StatefulSets only" in str(refusal)
        assert await _deletion(admin, controller, "0") is None


async def _deletion(admin: Client, controller: Client, index: str) -> ApiError | None:
    """Why the controller may not delete a pod with this worker index, None when it has."""
    name = f"llama-{uuid.uuid4()}"
    metadata = {"namespace": "default", "name": name, "labels": {LWS_WORKER_INDEX: index}}
    body = {"metadata": metadata, "spec": {"containers": [{"name": "server", "image": "llama"}]}}
    meta = json.loads(await admin.send(Create(PODS, body, "somebody's")))["metadata"]
    try:
        await controller.send(Delete(PODS, "default", name, meta["uid"], "tried"))
    except ApiError as refusal:
        return refusal
    return None
