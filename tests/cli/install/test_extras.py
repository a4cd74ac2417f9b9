"""What an installation can have besides: whom it finds, and what it lets through."""

from __future__ import annotations

from typing import Any

import celpy
import pytest

from rollout_lws.cli.install.installation import EXTRAS, Installation
from rollout_lws.cli.install.manifests import objects
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
    ],
)
def test_what_an_installation_has_besides(extra: str, brought: set[tuple[str, str]]) -> None:
    assert every(Installation(IMAGE, extras=(extra,))) - every(Installation(IMAGE)) == brought


SELECTING = {
    "PodDisruptionBudget": ("spec", "selector", "matchLabels"),
    "NetworkPolicy": ("spec", "podSelector", "matchLabels"),
    "PodMonitor": ("spec", "selector", "matchLabels"),
    "Service": ("spec", "selector"),
}


@pytest.mark.parametrize("kind", SELECTING)
def test_what_is_about_the_controllers_pods_finds_them_by_labels_and_ports(kind: str) -> None:
    chosen = Installation(IMAGE, extras=EXTRAS)
    (found,) = [each for each in objects(chosen) if each["kind"] == kind]
    for key in SELECTING[kind]:
        found = found[key]
    template = named(chosen, "Deployment")["spec"]["template"]
    assert found and found.items() <= template["metadata"]["labels"].items()


def test_the_network_is_closed_but_for_the_ports_that_are_there() -> None:
    chosen = Installation(IMAGE, extras=("network-policy",))
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


def pod(labels: Object | None) -> Object:
    return {"metadata": {"name": "llama-0"} | ({} if labels is None else {"labels": labels})}


@pytest.mark.parametrize(
    ("deleted", "allowed"),
    [
        (pod({"leaderworkerset.sigs.k8s.io/worker-index": "0", "app": "llama"}), True),
        (pod({"leaderworkerset.sigs.k8s.io/worker-index": "1"}), False),
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
