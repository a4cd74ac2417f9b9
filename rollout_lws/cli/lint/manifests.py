"""The objects that concern releases: our Rollouts, and the kinds that they may refer to.

All other objects (Deployments, kustomizations, other tools' kinds) are ignored, and so are StatefulSets that no Rollout
among the files names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rollout_lws.api.resources import VERSION, rollouts
from rollout_lws.cli.lint.documents import LOOKED_AT, Document
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.paths import Path, written
from rollout_lws.objects.released import RELEASED
from rollout_lws.objects.resources import (
    DEFAULT_API_GROUP,
    HORIZONTAL_POD_AUTOSCALERS,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.traffic.custom.kinds import by_name
from rollout_lws.traffic.names import ManagedRef
from rollout_lws.traffic.registry import CUSTOM, WRITTEN_SPECS, named_in

#: KEDA creates a HorizontalPodAutoscaler for it.
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
#: What selects pods without sending them requests.
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
POD_MONITORS = Resource("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors")
#: Released kinds most of whose objects no Rollout releases, such as databases: they count where one names them.
NAMED_ONLY = (STATEFUL_SETS,)
_OTHERS = (*RELEASED, *LOOKED_AT, SCALED_OBJECTS, NETWORK_POLICIES, POD_MONITORS)
#: Other API versions with the same meaning, as far as lint reads them.
_ALIKE = {
    **{
        (f"{spec.resource.group}/{version}", spec.resource.kind): spec.resource
        for spec in WRITTEN_SPECS
        for version in spec.older
    },
    ("autoscaling/v1", HORIZONTAL_POD_AUTOSCALERS.kind): HORIZONTAL_POD_AUTOSCALERS,
}
_BY_NAME = {(each.api_version, each.kind): each for each in _OTHERS} | _ALIKE
#: Their kinds, by name alone.
KNOWN_KINDS = frozenset(kind for _, kind in _BY_NAME)
_OWN = rollouts()
#: Released kinds by their names alone, which other API groups use too.
_RELEASED_NAMES = {each.kind: each for each in RELEASED}
#: Workload kinds of OpenKruise's own Rollouts, as far as they are not ours: its StatefulSet is of another API group.
_OF_KRUISE = ("Deployment", "StatefulSet", "CloneSet", "DaemonSet")


@dataclass(frozen=True, slots=True, eq=False)
class Manifest:
    """One object of a file. ``base`` is the path from the document's root to it, through the items of a List; ``order``
    is the object's position among all files.
    """

    document: Document
    base: Path
    resource: Resource
    body: dict[str, Any]
    namespace: str
    name: str
    order: int
    custom: bool = False
    """Whether it is of a kind that only a Rollout's customNetworkRefs makes one of those that concern releases."""

    @property
    def what(self) -> str:
        """Kind and name, for messages."""
        return f"{self.resource.kind} {self.name}"

    @property
    def place(self) -> str:
        """File and line, for messages about another object."""
        return f"{self.document.file}:{self.document.mark(self.base).line}"

    @property
    def is_stored(self) -> bool:
        """Whether an API server has returned it, which fills in defaults: it does not show what a manifest states."""
        return "resourceVersion" in self.body["metadata"]

    @property
    def what_and_place(self) -> str:
        """Kind and name, with the place of an object that a file has."""
        return f"{self.what} ({self.place})" if self.document.file else self.what

    def found(self, code: str, path: Path, message: str) -> Finding:
        """A finding at a field of this object."""
        mark = self.document.mark((*self.base, *path))
        about = f"{self.resource.kind}/{self.name}" if self.name else self.resource.kind
        return Finding(self.document.file, mark.line, mark.column, code, message, about, written(path))


@dataclass(frozen=True, slots=True)
class Scope:
    """``group`` is the API group of our kinds, None for any; ``namespace`` is the default for objects without one."""

    group: str | None = None
    namespace: str = "default"


def manifests(
    documents: Iterable[Document], scope: Scope, *, named_only: bool = True
) -> tuple[list[Manifest], list[Finding]]:
    """The objects that concern releases, in order, and findings about their identity. Not ``named_only``: also objects
    of released kinds that no Rollout among them names.
    """
    read: list[Manifest] = []
    every = [(document, *each) for document in documents for each in _objects((), document.value)]
    custom = {ref.custom_kind: ref for _, _, body in every for ref in _scripted(body)}
    for document, base, body in every:
        made = _manifest(document, base, body, scope, len(read), custom.keys())
        read += [made] if made is not None else []
    problems = {id(each): problem for each in read if (problem := _problem(each, scope)) is not None}
    named = {
        (each.namespace, *one)
        for each in read
        if each.resource.kind == _OWN.kind and id(each) not in problems
        for one in workloads_of(each.body)
    }
    scripted = {(each.namespace, by_name(*ref.custom_kind), ref.name) for each in read for ref in _scripted(each.body)}
    found: list[Manifest] = []
    findings: list[Finding] = []
    first: dict[tuple[str, str, str, str], Manifest] = {}
    for made in read:
        is_named = (made.namespace, made.resource, made.name) in (scripted if made.custom else named)
        is_named = is_named or not (made.custom or made.resource in NAMED_ONLY)
        if not is_named and (named_only or id(made) in problems):
            continue
        key = (made.resource.group, made.resource.kind, made.namespace, made.name)
        if id(made) in problems:
            findings.append(problems[id(made)])
        elif not made.name:
            findings.append(_nameless(made))
        elif key in first:
            message = f"{made.what} is in {first[key].place} already: keep one, the later would replace the earlier"
            findings.append(made.found("LWS004", ("metadata", "name"), message))
        else:
            first[key] = made
            found.append(made)
    return found, findings


def workloads_of(rollout: Mapping[str, Any]) -> list[tuple[Resource, str]]:
    """Kind and name of each workload that a Rollout names, in the order of its spec, whatever else is wrong with it;
    none of kinds that cannot be released.
    """
    spec = _mapping(rollout.get("spec"))
    ref = _mapping(spec.get("workloadRef"))
    kinds = [each for each in RELEASED if (each.api_version, each.kind) == (ref.get("apiVersion"), ref.get("kind"))]
    beside = spec.get("companions")
    listed = map(_mapping, beside if isinstance(beside, list) else ())
    names = (ref.get("name"), _mapping(spec.get("counterpartRef")).get("name"))
    further = (each.get(member) for each in listed for member in ("name", "counterpart"))
    return [(kind, name) for kind in kinds for name in (*names, *further) if isinstance(name, str) and name]


def bodies_of(document: Document) -> Iterator[dict[str, Any]]:
    """The objects of a document, whatever their kinds."""
    return (body for _, body in _objects((), document.value))


def _scripted(body: Mapping[str, Any]) -> tuple[ManagedRef, ...]:
    """The objects that a Rollout has scripts change, whatever else is wrong with it; () of all else."""
    if body.get("kind") != _OWN.kind:
        return ()
    strategy = _mapping(_mapping(body.get("spec")).get("strategy"))
    styles = (_mapping(strategy.get(style)) for style in ("canary", "blueGreen"))
    routings = (each.get("trafficRoutings") for each in styles)
    first = (_mapping(next(iter(each), None)) for each in routings if isinstance(each, list))
    return tuple(ref for each in first if isinstance(each.get(CUSTOM.field[0]), list) for ref in named_in(each).custom)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(base: Path, value: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    if not isinstance(value, dict):
        return
    items = value.get("items")
    if str(value.get("kind", "")).endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            yield from _objects((*base, "items", index), item)
    else:
        yield base, value


def _manifest(
    document: Document,
    base: Path,
    body: dict[str, Any],
    scope: Scope,
    order: int,
    custom: Collection[tuple[str, str]],
) -> Manifest | None:
    kind, api_version = str(body.get("kind")), str(body.get("apiVersion"))
    group, _, version = api_version.rpartition("/")
    # A released kind of another group, or version, is told the right one.
    resource = _BY_NAME.get((api_version, kind))
    is_custom = resource is None and (api_version, kind) in custom
    resource = by_name(api_version, kind) if is_custom else resource or _RELEASED_NAMES.get(kind)
    if kind == _OWN.kind and (group == scope.group if scope.group else _is_ours(group, version, body)):
        resource = Resource(group, version, _OWN.kind, _OWN.plural)
    if resource is None:
        return None
    metadata = body.get("metadata")
    # An API server treats a null field as unset.
    members = metadata.items() if isinstance(metadata, dict) else ()
    metadata = {key: value for key, value in members if value is not None}
    body = {**body, "metadata": metadata}
    name, namespace = metadata.get("name"), metadata.get("namespace")
    return Manifest(
        document=document,
        base=base,
        resource=resource,
        body=body,
        namespace=namespace if isinstance(namespace, str) and namespace else scope.namespace,
        name=name if isinstance(name, str) else "",
        order=order,
        custom=is_custom,
    )


def _problem(made: Manifest, scope: Scope) -> Finding | None:
    """Why nothing can be said of an object but this."""
    resource, api_version = made.resource, str(made.body.get("apiVersion"))
    if resource in RELEASED and api_version != resource.api_version:
        message = f"a {resource.kind} of {api_version} is none that can be released: write apiVersion"
        return made.found("LWS107", ("apiVersion",), f"{message} {resource.api_version}")
    if resource.kind != _OWN.kind:
        return None
    if resource.version != VERSION:
        message = (
            f"{_OWN.kind} of version {resource.version} is not served: write apiVersion {resource.group}/{VERSION}"
        )
        return made.found("LWS107", ("apiVersion",), message)
    other = _workload_kind(made.body)
    if scope.group is None and other in _OF_KRUISE and not _names_ours(made.body):
        ours = " or a ".join(f"{each.kind} of {each.api_version}" for each in RELEASED)
        message = (
            f"{made.what} is one of OpenKruise Rollouts: it names a {other}, which that project releases. This"
            f" controller refuses it: if it is meant to be released here, name a {ours}"
        )
        return made.found("LWS402", ("spec", "workloadRef"), message)
    return None


def _is_ours(group: str, version: str, body: dict[str, Any]) -> bool:
    """Without --api-group: Kruise's group, or any group if the object refers to a workload as ours do, since other
    projects have Rollouts too, some with a workloadRef.
    """
    if _names_ours(body):
        return version == VERSION or group == DEFAULT_API_GROUP
    return group == DEFAULT_API_GROUP and version == VERSION


def _names_ours(body: dict[str, Any]) -> bool:
    """Whether a Rollout's workloadRef names a released kind, in whatever version of its API group. Only ours release
    LeaderWorkerSets, in whatever group these are.
    """
    kind = _RELEASED_NAMES.get(_workload_kind(body))
    group = str(_workload_ref(body).get("apiVersion") or "").rpartition("/")[0]
    return kind is not None and (kind not in NAMED_ONLY or group in ("", kind.group))


def _workload_ref(body: dict[str, Any]) -> Mapping[str, Any]:
    return _mapping(_mapping(body.get("spec")).get("workloadRef"))


def _workload_kind(body: dict[str, Any]) -> str:
    kind = _workload_ref(body).get("kind")
    return kind if isinstance(kind, str) else ""


def _nameless(made: Manifest) -> Finding:
    generated = made.body["metadata"].get("generateName")
    why = "a release needs a name that stays: replace generateName by it" if generated else "give it a metadata.name"
    return made.found("LWS106", ("metadata",), f"{made.resource.kind} without a name: {why}")
