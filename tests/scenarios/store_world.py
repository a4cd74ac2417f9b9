"""The controller's view of a world without watches: its caches, filled straight from the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from rollout_lws.controller.on_demand_watches import EXPLAINING, OPT_IN
from rollout_lws.errors import ApiError
from rollout_lws.objects import resources as kinds
from rollout_lws.objects.resources import Resource
from rollout_lws.observe.cache_types import TRIMMED, StoredObject
from rollout_lws.observe.explanations import FIELDS
from rollout_lws.observe.snapshot import ListedWorld
from rollout_lws.rollout.decision import Wanted
from rollout_lws.rollout.observation import Capabilities
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.store import Event, Object
from rollout_lws.traffic.custom.scripts import Evaluation, Outcome, Scripts
from tests.scenarios.lua import evaluated
from tests.scenarios.names import KEYS, NAMESPACE

#: Kinds that are known only while they are wanted, and so many seconds after that.
_AFTER = {**EXPLAINING, **dict.fromkeys(OPT_IN, 0.0)}
Decode: TypeAlias = Callable[[bytes], Any]


class StoreWorld(ListedWorld):
    """What ``observe`` asks for. Each version of an object is decoded once, as by a watch, and trimmed as by the
    controller's: what a cache does not keep must change no story.
    """

    capabilities = Capabilities()
    decoders = TRIMMED

    def __init__(self, server: ApiServer) -> None:
        super().__init__(KEYS)
        self.server = server
        self._versions: dict[tuple[Resource, str, Decode], tuple[Object, Any]] = {}
        #: Answers of lists by the resource that they are stored as, until one of its objects changes.
        self._listed: dict[Resource, dict[Any, tuple[Any, ...]]] = {}
        self._heard_of = server.store.version
        server.store.subscribe(self._take)
        self._wanted: dict[Resource, float] = {}
        self._followed: frozenset[str] = frozenset()
        self._jobs: frozenset[str] = frozenset()

        #: The ConfigMap with scripts, by namespace and name; None for a controller that runs none.
        self.scripts_in: tuple[str, str] | None = None
        self._asked_kinds: frozenset[tuple[str, str]] = frozenset()
        self._reads_scripts = False
        self._outcomes: dict[Evaluation, Outcome] = {}

    def want_scripts(self, wanted: Wanted) -> bool:
        """What is known of custom kinds and scripts from now on, and nothing else; True when some of it was not before.
        Scripts run at once, in processes like the controller's.
        """
        before = self._asked_kinds, self._reads_scripts, self._outcomes
        self._asked_kinds, self._reads_scripts = frozenset(wanted.custom_kinds), wanted.scripts
        self._outcomes = {each: evaluated(each) for each in wanted.evaluations}
        kinds, reads, outcomes = before
        return not (self._asked_kinds <= kinds and reads >= wanted.scripts and self._outcomes.keys() <= outcomes.keys())

    def custom_kind(self, api_version: str, kind: str) -> Resource | None:
        if (api_version, kind) not in self._asked_kinds:
            return None
        group, _, version = api_version.rpartition("/")
        served = (each.resource for each in self.server.served)
        return next((each for each in served if (each.group, each.version, each.kind) == (group, version, kind)), None)

    def unknown_custom_kind(self, api_version: str, kind: str) -> str | None:
        return None if (api_version, kind) in self._asked_kinds else ""

    def scripts(self, rollout: str) -> Scripts:
        if self.scripts_in is None:
            return Scripts()
        source = "/".join(self.scripts_in)
        if not self._reads_scripts:
            return Scripts(source, waits="")
        try:
            found = self.server.get(kinds.CONFIG_MAPS, *self.scripts_in)
        except ApiError:
            found = {}
        return Scripts(source, found.get("data") or {}, outcomes=self._outcomes)

    def _take(self, event: Event) -> None:
        self._heard_of = event.version
        if event.resource == kinds.CUSTOM_RESOURCE_DEFINITIONS:
            self._listed.clear()
        self._listed.pop(event.resource, None)

    def want(self, wanted: Iterable[Resource]) -> float | None:
        """What explains is known only while somebody wants it, and some of it only after a while: in so many seconds
        there will be something new to know, None for not at all.
        """
        asked = [resource for resource in _AFTER if resource in wanted]
        fresh = [_AFTER[resource] for resource in asked if resource not in self._wanted]
        now = self.server.clock()
        self._wanted = {each: self._wanted.get(each, now + _AFTER[each]) for each in asked}
        return min(fresh, default=None)

    def want_pods(self, workloads: Iterable[str]) -> bool:
        """All pods of these LWSs are known from now on, and of no others; True when some were not before."""
        before, self._followed = self._followed, frozenset(workloads)
        return not self._followed <= before

    def want_job_pods(self, jobs: Iterable[str]) -> bool:
        """The same for the pods of these Jobs."""
        before, self._jobs = self._jobs, frozenset(jobs)
        return not self._jobs <= before

    @property
    def watched(self) -> list[Resource]:
        """Kinds that explain and are asked for now."""
        return [each for each in self._wanted if self._is_watched(each)]

    def _is_watched(self, resource: Resource) -> bool:
        return resource not in _AFTER or self._wanted.get(resource, float("inf")) <= self.server.clock()

    def _read(self, resource: Resource, obj: Object, decode: Decode) -> Any:
        place = resource, obj["metadata"]["name"], decode
        known = self._versions.get(place)
        # Nobody changes a stored object in place, so that another version is another dict.
        if known is None or known[0] is not obj:
            known = self._versions[place] = obj, decode(msgspec.json.encode(obj))
        return known[1]

    def find(self, resource: Resource, name: str) -> Object | None:
        try:
            return self.server.get(resource, NAMESPACE, name)
        except ApiError:
            return None

    def select(self, resource: Resource, labels: str) -> list[Object]:
        namespace = NAMESPACE if resource.namespaced else ""
        fields = FIELDS.get(resource, "")
        return self.server.list(resource, namespace, label_selector=labels, field_selector=fields)

    def _get(self, resource: Resource, name: str, decode: Decode) -> Any | None:
        found = self.find(resource, name)
        return None if found is None else self._read(resource, found, decode)

    def _list(self, resource: Resource, labels: str, decode: Decode) -> tuple[Any, ...]:
        asked = resource, labels, decode
        answers = self._listed.setdefault(self.server.lookup(resource).storage, {})
        if asked not in answers or self._heard_of != self.server.store.version:
            answers[asked] = tuple(self._read(resource, each, decode) for each in self.select(resource, labels))
        return answers[asked]

    def every(self, resource: Resource) -> Iterable[StoredObject]:
        if self.unserved(resource) or resource in self.refused or not self._is_watched(resource):
            return []
        return super().every(resource)

    def unserved(self, resource: Resource) -> bool:
        if not self._is_watched(resource):
            return False
        try:
            self.server.lookup(resource)
        except ApiError as error:
            return error.code == 404
        return False

    def unknown(self, resource: Resource) -> str | None:
        return self.refused.get(resource) if self._is_watched(resource) else ""

    def unknown_job_pods(self, job: str) -> str | None:
        return None if job in self._jobs else ""

    def unknown_pods(self, workload: str) -> str | None:
        return None if workload in self._followed else ""
