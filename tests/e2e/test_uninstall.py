"""`rollout-lws uninstall` on a real control plane, in the middle of a release: afterwards it is as it was before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.cli.install.installation import Installation
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONTROLLER_REVISIONS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from tests.e2e.plane import ControlPlane
from tests.e2e.test_install import IMAGE, admin, begin, get, install, plane, programs, run
from tests.e2e.waiting import until
from tests.kubectl.programs import Programs

#: Of the other module; pytest finds them here by their names.
__all__ = ["admin", "plane", "programs"]

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

Object = dict[str, Any]
INSTALLED = (
    *(NAMESPACES, CUSTOM_RESOURCE_DEFINITIONS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS),
    *(SERVICE_ACCOUNTS, DEPLOYMENTS),
)
RELEASED = (LEADER_WORKER_SETS, STATEFUL_SETS, PODS, SERVICES, CONTROLLER_REVISIONS)


async def listed(admin: Client, *kinds: Resource) -> list[tuple[Resource, Object]]:
    return [(kind, each["metadata"]) for kind in kinds for each in json.loads(await admin.list(kind))["items"]]


async def named(admin: Client) -> set[str]:
    return {f"{kind} {meta['name']}" for kind, meta in await listed(admin, *INSTALLED)}


async def marked(admin: Client) -> list[str]:
    """Whatever has a key or a finalizer of ours."""
    found = [(kind, {**meta, "managedFields": []}) for kind, meta in await listed(admin, *RELEASED)]
    return [f"{kind} {meta['name']}" for kind, meta in found if "rollouts.kruise.io" in json.dumps(meta)]


async def test_in_the_middle_of_a_release_nothing_is_left_and_its_version_rolls(
    plane: ControlPlane, admin: Client, programs: Programs, tmp_path: Path
) -> None:
    before = await named(admin)
    await install(plane, programs)
    controller, _ = await begin(plane, admin, programs, Installation(IMAGE), "default", tmp_path)
    assert await marked(admin) != []
    told = await run(plane, programs, "uninstall", "--yes")
    assert "ROLLS in 2 groups, 1 at a time" in "".join(told)
    assert told[-1] == "nothing of rollout-lws is left on this cluster"
    assert await controller.stop() == 0
    assert await named(admin) == before
    assert await marked(admin) == []
    lws = await get(admin, LEADER_WORKER_SETS, "llama", "default")
    assert lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == 0
    for leader in ("llama-0", "llama-1"):
        await until(admin, PODS, "default", leader, lambda obj: image(obj) == "llama:v2", 60)
    assert await run(plane, programs, "uninstall", "--yes") == ["nothing of rollout-lws is left on this cluster"]


def image(pod: Object | None) -> str:
    return str(((pod or {}).get("spec") or {}).get("containers", [{}])[0].get("image"))
