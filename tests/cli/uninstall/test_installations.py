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
from rollout_lws.errors import ApiError, RolloutLwsError, UsageError
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    ROLE_BINDINGS,
    SECRETS,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from rollout_lws.sandbox.faults import Effect
from rollout_lws.sandbox.store import Event
from tests.cli.conftest import World
from tests.cli.uninstall.held import lws

Object = dict[str, Any]
IMAGE = "registry.example.com/rollout-lws:0.1.0"
HOME, CONTROLLER, GUARD = "rollout-lws-system", "rollout-lws-controller", "rollout-lws-guard"
NOTHING = "nothing of rollout-lws is left on this cluster"
NOTHING_ELSE = "nothing else of rollout-lws is left on this cluster"
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


def collecting(world: World) -> None:
    """As the garbage collector does where nothing is owned: lets go of what is deleted in the foreground."""

    def collect(event: Event) -> None:
        meta = (event.object or {}).get("metadata") or {}
        if event.resource == DEPLOYMENTS and event.type == "MODIFIED" and "deletionTimestamp" in meta:
            body = {"metadata": {"finalizers": None}}
            place = (DEPLOYMENTS, meta["namespace"], meta["name"])
            world._loop.call_soon(partial(world.server.patch, *place, body))

    world.do(lambda: world.server.store.subscribe(collect))


def install(world: World, *flags: str) -> None:
    collecting(world)
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
        collecting(bare)
        printed = bare.run("install", "--image", IMAGE, "-o", "yaml", *flags).stdout
        kinds = {served.resource.kind: served.resource for served in bare.server.served}
        for each in yaml.safe_load_all(printed):
            bare.do(partial(bare.server.create, kinds[each["kind"]], each))
    assert len(everything(bare)) > len(before) + 8
    told = uninstall(bare)
    assert told[-1] == NOTHING
    assert everything(bare) == before


def test_a_dry_run_tells_it_all_in_order_and_changes_nothing(bare: World) -> None:
    install(bare)
    before = everything(bare)
    result = bare.run("uninstall", "--dry-run")
    assert (result.exit_code, everything(bare)) == (0, before)
    told = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("  ")]
    assert told[:2] == [f"poddisruptionbudget.policy/{CONTROLLER}", f"deployment.apps/{CONTROLLER}"]
    assert told[-3:] == [
        "customresourcedefinition.apiextensions.k8s.io/batchreleases.rollouts.kruise.io",
        "customresourcedefinition.apiextensions.k8s.io/rollouts.rollouts.kruise.io",
        f"namespace/{HOME}",
    ]
    done = [line.split()[0] for line in uninstall(bare) if line.endswith(" deleted")]
    assert done == told


def test_nobody_is_asked_any_more_before_those_end_who_answer(bare: World) -> None:
    install(bare, "--with", "guard", "--watch-namespace", "default")
    done = [line.split()[0] for line in uninstall(bare) if line.endswith(" deleted")]
    asking = [f"{each}webhookconfiguration.admissionregistration.k8s.io/{GUARD}" for each in ("validating", "mutating")]
    assert done[:2] == asking
    assert {f"service/{GUARD}", f"clusterrole.rbac.authorization.k8s.io/{CONTROLLER}-guard"} < {*done}


@pytest.mark.parametrize("runs", [False, True], ids=["nobody answers", "a controller answers"])
def test_what_is_held_is_opened_where_no_guard_answers(bare: World, runs: bool) -> None:
    """With failurePolicy Fail an API server would refuse to open what a Rollout of before has left held."""
    install(bare, "--with", "guard", "--guard-failure-policy", "Fail")
    if runs:
        status = {"status": {"availableReplicas": 2}}
        bare.do(lambda: bare.server.patch(DEPLOYMENTS, HOME, CONTROLLER, status, subresource="status"))
    held = lws("chat", by="uid-gone")
    del held["metadata"]["resourceVersion"]
    bare.do(partial(bare.server.create, LEADER_WORKER_SETS, held))
    happened: list[str] = []

    def note(event: Event) -> None:
        if event.resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS) and event.type == "DELETED":
            happened.append("webhook")
        if event.resource == LEADER_WORKER_SETS and event.type == "MODIFIED":
            happened.append("opened")

    bare.do(lambda: bare.server.store.subscribe(note))
    assert uninstall(bare)[-1] == NOTHING
    assert happened == (["opened", "webhook", "webhook"] if runs else ["webhook", "webhook", "opened"])


def test_where_nothing_is_nothing_is_done(bare: World) -> None:
    before = everything(bare)
    assert uninstall(bare) == [NOTHING]
    assert bare.run("uninstall").stdout == f"{NOTHING}\n"
    assert everything(bare) == before


def test_a_kind_that_goes_while_it_is_looked_at_is_no_obstacle(bare: World) -> None:
    before = everything(bare)
    install(bare)
    gone = Effect(refusal=ApiError(404, "NotFound", "the server could not find the requested resource"))
    bare.do(lambda: bare.http.gate.faults.add(gone, "list", "resourcequotas", count=None))
    uninstall(bare)
    bare.do(bare.http.gate.faults.rules.clear)
    assert everything(bare) == before


def test_nobody_is_asked_where_there_is_nobody(bare: World) -> None:
    install(bare)
    before = everything(bare)
    assert "nothing was changed, and nobody is here to be asked: if all of this is meant, say --yes" in refused(bare)
    assert everything(bare) == before


def test_the_budget_and_the_lease_go_as_well(bare: World) -> None:
    before = everything(bare)
    install(bare)
    create(bare, LEASES, CONTROLLER, HOME, spec={})
    told = uninstall(bare)
    assert f"poddisruptionbudget.policy/{CONTROLLER} in namespace {HOME} deleted" in told
    assert f"lease.coordination.k8s.io/{CONTROLLER} in namespace {HOME} deleted" in told
    assert everything(bare) == before


def test_a_lease_of_a_home_that_was_left_goes_too(bare: World) -> None:
    create(bare, NAMESPACES, "before")
    before = everything(bare)
    create(bare, LEASES, CONTROLLER, "before", spec={})
    assert uninstall(bare)[-1] == NOTHING
    assert everything(bare) == before


def test_a_lease_that_is_made_anew_is_told_with_its_holder(bare: World) -> None:
    install(bare)
    create(bare, NAMESPACES, "before")
    lease = {"metadata": {"name": CONTROLLER, "namespace": "before"}, "spec": {"holderIdentity": "laptop"}}

    def renews(event: Event) -> None:
        if event.type == "DELETED" and event.object["metadata"]["name"] == "rollouts.rollouts.kruise.io":
            bare._loop.call_soon(partial(bare.server.create, LEASES, lease))

    bare.do(lambda: bare.server.store.subscribe(renews))
    result = bare.run("uninstall", "--yes")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == (
        "left: lease of controllers, held by laptop: end that controller, then:"
        f" kubectl delete leases.coordination.k8s.io {CONTROLLER} -n before"
    )


def test_rights_stay_until_the_controller_has_ended(bare: World) -> None:
    assert bare.run("install", "--image", IMAGE, "--timeout", "0").exit_code == 0
    told = refused(bare, "--yes", "--timeout", "1s", kind=RolloutLwsError)
    assert f"deployment.apps/{CONTROLLER} in namespace {HOME} is being deleted, and not gone after 1.0s" in told
    left = everything(bare)
    assert left[f"deployments.apps/{HOME}/{CONTROLLER}"]["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert f"clusterrolebindings.rbac.authorization.k8s.io//{CONTROLLER}" in left


def test_a_lease_that_is_made_anew_at_home_keeps_no_namespace(bare: World) -> None:
    before = everything(bare)
    install(bare)
    lease = {"metadata": {"name": CONTROLLER, "namespace": HOME}, "spec": {"holderIdentity": "laptop"}}

    def renews(event: Event) -> None:
        if event.type == "DELETED" and event.object["metadata"]["name"] == "rollouts.rollouts.kruise.io":
            bare._loop.call_soon(partial(bare.server.create, LEASES, lease))

    bare.do(lambda: bare.server.store.subscribe(renews))
    assert uninstall(bare)[-1] == NOTHING
    assert everything(bare) == before


def test_accounts_and_namespaces_with_our_label_are_not_taken_for_its_home(bare: World) -> None:
    create(bare, NAMESPACES, "another", labels=OURS)
    create(bare, SERVICE_ACCOUNTS, "another", "another", labels=OURS)
    before = everything(bare)
    bare.do(partial(bare.server.create, NAMESPACES, {"metadata": {"name": HOME, "labels": OURS}}))
    assert f"namespace/{HOME} deleted" in uninstall(bare)
    assert everything(bare) == before


def test_of_two_installations_none_is_chosen(bare: World) -> None:
    install(bare)
    create(bare, NAMESPACES, "another")
    deployment = everything(bare)[f"deployments.apps/{HOME}/{CONTROLLER}"]
    create(bare, DEPLOYMENTS, CONTROLLER, "another", labels=OURS, spec=deployment["spec"])
    before = everything(bare)
    assert f"deployment/{CONTROLLER} is in namespaces another and {HOME}" in refused(bare, "--yes")
    assert everything(bare) == before


def test_a_deployment_of_another_name_is_no_controller_and_stays(bare: World) -> None:
    install(bare)
    create(bare, NAMESPACES, "another")
    deployment = everything(bare)[f"deployments.apps/{HOME}/{CONTROLLER}"]
    create(bare, DEPLOYMENTS, "rollout-lws-board", "another", labels=OURS, spec=deployment["spec"])
    told = uninstall(bare)
    assert (f"namespace/{HOME} deleted" in told, told[-1]) == (True, NOTHING_ELSE)
    assert "deployments.apps/another/rollout-lws-board" in everything(bare)


def test_what_git_keeps_is_warned_of(bare: World) -> None:
    install(bare)
    kept = {"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "infra:apps/Deployment:x/y"}}}
    bare.do(partial(bare.server.patch, DEPLOYMENTS, HOME, CONTROLLER, kept))
    name = "rollouts.rollouts.kruise.io"
    bare.do(partial(bare.server.patch, CUSTOM_RESOURCE_DEFINITIONS, "", name, kept))
    told = bare.run("uninstall", "--dry-run").stderr.splitlines()
    assert [line.partition(" is kept by ")[0] for line in told] == [
        f"warning: deployment.apps/{CONTROLLER} in namespace {HOME}",
        f"warning: customresourcedefinition.apiextensions.k8s.io/{name}",
    ]
    assert "Argo CD Application infra, which may make it anew: take it out of Git first" in told[0]


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
    assert uninstall(bare)[-1] == NOTHING
    assert everything(bare) == before
    assert uninstall(bare) == [NOTHING]


def test_what_others_have_made_in_our_name_stays(bare: World) -> None:
    create(bare, CLUSTER_ROLES, "approvers", labels=OURS, rules=[])
    before = everything(bare)
    install(bare)
    told = uninstall(bare)
    stays = "clusterrole.rbac.authorization.k8s.io/approvers: it has our label, and no name that an installation gives"
    assert f"  {stays}" in told
    assert everything(bare) == before


def test_a_namespace_with_something_of_others_stays_until_that_is_meant(bare: World) -> None:
    before = everything(bare)
    install(bare)
    create(bare, SECRETS, "registry", HOME, labels=OURS)
    told = uninstall(bare)
    assert f"  namespace/{HOME}: secret/registry in it; --delete-namespace takes it away with that" in told
    assert told[-1] == NOTHING_ELSE
    assert everything(bare).keys() - before.keys() == {f"namespaces//{HOME}", f"secrets/{HOME}/registry"}
    again = uninstall(bare, "--delete-namespace")
    told_of = again.index(f"  namespace/{HOME} with")
    assert again[told_of + 1] == "    secret/registry"
    assert f"namespace/{HOME} deleted" in again
    assert everything(bare) == before


def test_a_namespace_in_which_others_serve_never_goes(bare: World) -> None:
    install(bare)
    bare.do(partial(bare.server.create, LEADER_WORKER_SETS, in_home(lws("chat"))))
    before = everything(bare)
    told = refused(bare, "--yes", "--delete-namespace")
    assert f"--delete-namespace, but namespace {HOME} stays: leaderworkerset/chat in it, which would end" in told
    assert everything(bare) == before
    assert uninstall(bare)[-1] == NOTHING_ELSE
    left = everything(bare)
    assert f"leaderworkersets.leaderworkerset.x-k8s.io/{HOME}/chat" in left and f"namespaces//{HOME}" in left


def test_a_namespace_that_cannot_be_read_never_goes(bare: World) -> None:
    install(bare)
    effect = Effect(refusal=ApiError(403, "Forbidden", "secrets are secret"))
    bare.do(lambda: bare.http.gate.faults.add(effect, "list", "secrets"))
    told = refused(bare, "--yes", "--delete-namespace")
    assert "stays: what else is in it could not be read" in told


def test_who_moves_in_meanwhile_keeps_the_namespace(bare: World) -> None:
    install(bare)
    moved = in_home(lws("chat"))

    def moves_in(event: Event) -> None:
        if event.type == "DELETED" and event.object["metadata"]["name"] == "rollouts.rollouts.kruise.io":
            bare._loop.call_soon(partial(bare.server.create, LEADER_WORKER_SETS, moved))

    bare.do(lambda: bare.server.store.subscribe(moves_in))
    told = refused(bare, "--yes", kind=RolloutLwsError)
    assert f"namespace/{HOME} stays, all else is gone: leaderworkerset/chat came into it meanwhile" in told
    assert f"namespaces//{HOME}" in everything(bare)


def in_home(made: Object) -> Object:
    kept = {key: value for key, value in made["metadata"].items() if key not in ("uid", "resourceVersion")}
    return {**made, "metadata": {**kept, "namespace": HOME}}


@pytest.mark.parametrize("was_there", [True, pytest.param(False, marks=pytest.mark.long)])
def test_another_home_goes_only_where_install_has_made_it_and_that_is_meant(bare: World, was_there: bool) -> None:
    if was_there:
        create(bare, NAMESPACES, "monitoring")
    before = everything(bare)
    install(bare, "-n", "monitoring")
    installed = everything(bare)
    told = refused(bare, "--yes", "-n", "elsewhere")
    assert "rollout-lws is installed in namespace monitoring, not elsewhere" in told
    if was_there:
        told = refused(bare, "--yes", "--delete-namespace")
        assert "namespace monitoring stays: it was there before rollout-lws was installed" in told
        assert everything(bare) == installed
        assert uninstall(bare, "-n", "monitoring")[-1] == NOTHING_ELSE
    else:
        why = "--delete-namespace takes it away"
        assert f"  namespace/monitoring: {why}" in bare.run("uninstall", "--dry-run").stdout
        assert uninstall(bare, "--delete-namespace")[-1] == NOTHING
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
    result = bare.run("uninstall", "--yes")
    assert result.exit_code == 1
    assert f"Helm takes away what it has made: helm uninstall releases -n {HOME}, then this command" in result.stdout
    assert f"  namespace/{HOME}: until Helm's release is gone" in result.stdout.splitlines()
    assert f"until it takes it away: helm uninstall releases -n {HOME}, then run this command again" in str(
        result.exception
    )
    assert everything(bare) == before
    for resource, namespace in places:
        bare.do(partial(bare.server.delete, resource, namespace, CONTROLLER))
    assert uninstall(bare)[-1] == NOTHING
    assert not any("rollout-lws" in place or "kruise" in place for place in everything(bare))


def test_what_was_stopped_in_the_middle_goes_on(bare: World) -> None:
    before = everything(bare)
    install(bare)
    effect = Effect(refusal=ApiError(500, "InternalError", "etcd is slow"))
    bare.do(lambda: bare.http.gate.faults.add(effect, "delete", "clusterroles"))
    assert "etcd is slow" in refused(bare, "--yes", kind=ApiError)
    left = everything(bare)
    assert f"deployments.apps/{HOME}/{CONTROLLER}" not in left and f"namespaces//{HOME}" in left
    assert uninstall(bare)[-1] == NOTHING
    assert everything(bare) == before


def test_a_team_keeps_its_own_rights_in_a_namespace_that_was_watched(bare: World) -> None:
    create(bare, NAMESPACES, "team-a")
    create(bare, ROLE_BINDINGS, "rollout-lws-approvers", "team-a", roleRef={"kind": "ClusterRole", "name": "view"})
    install(bare, "--watch-namespace", "team-a")
    uninstall(bare)
    names = [each["metadata"]["name"] for each in bare.do(lambda: bare.server.list(ROLE_BINDINGS, ""))]
    assert names == ["rollout-lws-approvers"]
