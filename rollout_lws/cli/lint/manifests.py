"""The objects that concern releases: our Rollouts, and the kinds that they may refer to.

All other objects (Deployments, kustomizations, other tools' kinds) are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rollout_lws.api.resources import VERSION, rollouts
from rollout_lws.cli.lint.documents import LOOKED_AT, Document
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.paths import Path, written
from rollout_lws.objects.resources import (
    DEFAULT_API_GROUP,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    Resource,
)
from rollout_lws.traffic.registry import SPECS

#: KEDA creates a HorizontalPodAutoscaler for it.
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
#: What selects pods without sending them requests.
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
POD_MONITORS = Resource("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors")
_OTHERS = (LEADER_WORKER_SETS, *LOOKED_AT, SCALED_OBJECTS, NETWORK_POLICIES, POD_MONITORS)
#: Other API versions with the same meaning, as far as lint reads them.
_ALIKE = {
    **{
        (f"{spec.resource.group}/{version}", spec.resource.kind): spec.resource
        for spec in SPECS
        for version in spec.older
    },
    ("autoscaling/v1", HORIZONTAL_POD_AUTOSCALERS.kind): HORIZONTAL_POD_AUTOSCALERS,
}
_BY_NAME = {(each.api_version, each.kind): each for each in _OTHERS} | _ALIKE
_OWN = rollouts()
#: Workload kinds of OpenKruise's own Rollouts.
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


def manifests(documents: Iterable[Document], scope: Scope) -> tuple[list[Manifest], list[Finding]]:
    """The objects that concern releases, in order, and findings about their identity."""
    found: list[Manifest] = []
    findings: list[Finding] = []
    first: dict[tuple[str, str, str, str], Manifest] = {}
    for document in documents:
        for base, body in _objects((), document.value):
            made = _manifest(document, base, body, scope, len(found))
            if isinstance(made, Finding):
                findings.append(made)
            if not isinstance(made, Manifest):
                continue
            key = (made.resource.group, made.resource.kind, made.namespace, made.name)
            if not made.name:
                findings.append(_nameless(made))
            elif key in first:
                message = f"{made.what} is in {first[key].place} already: keep one, the later would replace the earlier"
                findings.append(made.found("LWS004", ("metadata", "name"), message))
            else:
                first[key] = made
                found.append(made)
    return found, findings


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
    document: Document, base: Path, body: dict[str, Any], scope: Scope, order: int
) -> Manifest | Finding | None:
    kind, api_version = body.get("kind"), body.get("apiVersion")
    group, _, version = str(api_version).rpartition("/")
    resource = _BY_NAME.get((str(api_version), str(kind)))
    ours = kind == _OWN.kind
    if ours and (group == scope.group if scope.group else _is_ours(group, version, body)):
        resource = Resource(group, version, _OWN.kind, _OWN.plural)
    foreign = resource is None and kind == LEADER_WORKER_SETS.kind
    if foreign:
        resource = LEADER_WORKER_SETS
    if resource is None:
        return None
    metadata = body.get("metadata")
    # An API server treats a null field as unset.
    members = metadata.items() if isinstance(metadata, dict) else ()
    metadata = {key: value for key, value in members if value is not None}
    body = {**body, "metadata": metadata}
    name, namespace = metadata.get("name"), metadata.get("namespace")
    made = Manifest(
        document=document,
        base=base,
        resource=resource,
        body=body,
        namespace=namespace if isinstance(namespace, str) and namespace else scope.namespace,
        name=name if isinstance(name, str) else "",
        order=order,
    )
    if foreign:
        right = LEADER_WORKER_SETS.api_version
        message = f"a {kind} of {api_version} is none that can be released: write apiVersion {right}"
        return made.found("LWS107", ("apiVersion",), message)
    if not ours:
        return made
    if version != VERSION:
        message = f"{_OWN.kind} of version {version} is not served: write apiVersion {group}/{VERSION}"
        return made.found("LWS107", ("apiVersion",), message)
    other = _workload_kind(body)
    if scope.group is None and other in _OF_KRUISE:
        message = (
            f"{made.what} is one of OpenKruise Rollouts: it names a {other}, which that project releases. This"
            f" controller refuses it: if it is meant to be released here, name a {LEADER_WORKER_SETS.kind}"
        )
        return made.found("LWS402", ("spec", "workloadRef"), message)
    return made


def _is_ours(group: str, version: str, body: dict[str, Any]) -> bool:
    """Without --api-group: Kruise's group, or any group if the object refers to a LeaderWorkerSet as ours do, since
    other projects have Rollouts too, some with a workloadRef.
    """
    if _workload_kind(body) == LEADER_WORKER_SETS.kind:
        return version == VERSION or group == DEFAULT_API_GROUP
    return group == DEFAULT_API_GROUP and version == VERSION


def _workload_kind(body: dict[str, Any]) -> str:
    spec = body.get("spec")
    ref = spec.get("workloadRef") if isinstance(spec, dict) else None
    kind = ref.get("kind") if isinstance(ref, dict) else None
    return kind if isinstance(kind, str) else ""


def _nameless(made: Manifest) -> Finding:
    generated = made.body["metadata"].get("generateName")
    why = "a release needs a name that stays: replace generateName by it" if generated else "give it a metadata.name"
    return made.found("LWS106", ("metadata",), f"{made.resource.kind} without a name: {why}")
