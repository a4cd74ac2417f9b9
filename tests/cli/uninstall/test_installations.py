"""Installations of every kind taken off a cluster, and what is not of them left on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from rollout_lws.api import crd
from rollout_lws.api.resources import rollouts
from rollout_lws.errors import RolloutLwsError, UsageError
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    LEASES,
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
    Resource,
)
from tests.cli.conftest import World
from tests.cli.uninstall.commands import NOTHING, carry_out, printed
from tests.cli.uninstall.held import lws, rollout, stateful_set

Object = dict[str, Any]
IMAGE = "registry.example.com/rollout-lws:0.1.0"
HOME, CONTROLLER, GUARD = "rollout-lws-system", "rollout-lws-controller", "rollout-lws-guard"
OURS = {"app.kubernetes.io/part-of": "rollout-lws"}


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[World]:
    """A cluster with LeaderWorkerSet, and without anything of ours."""
    made = World(tmp_path, "rollouts.unrelated.org")
    for plural in ("rollouts", "batchreleases"):
        made.do(partial(made.server.delete, CUSTOM_RESOURCE_DEFINITIONS, "", f"{plural}.rollouts.unrelated.org"))
    yield made
    made.close()


def create(world: World, resource: Resource, name: str, namespace: str = "", **more: Any) -> None:
    place = {"namespace": namespace} if namespace else {}
    labels = {"labels": more.pop("labels")} if "labels" in more else {}
    body = {"metadata": {"name": name, **place, **labels}, **more}
    world.do(lambda: world.server.create(resource, body))


def install(world: World, *flags: str) -> None:
    assert world.run("install", "--image", IMAGE, "--timeout", "0", *flags).exit_code == 0


def everything(world: World) -> dict[str, Object]:
    """All objects by kind and place."""

    def listed() -> dict[str, Object]:
        return {
            f"{served.resource}/{each['metadata'].get('namespace', '')}/{each['metadata']['name']}": each
            for served in world.server.served
            for each in world.server.list(served.resource, "")
        }

    return world.do(listed)


def uninstall(world: World, *flags: str) -> list[str]:
    result = world.run("uninstall", "--yes", *flags)
    assert result.exit_code == 0, (result.exception, result.output)
    return result.stdout.splitlines()


def leave(world: World, *flags: str) -> list[str]:
    """The commands that are printed, carried out."""
    commands = printed(uninstall(world, *flags))
    world.do(partial(carry_out, world.server, commands))
    assert uninstall(world) == [NOTHING]
    return commands


def refused(world: World, *flags: str, kind: type[RolloutLwsError] = UsageError) -> str:
    result: Result = world.run("uninstall", *flags)
    assert result.exit_code == 1 and isinstance(result.exception, kind), result.output
    return str(result.exception)


INSTALLED: dict[str, tuple[str, ...]] = {
    "everywhere": (),
    "some namespaces": ("--watch-namespace", "team-a", "--watch-namespace", "team-b"),
    "another group": ("--api-group", "rollouts.example.com"),
    "a guard": ("--with", "guard", "--guard-failure-policy", "Fail"),
}


@pytest.mark.parametrize("applied", ["by install", pytest.param("by kubectl", marks=pytest.mark.long)])
@pytest.mark.parametrize("flags", INSTALLED.values(), ids=[*INSTALLED])
def test_the_cluster_is_as_it_was_before(bare: World, flags: tuple[str, ...], applied: str) -> None:
    for team in ("team-a", "team-b"):
        create(bare, NAMESPACES, team)
    before = everything(bare)
    if applied == "by install":
        install(bare, *flags)
    else:
        printed = bare.run("install", "--image", IMAGE, "-o", "yaml", *flags).stdout
        kinds = {served.resource.kind: served.resource for served in bare.server.served}
        for each in yaml.safe_load_all(printed):
            bare.do(partial(bare.server.create, kinds[each["kind"]], each))
    assert len(everything(bare)) > len(before) + 8
    leave(bare)
    assert everything(bare) == before


def test_the_commands_are_printed_in_order_and_nothing_is_changed(bare: World) -> None:
    install(bare, "--with", "guard", "--watch-namespace", "default")
    create(bare, LEASES, CONTROLLER, HOME, spec={})
    before = everything(bare)
    admission, rbac = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
    roles = [CONTROLLER, f"{CONTROLLER}-guard", f"{CONTROLLER}-namespaced"]
    roles += [f"rollout-lws-{each}" for each in ("edit", "operate", "view")]
    definition = "customresourcedefinition.apiextensions.k8s.io"
    commands = [
        f"kubectl delete validatingwebhookconfiguration.{admission}/{GUARD}"
        f" mutatingwebhookconfiguration.{admission}/{GUARD}",
        f"kubectl delete deployment.apps/{CONTROLLER} -n {HOME} --cascade=foreground",
        f"kubectl delete poddisruptionbudget.policy/{CONTROLLER} service/{GUARD} serviceaccount/{CONTROLLER}"
        f" lease.coordination.k8s.io/{CONTROLLER} -n {HOME}",
        f"kubectl delete rolebinding.{rbac}/{CONTROLLER} -n default",
        f"kubectl delete rolebinding.{rbac}/{CONTROLLER}-leader-election role.{rbac}/{CONTROLLER}-leader-election"
        f" -n {HOME}",
        f"kubectl delete clusterrolebinding.{rbac}/{CONTROLLER} clusterrolebinding.{rbac}/{CONTROLLER}-guard"
        f" {' '.join(f'clusterrole.{rbac}/{each}' for each in roles)}",
        f"kubectl delete {definition}/batchreleases.rollouts.kruise.io {definition}/rollouts.rollouts.kruise.io",
        "# The last one takes all that is in it: look first.",
        f"kubectl delete namespace/{HOME}",
    ]
    for flag in ("--dry-run", "--yes"):
        result = bare.run("uninstall", flag)
        assert (result.exit_code, result.stdout.splitlines()[1:]) == (0, [f"  {each}" for each in commands])
    assert everything(bare) == before


def test_where_nothing_is_nothing_is_done(bare: World) -> None:
    before = everything(bare)
    assert uninstall(bare) == [NOTHING]
    assert bare.run("uninstall").stdout == f"{NOTHING}\n"
    assert everything(bare) == before


def test_a_lease_of_a_home_that_was_left_goes_too(bare: World) -> None:
    create(bare, NAMESPACES, "before")
    before = everything(bare)
    create(bare, LEASES, CONTROLLER, "before", spec={})
    assert leave(bare) == [f"kubectl delete lease.coordination.k8s.io/{CONTROLLER} -n before"]
    assert everything(bare) == before


def test_of_two_installations_none_is_chosen_but_by_name(bare: World) -> None:
    install(bare)
    create(bare, NAMESPACES, "another")
    deployment = everything(bare)[f"deployments.apps/{HOME}/{CONTROLLER}"]
    create(bare, DEPLOYMENTS, CONTROLLER, "another", labels=OURS, spec=deployment["spec"])
    before = everything(bare)
    told = refused(bare, "--yes")
    assert told.startswith(f"nothing was changed: deployment/{CONTROLLER} is in namespaces another and {HOME}, and")
    assert "name with -n the one that is to let go of the Rollouts" in told
    assert f"is installed in namespace another and {HOME}, not third" in refused(bare, "--yes", "-n", "third")
    assert everything(bare) == before
    for chosen in ("another", HOME):
        commands = printed(uninstall(bare, "-n", chosen))
        assert {
            f"kubectl delete deployment.apps/{CONTROLLER} -n {each} --cascade=foreground" for each in ("another", HOME)
        } <= {*commands}


def test_a_deployment_of_another_name_is_no_controller_and_stays(bare: World) -> None:
    install(bare)
    create(bare, NAMESPACES, "another")
    deployment = everything(bare)[f"deployments.apps/{HOME}/{CONTROLLER}"]
    for name in ("rollout-lws-board", f"{CONTROLLER}-board"):
        create(bare, DEPLOYMENTS, name, "another", labels=OURS, spec=deployment["spec"])
    leave(bare)
    names = {each["metadata"]["name"] for each in bare.do(lambda: bare.server.list(DEPLOYMENTS, "another"))}
    assert names == {"rollout-lws-board", f"{CONTROLLER}-board"}


@pytest.mark.parametrize("kind", ["LeaderWorkerSet", "StatefulSet", "pod"])
def test_a_namespace_in_which_others_serve_is_not_deleted(bare: World, kind: str) -> None:
    install(bare)
    if kind == "pod":
        spec = {"containers": [{"name": "c", "image": "registry"}]}
        create(bare, PODS, "registry", HOME, labels={"app": "registry"}, spec=spec)
    else:
        resource, made = {"StatefulSet": (STATEFUL_SETS, stateful_set())}.get(kind, (LEADER_WORKER_SETS, lws()))
        create(bare, resource, "chat", HOME, spec=made["spec"])
    leave(bare)
    assert f"namespaces//{HOME}" in everything(bare)


def test_what_a_dry_run_prints_is_for_when_no_rollout_is_left(bare: World) -> None:
    install(bare)
    body = {"metadata": {"name": "chat", "namespace": "default"}, "spec": rollout("chat")["spec"]}
    bare.do(partial(bare.server.create, rollouts(), body))
    told = bare.run("uninstall", "--dry-run").stdout
    assert "These commands delete the rest once no Rollout is left, in this order:" in told


def kruise() -> list[Object]:
    """Another product's definitions of our names."""
    found = [json.loads(json.dumps(each)) for each in crd.render()]
    for each in found:
        each["spec"]["names"].pop("shortNames", None)
    return found


def test_another_products_definitions_stay(bare: World) -> None:
    for each in kruise():
        bare.do(partial(bare.server.create, CUSTOM_RESOURCE_DEFINITIONS, each))
    before = everything(bare)
    install(bare, "--api-group", "rollouts.example.com")
    installed = everything(bare)
    told = refused(bare, "--yes", "--api-group", "rollouts.kruise.io")
    assert "CustomResourceDefinition rollouts.rollouts.kruise.io is another product's" in told
    assert everything(bare) == installed
    leave(bare)
    assert everything(bare) == before


def test_rollouts_of_another_group_of_ours_keep_the_controller(bare: World) -> None:
    for each in crd.render("rollouts.example.com"):
        bare.do(partial(bare.server.create, CUSTOM_RESOURCE_DEFINITIONS, each))
    install(bare)
    body = {"metadata": {"name": "chat", "namespace": "default"}, "spec": rollout("chat")["spec"]}
    bare.do(partial(bare.server.create, rollouts("rollouts.example.com"), body))
    told = refused(bare, "--yes", "--api-group", "rollouts.kruise.io", kind=RolloutLwsError)
    assert "rollout.rollouts.example.com/chat in namespace default is there, so the controller" in told
    assert told.endswith("without --api-group")
    leave(bare)


def test_what_others_have_made_in_our_name_stays(bare: World) -> None:
    create(bare, CLUSTER_ROLES, "approvers", labels=OURS, rules=[])
    before = everything(bare)
    install(bare)
    leave(bare)
    assert everything(bare) == before


@pytest.mark.parametrize("was_there", [True, False])
def test_another_home_goes_only_where_install_has_made_it(bare: World, was_there: bool) -> None:
    if was_there:
        create(bare, NAMESPACES, "monitoring")
    before = everything(bare)
    install(bare, "-n", "monitoring")
    told = refused(bare, "--yes", "-n", "elsewhere")
    assert "rollout-lws is installed in namespace monitoring, not elsewhere" in told
    commands = leave(bare)
    assert ("kubectl delete namespace/monitoring" in commands) != was_there
    assert everything(bare) == before


def test_what_helm_has_made_is_for_helm_to_take_away(bare: World) -> None:
    install(bare)
    helm = {
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "releases", "meta.helm.sh/release-namespace": HOME},
    }
    for plural in ("rollouts", "batchreleases"):
        kept = {"metadata": {**helm, "annotations": {**helm["annotations"], "helm.sh/resource-policy": "keep"}}}
        name = f"{plural}.rollouts.kruise.io"
        bare.do(partial(bare.server.patch, CUSTOM_RESOURCE_DEFINITIONS, "", name, kept))
    places = [(DEPLOYMENTS, HOME), (SERVICE_ACCOUNTS, HOME), (CLUSTER_ROLES, ""), (CLUSTER_ROLE_BINDINGS, "")]
    for resource, namespace in places:
        bare.do(partial(bare.server.patch, resource, namespace, CONTROLLER, {"metadata": helm}))
    before = everything(bare)
    first, *others = printed(uninstall(bare))
    assert first == f"helm uninstall releases -n {HOME}"
    assert not any(f"deployment.apps/{CONTROLLER}" in each for each in others)
    assert any("/rollouts.rollouts.kruise.io" in each for each in others)
    assert everything(bare) == before
    for resource, namespace in places:
        bare.do(partial(bare.server.delete, resource, namespace, CONTROLLER))
    leave(bare)
    assert not any("rollout-lws" in place or "kruise" in place for place in everything(bare))


def test_a_team_keeps_its_own_rights_in_a_namespace_that_was_watched(bare: World) -> None:
    create(bare, NAMESPACES, "team-a")
    create(bare, ROLE_BINDINGS, "rollout-lws-approvers", "team-a", roleRef={"kind": "ClusterRole", "name": "view"})
    install(bare, "--watch-namespace", "team-a")
    leave(bare)
    names = [each["metadata"]["name"] for each in bare.do(lambda: bare.server.list(ROLE_BINDINGS, ""))]
    assert names == ["rollout-lws-approvers"]
