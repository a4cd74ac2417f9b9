"""What an installation can have besides: whom it finds, and what it lets through."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import celpy
import pytest
import yaml

from rollout_lws.admission.review import Rule
from rollout_lws.cli.install.manifests import NAMESPACED, objects
from rollout_lws.cli.install.options import EXTRAS, Installation
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.errors import UsageError
from tests.cli.install.test_manifests import IMAGE, container, named

Object = dict[str, Any]


def every(chosen: Installation) -> set[tuple[str, str]]:
    return {(each["kind"], each["metadata"]["name"]) for each in objects(chosen)}


@pytest.mark.parametrize(
    ("extra", "brought"),
    [
        ("network-policy", {("NetworkPolicy", "rollout-lws-controller")}),
        ("pod-monitor", {("PodMonitor", "rollout-lws-controller")}),
        (
            "service-monitor",
            {("Service", "rollout-lws-controller-metrics"), ("ServiceMonitor", "rollout-lws-controller")},
        ),
        (
            "pod-deletion-policy",
            {
                ("ValidatingAdmissionPolicy", "rollout-lws-controller-pod-deletion"),
                ("ValidatingAdmissionPolicyBinding", "rollout-lws-controller-pod-deletion"),
            },
        ),
        ("gate-jobs", set()),
        (
            "guard",
            {
                ("ClusterRole", "rollout-lws-controller-guard"),
                ("ClusterRoleBinding", "rollout-lws-controller-guard"),
                ("Service", "rollout-lws-guard"),
                ("MutatingWebhookConfiguration", "rollout-lws-guard"),
                ("ValidatingWebhookConfiguration", "rollout-lws-guard"),
            },
        ),
    ],
)
def test_what_an_installation_has_besides(extra: str, brought: set[tuple[str, str]]) -> None:
    assert every(Installation(IMAGE, extras=(extra,))) - every(Installation(IMAGE)) == brought


@pytest.mark.parametrize(("watched", "role"), [((), CONTROLLER), (("team-a",), NAMESPACED)])
def test_rights_to_jobs_are_given_only_if_they_are_asked_for(watched: tuple[str, ...], role: str) -> None:
    def rights(*extras: str) -> dict[str, list[str]]:
        chosen = Installation(IMAGE, watch_namespaces=watched, extras=extras)
        rules = named(chosen, "ClusterRole", role)["rules"]
        return {each["resources"][0]: each["verbs"] for each in rules if each["apiGroups"] == ["batch"]}

    assert rights() == {}
    assert rights("gate-jobs") == {
        "jobs": ["list", "watch", "create", "patch", "delete"],
        "cronjobs": ["list", "watch"],
    }


@pytest.mark.parametrize(("watched", "role"), [((), CONTROLLER), (("team-a",), NAMESPACED)])
def test_rights_of_scripts_are_to_one_config_map_and_to_the_kinds_that_are_named(
    watched: tuple[str, ...], role: str
) -> None:
    plain = Installation(IMAGE, "tools", watch_namespaces=watched)
    chosen = replace(plain, custom_network_scripts="lua", custom_network_kinds=("rs.a.io", "ss.a.io"))
    added = [each for each in named(chosen, "ClusterRole", role)["rules"] if each["apiGroups"] == ["a.io"]]
    assert [(each["resources"], each["verbs"]) for each in added] == [
        (["rs"], ["list", "watch", "patch"]),
        (["ss"], ["list", "watch", "patch"]),
    ]
    own, binding = (named(chosen, kind, f"{CONTROLLER}-scripts") for kind in ("Role", "RoleBinding"))
    (rule,) = own["rules"]
    assert rule == {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "verbs": ["list", "watch"],
        "resourceNames": ["lua"],
    }
    assert {each["metadata"]["namespace"] for each in (own, binding)} == {"tools"}
    assert binding["roleRef"]["name"] == own["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": "tools"}]
    assert every(chosen) - every(plain) == {(each["kind"], f"{CONTROLLER}-scripts") for each in (own, binding)}
    kinds = [each["resources"] for each in named(plain, "ClusterRole", role)["rules"]]
    assert ["configmaps"] not in kinds and ["rs"] not in kinds


SELECTING = {
    "PodDisruptionBudget": ("spec", "selector", "matchLabels"),
    "NetworkPolicy": ("spec", "podSelector", "matchLabels"),
    "PodMonitor": ("spec", "selector", "matchLabels"),
    "Service": ("spec", "selector"),
}


@pytest.mark.parametrize("kind", SELECTING)
def test_what_is_about_the_controllers_pods_finds_them_by_labels_and_ports(kind: str) -> None:
    chosen = Installation(IMAGE, extras=EXTRAS)
    template = named(chosen, "Deployment")["spec"]["template"]
    found = [each for each in objects(chosen) if each["kind"] == kind]
    assert found
    for each in found:
        for key in SELECTING[kind]:
            each = each[key]
        assert each and each.items() <= template["metadata"]["labels"].items()


def test_the_network_is_closed_but_for_the_ports_that_are_there() -> None:
    for extras in (("network-policy",), ("network-policy", "guard")):
        _closed_but_for_what_is_there(Installation(IMAGE, extras=extras))


def _closed_but_for_what_is_there(chosen: Installation) -> None:
    spec = named(chosen, "NetworkPolicy")["spec"]
    assert spec["policyTypes"] == ["Ingress"]
    (rule,) = spec["ingress"]
    assert {each["port"] for each in rule["ports"]} == {each["containerPort"] for each in container(chosen)["ports"]}


def test_the_service_monitor_finds_the_service() -> None:
    chosen = Installation(IMAGE, extras=("service-monitor",))
    service = named(chosen, "Service", "rollout-lws-controller-metrics")
    spec = named(chosen, "ServiceMonitor")["spec"]
    assert spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert {each["port"] for each in spec["endpoints"]} == {each["name"] for each in service["spec"]["ports"]}
    (other,) = [each for each in objects(chosen) if each["kind"] == "PodDisruptionBudget"]
    assert not spec["selector"]["matchLabels"].items() <= other["metadata"]["labels"].items()


def webhooks(chosen: Installation) -> dict[str, Object]:
    """By name, from both configurations."""
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    found = [named(chosen, kind, "rollout-lws-guard")["webhooks"] for kind in kinds]
    return {each["name"]: each for some in found for each in some}


def test_the_guard_is_asked_where_it_listens_and_judges_what_is_asked_there() -> None:
    chosen = Installation(IMAGE, "tools", extras=("guard",))
    service = named(chosen, "Service", "rollout-lws-guard")
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] in {each["name"] for each in container(chosen)["ports"]}
    assert {"--guard", "--guard-bind-address=:9443"} < {*container(chosen)["args"]}
    reached = {each["clientConfig"]["service"]["path"]: each for each in webhooks(chosen).values()}
    assert {*reached} == {f"/{rule}" for rule in Rule}
    for each in reached.values():
        at = each["clientConfig"]["service"]
        assert (at["namespace"], at["name"], at["port"]) == ("tools", service["metadata"]["name"], port["port"])
        # Whoever installs again leaves the authorities alone that controllers have put there.
        assert "caBundle" not in each["clientConfig"]
        assert (each["sideEffects"], each["matchPolicy"], each["timeoutSeconds"]) == ("None", "Equivalent", 3)
        assert each["failurePolicy"] == "Ignore"
        assert each["namespaceSelector"] == {}


def test_what_goes_is_not_asked_about_so_its_finalizers_come_off_when_nobody_answers() -> None:
    for each in webhooks(Installation(IMAGE, extras=("guard",), guard_failure_policy="Fail")).values():
        conditions = {condition["name"]: condition["expression"] for condition in each["matchConditions"]}
        assert conditions["not-going"] == "!has(object.metadata.deletionTimestamp)"


def test_a_guard_that_refuses_when_nobody_answers_needs_somebody_who_answers() -> None:
    with pytest.raises(UsageError, match="--guard-failure-policy Fail with --replicas 0: no guard would answer"):
        Installation(IMAGE, replicas=0, extras=("guard",), guard_failure_policy="Fail")
    assert Installation(IMAGE, replicas=0, extras=("guard",)).replicas == 0


def test_the_guard_may_fail_closed_and_looks_where_the_controller_does() -> None:
    chosen = Installation(IMAGE, watch_namespaces=("team-a", "team-b"), extras=("guard",), guard_failure_policy="Fail")
    for each in webhooks(chosen).values():
        assert each["failurePolicy"] == "Fail"
        (only,) = each["namespaceSelector"]["matchExpressions"]
        assert (only["key"], only["values"]) == ("kubernetes.io/metadata.name", ["team-a", "team-b"])


MARKED = {"metadata": {"annotations": {"rollouts.kruise.io/original": "{}"}}}


@pytest.mark.parametrize(
    ("rule", "old", "user", "asked"),
    [
        ("hold", MARKED, "ann", True),
        ("pending", MARKED, "ann", True),
        ("plan", {"metadata": {}}, "ann", True),
        ("hold", {"metadata": {"annotations": {"note": "mine"}}}, "ann", False),
        ("pending", {"metadata": {}}, "ann", False),
        *((rule, MARKED, "system:serviceaccount:tools:rollout-lws-controller", False) for rule in Rule),
    ],
)
def test_only_what_is_in_care_and_by_others_comes_to_the_guard(rule: str, old: Object, user: str, asked: bool) -> None:
    webhook = webhooks(Installation(IMAGE, "tools", extras=("guard",)))[f"{rule}.guard.rollout-lws"]
    given = {"request": {"userInfo": {"username": user}}, "oldObject": old}
    assert all(holds(each["expression"], given) for each in webhook["matchConditions"]) == asked


def test_the_guard_has_rights_to_its_own_configurations_only() -> None:
    chosen = Installation(IMAGE, "tools", watch_namespaces=("team-a",), extras=("guard",))
    (rule,) = named(chosen, "ClusterRole", "rollout-lws-controller-guard")["rules"]
    assert rule["resourceNames"] == ["rollout-lws-guard"]
    assert rule["verbs"] == ["get", "list", "watch", "patch"]
    (subject,) = named(chosen, "ClusterRoleBinding", "rollout-lws-controller-guard")["subjects"]
    assert (subject["namespace"], subject["name"]) == ("tools", "rollout-lws-controller")


def test_the_documentation_shows_these_rights() -> None:
    page = (Path(__file__).parents[3] / "docs/guard.md").read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)  ```", page, re.DOTALL)
    role = named(Installation(IMAGE, extras=("guard",)), "ClusterRole", "rollout-lws-controller-guard")
    assert yaml.safe_load(textwrap.dedent(shown)) == {**role, "metadata": {"name": role["metadata"]["name"]}}


def test_a_policy_of_failure_needs_a_guard() -> None:
    with pytest.raises(UsageError, match="--guard-failure-policy Fail: there is no guard without --with guard"):
        Installation(IMAGE, guard_failure_policy="Fail")


def pod(labels: Object | None) -> Object:
    return {"metadata": {"name": "llama-0"} | ({} if labels is None else {"labels": labels})}


@pytest.mark.parametrize(
    ("deleted", "allowed"),
    [
        (pod({"leaderworkerset.sigs.k8s.io/worker-index": "0", "app": "llama"}), True),
        (pod({"leaderworkerset.sigs.k8s.io/worker-index": "1"}), False),
        (pod({"statefulset.kubernetes.io/pod-name": "llama-0", "app": "llama"}), True),
        (pod({"statefulset.kubernetes.io/pod-name": "llama-0", "leaderworkerset.sigs.k8s.io/name": "llama"}), False),
        (pod({"app": "llama"}), False),
        (pod(None), False),
    ],
)
def test_of_all_pods_only_leaders_may_be_deleted(deleted: Object, allowed: bool) -> None:
    spec = named(
        Installation(IMAGE, "tools", extras=("pod-deletion-policy",)),
        "ValidatingAdmissionPolicy",
        "rollout-lws-controller-pod-deletion",
    )["spec"]
    (condition,), (validation,) = spec["matchConditions"], spec["validations"]
    account = "system:serviceaccount:tools:rollout-lws-controller"
    asked = {"request": {"userInfo": {"username": account}}, "oldObject": deleted}
    assert holds(condition["expression"], asked)
    assert holds(validation["expression"], asked) == allowed
    assert not holds(condition["expression"], {"request": {"userInfo": {"username": "ann"}}, "oldObject": deleted})


def holds(expression: str, given: Object) -> bool:
    environment = celpy.Environment()
    program = environment.program(environment.compile(expression))
    return bool(program.evaluate({name: celpy.json_to_cel(value) for name, value in given.items()}))
