"""What is of an installation, what is of others, and what becomes of the namespace: tables."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.uninstall.homes import home, others
from rollout_lws.cli.uninstall.parts import KINDS, our_groups, part_of, parts
from rollout_lws.objects.resources import CLUSTER_ROLES, DEPLOYMENTS, LEASES, SERVICE_ACCOUNTS

Object = dict[str, Any]
OURS = {"app.kubernetes.io/part-of": "rollout-lws"}
RELEASE = {"meta.helm.sh/release-name": "lws", "meta.helm.sh/release-namespace": "infra"}
KEEP = {"helm.sh/resource-policy": "keep"}


def named(name: str, kind: str = "", labels: Object | None = None, **more: Any) -> Object:
    meta = {"name": name, "uid": f"uid-{name}", "labels": labels or {}, "annotations": more.pop("notes", {})}
    return {"metadata": meta, **({"kind": kind} if kind else {}), **more}


def definition(
    group: str, *, short: str = "", plural: str = "rollouts", labels: Object | None = None, **more: Any
) -> Object:
    kinds = {"rollouts": "Rollout", "batchreleases": "BatchRelease"}
    names = {"plural": plural, "kind": kinds[plural], "shortNames": [short] if short else None}
    return named(f"{plural}.{group}", labels=labels, spec={"group": group, "names": names}, **more)


@pytest.mark.parametrize(
    ("definitions", "groups"),
    [
        ([], ()),
        ([definition("rollouts.kruise.io")], ()),
        ([definition("rollouts.kruise.io", short="lwsro")], ("rollouts.kruise.io",)),
        ([definition("b.org", labels=OURS), definition("a.org", short="lwsro")], ("a.org", "b.org")),
        ([definition("argoproj.io", short="ro")], ()),
        ([definition("a.org", plural="batchreleases", labels=OURS)], ()),
    ],
)
def test_groups_whose_rollouts_are_ours(definitions: list[Object], groups: tuple[str, ...]) -> None:
    assert our_groups(definitions) == groups


def test_what_goes_goes_in_the_order_of_kinds_and_only_what_is_ours() -> None:
    labelled = {
        SERVICE_ACCOUNTS: [named("rollout-lws-controller")],
        CLUSTER_ROLES: [named("rollout-lws-view"), named("approvers")],
        DEPLOYMENTS: [named("rollout-lws-controller"), named("rollout-lws-ui")],
    }
    definitions = [
        definition("a.org"),
        definition("a.org", plural="batchreleases"),
        definition("rollouts.kruise.io"),
        definition("argoproj.io"),
    ]
    found = parts(labelled, definitions, ["a.org"])
    assert [str(each) for each in found.doomed] == [
        "deployment.apps/rollout-lws-controller",
        "clusterrole.rbac.authorization.k8s.io/rollout-lws-view",
        "serviceaccount/rollout-lws-controller",
    ]
    assert [each.name for each in found.definitions] == ["batchreleases.a.org", "rollouts.a.org"]
    assert [line.partition(":")[0] for line in found.stay] == [
        "deployment.apps/rollout-lws-ui",
        "clusterrole.rbac.authorization.k8s.io/approvers",
    ]
    assert found.helm == ()


@pytest.mark.parametrize(
    ("notes", "account", "helm"),
    [
        pytest.param(KEEP, {}, (), id="rendered by Helm, applied by others"),
        pytest.param(RELEASE | KEEP, RELEASE, ("helm uninstall lws -n infra",), id="the release is there"),
        pytest.param(RELEASE | KEEP, None, (), id="the release is gone"),
        pytest.param(RELEASE, None, ("helm uninstall lws -n infra",), id="they go with the release"),
        pytest.param(
            RELEASE | KEEP, RELEASE | {"meta.helm.sh/release-name": "b"}, ("helm uninstall b -n infra",), id="b"
        ),
    ],
)
def test_definitions_that_helm_keeps_go_when_it_has_taken_away_the_rest(
    notes: Object, account: Object | None, helm: tuple[str, ...]
) -> None:
    accounts = [] if account is None else [named("rollout-lws-controller", labels=OURS, notes=account)]
    defined = [definition("a.org", plural=plural, notes=notes) for plural in ("rollouts", "batchreleases")]
    found = parts({SERVICE_ACCOUNTS: accounts}, defined, ["a.org"])
    assert found.helm == helm
    stands = bool(helm) and "lws" in helm[0]
    assert [each.name for each in found.definitions] == ([] if stands else ["batchreleases.a.org", "rollouts.a.org"])
    assert len(found.doomed) == (account == {})


def test_rights_go_after_those_who_use_them() -> None:
    order = [each.kind for each in KINDS]
    assert order.index("ValidatingWebhookConfiguration") < order.index("Deployment") < order.index("ClusterRoleBinding")


HOME = "rollout-lws-system"


@pytest.mark.parametrize(
    ("namespace", "inside", "wanted", "goes", "why"),
    [
        (named(HOME, labels=OURS), [], False, True, ""),
        (named(HOME, labels=OURS), ["secret/a"], False, False, "secret/a in it"),
        (named(HOME, labels=OURS), list("dcba"), False, False, "a, b, c and 1 more in it"),
        (named(HOME, labels=OURS), None, False, False, "could not be read"),
        (named(HOME, labels=OURS), None, True, False, "could not be read"),
        (named(HOME, labels=OURS), ["secret/a"], True, True, ""),
        (named(HOME, labels=OURS), ["secret/a", "pod/b"], True, False, "pod/b in it, which would end with it"),
        (named(HOME, labels=OURS), ["leaderworkerset/chat"], True, False, "leaderworkerset/chat in it, which would"),
        (named("monitoring", labels=OURS), ["pod/b"], False, False, "pod/b in it, which would end with it"),
        (named(HOME), [], False, False, "was there before"),
        (named(HOME), [], True, False, "was there before"),
        (named("monitoring", labels=OURS), [], False, False, "--delete-namespace takes it away"),
        (named("monitoring", labels=OURS), [], True, True, ""),
        (named(HOME, labels=OURS, notes=RELEASE), [], True, False, "Helm's"),
    ],
)
def test_the_namespace(namespace: Object, inside: list[str] | None, wanted: bool, goes: bool, why: str) -> None:
    found = home(namespace, inside, wanted=wanted)
    assert ((found.doomed is not None), why in found.why) == (goes, True)
    assert bool(found.why) != goes
    assert found.inside == tuple(inside or () if goes else ())


SELECTED = {"app.kubernetes.io/name": "rollout-lws", "app.kubernetes.io/component": "controller"}
HALF = {"app.kubernetes.io/name": "rollout-lws"}


def secret(name: str, account: str = "", labels: Object | None = None) -> Object:
    notes = {"kubernetes.io/service-account.name": account} if account else {}
    return named(name, "Secret", labels, notes=notes, type="kubernetes.io/service-account-token")


def test_what_lives_in_a_namespace_beside_us() -> None:
    account, lease = named("rollout-lws-controller", "ServiceAccount"), named("rollout-lws-controller-l", "Lease")
    inside = {
        "pods": [named("a", "Pod", SELECTED), named("b", "Pod", HALF), named("c", "Pod", OURS)],
        "replicasets.apps": [named("ours", "ReplicaSet", SELECTED), named("web")],
        "configmaps": [named("kube-root-ca.crt", "ConfigMap"), named("settings", "ConfigMap", OURS)],
        "serviceaccounts": [named("default", "ServiceAccount"), account],
        "secrets": [secret("registry", labels=OURS), secret("t", "rollout-lws-controller"), secret("theirs", "team")],
        "leases.coordination.k8s.io": [
            lease,
            named("rollout-lws-controller", "Lease"),
            named("rollout-lws-another", "Lease"),
        ],
        "rolebindings.rbac.authorization.k8s.io": [named("system:deployers", "RoleBinding")],
        "events.events.k8s.io": [named("e", "Event")],
        "pods.metrics.k8s.io": [named("p", "PodMetrics")],
    }
    assert others(inside, [part_of(SERVICE_ACCOUNTS, account), part_of(LEASES, lease)]) == [
        "pod/b",
        "pod/c",
        "replicasets/web",
        "configmap/settings",
        "secret/registry",
        "secret/theirs",
        "lease/rollout-lws-another",
    ]
