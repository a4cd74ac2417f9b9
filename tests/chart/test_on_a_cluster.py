"""Helm itself on an API server: installed, upgraded, uninstalled; refused where something else would be harmed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.api import crd
from rollout_lws.api.resources import rollouts
from rollout_lws.cli.install.manifests import PART_OF, PRODUCT
from rollout_lws.cli.install.options import DEFAULT_NAMESPACE as HOME
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.objects.resources import (
    ADMISSION_POLICIES,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)
from tests.chart.rendering import CHART, IMAGE, RELEASE
from tests.cli.conftest import World

pytestmark = pytest.mark.helm

Object = dict[str, Any]
#: Something that Helm does with the chart, a release and values.
Act = Callable[..., Object]
SPEC = {
    "workloadRef": {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llama"},
    "strategy": {"canary": {"steps": [{"replicas": 1, "pause": {}}, {"replicas": "100%"}]}},
}
NAMES = {f"{plural}.rollouts.kruise.io" for plural in ("rollouts", "batchreleases")}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A cluster with LeaderWorkerSet, and without anything of ours in the usual group."""
    made = World(tmp_path, "rollouts.unrelated.org")
    made.do(lambda: made.server.create(NAMESPACES, {"metadata": {"name": HOME}}))
    yield made
    made.close()


@pytest.fixture
def helm(world: World) -> Iterator[Any]:
    """Releases are remembered in memory: Helm writes its Secrets in a form that this server does not read."""
    import helm_python

    with helm_python.Config(kubeconfig_path=world.kubeconfig, namespace=HOME, storage_driver="memory") as config:
        yield config


def install(helm: Any, **values: Any) -> Object:
    found: Object = helm.install(CHART, RELEASE, {"image": IMAGE, **values}, namespace=HOME)
    return found


def upgrade(helm: Any, **values: Any) -> Object:
    found: Object = helm.upgrade(CHART, RELEASE, {"image": IMAGE, **values}, namespace=HOME)
    return found


def refused(act: Act, helm: Any, **values: Any) -> str:
    import helm_python

    with pytest.raises(helm_python.HelmError) as error:
        act(helm, **values)
    return str(error.value)


def names(world: World, resource: Resource) -> set[str]:
    return {each["metadata"]["name"] for each in world.do(lambda: world.server.list(resource, ""))}


def test_it_is_installed_and_upgraded_and_leaves_the_definitions_behind(world: World, helm: Any) -> None:
    told = install(helm)
    assert told["notes"].startswith("rollout-lws 0.1.0 takes care of Rollouts (rollouts.kruise.io) in all namespaces.")
    assert "It needs LeaderWorkerSet" not in told["notes"]
    assert names(world, CUSTOM_RESOURCE_DEFINITIONS) > NAMES
    assert world.do(lambda: world.server.get(DEPLOYMENTS, HOME, CONTROLLER))["spec"]["replicas"] == 2
    upgrade(helm, replicas=3)
    assert world.do(lambda: world.server.get(DEPLOYMENTS, HOME, CONTROLLER))["spec"]["replicas"] == 3
    helm.uninstall(RELEASE)
    assert names(world, DEPLOYMENTS) == names(world, CLUSTER_ROLES) == names(world, ROLE_BINDINGS) == set()
    assert names(world, CUSTOM_RESOURCE_DEFINITIONS) > NAMES
    install(helm)
    assert names(world, DEPLOYMENTS) == {CONTROLLER}


def test_the_rights_in_a_namespace_that_is_watched_no_longer_go(world: World, helm: Any) -> None:
    for name in ("team-a", "team-b"):
        world.do(lambda name=name: world.server.create(NAMESPACES, {"metadata": {"name": name}}))  # type: ignore[misc]
    install(helm, watchNamespaces=["team-a", "team-b"])
    upgrade(helm, watchNamespaces=["team-b"])
    bound = world.do(lambda: world.server.list(ROLE_BINDINGS, ""))
    assert {each["metadata"]["namespace"] for each in bound} == {"team-b", HOME}


def test_a_namespace_to_watch_has_to_exist(world: World, helm: Any) -> None:
    world.do(lambda: world.server.create(NAMESPACES, {"metadata": {"name": "team-a"}}))
    told = refused(install, helm, watchNamespaces=["team-a", "team-b"])
    assert "nothing was changed: namespace team-b of watchNamespaces does not exist" in told
    assert CONTROLLER not in names(world, CLUSTER_ROLES)


@pytest.mark.parametrize("rbac", [True, False])
def test_a_cluster_has_one_installation(world: World, helm: Any, rbac: bool) -> None:
    result = world.run("install", "--image", "registry.example.com/rollout-lws:0.1.0", "--timeout", "0", "-n", "tools")
    assert result.exit_code == 0
    told = refused(install, helm, rbac={"create": rbac, "people": rbac}, crds={"install": False})
    assert "rollout-lws is installed in namespace tools, and a cluster has one installation" in told
    assert names(world, DEPLOYMENTS) == {CONTROLLER}


def test_a_cluster_without_leader_worker_set_is_told_of(world: World, helm: Any) -> None:
    world.do(lambda: world.server.delete(CUSTOM_RESOURCE_DEFINITIONS, "", "leaderworkersets.leaderworkerset.x-k8s.io"))
    assert "It needs LeaderWorkerSet 0.9 or newer, and waits for it." in install(helm)["notes"]


@pytest.mark.parametrize("theirs", [("rollouts", "batchreleases"), ("rollouts",), ("batchreleases",)], ids=" ".join)
@pytest.mark.parametrize("crds", [True, False])
def test_another_products_definitions_are_left_alone(
    world: World, helm: Any, theirs: tuple[str, ...], crds: bool
) -> None:
    for each in crd.render():
        if each["spec"]["names"]["plural"] in theirs:
            known = {key: value for key, value in each["spec"]["names"].items() if key != "shortNames"}
            body = {**each, "spec": {**each["spec"], "names": known}}
            world.do(lambda body=body: world.server.create(CUSTOM_RESOURCE_DEFINITIONS, body))  # type: ignore[misc]
    told = refused(install, helm, crds={"install": crds})
    assert f"nothing was changed: CustomResourceDefinition {theirs[0]}.rollouts.kruise.io is another product's" in told
    assert "--set apiGroup=rollouts.example.com" in told
    assert CONTROLLER not in names(world, CLUSTER_ROLES)
    install(helm, apiGroup="rollouts.example.com")
    assert names(world, CUSTOM_RESOURCE_DEFINITIONS) > {"rollouts.rollouts.example.com"}


def test_definitions_that_plain_manifests_installed_are_ours(world: World, helm: Any) -> None:
    for each in crd.render():
        world.do(lambda each=each: world.server.create(CUSTOM_RESOURCE_DEFINITIONS, each))  # type: ignore[misc]
    install(helm, crds={"install": False})
    assert names(world, DEPLOYMENTS) == {CONTROLLER}


def test_an_upgrade_keeps_its_api_group(helm: Any) -> None:
    install(helm, apiGroup="rollouts.example.com")
    told = refused(upgrade, helm)
    assert "takes care of API group rollouts.example.com: upgrade it with --set apiGroup=rollouts.example.com" in told
    upgrade(helm, apiGroup="rollouts.example.com")


def look(helm: Any, **values: Any) -> str:
    """What the chart renders, and says, when it has looked at the cluster."""
    import helm_python

    with helm_python.Chart.load(CHART) as chart:
        made = helm.render(chart, {"image": IMAGE, **values}, name=RELEASE, namespace=HOME)
    return "\n".join(made.values())


@pytest.mark.parametrize("known", [True, False])
def test_a_policy_that_kubernetes_does_not_know_is_refused(world: World, helm: Any, known: bool) -> None:
    """Kubernetes 1.29 and before."""
    if known:
        install(helm, podDeletionPolicy={"enabled": True})
        assert names(world, ADMISSION_POLICIES) == {f"{CONTROLLER}-pod-deletion"}
        return
    world.do(lambda: world.server._served.pop(ADMISSION_POLICIES))
    told = refused(install, helm, podDeletionPolicy={"enabled": True})
    assert CONTROLLER not in names(world, CLUSTER_ROLES)
    assert "nothing was changed: podDeletionPolicy needs ValidatingAdmissionPolicy" in told


def test_who_may_not_look_can_do_without(world: World, helm: Any) -> None:
    world.do(lambda: world.server.delete(CUSTOM_RESOURCE_DEFINITIONS, "", "leaderworkersets.leaderworkerset.x-k8s.io"))
    assert "It needs LeaderWorkerSet" not in look(helm, checks={"enabled": False})


def test_an_installation_of_the_command_line_becomes_helms_and_keeps_its_rollouts(world: World, helm: Any) -> None:
    """As the documentation says, with its labels."""
    image = ("--image", "registry.example.com/rollout-lws:0.1.0")
    assert world.run("install", *image, "--timeout", "0").exit_code == 0
    with_rollout = {"metadata": {"namespace": HOME, "name": "llama"}, "spec": SPEC}
    world.do(lambda: world.server.create(rollouts(), with_rollout))
    assert "invalid ownership metadata" in refused(install, helm)
    taken = (DEPLOYMENTS, POD_DISRUPTION_BUDGETS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)
    for resource in (*taken, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS):
        for each in world.do(lambda resource=resource: world.server.list(resource, "")):  # type: ignore[misc]
            meta = each["metadata"]
            if meta.get("labels", {}).get(PART_OF) == PRODUCT:
                gone = (resource, meta.get("namespace", ""), meta["name"])
                world.do(lambda gone=gone: world.server.delete(*gone))  # type: ignore[misc]
    install(helm, crds={"install": False})
    assert names(world, rollouts()) == {"llama"}
    result = world.run("install", *image, "--timeout", "0")
    assert f"upgrade it with helm upgrade {RELEASE} --namespace {HOME}" in str(result.exception)
