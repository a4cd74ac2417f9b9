"""An installation that was another one before: with more than it has now, or Helm's."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from rollout_lws.objects.resources import (
    ADMISSION_POLICIES,
    DEPLOYMENTS,
    NAMESPACES,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
)
from tests.cli.conftest import World
from tests.cli.install.test_applying import HOME, NAME, all_names, install, refused

Object = dict[str, Any]


def test_what_is_asked_for_no_longer_goes_and_what_others_made_stays(bare: World) -> None:
    install(bare, "--with", "network-policy", "--with", "pod-deletion-policy")
    assert all_names(bare, ADMISSION_POLICIES) == {"rollout-lws-controller-pod-deletion"}
    other = {"metadata": {"namespace": HOME, "name": "everybody"}, "spec": {"podSelector": {}}}
    bare.do(lambda: bare.server.create(NETWORK_POLICIES, other))
    told = install(bare, "--with", "network-policy")
    assert told[-3:-1] == [
        "validatingadmissionpolicybinding.admissionregistration.k8s.io/rollout-lws-controller-pod-deletion"
        " deleted: nothing needs it",
        "validatingadmissionpolicy.admissionregistration.k8s.io/rollout-lws-controller-pod-deletion"
        " deleted: nothing needs it",
    ]
    assert all_names(bare, NETWORK_POLICIES) == {NAME, "everybody"}
    install(bare)
    assert all_names(bare, NETWORK_POLICIES) == {"everybody"}


def test_what_another_namespace_has_under_our_names_stays(bare: World) -> None:
    bare.do(lambda: bare.server.create(NAMESPACES, {"metadata": {"name": "staging"}}))
    labels = {"app.kubernetes.io/part-of": "rollout-lws"}
    for resource in (NETWORK_POLICIES, POD_DISRUPTION_BUDGETS):
        body = {"metadata": {"namespace": "staging", "name": NAME, "labels": labels}, "spec": {"podSelector": {}}}
        bare.do(partial(bare.server.create, resource, body))
    told = install(bare)
    assert not any("deleted" in line for line in told)


@pytest.mark.parametrize(
    ("extras", "needed"),
    [
        (("guard", "pod-monitor"), "pod-monitor needs PodMonitor of monitoring.coreos.com/v1"),
        (("service-monitor", "pod-monitor"), "pod-monitor needs PodMonitor of monitoring.coreos.com/v1"),
        (("service-monitor",), "service-monitor needs ServiceMonitor of monitoring.coreos.com/v1"),
    ],
)
def test_a_kind_that_the_cluster_does_not_serve_is_named_before_anything_is_written(
    bare: World, extras: tuple[str, ...], needed: str
) -> None:
    told = refused(bare, *(flag for each in extras for flag in ("--with", each)))
    extra = needed.partition(" ")[0]
    assert told == (
        f"nothing was changed: --with {needed}, which this cluster does not serve; the Prometheus operator brings it:"
        f" install that first, or leave --with {extra} out"
    )
    assert HOME not in all_names(bare, NAMESPACES)


def test_a_policy_that_kubernetes_does_not_know_is_named_before_anything_is_written(bare: World) -> None:
    """Kubernetes 1.29 and before; the group is there for webhooks."""
    bare.do(lambda: bare.server._served.pop(ADMISSION_POLICIES))
    told = refused(bare, "--with", "pod-deletion-policy")
    assert "--with pod-deletion-policy needs ValidatingAdmissionPolicy of admissionregistration.k8s.io/v1" in told
    assert "; Kubernetes 1.30 or newer brings it" in told
    assert HOME not in all_names(bare, NAMESPACES)
    install(bare)


def test_what_helm_has_installed_is_left_to_helm(bare: World) -> None:
    install(bare)
    marked = {"metadata": {"annotations": {"meta.helm.sh/release-name": "canaries"}}}
    bare.do(lambda: bare.server.patch(DEPLOYMENTS, HOME, NAME, marked))
    told = refused(bare)
    assert told.endswith(f"upgrade it with helm upgrade canaries --namespace {HOME}")
