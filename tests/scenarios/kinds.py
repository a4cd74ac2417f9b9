"""The kinds that stories release: how one is made, and how its groups, versions and strategy are read back.

Stories and judges ask the kind of their world, so that the same story is told of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollout_lws.objects import resources
from rollout_lws.objects.released import POD_INDEX, POD_NAME, POD_REVISION
from rollout_lws.objects.resources import (
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.sandbox.store import Store
from tests.scenarios.names import KEYS, NAME, NAMESPACE

Object = Mapping[str, Any]


@dataclass(frozen=True)
class LeaderWorkerSets:
    """Groups of a leader and its workers."""

    resource: Resource = LEADER_WORKER_SETS
    #: The template's members in the spec, and the strategy's.
    template: tuple[str, ...] = ("leaderWorkerTemplate", "workerTemplate")
    strategy: tuple[str, str] = ("rolloutStrategy", "rollingUpdateConfiguration")
    #: The most pods of a group in stories.
    largest: int = 64
    #: LeaderWorkerSet's, by the definition that is installed.
    generation: str = "0.10"

    def __str__(self) -> str:
        return self.resource.kind + ("" if self.generation == "0.10" else f" {self.generation}")

    def spec(
        self,
        template: Object,
        replicas: int,
        size: int,
        *,
        unavailable: int | str | None = None,
        surge: int | str = 0,
        name: str = NAME,
    ) -> dict[str, Any]:
        groups = {"size": size, "workerTemplate": template}
        made: dict[str, Any] = {"replicas": replicas, "leaderWorkerTemplate": groups}
        if unavailable is not None:
            made["rolloutStrategy"] = {"rollingUpdateConfiguration": {"maxUnavailable": unavailable, "maxSurge": surge}}
        return made

    def versioned(self, template: Object) -> dict[str, Any]:
        """The edit of a spec that puts another template there."""
        return nested(self.template, template)

    def partitioned(self, value: int) -> dict[str, Any]:
        return nested((*self.strategy, "partition"), value)

    def parameters(self, live: Object) -> dict[str, Any]:
        """Those of its rolling updates."""
        strategy, parameters = self.strategy
        return dict((live["spec"].get(strategy) or {}).get(parameters) or {})

    def partition(self, live: Object) -> int:
        return int(self.parameters(live).get("partition", 0))

    def size(self, live: Object) -> int:
        return int(live["spec"]["leaderWorkerTemplate"].get("size", 1))

    def first(self, live: Object) -> int:
        """The index of its first group."""
        return 0

    def pods(self, store: Store, name: str) -> list[Object]:
        return list(store.list(resources.PODS, NAMESPACE, {LWS_NAME: name}))

    def owns(self, pod: Object, name: str) -> bool:
        return bool((pod["metadata"].get("labels") or {}).get(LWS_NAME) == name)

    def leads(self, pod: Object) -> bool:
        return bool((pod["metadata"].get("labels") or {}).get(LWS_WORKER_INDEX) == "0")

    def index(self, pod: Object) -> int:
        """The index of the pod's group."""
        return int(pod["metadata"]["labels"][LWS_GROUP_INDEX])

    def revision(self, pod: Object) -> str:
        return str(pod["metadata"]["labels"].get(LWS_REVISION, ""))

    def pods_of_group(self, leader: Object) -> int:
        return int(leader["metadata"]["annotations"]["leaderworkerset.sigs.k8s.io/size"])

    def target(self, store: Store, name: str) -> str:
        """The revision that the controller of the kind gives the template as it stands."""
        leaders = store.get(STATEFUL_SETS, NAMESPACE, name)
        return str(leaders["metadata"]["labels"][LWS_REVISION]) if leaders else ""

    def revision_of_record(self, record: Object) -> str:
        """The revision of a version that one of its ControllerRevisions, or its StatefulSet's, has."""
        return str(record["metadata"]["labels"].get(LWS_REVISION, ""))

    def leaders_selected(self) -> dict[str, str]:
        """What a selector has besides the template's labels, to select leaders only."""
        return {LWS_WORKER_INDEX: "0"}

    def selected(self, name: str) -> dict[str, str]:
        """Labels that leaders of this workload have and of no other one."""
        return {LWS_NAME: name, **self.leaders_selected()}

    def governing(self, name: str) -> dict[str, Any] | None:
        """The headless Service by which its pods find each other, if the user makes it."""
        return None


@dataclass(frozen=True)
class LimitedGroups(LeaderWorkerSets):
    """Groups that the newer LeaderWorkerSet makes again once, and no more."""

    generation: str = "1.0"

    def spec(
        self,
        template: Object,
        replicas: int,
        size: int,
        *,
        unavailable: int | str | None = None,
        surge: int | str = 0,
        name: str = NAME,
    ) -> dict[str, Any]:
        made = super().spec(template, replicas, size, unavailable=unavailable, surge=surge, name=name)
        made["leaderWorkerTemplate"]["maxGroupRestarts"] = 1
        return made


@dataclass(frozen=True)
class HashedGroups(LeaderWorkerSets):
    """Groups of a leader and its workers that have no numbers, so that their LWS cannot be held."""

    generation: str = "1.0"

    def __str__(self) -> str:
        return f"{self.resource.kind} with Hash"

    def spec(
        self,
        template: Object,
        replicas: int,
        size: int,
        *,
        unavailable: int | str | None = None,
        surge: int | str = 0,
        name: str = NAME,
    ) -> dict[str, Any]:
        made = super().spec(template, replicas, size, unavailable=unavailable, surge=surge, name=name)
        return made | {"groupIdentity": "Hash"}

    def index(self, pod: Object) -> int:
        """Of a group: any number that is its own."""
        return int(pod["metadata"]["labels"][LWS_GROUP_INDEX][:8], 16)

    def target(self, store: Store, name: str) -> str:
        leaders = store.get(DEPLOYMENTS, NAMESPACE, name)
        return str(leaders["metadata"]["labels"][LWS_REVISION]) if leaders else ""


@dataclass(frozen=True)
class StatefulSets(LeaderWorkerSets):
    """Groups of one pod, made ``ordered`` one after the other, or in parallel; the first one is ``start``. ``type`` is
    that of the user's strategy.
    """

    resource: Resource = STATEFUL_SETS
    template: tuple[str, ...] = ("template",)
    strategy: tuple[str, str] = ("updateStrategy", "rollingUpdate")
    largest: int = 1
    ordered: bool = False
    start: int = 0
    type: str = "RollingUpdate"

    def __str__(self) -> str:
        marks = ("OrderedReady",) if self.ordered else ()
        marks += (self.type,) if self.type != "RollingUpdate" else ()
        return ", ".join((self.resource.kind, *marks))

    def spec(
        self,
        template: Object,
        replicas: int,
        size: int,
        *,
        unavailable: int | str | None = None,
        surge: int | str = 0,
        name: str = NAME,
    ) -> dict[str, Any]:
        assert size == 1, "a group is a single pod"
        assert not surge, "it has no surge groups"
        meta = template["metadata"]
        made: dict[str, Any] = {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": {"set": name}},
            "template": {**template, "metadata": {**meta, "labels": {**meta["labels"], "set": name}}},
            "podManagementPolicy": "OrderedReady" if self.ordered else "Parallel",
            "updateStrategy": {"type": self.type},
        }
        if self.start:
            made["ordinals"] = {"start": self.start}
        if unavailable not in (None, 1):
            made["updateStrategy"]["rollingUpdate"] = {"maxUnavailable": unavailable}
        return made

    def size(self, live: Object) -> int:
        return 1

    def first(self, live: Object) -> int:
        return int((live["spec"].get("ordinals") or {}).get("start", 0))

    def pods(self, store: Store, name: str) -> list[Object]:
        return [pod for pod in store.list(resources.PODS, NAMESPACE) if self.owns(pod, name)]

    def owns(self, pod: Object, name: str) -> bool:
        own = (pod["metadata"].get("labels") or {}).get(POD_NAME, "")
        return bool(own.rpartition("-")[0] == name)

    def leads(self, pod: Object) -> bool:
        return POD_NAME in (pod["metadata"].get("labels") or {})

    def index(self, pod: Object) -> int:
        return int(pod["metadata"]["labels"][POD_INDEX])

    def revision(self, pod: Object) -> str:
        return str(pod["metadata"]["labels"].get(POD_REVISION, ""))

    def pods_of_group(self, leader: Object) -> int:
        return 1

    def target(self, store: Store, name: str) -> str:
        live = store.get(STATEFUL_SETS, NAMESPACE, name)
        return str((live.get("status") or {}).get("updateRevision", "")) if live else ""

    def revision_of_record(self, record: Object) -> str:
        return str(record["metadata"]["name"])

    def leaders_selected(self) -> dict[str, str]:
        return {}

    def selected(self, name: str) -> dict[str, str]:
        return {"set": name}

    def governing(self, name: str) -> dict[str, Any] | None:
        spec = {"clusterIP": "None", "selector": {"set": name}, "publishNotReadyAddresses": True}
        return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


LWS = LeaderWorkerSets()
LIMITED = LimitedGroups()
HASHED = HashedGroups()
STATEFUL_SET = StatefulSets()
ORDERED = StatefulSets(ordered=True)
ON_DELETE = StatefulSets(type="OnDelete", start=2)


def pinned(selected: Mapping[str, str]) -> bool:
    """Whether a selector has labels by which groups of one workload, or one version, are told from others."""
    return not {LWS_NAME, MADE, POD_REVISION}.isdisjoint(selected)


def parameters(live: Object) -> dict[str, Any]:
    """Those of a workload's rolling updates, whichever kind it has."""
    return next(each for each in (LWS, STATEFUL_SET) if each.resource.kind == live["kind"]).parameters(live)


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for member in reversed(path):
        value = {member: value}
    found: dict[str, Any] = value
    return found


#: The label that only pods of a StatefulSet have that a release has made.
MADE = KEYS.made
