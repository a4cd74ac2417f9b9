"""`rollout-lws uninstall` on a real control plane, in the middle of a release, and the commands that it prints."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.cli.install.options import Installation
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from tests.cli.uninstall.commands import NOTHING, printed
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
RELEASED = (LEADER_WORKER_SETS, SERVICES)


async def listed(admin: Client, *kinds: Resource) -> list[tuple[Resource, Object]]:
    return [(kind, each["metadata"]) for kind in kinds for each in json.loads(await admin.list(kind))["items"]]


async def named(admin: Client) -> set[str]:
    return {f"{kind} {meta['name']}" for kind, meta in await listed(admin, *INSTALLED)}


async def marked(admin: Client) -> list[str]:
    """Users' objects that have a key or a finalizer of ours."""
    found = [(kind, {**meta, "managedFields": []}) for kind, meta in await listed(admin, *RELEASED)]
    return [f"{kind} {meta['name']}" for kind, meta in found if "rollouts.kruise.io" in json.dumps(meta)]


async def test_in_the_middle_of_a_release_its_version_rolls_and_the_commands_leave_nothing(
    plane: ControlPlane, admin: Client, programs: Programs, tmp_path: Path
) -> None:
    before = await named(admin)
    await install(plane, programs)
    controller, _ = await begin(plane, admin, programs, Installation(IMAGE), "default", tmp_path)
    assert await marked(admin) != []
    told = await run(plane, programs, "uninstall", "--yes")
    assert "ROLLS in 2 groups, 1 at a time" in "".join(told)
    assert await controller.stop() == 0
    assert await marked(admin) == []
    lws = await get(admin, LEADER_WORKER_SETS, "llama", "default")
    assert lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == 0
    for leader in ("llama-0", "llama-1"):
        await until(admin, PODS, "default", leader, lambda obj: image(obj) == "llama:v2", 60)
    for command in printed(told):
        kubectl = await programs.start(*shlex.split(command, comments=True), "--kubeconfig", str(plane.admin))
        assert await kubectl.end(120) == 0, kubectl.output
    assert await named(admin) == before
    assert await run(plane, programs, "uninstall", "--yes") == [NOTHING]


def image(pod: Object | None) -> str:
    return str(((pod or {}).get("spec") or {}).get("containers", [{}])[0].get("image"))
