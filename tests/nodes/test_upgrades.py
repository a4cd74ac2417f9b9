"""The image as it is installed on real nodes: what its pods may do, and what users notice while it is restarted,
upgraded and uninstalled, which is nothing.

By default what its pods are like, and a release that goes on while the controller is upgraded; `make e2e-nodes ALL=1`
restarts it three times before, and uninstalls it and installs it by Helm. Each test but the last of all gives the
cluster back as it has found it: the image PRODUCT, two replicas, no guard.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import LEADER_WORKER_SETS, NAMESPACES, NODES
from rollout_lws.objects.writes import Create, Delete, Patch
from tests.chart.rendering import CHART, RELEASE
from tests.e2e.waiting import until
from tests.kubectl.programs import Programs
from tests.nodes import images, losses
from tests.nodes.asked import Asked, asking
from tests.nodes.cluster import Cluster
from tests.nodes.installation import Installation, printed_commands
from tests.nodes.release import (
    DRAINING,
    GROUPS,
    NAME,
    ROLLOUTS,
    Release,
    Style,
    groups_of,
    state,
)
from tests.nodes.stories import REQUESTS, everything

pytestmark = [pytest.mark.nodes, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

RESTARTS = 3 if everything() else 0
#: One pause, then the promotion, which lasts longer than an upgrade. Pods end their streams themselves.
STYLE = Style("canary", steps=({"replicas": 1, "traffic": "30%", "pause": {}}, {"replicas": "100%"}), drain=1)
#: So many users by each way that the controller's start is not what takes long.
_SHORT, _STREAMS = 8, 5
#: What the image may add to its base at most, in bytes.
_ADDED = 150_000_000
_PATIENCE = 180.0


@pytest_asyncio.fixture(loop_scope="session")
async def installation(
    request: pytest.FixtureRequest, nodes: Cluster, programs: Programs
) -> AsyncIterator[Installation]:
    found = Installation(nodes, programs)
    try:
        yield found
    finally:
        if request.node is not request.session.items[-1]:
            await found.install()


async def _serving(nodes: Cluster, programs: Programs, namespace: str) -> Release:
    release = Release(nodes.admin, nodes.plane.admin, namespace, programs)
    await release.serve(STYLE, partial(groups_of, DRAINING))
    return release


def _check(asked: Asked, name: str) -> None:
    """AssertionError when there was a loss, or too few have asked to tell; a table of what they have asked."""
    rows = asked.rows(name, DRAINING.name)
    print(losses.table(rows), asked.lasted(), sep="\n")
    assert not asked.lost()
    assert sum(each.tally.short for each in rows) >= REQUESTS


async def test_pods_are_restricted(nodes: Cluster, installation: Installation) -> None:
    """By the namespace, by their manifest, and as the kernel sees them; the image adds little to its base."""
    home = json.loads(await nodes.admin.get(NAMESPACES, "", installation.namespace))
    assert home["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    await installation.check()
    for node in nodes.nodes:
        (process,) = await installation.processes(node)
        assert set(process["Uid"].split()) == set(process["Gid"].split()) == {"65532"}
        assert int(process["CapEff"], 16) == int(process["CapBnd"], 16) == 0
        # 2 is a filter of system calls.
        assert (process["NoNewPrivs"], process["Seccomp"]) == ("1", "2")
        assert "ro" in process["root"].split(",")
    node = json.loads(await nodes.admin.get(NODES, "", nodes.nodes[0].name))
    sizes = {name: each["sizeBytes"] for each in node["status"]["images"] for name in each["names"]}
    added = sizes[images.PRODUCT] - sizes[images.PAUSE]
    print(f"the image has {sizes[images.PRODUCT] / 1e6:.0f} MB, {added / 1e6:.0f} MB without its base")
    assert 0 < added < _ADDED


async def test_a_release_goes_on_while_the_controller_is_restarted_and_upgraded(
    nodes: Cluster, programs: Programs, installation: Installation, tmp_path: Path
) -> None:
    """Restarted in a pause, upgraded to one with the guard in the promotion."""
    release = await _serving(nodes, programs, "installed")
    if not everything():
        await _set_strategy(nodes, release, maxUnavailable=2)
    async with asking(nodes, release, tmp_path, short=_SHORT, streams=_STREAMS) as asked:
        asked.phase("preparing")
        await release.update("v2")
        await release.at_step(1)
        for number in range(1, RESTARTS + 1):
            asked.phase(f"restart {number}")
            await installation.restart()
            await installation.check()
        asked.phase("in its pause")
        await release.at_step(1)
        await asked.answered(500)
        await release.command("promote", NAME)
        await release.reach("Promoting")
        asked.phase("upgrade")
        await installation.install("--with", "guard", image=images.PRODUCT_NEXT)
        await installation.check(images.PRODUCT_NEXT)
        asked.phase("upgraded")
        assert state(await release.get(ROLLOUTS, NAME)) == "Promoting", "the upgrade came too late to be told of"
        await _check_guard(nodes, release)
        await release.reach("Healthy")
        asked.phase("over")
        await asked.answered(500)
    _check(asked, f"canary, controller restarted {RESTARTS} times and upgraded")


async def _set_strategy(nodes: Cluster, release: Release, *, version: str | None = None, **members: int) -> int:
    """Edit how the LeaderWorkerSet renews groups, where ``version`` is the latest; gives the partition as stored."""
    body = {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": members}}}
    edit = Patch(LEADER_WORKER_SETS, release.namespace, NAME, body, "a person's edit", resource_version=version)
    return _partition(json.loads(await nodes.admin.send(edit)))


async def _check_guard(nodes: Cluster, release: Release) -> None:
    """An edit that would renew more groups than the release does is stored as one that does not."""
    while True:
        # In a window for the last group it would change nothing.
        found = await until(nodes.admin, LEADER_WORKER_SETS, release.namespace, NAME, _opens_less, _PATIENCE)
        assert found is not None
        try:
            stored = await _set_strategy(nodes, release, version=found["metadata"]["resourceVersion"], partition=0)
        except ApiError as error:
            # The release, or LeaderWorkerSet, has written meanwhile.
            if error.code != 409:
                raise
        else:
            break
    assert stored == _partition(found)


def _opens_less(seen: dict[str, Any] | None) -> bool:
    return _partition(seen) > 0


def _partition(seen: dict[str, Any] | None) -> int:
    return 0 if seen is None else int(seen["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"])


@pytest.mark.nodes(everything=True)
@pytest.mark.kubectl
async def test_users_of_an_uninstallation_notice_nothing(
    nodes: Cluster, programs: Programs, installation: Installation, tmp_path: Path
) -> None:
    """In a pause: requests go back to the old version, then the one that waits rolls by LeaderWorkerSet's own strategy,
    which was agreed to.
    """
    release = await _serving(nodes, programs, "uninstalled")
    async with asking(nodes, release, tmp_path, short=_SHORT, streams=_STREAMS) as asked:
        asked.phase("preparing")
        await release.update("v2")
        await release.at_step(1)
        asked.phase("in a pause")
        await asked.answered(1_000)
        told = await installation.command("uninstall", "--dry-run")
        assert any("the version that waits (registry.local/model-server:v2) ROLLS in 3 groups" in line for line in told)
        asked.phase("uninstalled")
        await installation.remove()
        assert await installation.command("uninstall") == ["nothing of an installation is left on this cluster"]
        asked.phase("rolls")
        await until(nodes.admin, LEADER_WORKER_SETS, release.namespace, NAME, _rolled, _PATIENCE)
        asked.phase("over")
        await asked.answered(1_000, 5)
    _check(asked, "canary, uninstalled in a pause")


def _rolled(seen: dict[str, Any] | None) -> bool:
    status = (seen or {}).get("status") or {}
    return bool(status.get("updatedReplicas") == status.get("readyReplicas") == GROUPS)


@pytest.mark.nodes(everything=True)
@pytest.mark.kubectl
@pytest.mark.helm
async def test_helm_installs_it_and_releases_go_through_its_upgrade(
    nodes: Cluster, programs: Programs, installation: Installation, tmp_path: Path
) -> None:
    """Installed as the documentation says, with what is recommended for production from the upgrade on."""
    import helm_python

    await installation.remove()
    home = NAMESPACES.manifest(installation.namespace)
    home["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}
    made = json.loads(await nodes.admin.send(Create(NAMESPACES, home, "Helm installs into it")))
    repository, _, tag = images.PRODUCT.rpartition(":")
    values: dict[str, Any] = {"image": {"repository": repository, "tag": tag}}
    waiting: dict[str, Any] = {"namespace": installation.namespace, "wait": "watcher", "timeout": int(_PATIENCE)}
    try:
        with helm_python.Config(kubeconfig_path=nodes.plane.admin, namespace=installation.namespace) as helm:
            await asyncio.to_thread(helm.install, CHART, RELEASE, values, **waiting)
            await installation.check()
            release = await _serving(nodes, programs, "by-helm")
            async with asking(nodes, release, tmp_path, short=_SHORT, streams=_STREAMS) as asked:
                asked.phase("preparing")
                await release.update("v2")
                await release.at_step(1)
                await release.command("promote", NAME)
                await release.reach("Promoting")
                asked.phase("helm upgrade")
                values["image"]["tag"] = images.PRODUCT_NEXT.rpartition(":")[2]
                values |= {each: {"enabled": True} for each in ("guard", "podDeletionPolicy", "networkPolicy")}
                await asyncio.to_thread(helm.upgrade, CHART, RELEASE, values, **waiting)
                await installation.check(images.PRODUCT_NEXT)
                asked.phase("upgraded")
                await release.reach("Healthy")
                asked.phase("over")
                await asked.answered(1_000, 5)
            told = await installation.command("uninstall", "--yes")
            by_helm, *by_kubectl = printed_commands(told)
            assert by_helm == f"helm uninstall {RELEASE} -n {installation.namespace}"
            await asyncio.to_thread(helm.uninstall, RELEASE, wait="watcher", timeout=int(_PATIENCE))
            for each in by_kubectl:
                await installation.shell(each)
        _check(asked, "canary, helm upgrade with the guard in its promotion")
    finally:
        # Also the Secrets in which Helm remembers a release that has failed half-way.
        gone = Delete(NAMESPACES, "", installation.namespace, made["metadata"]["uid"], "Helm has installed into it")
        await nodes.admin.send(gone)
        await until(nodes.admin, NAMESPACES, "", installation.namespace, lambda seen: seen is None, _PATIENCE)
