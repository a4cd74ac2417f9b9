"""A cluster that somebody else has made: what it lacks is told before anything is changed, and it is left as it was."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from rollout_lws.api import crd
from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    PODS,
)
from rollout_lws.objects.writes import Create, Delete
from tests.e2e import elsewhere, needs, test_stories, tools
from tests.e2e.cluster import Cluster, binding, cluster
from tests.e2e.elsewhere import Chosen
from tests.e2e.needs import Lacking
from tests.e2e.place import Place
from tests.e2e.plane import connected, control_plane
from tests.e2e.waiting import condition, until
from tests.kubectl.programs import ROLLOUT_LWS, Programs

on_a_cluster = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


def marked(test: Any) -> Any:
    for mark in on_a_cluster:
        test = mark(test)
    return test


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with cluster(tools.directory(), tmp_path_factory.mktemp("cluster"), nodes=4) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def admin(whole: Cluster) -> AsyncIterator[Client]:
    async with connected(whole.plane.admin) as connection:
        yield Client(connection)


def by(kubeconfig: Path, gateway: tuple[str, str] | None = None) -> Chosen:
    return Chosen(kubeconfig, gateway, elsewhere.PAUSE)


async def names(client: Client, resource: Any) -> set[str]:
    return {each["metadata"]["name"] for each in json.loads(await client.list(resource))["items"]}


# What a person asks for


def test_without_a_kubeconfig_nothing_is_chosen() -> None:
    assert elsewhere.chosen({}) is None
    assert elsewhere.chosen({elsewhere.KUBECONFIG: "", elsewhere.GATEWAY: "a/b"}) is None


def test_gateway_and_image_are_chosen_with_it(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.touch()
    environment = {elsewhere.KUBECONFIG: str(path)}
    assert elsewhere.chosen(environment) == Chosen(path, None, elsewhere.PAUSE)
    more = {elsewhere.GATEWAY: "infra/inference", elsewhere.IMAGE: "registry.example/server:1"}
    assert elsewhere.chosen(environment | more) == Chosen(path, ("infra", "inference"), "registry.example/server:1")


@pytest.mark.parametrize("gateway", ["inference", "infra/", "/inference"])
def test_a_gateway_without_its_namespace_is_refused(tmp_path: Path, gateway: str) -> None:
    path = tmp_path / "kubeconfig"
    path.touch()
    with pytest.raises(Lacking, match=r"is no Gateway: give its namespace/name"):
        elsewhere.chosen({elsewhere.KUBECONFIG: str(path), elsewhere.GATEWAY: gateway})


def test_a_kubeconfig_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Lacking, match="there is no kubeconfig"):
        elsewhere.chosen({elsewhere.KUBECONFIG: str(tmp_path / "none")})


async def test_a_kubeconfig_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("current-context: prod\n")
    with pytest.raises(Lacking, match="prod"):
        await elsewhere.look(by(path))


def test_a_definition_of_another_version_is_told_by_what_it_lacks() -> None:
    ours = crd.render()[0]
    assert needs.incompatible(ours, ours) == ""
    older = copy.deepcopy(ours)
    del older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["disabled"]
    assert "(it has no spec.disabled): where OpenKruise" in needs.incompatible(ours, older)
    assert needs.incompatible(older, ours) == "", "one that knows more does"


# What is found


@marked
async def test_a_cluster_without_leader_worker_set_is_told_how_to_get_it(tmp_path: Path) -> None:
    async with control_plane(tools.directory(), tmp_path) as plane:
        with pytest.raises(Lacking, match="LeaderWorkerSet is not installed: kubectl apply"):
            await elsewhere.look(by(plane.admin))


@marked
async def test_who_may_do_nothing_is_told_each_permission(whole: Cluster) -> None:
    with pytest.raises(Lacking) as lacking:
        await elsewhere.look(by(whole.plane.kubeconfig_for("tourist")))
    told = str(lacking.value).splitlines()
    assert any(
        "no permission to create, get, list, watch, delete namespaces in all namespaces" in line for line in told
    )
    assert any("leaderworkersets.leaderworkerset.x-k8s.io" in line for line in told)


@marked
async def test_routes_need_a_gateway_that_is_there(whole: Cluster) -> None:
    found = await elsewhere.look(by(whole.plane.admin))
    assert found.definitions == ()
    assert elsewhere.GATEWAY in found.unrouted
    with pytest.raises(Lacking, match="there is no Gateway infra/inference: name one that exists"):
        await elsewhere.look(by(whole.plane.admin, ("infra", "inference")))


# What is changed


@pytest_asyncio.fixture(loop_scope="module")
async def unheard_of(admin: Client) -> AsyncIterator[None]:
    """The cluster does not know our kinds, for as long as the test lasts."""
    for body in crd.render():
        name = body["metadata"]["name"]
        uid = json.loads(await admin.get(CUSTOM_RESOURCE_DEFINITIONS, "", name))["metadata"]["uid"]
        await admin.send(Delete(CUSTOM_RESOURCE_DEFINITIONS, "", name, uid, "this cluster has not heard of us"))
        await until(admin, CUSTOM_RESOURCE_DEFINITIONS, "", name, lambda obj: obj is None)
    yield
    for body in crd.render():
        await admin.send(Create(CUSTOM_RESOURCE_DEFINITIONS, body, "as it was before"))
        name = body["metadata"]["name"]
        await until(admin, CUSTOM_RESOURCE_DEFINITIONS, "", name, lambda obj: condition(obj, "Established") == "True")


@marked
@pytest.mark.usefixtures("unheard_of")
async def test_a_run_leaves_nothing_behind(whole: Cluster, admin: Client, tmp_path: Path) -> None:
    kinds = (CUSTOM_RESOURCE_DEFINITIONS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, NAMESPACES)
    before = [await names(admin, kind) for kind in kinds]
    asked, tell, programs = by(whole.plane.admin), list[str](), Programs()
    async with elsewhere.elsewhere(asked, await elsewhere.look(asked), tmp_path, tell) as place:
        assert (await names(admin, CUSTOM_RESOURCE_DEFINITIONS)) > before[0]
        try:
            async with place.world("kept", programs) as world:
                world.create_workload(replicas=1)
                world.create_rollout({"replicas": 1}, canary={})
                await world.until(lambda: world.state == "Healthy" and world.groups() == {0: "v1"}, "adopted", 60)
                pods = json.loads(await admin.list(PODS, world.namespace))["items"]
                assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {elsewhere.PAUSE}
        finally:
            await programs.close()
            print(*programs.logs(), sep="\n")
        # A story that was interrupted leaves its namespace.
        meta = {"name": f"{place.prefix}interrupted", "labels": dict(place.labels)}
        await admin.send(Create(NAMESPACES, {"metadata": meta}, "left over"))
    assert [await names(admin, kind) for kind in kinds] == before
    assert tell == []


@marked
async def test_a_cluster_with_a_controller_of_its_own_is_left_alone(
    whole: Cluster, admin: Client, tmp_path: Path
) -> None:
    before, asked, programs = await names(admin, NAMESPACES), by(whole.plane.admin), Programs()
    found = await elsewhere.look(asked)
    ports = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")
    try:
        other = await programs.start(ROLLOUT_LWS, "controller", "--kubeconfig", str(whole.plane.admin), *ports)
        await other.says("controller started")
        with pytest.raises(Lacking, match="a controller of Rollouts runs on this cluster already"):
            async with elsewhere.elsewhere(asked, found, tmp_path, []):
                pass
    finally:
        await programs.close()
    assert await names(admin, NAMESPACES) == before


@marked
async def test_who_may_not_grant_rights_lends_their_own(whole: Cluster, admin: Client, tmp_path: Path) -> None:
    rules = [
        {"apiGroups": [resource.group], "resources": [resource.plural], "verbs": list(verbs)}
        for resource, verbs in (*needs.RIGHTS, *needs.TO_INSTALL)
    ]
    for resource, body in (
        (CLUSTER_ROLES, {"metadata": {"name": "tenant"}, "rules": rules}),
        (CLUSTER_ROLE_BINDINGS, binding("tenant", {"name": "tenant"}, {"kind": "User", "name": "tenant"})),
    ):
        await admin.send(Create(resource, body, "a tenant without a say in rights"))
    asked, tell = by(whole.plane.kubeconfig_for("tenant")), list[str]()
    found = await elsewhere.look(asked)
    async with elsewhere.elsewhere(asked, found, tmp_path, tell) as place:
        assert place.controller == asked.kubeconfig
    (line,) = tell
    assert "which may not grant others" in line


@pytest.mark.parametrize("everything", ["", "1"])
def test_each_story_has_a_namespace_of_its_own_wherever_it_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, everything: str
) -> None:
    monkeypatch.setenv(test_stories.ALL, everything)
    stories = [str(each) for each in test_stories.told()]
    place = Place(tmp_path, tmp_path, prefix="rollout-lws-e2e-f00baa-")
    names = [place.namespace(each) for each in stories]
    assert len({*names}) == len(stories) >= 32
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", each) for each in names)
