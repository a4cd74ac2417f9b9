"""The controller's namespace: whether it goes, and what lives in it beside the installation: pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rollout_lws.cli.install.deployment import SELECTOR
from rollout_lws.cli.install.installation import DEFAULT_NAMESPACE
from rollout_lws.cli.install.ownership import is_ours
from rollout_lws.cli.uninstall.parts import Part, by_helm, part_of
from rollout_lws.objects.resources import LEADER_WORKER_SETS, NAMESPACES, PODS, SERVICE_ACCOUNTS
from rollout_lws.settings import DEFAULT_LEASE

Object = dict[str, Any]
_SHOWN = 3
#: What serves somebody: nobody's uninstallation takes it away.
_SERVING = tuple(f"{each.kind.lower()}/" for each in (LEADER_WORKER_SETS, PODS))


@dataclass(frozen=True, slots=True)
class Home:
    """The controller's namespace and what becomes of it. ``doomed`` is None when it stays, and ``why`` says why;
    ``inside`` is what of others goes with it.
    """

    name: str
    doomed: Part | None = None
    why: str = ""
    inside: tuple[str, ...] = ()


def home(namespace: Object, others: Iterable[str] | None, *, wanted: bool) -> Home:
    """``others`` are the objects in it that are not of the installation, None where nobody could tell; ``wanted`` is
    whether it shall go with these. One that was there before is nobody's to delete, nor is one in which others serve.
    """
    part = part_of(NAMESPACES, namespace)
    if by_helm(namespace):
        return Home(part.name, why="Helm's")
    if not is_ours(namespace):
        return Home(part.name, why="it was there before rollout-lws was installed")
    if others is None:
        return Home(part.name, why="what else is in it could not be read")
    found = sorted(others)
    serving = [each for each in found if each.startswith(_SERVING)]
    if serving:
        return Home(part.name, why=f"{_some(serving)} in it, which would end with it: move them first")
    if wanted:
        return Home(part.name, part, inside=tuple(found))
    if found:
        return Home(part.name, why=f"{_some(found)} in it; --delete-namespace takes it away with that")
    if part.name != DEFAULT_NAMESPACE:
        return Home(part.name, why="--delete-namespace takes it away")
    return Home(part.name, part)


def _some(found: list[str]) -> str:
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{', '.join(found[:_SHOWN])}{more}"


#: Kinds that Kubernetes fills by itself, whatever their group, with what tells of other objects.
_BY_ITSELF = frozenset({"events", "endpoints", "endpointslices"})
#: Served by what measures pods, not stored.
_MEASURED = "metrics.k8s.io"
#: Those that OpenShift makes among them.
_ACCOUNTS = ("default", "builder", "deployer")
_OF_EVERY_NAMESPACE = frozenset(
    {
        "configmap/kube-root-ca.crt",
        "configmap/istio-ca-root-cert",
        "configmap/openshift-service-ca.crt",
        *(f"serviceaccount/{each}" for each in _ACCOUNTS),
    }
)
_ACCOUNT_OF_SECRET = "kubernetes.io/service-account.name"


def others(found: Mapping[str, Iterable[Object]], doomed: Collection[Part]) -> list[str]:
    """What in the controller's namespace is neither of the installation nor of every namespace. ``found`` are its
    objects by plural, with the group where it has one; ``doomed`` what is deleted in any case. Our label alone makes
    nothing ours: somebody may have put it on a Secret of theirs.
    """
    uids = {each.uid for each in doomed}
    accounts = {*_ACCOUNTS, *(each.name for each in doomed if each.resource == SERVICE_ACCOUNTS)}
    told = []
    for served, objects in found.items():
        plural, _, group = served.partition(".")
        if plural in _BY_ITSELF or group == _MEASURED:
            continue
        for each in objects:
            name = f"{str(each.get('kind') or plural).lower()}/{each['metadata']['name']}"
            goes = each["metadata"]["uid"] in uids or name in _OF_EVERY_NAMESPACE
            if not goes and not _comes_with(plural, each, accounts):
                told.append(name)
    return told


def _comes_with(plural: str, obj: Object, accounts: Collection[str]) -> bool:
    """Whether others have made it for an object of ours, or of every namespace."""
    meta = obj["metadata"]
    if plural in ("pods", "replicasets"):
        return SELECTOR.items() <= (meta.get("labels") or {}).items()
    if plural == "secrets":
        return (meta.get("annotations") or {}).get(_ACCOUNT_OF_SECRET) in accounts
    if plural == "leases":
        # A controller that still ends makes its own anew.
        return bool(meta["name"] == DEFAULT_LEASE)
    return plural == "rolebindings" and bool(meta["name"].startswith("system:"))
