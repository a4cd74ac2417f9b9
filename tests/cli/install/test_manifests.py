"""The objects of an installation are what an API server takes, and say of a controller what it really has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from rollout_lws.cli.controller import controller
from rollout_lws.cli.install import rbac
from rollout_lws.cli.install.manifests import arguments, objects
from rollout_lws.cli.install.options import EXTRAS, Installation
from rollout_lws.cli.main import program
from rollout_lws.errors import UsageError
from tests.docs.pages import blocks

Object = dict[str, Any]
IMAGE = "registry.example.com/team/rollout-lws:0.1.0"


def named(chosen: Installation, kind: str, name: str = "rollout-lws-controller") -> Object:
    (found,) = [each for each in objects(chosen) if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def rules(role: Object) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"image": "registry.example.com/"}, "--image 'registry.example.com/' is no image"),
        ({"image": "a b"}, "--image 'a b' is no image"),
        ({"image": "llama:"}, "--image 'llama:' is no image"),
        ({"namespace": "Team"}, "--namespace 'Team' is no namespace name"),
        ({"watch_namespaces": ("a_b",)}, "--watch-namespace 'a_b' is no namespace name"),
        ({"watch_namespaces": ("a", "a")}, "--watch-namespace names the same namespace twice"),
        ({"api_group": "rollouts"}, "--api-group 'rollouts' is no API group"),
        ({"replicas": -1}, "--replicas -1: use 2 or more, or 0 to install without starting it"),
        ({"notify": ("a/hook",)}, "--notify 'a/hook' is no name of a Secret: name one of namespace rollout-lws-system"),
        ({"notify": ("Hook",)}, "--notify: 'Hook'"),
        ({"notify": ("hook", "hook")}, "--notify has two destinations of the same name"),
        ({"cluster_name": "a b"}, "--cluster-name 'a b' is no name"),
        (
            {"custom_network_scripts": "a/b"},
            "--custom-network-scripts 'a/b' is no name of a ConfigMap: name one of namespace rollout-lws-system",
        ),
        ({"custom_network_scripts": "A"}, "--custom-network-scripts 'rollout-lws-system/A' is no ConfigMap"),
        ({"custom_network_kinds": ("rs.a.io",)}, "--custom-network-kind rs.a.io: no script would change it without"),
        (
            {"custom_network_scripts": "s", "custom_network_kinds": ("Route",)},
            "--custom-network-kind 'Route' is no kind: write plural.group, such as httpproxies.projectcontour.io",
        ),
        (
            {"custom_network_scripts": "s", "custom_network_kinds": ("rs.a.io", "rs.a.io")},
            "--custom-network-kind names the same kind twice",
        ),
    ],
)
def test_what_cannot_be_installed_is_told(wrong: Object, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        Installation(**{"image": IMAGE, **wrong})
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "image",
    ["llama", "llama:1", "localhost:5000/a/b", f"registry.k8s.io/a/b:v1@sha256:{'0' * 64}", f"a/b@sha256:{'f' * 64}"],
)
def test_images_are_named_as_container_runtimes_read_them(image: str) -> None:
    container = named(Installation(image), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == image


@pytest.mark.parametrize(
    "chosen",
    [
        Installation(IMAGE),
        Installation(IMAGE, "tools", 0, ("team-a", "team-b"), "rollouts.example.com"),
        Installation(IMAGE, notify=("slack", "hook.example.com"), cluster_name="prod"),
        Installation(IMAGE, custom_network_scripts="scripts"),
    ],
    ids=["as it comes", "all else", "notifications", "custom networks"],
)
def test_the_controller_understands_its_arguments(chosen: Installation) -> None:
    name, *given = arguments(chosen)
    assert name == controller.name
    parsed = controller.make_context(name, given, parent=click.Context(program)).params
    assert parsed["namespaces"] == chosen.watch_namespaces
    assert (parsed["api_group"] or "rollouts.kruise.io") == chosen.api_group
    ports = {each["name"]: each["containerPort"] for each in container(chosen)["ports"]}
    assert parsed["health_probe_bind_address"] == f":{ports['health']}"
    assert parsed["metrics_bind_address"] == f":{ports['metrics']}"
    assert parsed["notify"] == tuple(each["mountPath"] for each in container(chosen).get("volumeMounts", ()))
    assert parsed["cluster_name"] == chosen.cluster_name
    assert parsed["custom_network_scripts"] == chosen.custom_network_scripts


def container(chosen: Installation) -> Object:
    found: Object = named(chosen, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    return found


def test_each_secret_of_notifications_is_mounted_for_reading() -> None:
    chosen = Installation(IMAGE, notify=("slack", "hook.example.com"))
    pod = named(chosen, "Deployment")["spec"]["template"]["spec"]
    secrets = {each["name"]: each["secret"]["secretName"] for each in pod["volumes"]}
    mounts = {secrets[each["name"]]: each["mountPath"] for each in container(chosen)["volumeMounts"]}
    assert mounts == {each: f"/etc/rollout-lws/notify/{each}" for each in chosen.notify}
    assert all(each["readOnly"] for each in container(chosen)["volumeMounts"])
    assert "volumes" not in named(Installation(IMAGE), "Deployment")["spec"]["template"]["spec"]


def test_the_pod_fits_the_restricted_standard_that_its_namespace_asks_for() -> None:
    chosen = Installation(IMAGE)
    (namespace,) = [each for each in objects(chosen) if each["kind"] == "Namespace"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    pod = named(chosen, "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    context = container(chosen)["securityContext"]
    assert (context["allowPrivilegeEscalation"], context["capabilities"]) == (False, {"drop": ["ALL"]})
    assert context["readOnlyRootFilesystem"] is True
    assert {key for key in pod if key.startswith("host")} == set()


def test_a_namespace_that_others_may_live_in_is_never_among_what_is_deleted_together() -> None:
    assert [each for each in objects(Installation(IMAGE, "monitoring")) if each["kind"] == "Namespace"] == []


def test_of_two_controllers_one_leads_and_an_upgrade_ends_none_before_another_is_ready() -> None:
    spec = named(Installation(IMAGE), "Deployment")["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


@pytest.mark.parametrize("replicas", [0, 1, 2, 3])
def test_a_controller_always_looks_for_another_one(replicas: int) -> None:
    assert "--leader-elect" in arguments(Installation(IMAGE, replicas=replicas))


def test_the_lease_is_the_only_one_that_the_controller_may_change() -> None:
    found = named(Installation(IMAGE, "tools"), "Role", "rollout-lws-controller-leader-election")
    assert found["metadata"]["namespace"] == "tools"
    assert found["rules"] == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["get", "list", "watch", "patch"],
            "resourceNames": ["rollout-lws-controller"],
        },
    ]


def test_the_deployment_finds_its_own_pods() -> None:
    spec = named(Installation(IMAGE), "Deployment")["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_every_object_is_known_as_ours_and_refers_to_what_comes_before_it() -> None:
    seen: set[tuple[str, str]] = set()
    for each in objects(Installation(IMAGE, "tools", watch_namespaces=("team-a",), extras=EXTRAS)):
        assert each["metadata"]["labels"]["app.kubernetes.io/part-of"] == "rollout-lws"
        if "roleRef" in each:
            assert (each["roleRef"]["kind"], each["roleRef"]["name"]) in seen
            (subject,) = each["subjects"]
            assert (subject["kind"], subject["name"]) in seen and subject["namespace"] == "tools"
        if each["kind"] == "Deployment":
            assert ("ServiceAccount", each["spec"]["template"]["spec"]["serviceAccountName"]) in seen
        seen.add((each["kind"], each["metadata"]["name"]))


def test_the_documentation_shows_the_controllers_role() -> None:
    (page,) = [shown for text in blocks(Path("docs/run-on-a-cluster.md"), "yaml") if (shown := yaml.safe_load(text))]
    assert page == rbac.controller_role()
    assert rules(named(Installation(IMAGE), "ClusterRole")) == rules(page)


def test_where_some_namespaces_are_watched_nothing_of_a_namespace_is_granted_everywhere() -> None:
    chosen = Installation(IMAGE, watch_namespaces=("team-a", "team-b"))
    everywhere, there = (
        rules(named(chosen, "ClusterRole", f"rollout-lws-controller{end}")) for end in ("", "-namespaced")
    )
    assert {resource for _, resource, _ in everywhere} == {"customresourcedefinitions", "admissionchecks"}
    assert everywhere | there == rules(rbac.controller_role()) and not everywhere & there
    bound = [each for each in objects(chosen) if each["kind"] == "RoleBinding"]
    assert {(each["metadata"]["namespace"], each["roleRef"]["kind"], each["roleRef"]["name"]) for each in bound} == {
        ("team-a", "ClusterRole", "rollout-lws-controller-namespaced"),
        ("team-b", "ClusterRole", "rollout-lws-controller-namespaced"),
        ("rollout-lws-system", "Role", "rollout-lws-controller-leader-election"),
    }


def test_people_have_more_the_more_they_are_trusted_with() -> None:
    view, operate, edit = (
        rules(named(Installation(IMAGE), "ClusterRole", f"rollout-lws-{name}")) for name in ("view", "operate", "edit")
    )
    assert {verb for _, _, verb in view} == {"get", "list", "watch"}
    assert operate - view == {("rollouts.kruise.io", "rollouts/status", "patch")}
    assert operate < edit
    assert ("leaderworkerset.x-k8s.io", "leaderworkersets", "patch") in edit


def test_the_documentation_shows_the_roles_of_people() -> None:
    shown = [yaml.safe_load(text) for text in blocks(Path("docs/permissions.md"), "yaml")]
    assert shown == list(rbac.people_roles())


def test_with_another_group_every_right_is_about_it() -> None:
    for each in objects(Installation(IMAGE, api_group="rollouts.example.com")):
        groups = {group for rule in each.get("rules", ()) for group in rule["apiGroups"]}
        assert "rollouts.kruise.io" not in groups
    assert [
        each["metadata"]["name"] for each in objects(Installation(IMAGE, api_group="rollouts.example.com"))[1:3]
    ] == [
        "rollouts.rollouts.example.com",
        "batchreleases.rollouts.example.com",
    ]


@pytest.mark.parametrize("flag", [["--dry-run"], ["-o", "yaml"]], ids=str)
def test_manifests_are_printed_without_a_cluster(flag: list[str]) -> None:
    given = ["install", "--image", IMAGE, "-n", "tools", "--watch-namespace", "team-a", *flag]
    given += ["--replicas", "3", "--with", "network-policy", "--with", "pod-monitor"]
    given += ["--notify", "slack", "--cluster-name", "prod"]
    given += ["--custom-network-scripts", "scripts", "--custom-network-kind", "rs.a.io"]
    result = CliRunner().invoke(program, ["--kubeconfig", "/nowhere", *given])
    assert (result.exit_code, result.stderr) == (0, "")
    extras = ("network-policy", "pod-monitor")
    told = {
        "notify": ("slack",),
        "cluster_name": "prod",
        "custom_network_scripts": "scripts",
        "custom_network_kinds": ("rs.a.io",),
    }
    chosen = Installation(IMAGE, "tools", 3, watch_namespaces=("team-a",), extras=extras, **told)
    assert tuple(yaml.safe_load_all(result.stdout)) == objects(chosen)


def test_an_unfit_flag_is_a_matter_of_usage() -> None:
    result = CliRunner().invoke(program, ["install", "--image", IMAGE, "--replicas", "-1", "--dry-run"])
    assert result.exit_code == 2
    assert "use 2 or more" in result.stderr


def test_the_image_has_to_be_named() -> None:
    result = CliRunner().invoke(program, ["install", "--dry-run"])
    assert result.exit_code == 2
    assert "Missing option '--image'" in result.stderr


@pytest.mark.parametrize("page", ["leader-election.md", "run-on-a-cluster.md"])
def test_pages_name_the_rights_to_the_lease(page: str) -> None:
    made, own = (rule.rendered()["verbs"] for rule in rbac.leader_election_rules())
    text = " ".join((Path(__file__).parents[3] / "docs" / page).read_text().split())
    assert made == ["create"] and "`create` on" in text
    *others, last = (f"`{verb}`" for verb in own)
    assert f"{', '.join(others)} and {last}" in text
