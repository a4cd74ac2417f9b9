"""Reads what a controller would know of one Rollout, with a few selective requests, without a controller.

The controller's own rules judge the result, and their queries determine what is read. Kinds that may not be read are
recorded and treated as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.custom_networks import Known, kind_of, lacking, scripts_of
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, LEADER_WORKER_SETS, Resource
from rollout_lws.observe.capabilities import CRD_NAME, of_objects, of_schema, schema_of
from rollout_lws.observe.explanations import FIELDS
from rollout_lws.observe.snapshot import ListedWorld, Object
from rollout_lws.rollout.observation import Capabilities
from rollout_lws.traffic.custom.scripts import Scripts


@dataclass(frozen=True, eq=False)
class Cluster(ListedWorld):
    """One namespace of the cluster; each object is read once."""

    transport: Transport
    namespace: str
    absent: set[Resource] = field(default_factory=set, init=False)
    refused: dict[Resource, str] = field(default_factory=dict, init=False)
    _read: dict[tuple[Resource, str], Object | None] = field(default_factory=dict, init=False)
    _kinds: dict[tuple[str, str], tuple[Resource | None, str | None]] = field(default_factory=dict, init=False)

    @cached_property
    def networks(self) -> Known:
        """What is known of the scripts of the controller."""
        return scripts_of(self.transport)

    def custom_kind(self, api_version: str, kind: str) -> Resource | None:
        return self._kind(api_version, kind)[0]

    def unknown_custom_kind(self, api_version: str, kind: str) -> str | None:
        return self._kind(api_version, kind)[1]

    def _kind(self, api_version: str, kind: str) -> tuple[Resource | None, str | None]:
        asked = api_version, kind
        if asked not in self._kinds:
            self._kinds[asked] = kind_of(self.transport, api_version, kind)
        return self._kinds[asked]

    def scripts(self, rollout: str) -> Scripts:  # noqa: ARG002 - they are the same for all
        return self.networks.scripts

    def lacking(self, kinds: Iterable[Resource]) -> tuple[str, ...]:
        """What the controller may not do with the objects that scripts change."""
        return lacking(self.transport, self.networks, kinds, self.namespace)

    @property
    def capabilities(self) -> Capabilities:
        """From the CRD, or, when that may not be read, from the LWSs that were read."""
        found = self.find(CUSTOM_RESOURCE_DEFINITIONS, CRD_NAME)
        if found is not None:
            return of_schema(schema_of(found))
        read = (each for (resource, _), each in self._read.items() if resource == LEADER_WORKER_SETS)
        return of_objects(each for each in read if each is not None)

    def find(self, resource: Resource, name: str) -> Object | None:
        """The object; None also when it may not be read."""
        place = resource, name
        if place not in self._read:
            try:
                self._read[place] = self.get_object(resource, name)
            except ApiError as error:
                self._note(resource, error)
                self._read[place] = None
        return self._read[place]

    def select(self, resource: Resource, labels: str) -> Iterable[Object]:
        """Objects by label; none also when they may not be read, or when the cluster does not serve the kind."""
        try:
            return self.list_objects(resource, labels, FIELDS.get(resource, ""))
        except ApiError as error:
            if error.code == 404 or not self._note(resource, error):
                self.absent.add(resource)
            return ()

    def get_object(self, resource: Resource, name: str) -> Object:
        """The object as JSON. ApiError when the server refuses."""
        return self.transport.get(resource.path(self._namespace(resource), name))

    def list_objects(self, resource: Resource, labels: str, fields: str) -> Sequence[Object]:
        """Objects that match these label and field selectors, "" for all. ApiError when the server refuses."""
        chosen = {"labelSelector": labels, "fieldSelector": fields}
        query = {key: value for key, value in chosen.items() if value}
        return self.transport.get(resource.path(self._namespace(resource)), **query).get("items") or ()

    def serves(self, resource: Resource) -> bool:
        """Whether the server serves the kind at all, even if the user may not read it."""
        return not resource.group or self.transport.serves(resource)

    def _namespace(self, resource: Resource) -> str:
        return self.namespace if resource.namespaced else ""

    def _note(self, resource: Resource, error: ApiError) -> bool:
        """Record a kind that may not be read; other kinds may still be readable. False for a kind that is not served: a
        server refuses access before it checks whether it serves a kind. Raises every other error.
        """
        if error.code == 403 and self.serves(resource):
            self.refused[resource] = error.message
            return True
        if error.code not in (403, 404):
            raise error
        return False
