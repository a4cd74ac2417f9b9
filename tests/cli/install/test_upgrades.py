"""An installation that was another one before: without an election, with more than it has now, or Helm's."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.install.applying import MANAGER
from rollout_lws.cli.install.installation import Installation
from rollout_lws.cli.install.manifests import objects
from rollout_lws.cli.install.ownership import knows_no_election
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import ADMISSION_POLICIES, DEPLOYMENTS, NAMESPACES, NETWORK_POLICIES, Resource
from rollout_lws.sandbox.faults import Effect
from rollout_lws.sandbox.patches import APPLY_PATCH
from tests.cli.conftest import World
from tests.cli.install.test_applying import HOME, IMAGE, NAME, all_names, install, refused, there

Object = dict[str, Any]


def before_election(world: World, status: Object) -> None:
    """The Deployment that installations had whose controllers looked for no other one."""
    install(world)
    found = next(each for each in objects(Installation(IMAGE, replicas=1)) if each["kind"] == "Deployment")
    spec = found["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    args = [each for each in container["args"] if each != "--leader-elect"]
    pod = {**spec["template"]["spec"], "containers": [{**container, "args": args}]}
    template = {**spec["template"], "spec": pod}
    older = {**found, "spec": {**spec, "strategy": {"type": "Recreate"}, "template": template}}
    world.do(lambda: world.server.delete(DEPLOYMENTS, HOME, NAME))
    world.do(lambda: world.server.patch(DEPLOYMENTS, HOME, NAME, older, APPLY_PATCH, field_manager=MANAGER, force=True))
    report(world, status)


def report(world: World, status: Object) -> None:
    world.do(lambda: world.server.patch(DEPLOYMENTS, HOME, NAME, {"status": status}, subresource="status"))


ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
ENDS = {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 0}
ONE_RUNS = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}


def test_a_controller_that_looks_for_no_other_one_ends_before_the_next_one_starts(bare: World) -> None:
    before_election(bare, ONE_RUNS)
    for status in (ONE_RUNS, ENDS, {**ENDS, "replicas": 0}):
        report(bare, status)
        result = bare.run("install", "--image", IMAGE, "--timeout", "0")
        assert "run the same command again" in result.stderr
        spec = there(bare, DEPLOYMENTS, NAME, HOME)["spec"]
        assert spec["strategy"] == {"type": "Recreate"}
        assert (spec["replicas"], "--leader-elect" in spec["template"]["spec"]["containers"][0]["args"]) == (2, True)
    report(bare, {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2})
    result = bare.run("install", "--image", IMAGE, "--timeout", "0")
    assert (result.exit_code, result.stderr) == (0, "")
    assert there(bare, DEPLOYMENTS, NAME, HOME)["spec"]["strategy"] == ROLLING


BY_ITSELF = ["controller", "--metrics-bind-address=:8080"]
ELECTING = ["controller", "--leader-elect"]
BOTH_RUN = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2}


@pytest.mark.parametrize(
    ("args", "strategy", "replicas", "status", "alone"),
    [
        (BY_ITSELF, "Recreate", 1, ONE_RUNS, True),
        (BY_ITSELF, "RollingUpdate", 1, ONE_RUNS, True),
        (BY_ITSELF, None, 1, ONE_RUNS, True),
        (BY_ITSELF, "RollingUpdate", 0, {"observedGeneration": 1}, True),
        (None, "RollingUpdate", 1, ONE_RUNS, True),
        (ELECTING, "RollingUpdate", 2, BOTH_RUN, False),
        (ELECTING, "RollingUpdate", 2, {**BOTH_RUN, "updatedReplicas": 1}, False),
        (ELECTING, "Recreate", 2, BOTH_RUN, False),
        (ELECTING, "Recreate", 2, {**BOTH_RUN, "updatedReplicas": 1}, True),
        (ELECTING, "Recreate", 2, {**BOTH_RUN, "observedGeneration": 0}, True),
        (ELECTING, "Recreate", 2, {"observedGeneration": 1}, True),
    ],
)
def test_what_a_controller_is_told_says_whether_it_looks_for_another_one(
    args: list[str] | None, strategy: str | None, replicas: int, status: Object, alone: bool
) -> None:
    pod = {"containers": [{"name": "controller", "args": args}]}
    spec = {"replicas": replicas, "template": {"spec": pod}} | ({"strategy": {"type": strategy}} if strategy else {})
    found = {"metadata": {"generation": 1}, "spec": spec, "status": status}
    assert knows_no_election(found) == alone


def test_arguments_may_stand_in_the_command_too() -> None:
    pod = {"containers": [{"name": "controller", "command": ["rollout-lws", *ELECTING]}]}
    assert not knows_no_election({"metadata": {}, "spec": {"template": {"spec": pod}}})


def test_who_waits_for_such_an_upgrade_has_all_of_it(bare: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before_election(bare, ONE_RUNS)
    patched = bare.server.patch

    def run(resource: Resource, *arguments: Any, **options: Any) -> Any:
        """The pods run as soon as the Deployment is written."""
        written = patched(resource, *arguments, **options)
        if resource == DEPLOYMENTS and not options.get("subresource"):
            counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), 2)
            status = {"status": {"observedGeneration": written["metadata"]["generation"], **counts}}
            patched(DEPLOYMENTS, HOME, NAME, status, subresource="status")
        return written

    monkeypatch.setattr(bare.server, "patch", run)
    result = bare.run("install", "--image", IMAGE)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-2:] == [
        f"deployment.apps/{NAME} is available",
        f"deployment.apps/{NAME} configured",
    ]
    assert there(bare, DEPLOYMENTS, NAME, HOME)["spec"]["strategy"] == ROLLING


def test_what_is_asked_for_no_longer_goes_and_what_others_made_stays(bare: World) -> None:
    install(bare, "--with", "network-policy", "--with", "pod-deletion-policy")
    assert all_names(bare, ADMISSION_POLICIES) == {"rollout-lws-controller-pod-deletion"}
    other = {"metadata": {"namespace": HOME, "name": "everybody"}, "spec": {"podSelector": {}}}
    bare.do(lambda: bare.server.create(NETWORK_POLICIES, other))
    told = install(bare, "--with", "network-policy")
    assert told[-2:] == [
        "validatingadmissionpolicybinding.admissionregistration.k8s.io/rollout-lws-controller-pod-deletion"
        " deleted: nothing needs it",
        "validatingadmissionpolicy.admissionregistration.k8s.io/rollout-lws-controller-pod-deletion"
        " deleted: nothing needs it",
    ]
    assert all_names(bare, NETWORK_POLICIES) == {NAME, "everybody"}
    install(bare)
    assert all_names(bare, NETWORK_POLICIES) == {"everybody"}


def test_who_may_not_see_what_is_not_asked_for_can_install(bare: World) -> None:
    forbidden = Effect(refusal=ApiError(403, "Forbidden", "networkpolicies is forbidden"))
    bare.do(lambda: bare.http.gate.faults.add(forbidden, "get", "networkpolicies"))
    assert f"deployment.apps/{NAME} created" in install(bare)


@pytest.mark.parametrize("kind", ["pod", "service"])
def test_nobody_is_told_to_collect_metrics_where_nobody_would(bare: World, kind: str) -> None:
    told = refused(bare, "--with", f"{kind}-monitor")
    assert f"--with {kind}-monitor needs CustomResourceDefinition {kind}monitors.monitoring.coreos.com" in told
    assert HOME not in all_names(bare, NAMESPACES)


def test_a_policy_that_kubernetes_does_not_know_is_refused_before_anything_changes(bare: World) -> None:
    """Kubernetes 1.29 and before; the group is there for webhooks, or it is not seen at all."""
    bare.do(lambda: bare.server._served.pop(ADMISSION_POLICIES))
    told = refused(bare, "--with", "pod-deletion-policy")
    assert told == (
        "nothing was changed: --with pod-deletion-policy needs ValidatingAdmissionPolicy of"
        " admissionregistration.k8s.io/v1, which Kubernetes has from 1.30: leave --with pod-deletion-policy out here"
    )
    assert HOME not in all_names(bare, NAMESPACES)
    install(bare)


def test_what_helm_has_installed_is_left_to_helm(bare: World) -> None:
    install(bare)
    marked = {"metadata": {"annotations": {"meta.helm.sh/release-name": "canaries"}}}
    bare.do(lambda: bare.server.patch(DEPLOYMENTS, HOME, NAME, marked))
    told = refused(bare)
    assert told.endswith(f"upgrade it with helm upgrade canaries --namespace {HOME}")
