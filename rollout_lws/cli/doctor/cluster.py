"""Reads what a controller would know of one Rollout, by a few selective requests, without a controller.

The very rules of the controller judge what is read here, and their questions decide what is read. What may not be read
is noted, and taken for absent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, LEADER_WORKER_SETS, Resource
from rollout_lws.observe.capabilities import CRD_NAME, of_objects, of_schema, schema_of
from rollout_lws.observe.explanations import FIELDS
from rollout_lws.observe.snapshot import ListedWorld, Object
from rollout_lws.rollout.observation import Capabilities


class Source(Protocol):
    """Objects as JSON values. ApiError where the server refuses."""

    def get(self, resource: Resource, namespace: str, name: str) -> Object: ...
    def list(self, resource: Resource, namespace: str, labels: str = "", fields: str = "") -> Iterable[Object]:
        """Those with these labels and fields, which are selectors; no namespace means all of them."""
        ...

    def serves(self, resource: Resource) -> bool:
        """Whether the server knows the kind at all, for whoever may not read it."""
        ...


@dataclass(frozen=True, eq=False)
class Cluster(ListedWorld):
    """``namespace`` of it, each thing asked for once."""

    source: Source
    namespace: str
    absent: set[Resource] = field(default_factory=set, init=False)
    refused: dict[Resource, str] = field(default_factory=dict, init=False)
    _read: dict[tuple[Resource, str], Object | None] = field(default_factory=dict, init=False)

    @property
    def capabilities(self) -> Capabilities:
        """As the CRD says; where that may not be read, as the LWSs that were read show."""
        found = self.find(CUSTOM_RESOURCE_DEFINITIONS, CRD_NAME)
        if found is not None:
            return of_schema(schema_of(found))
        read = (each for (resource, _), each in self._read.items() if resource == LEADER_WORKER_SETS)
        return of_objects(each for each in read if each is not None)

    def find(self, resource: Resource, name: str) -> Object | None:
        """None also when it may not be read."""
        place = resource, name
        if place not in self._read:
            try:
                self._read[place] = self.source.get(resource, self._namespace(resource), name)
            except ApiError as error:
                self._note(resource, error)
                self._read[place] = None
        return self._read[place]

    def select(self, resource: Resource, labels: str) -> Iterable[Object]:
        """None also when they may not be read, or the cluster has no such kind."""
        try:
            return self.source.list(resource, self._namespace(resource), labels, FIELDS.get(resource, ""))
        except ApiError as error:
            if error.code == 404 or not self._note(resource, error):
                self.absent.add(resource)
            return ()

    def _namespace(self, resource: Resource) -> str:
        return self.namespace if resource.namespaced else ""

    def _note(self, resource: Resource, error: ApiError) -> bool:
        """Whoever may not read the one may be able to read the other; anything else is a failure. False for a kind
        that is not there: a server refuses before it looks whether it serves what is asked for.
        """
        if error.code == 403 and self.source.serves(resource):
            self.refused[resource] = error.message
            return True
        if error.code not in (403, 404):
            raise error
        return False
