"""An installation on an API server: made, made again, changed; refused where somebody else's would be replaced."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from rollout_lws.api import crd
from rollout_lws.cli.install.applying import MANAGER, RESOURCES
from rollout_lws.cli.install.manifests import objects
from rollout_lws.cli.install.options import Installation
from rollout_lws.cli.install.ownership import Found, warnings
from rollout_lws.errors import ApiError, RolloutLwsError, UsageError
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    Resource,
)
from rollout_lws.sandbox.faults import Effect
from rollout_lws.sandbox.patching.patches import APPLY_PATCH
from tests.cli.conftest import World

pytestmark = pytest.mark.rare(3)

Object = dict[str, Any]
IMAGE = "registry.example.com/rollout-lws:0.1.0"
HOME, NAME = "rollout-lws-system", "rollout-lws-controller"


def install(world: World, *more: str, image: str = IMAGE) -> list[str]:
    """The lines that are told."""
    result = world.run("install", "--image", image, "--timeout", "0", *more)
    assert result.exit_code == 0, result.exception
    return result.stdout.splitlines()


def run(world: World) -> None:
    """The Deployment's controllers run, in its newest form and no other."""
    found = there(world, DEPLOYMENTS, NAME, HOME)
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), found["spec"]["replicas"])
    status = {"status": {"observedGeneration": found["metadata"]["generation"], **counts}}
    world.do(lambda: world.server.patch(DEPLOYMENTS, HOME, NAME, status, subresource="status"))


def upgrade(world: World, *more: str) -> list[str]:
    """The lines that are told, both times: by the same command again what ran before has no rights any more."""
    told = install(world, *more)
    run(world)
    return [*told, *install(world, *more)]


def create_namespaces(world: World, *names: str) -> None:
    for name in names:
        world.do(partial(world.server.create, NAMESPACES, {"metadata": {"name": name}}))


def refused(world: World, *more: str) -> str:
    result = world.run("install", "--image", IMAGE, "--timeout", "0", *more)
    assert isinstance(result.exception, UsageError) and result.stdout == ""
    return str(result.exception)


def there(world: World, resource: Resource, name: str, namespace: str = "") -> Object:
    found: Object = world.do(lambda: world.server.get(resource, namespace, name))
    return found


def all_names(world: World, resource: Resource) -> set[str]:
    return {each["metadata"]["name"] for each in world.do(lambda: world.server.list(resource, ""))}


def contains(found: Any, wanted: Any) -> bool:
    """Whether everything of ``wanted`` is in ``found``; an API server adds defaults."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(key in found and contains(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(contains, found, wanted))
    return bool(found == wanted)


def test_everything_is_made_and_told_and_made_again_nothing_changes(bare: World) -> None:
    told = install(bare)
    assert all(line.endswith(" created") for line in told)
    assert "deployment.apps/rollout-lws-controller created" in told
    assert "customresourcedefinition.apiextensions.k8s.io/rollouts.rollouts.kruise.io created" in told
    chosen = objects(Installation(IMAGE))
    assert len(told) == len(chosen)
    for each in chosen:
        metadata = each["metadata"]
        found = there(bare, RESOURCES[each["kind"]], metadata["name"], metadata.get("namespace", ""))
        assert contains(found, each), found
        assert {entry["manager"] for entry in found["metadata"]["managedFields"]} == {MANAGER}
    again = install(bare)
    assert [line.rpartition(" ")[0] for line in again] == [line.rpartition(" ")[0] for line in told]
    assert {line.rpartition(" ")[2] for line in again} == {"unchanged"}


def test_another_image_is_an_upgrade_of_the_deployment_alone(bare: World) -> None:
    install(bare)
    changed = [
        line for line in install(bare, image="registry.example.com/rollout-lws:0.2.0") if "unchanged" not in line
    ]
    assert changed == ["deployment.apps/rollout-lws-controller configured"]
    (container,) = there(bare, DEPLOYMENTS, NAME, HOME)["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/rollout-lws:0.2.0"


def test_what_an_older_version_applied_goes_and_what_others_added_stays(bare: World) -> None:
    older = next(each for each in objects(Installation(IMAGE)) if each["metadata"]["name"] == NAME and "rules" in each)
    more = {**older, "rules": [*older["rules"], {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}
    bare.do(lambda: bare.server.patch(CLUSTER_ROLES, "", NAME, more, APPLY_PATCH, field_manager=MANAGER, force=True))
    install(bare)
    assert there(bare, CLUSTER_ROLES, NAME)["rules"] == older["rules"]
    toleration = {"key": "infra", "operator": "Exists"}
    body = {"metadata": {"labels": {"team": "infra"}}, "spec": {"template": {"spec": {"tolerations": [toleration]}}}}
    bare.do(lambda: bare.server.patch(DEPLOYMENTS, HOME, NAME, body))
    install(bare, image="registry.example.com/rollout-lws:0.2.0")
    found = there(bare, DEPLOYMENTS, NAME, HOME)
    assert found["metadata"]["labels"]["team"] == "infra"
    assert found["spec"]["template"]["spec"]["tolerations"] == [toleration]


def test_what_somebody_else_has_set_of_ours_is_set_back(bare: World) -> None:
    install(bare)
    bare.do(lambda: bare.server.patch(DEPLOYMENTS, HOME, NAME, {"spec": {"replicas": 3}}))
    assert "deployment.apps/rollout-lws-controller configured" in install(bare)
    assert there(bare, DEPLOYMENTS, NAME, HOME)["spec"]["replicas"] == 2


def test_definitions_that_plain_manifests_installed_are_ours(world: World) -> None:
    """`kubectl apply -f crds/` leaves no label on them; the short name of Rollouts is ours."""
    told = install(world)
    assert "customresourcedefinition.apiextensions.k8s.io/rollouts.rollouts.kruise.io configured" in told
    assert "customresourcedefinition.apiextensions.k8s.io/batchreleases.rollouts.kruise.io configured" in told


def kruise(plural: str) -> Object:
    """Another product's definition of the same name."""
    (ours,) = [each for each in crd.render() if each["spec"]["names"]["plural"] == plural]
    names = {key: value for key, value in ours["spec"]["names"].items() if key != "shortNames"}
    return {**ours, "spec": {**ours["spec"], "names": names}}


@pytest.mark.parametrize("theirs", [("rollouts", "batchreleases"), ("rollouts",), ("batchreleases",)], ids=" ".join)
def test_another_products_definitions_are_left_alone(bare: World, theirs: tuple[str, ...]) -> None:
    for plural in theirs:
        bare.do(lambda plural=plural: bare.server.create(CUSTOM_RESOURCE_DEFINITIONS, kruise(plural)))  # type: ignore[misc]
    before = [there(bare, CUSTOM_RESOURCE_DEFINITIONS, f"{plural}.rollouts.kruise.io") for plural in theirs]
    told = refused(bare)
    assert told.startswith("nothing was changed: CustomResourceDefinition")
    assert all(f"{plural}.rollouts.kruise.io" in told for plural in theirs)
    assert "--api-group rollouts.example.com" in told
    assert [there(bare, CUSTOM_RESOURCE_DEFINITIONS, f"{plural}.rollouts.kruise.io") for plural in theirs] == before
    assert HOME not in all_names(bare, NAMESPACES)
    told_elsewhere = install(bare, "--api-group", "rollouts.example.com")
    assert "customresourcedefinition.apiextensions.k8s.io/rollouts.rollouts.example.com created" in told_elsewhere
    assert [there(bare, CUSTOM_RESOURCE_DEFINITIONS, f"{plural}.rollouts.kruise.io") for plural in theirs] == before


def test_a_cluster_has_one_installation(bare: World) -> None:
    install(bare)
    told = refused(bare, "-n", "another")
    assert f"gives rights to ServiceAccount {HOME} {NAME}, which would lose them" in told
    assert "another" not in all_names(bare, NAMESPACES)


ANN = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}
OWN = {"kind": "ServiceAccount", "name": NAME, "namespace": HOME}


@pytest.mark.parametrize(("subjects", "fits"), [([ANN], False), ([OWN, ANN], False), ([OWN], True), ([], True)])
def test_a_binding_that_was_made_by_hand_keeps_those_whom_it_names(
    bare: World, subjects: list[Object], fits: bool
) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
    by_hand = {"metadata": {"name": NAME}, "roleRef": role, "subjects": subjects}
    bare.do(lambda: bare.server.create(CLUSTER_ROLE_BINDINGS, by_hand))
    if fits:
        install(bare)
        return
    assert "gives rights to User ann, which would lose them" in refused(bare)
    assert there(bare, CLUSTER_ROLE_BINDINGS, NAME)["subjects"] == subjects


def test_a_namespace_that_was_there_before_is_left_as_it_is(bare: World) -> None:
    bare.do(lambda: bare.server.create(NAMESPACES, {"metadata": {"name": HOME}}))
    before = there(bare, NAMESPACES, HOME)
    assert f"namespace/{HOME} exists, left as it is" in install(bare)
    assert there(bare, NAMESPACES, HOME) == before


def test_another_namespace_is_made_where_it_is_missing_and_held_to_no_standard(bare: World) -> None:
    assert install(bare, "-n", "monitoring")[0] == "namespace/monitoring created"
    labels = there(bare, NAMESPACES, "monitoring")["metadata"]["labels"]
    assert not any(key.startswith("pod-security") for key in labels)
    assert {line.rpartition(" ")[2] for line in install(bare, "-n", "monitoring")} == {"unchanged"}


def test_rights_follow_the_namespaces_that_are_watched(bare: World) -> None:
    create_namespaces(bare, "team-a", "team-b")
    install(bare, "--watch-namespace", "team-a", "--watch-namespace", "team-b")
    assert watched(bare) == {"team-a", "team-b"}
    told = upgrade(bare, "--watch-namespace", "team-b")
    gone = "rolebinding.rbac.authorization.k8s.io/rollout-lws-controller in namespace team-a deleted: nothing needs it"
    assert gone in told
    assert watched(bare) == {"team-b"}
    granted = there(bare, CLUSTER_ROLES, NAME)["rules"]
    assert not any("leaderworkersets" in rule["resources"] for rule in granted)
    upgrade(bare)
    assert watched(bare) == set()
    assert there(bare, CLUSTER_ROLES, NAME)["rules"] != granted
    assert f"{NAME}-namespaced" not in all_names(bare, CLUSTER_ROLES)


def watched(world: World) -> set[str]:
    """Where the controller has rights, besides those to its Lease."""
    bound = world.do(lambda: world.server.list(ROLE_BINDINGS, ""))
    return {each["metadata"]["namespace"] for each in bound if each["metadata"]["name"] == NAME}


def test_its_own_namespace_may_be_watched_and_left_and_the_lease_stays_its_own(bare: World) -> None:
    install(bare)
    upgrade(bare, "--watch-namespace", HOME)
    assert watched(bare) == {HOME}
    upgrade(bare)
    assert watched(bare) == set()
    assert there(bare, ROLE_BINDINGS, "rollout-lws-controller-leader-election", HOME)["roleRef"]["kind"] == "Role"


def test_a_namespace_to_watch_has_to_exist(bare: World) -> None:
    create_namespaces(bare, "team-b")
    names = [flag for name in ("team-c", "team-b", "team-a") for flag in ("--watch-namespace", name)]
    assert "namespace team-c and team-a of --watch-namespace does not exist" in refused(bare, *names)


def test_a_cluster_without_leader_worker_set_is_warned_of(bare: World) -> None:
    bare.do(lambda: bare.server.delete(CUSTOM_RESOURCE_DEFINITIONS, "", "leaderworkersets.leaderworkerset.x-k8s.io"))
    result = bare.run("install", "--image", IMAGE, "--timeout", "0")
    assert result.exit_code == 0
    assert result.stderr == ("warning: LeaderWorkerSet is not installed: the controller waits for it (0.9 or newer)\n")


@pytest.mark.parametrize(
    ("effect", "told"),
    [
        (
            Effect(refusal=ApiError(403, "Forbidden", 'clusterroles is forbidden: User "ann" cannot patch')),
            "cannot patch",
        ),
        (Effect(refusal=ApiError(503, "ServiceUnavailable", "busy")), "busy"),
        (Effect(lost=True), "no answer from"),
    ],
    ids=["forbidden", "unavailable", "cut"],
)
def test_an_installation_that_fails_in_the_middle_says_how_far_it_got_and_goes_on_from_there(
    bare: World, effect: Effect, told: str
) -> None:
    count = len(objects(Installation(IMAGE)))
    bare.do(lambda: bare.http.gate.faults.add(effect, "patch", "clusterroles"))
    result = bare.run("install", "--image", IMAGE, "--timeout", "0", "--request-timeout", "1s")
    assert isinstance(result.exception, RolloutLwsError)
    assert "clusterrole.rbac.authorization.k8s.io/rollout-lws-controller: " in str(result.exception)
    assert told in str(result.exception)
    assert f"; 4 of {count} writes are done and stay" in str(result.exception)
    assert len(result.stdout.splitlines()) == 4
    words = [line.rpartition(" ")[2] for line in install(bare)]
    assert words == ["unchanged"] * 4 + ["created"] * (count - 4)


def test_an_upgrade_keeps_its_api_group(bare: World) -> None:
    install(bare, "--api-group", "rollouts.example.com")
    told = refused(bare)
    assert "takes care of API group rollouts.example.com: upgrade it with --api-group rollouts.example.com" in told
    assert {line.rpartition(" ")[2] for line in install(bare, "--api-group", "rollouts.example.com")} == {"unchanged"}


def test_another_scope_than_before_is_warned_of(bare: World) -> None:
    create_namespaces(bare, "team-a")
    install(bare, "--watch-namespace", "team-a")
    result = bare.run("install", "--image", IMAGE, "--timeout", "0")
    assert result.stderr.splitlines()[0] == (
        "warning: the controller watched namespace team-a until now, and watches all namespaces from now on"
    )


@pytest.mark.parametrize(("status", "warned"), [({}, True), ({"observedGeneration": {"type": "integer"}}, False)])
def test_a_leader_worker_set_that_is_too_old_is_warned_of(status: Object, warned: bool) -> None:
    schema = {"openAPIV3Schema": {"properties": {"status": {"properties": status}}}}
    name = "leaderworkersets.leaderworkerset.x-k8s.io"
    definition = {"metadata": {"name": name}, "spec": {"versions": [{"name": "v1", "schema": schema}]}}
    found = Found({name: definition})
    assert bool(warnings(Installation(IMAGE), found)) == warned


def test_without_a_guard_its_webhooks_go_before_what_answers_them(bare: World) -> None:
    install(bare, "--with", "guard")
    gone = [line.split()[0] for line in upgrade(bare) if line.endswith("deleted: nothing needs it")]
    webhooks = [f"{each}webhookconfiguration.admissionregistration.k8s.io" for each in ("mutating", "validating")]
    assert gone == [
        *(f"{each}/rollout-lws-guard" for each in webhooks),
        "service/rollout-lws-guard",
        f"clusterrolebinding.rbac.authorization.k8s.io/{NAME}-guard",
        f"clusterrole.rbac.authorization.k8s.io/{NAME}-guard",
    ]
    arguments = there(bare, DEPLOYMENTS, NAME, HOME)["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--guard" not in arguments


def test_without_scripts_the_right_to_read_them_goes(bare: World) -> None:
    install(bare, "--custom-network-scripts", "lua", "--custom-network-kind", "rs.a.io")
    assert f"{NAME}-scripts" in all_names(bare, ROLES)
    gone = [line.split()[0] for line in upgrade(bare) if line.endswith("deleted: nothing needs it")]
    assert gone == [f"{kind}.rbac.authorization.k8s.io/{NAME}-scripts" for kind in ("rolebinding", "role")]
    assert not [each for each in there(bare, CLUSTER_ROLES, NAME)["rules"] if each["apiGroups"] == ["a.io"]]
