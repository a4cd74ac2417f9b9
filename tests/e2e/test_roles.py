"""The documented roles on a real API server: whoever decides cannot edit, and whoever lacks a right is told which."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import Resource
from rollout_lws.objects.writes import Create
from tests.docs.pages import blocks
from tests.e2e import tools
from tests.e2e.cluster import CLUSTER_ROLES, Cluster, cluster
from tests.e2e.plane import connected
from tests.e2e.world import RemoteWorld, remote_world
from tests.kubectl.programs import ROLLOUT_LWS, Programs
from tests.scenarios.stories import PROMOTED_STEPS, at_rest

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

PAGE = Path("docs/permissions.md")
NAMESPACE = "roles"
_RBAC = "rbac.authorization.k8s.io"
ROLE_BINDINGS = Resource(_RBAC, "v1", "RoleBinding", "rolebindings")
#: Who has which of the roles that are documented and installed.
PEOPLE = {
    "nobody": (),
    "vera": ("rollout-lws-view",),
    "rita": ("rollout-lws-operate",),
    "ed": ("rollout-lws-edit",),
}
CANNOT = 'rollout-lws: {object} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "{group}"'
_ASK = 'in the namespace "roles"; ask an administrator for that permission'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with cluster(tools.directory(), tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(whole: Cluster) -> AsyncIterator[RemoteWorld]:
    """A release that waits for the approval of its first step, in a namespace where people have their roles."""
    programs = Programs()
    try:
        async with (
            connected(whole.plane.admin) as connection,
            remote_world(whole.plane.admin, whole.controller, NAMESPACE, programs) as made,
        ):
            await _grant(Client(connection))
            await at_rest(made, *PROMOTED_STEPS, replicas=2, size=1)
            made.set_image("v2")
            await made.until_state("AwaitingApproval")
            yield made
    finally:
        await programs.close()


async def _grant(admin: Client) -> None:
    documented = [yaml.safe_load(each) for each in blocks(PAGE, "yaml")]
    for role in documented:
        await admin.send(Create(CLUSTER_ROLES, role, "people live with it"))
    for user, names in PEOPLE.items():
        for name in names:
            body: dict[str, Any] = {
                "metadata": {"namespace": NAMESPACE, "name": f"{user}-{name}"},
                "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
                "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": user}],
            }
            await admin.send(Create(ROLE_BINDINGS, body, "people live with it"))


async def run(whole: Cluster, user: str, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of our program as ``user``."""
    process = await asyncio.create_subprocess_exec(
        *(ROLLOUT_LWS, "--kubeconfig", str(whole.plane.kubeconfig_for(user)), "-n", NAMESPACE, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def told(user: str, verb: str, resource: str, group: str) -> str:
    """The one line on stderr of whoever lacks this right on the LWS or Rollout ``llama``."""
    named = f'{resource.partition("/")[0]}.{group} "llama"'
    said = CANNOT.format(object=named, user=user, verb=verb, resource=resource, group=group)
    return f"{said} {_ASK}\n"


NO_STATUS = ("patch", "rollouts/status", "rollouts.kruise.io")
NO_EDIT = ("patch", "leaderworkersets", "leaderworkerset.x-k8s.io")


@pytest.mark.usefixtures("world")
async def test_whoever_may_nothing_is_told_what_to_ask_for(whole: Cluster) -> None:
    for arguments in (["get", "llama"], ["status", "llama"], ["promote", "llama"], ["undo", "llama"]):
        code, out, err = await run(whole, "nobody", *arguments)
        assert (code, out, err) == (1, "", told("nobody", "get", "rollouts", "rollouts.kruise.io"))


async def test_a_viewer_sees_and_waits_and_decides_nothing(whole: Cluster, world: RemoteWorld) -> None:
    for arguments in (["get"], ["get", "llama"], ["history", "llama"]):
        code, out, err = await run(whole, "vera", *arguments)
        assert (code, err) == (0, ""), out
    assert (await run(whole, "vera", "status", "llama", "--for", "paused"))[0] == 0
    for action in ("promote", "abort", "retry", "pause"):
        assert await run(whole, "vera", action, "llama") == (1, "", told("vera", *NO_STATUS))
    assert world.state == "AwaitingApproval"


async def test_a_releaser_decides_and_edits_nothing(whole: Cluster, world: RemoteWorld) -> None:
    for action, told_by in (
        ("pause", "paused"),
        ("resume", "resumed"),
        ("promote", "step 1/3 approved"),
        ("abort", "aborted at step"),
        ("retry", "released again"),
    ):
        code, out, err = await run(whole, "rita", action, "llama")
        assert (code, err) == (0, ""), action
        assert told_by in out
        if action == "promote":
            assert (await run(whole, "rita", "status", "llama", "--for", "step=2", "--timeout", "60s"))[0] == 0
        if action == "abort":
            assert (await run(whole, "rita", "status", "llama", "--for", "aborted", "--timeout", "60s"))[0] == 0
    await world.until_state("AwaitingApproval")
    before = world.lws["spec"]
    for arguments in (["set", "image", "llama", "*=model:v3"], ["undo", "llama"], ["release-hold", "llama", "--yes"]):
        assert await run(whole, "rita", *arguments) == (1, "", told("rita", *NO_EDIT)), arguments
    assert world.lws["spec"] == before


async def test_an_editor_may_all_of_it(whole: Cluster, world: RemoteWorld) -> None:
    code, out, err = await run(whole, "ed", "undo", "llama")
    assert (code, err) == (0, ""), out
    await world.until_state("Healthy")
    code, out, err = await run(whole, "ed", "set", "image", "llama", "*=model:v3")
    assert (code, err) == (0, ""), out
    await world.until_state("AwaitingApproval")
    assert (await run(whole, "ed", "promote", "llama", "--full"))[0] == 0
    assert (await run(whole, "ed", "status", "llama", "--timeout", "120s"))[0] == 0
