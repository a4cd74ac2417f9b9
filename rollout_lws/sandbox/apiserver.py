"""The sandbox's Kubernetes API server as synchronous calls; behaviours, tests and the HTTP layer all go through it.

The server adopts bodies and patches without copying them: a caller must not change one after the call. Results are the
stored objects themselves and must not be changed either.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout_lws.objects.resources import NAMESPACES, Resource
from rollout_lws.sandbox import cascading_deletion
from rollout_lws.sandbox.admission import deletion, kinds, metadata, scaling
from rollout_lws.sandbox.api_resources import BUILTINS, Served
from rollout_lws.sandbox.definitions import crds, gateway_api, istio
from rollout_lws.sandbox.index import Object
from rollout_lws.sandbox.patching import ownership, patches, strategic, verbatim
from rollout_lws.sandbox.store import Event, Store
from rollout_lws.sandbox.wire import api_errors, selectors


@dataclass(frozen=True, slots=True)
class Operation:
    """A write as admission sees it: ``verb`` is create or update, ``old`` is None for create."""

    verb: str
    resource: Resource
    object: Object
    old: Object | None = None
    subresource: str = ""


#: Returns the object to continue with (the operation's own, or a changed copy), or raises ApiError to deny the write.
Admission = Callable[[Operation], Object]


class ApiServer:
    """The API server of one cluster.

    ``clock`` returns epoch seconds; ``seed`` makes uids and generated names repeatable; ``history`` is how many past
    changes of each resource a watch can replay. Every refusal is an ApiError with Kubernetes' code and reason.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        resources: Iterable[Served] = (*BUILTINS, *gateway_api.SERVED, *istio.SERVED),
        *,
        seed: int | None = None,
        history: int = 5000,
    ) -> None:
        self.clock = clock
        self.store = Store(history)
        self.admission: list[Admission] = []
        self._names = metadata.Names(random.Random(seed))
        self._teardown = cascading_deletion.Teardown(self)
        self._served = {served.resource: served for served in resources}
        self._by_path = {_path_key(resource): served for resource, served in self._served.items()}
        self.store.subscribe(self._follow)
        for name in ("default", "kube-system"):
            self.create(NAMESPACES, {"metadata": {"name": name}})

    @property
    def served(self) -> Iterable[Served]:
        """All resources served now."""
        return self._served.values()

    def lookup(self, resource: Resource) -> Served:
        """The served form of ``resource``; ApiError 404 when it is not served."""
        found = self._served.get(resource)
        if found is None:
            raise api_errors.no_such_resource()
        return found

    def find(self, group: str, version: str, plural: str) -> Served | None:
        """The resource served under these parts of a URL; None if there is none."""
        return self._by_path.get((group, version, plural))

    def builds_in(self, group: str) -> bool:
        """Whether this API group is built in, not added by CustomResourceDefinitions."""
        return any(served.resource.group == group and not served.custom for served in self._served.values())

    def now(self) -> str:
        return metadata.timestamp(self.clock())

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        served = self.lookup(resource)
        return served.shown(self.stored(served, namespace, name))

    def list(
        self, resource: Resource, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> list[Object]:
        """Objects ordered by namespace, then name; an empty namespace selects all namespaces."""
        served = self.lookup(resource)
        labels = selectors.parse_labels(label_selector)
        objects: Iterable[Object] = self.store.list(served.storage, namespace, labels.equal)
        if labels.others:
            objects = (obj for obj in objects if labels.matches(obj["metadata"].get("labels") or {}))
        if served.from_storage is not None:
            objects = map(served.from_storage, objects)
        if field_selector:
            objects = filter(selectors.parse_fields(field_selector, served.fields), objects)
        return list(objects)

    def create(
        self,
        resource: Resource,
        body: Mapping[str, Any],
        *,
        namespace: str = "",
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Object:
        """Create ``body``; without ``namespace`` the body's metadata names it."""
        served = self.lookup(resource)
        metadata.require_shape(body)
        given = body.get("metadata") or {}
        namespace = self._namespace(served, namespace, given)
        name = given.get("name") or (self._names.generated(given["generateName"]) if given.get("generateName") else "")
        if not name:
            raise api_errors.invalid(resource, "", ["metadata.name: Required value: name or generateName is required"])
        if (given.get("resourceVersion") or "0") != "0":
            raise api_errors.version_on_create()
        self._require_open(resource, namespace, name)
        meta = metadata.born(
            given, uid=self._names.uid(), created=self.now(), generation=served.generation or served.custom
        )
        meta["name"] = name
        if namespace:
            meta["namespace"] = namespace
        obj = {**body, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}
        if served.status:
            obj.pop("status", None)
        obj = self._admit(served, Operation("create", resource, kinds.prepare(served, obj, None, self.now())))
        if self.store.get(served.storage, namespace, name) is not None:
            raise api_errors.already_exists(resource, name)
        if field_manager:
            obj = ownership.track(None, obj, field_manager, "", self.now())
        return self._commit(served, obj, dry_run)

    def replace(
        self,
        resource: Resource,
        body: Mapping[str, Any],
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
        field_manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """PUT. A resourceVersion in the body is a precondition; custom resources require one."""
        served = self.lookup(resource)
        given = body.get("metadata") or {}
        namespace, name = self._namespace(served, namespace, given), name or given.get("name", "")
        old = self.get(resource, namespace, name)
        if subresource == "scale":
            body = scaling.scaled(served, old, body)
        elif served.custom and not given.get("resourceVersion"):
            raise api_errors.unconditional(resource, name)
        return self._update(served, old, body, subresource, field_manager, dry_run)

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Any,
        content_type: str = patches.MERGE_PATCH,
        *,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Patch an object or a subresource; apply may create it, and with ``force`` takes over others' fields."""
        served = self.lookup(resource)
        stored = self.store.get(served.storage, namespace, name)
        if content_type == patches.APPLY_PATCH:
            if not field_manager:
                why = "fieldManager: Required value: is required for apply patch"
                raise api_errors.invalid_options("PatchOptions", why)
            if stored is None:
                return self._apply_new(served, namespace, name, patch, field_manager, dry_run)
            old = served.shown(stored)
            seen = verbatim.patchable(old, content_type)
            body = ownership.apply(served, seen, patch, field_manager, force, subresource, self.now())
            return self._update(served, old, body, subresource, None, dry_run)
        if stored is None:
            raise api_errors.not_found(resource, name)
        old = served.shown(stored)
        target = verbatim.patchable(old, content_type)
        target = scaling.scale_of(served, old) if subresource == "scale" else target
        if content_type == patches.MERGE_PATCH:
            body = patches.merge_patch(target, patch)
        elif content_type == patches.JSON_PATCH:
            body = patches.json_patch(target, patch)
        elif content_type == patches.STRATEGIC_PATCH and not served.custom:
            body = strategic.merge(target, patch)
        else:
            raise api_errors.unsupported_patch(served.custom)
        if served.custom and subresource != "scale" and isinstance(body, Mapping):
            changed = api_errors.other_identity(resource, body)
            if changed is not None:
                raise changed
        if subresource == "scale":
            body = scaling.scaled(served, old, body)
        return self._update(served, old, body, subresource, field_manager, dry_run)

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str = "",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Delete an object; finalizers and a pod's grace period keep it, with a deletionTimestamp, until they end."""
        served = self.lookup(resource)
        old = self.stored(served, namespace, name)
        deletion.check_preconditions(resource, old, uid, resource_version)
        marked = deletion.mark(served, old, propagation, grace_seconds, self.clock())
        if dry_run:
            return served.shown(marked or old)
        if resource == NAMESPACES:
            return self._teardown.namespace(old, marked or old)
        if resource == crds.RESOURCE:
            return self._teardown.definition(old, marked or old)
        if marked is None:
            return served.shown(self.store.remove(served.storage, namespace, name, deletion.last(old)))
        if marked is not old:
            marked = self.store.put(served.storage, marked)
        return served.shown(marked)

    def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        *,
        propagation: str = "",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Sequence[Object]:
        doomed = self.list(resource, namespace, label_selector, field_selector)
        for obj in doomed:
            meta = obj["metadata"]
            self.delete(
                resource,
                meta.get("namespace", ""),
                meta["name"],
                propagation=propagation,
                grace_seconds=grace_seconds,
                dry_run=dry_run,
            )
        return doomed

    def stored(self, served: Served, namespace: str, name: str) -> Object:
        found = self.store.get(served.storage, namespace if served.resource.namespaced else "", name)
        if found is None:
            raise api_errors.not_found(served.resource, name)
        return found

    def _apply_new(
        self, served: Served, namespace: str, name: str, patch: Mapping[str, Any], manager: str, dry_run: bool
    ) -> Object:
        given = {**(patch.get("metadata") or {}), "name": name}
        body = ownership.apply(served, None, {**patch, "metadata": given}, manager, False, "", self.now())
        return self.create(served.resource, body, namespace=namespace, dry_run=dry_run)

    def _update(
        self,
        served: Served,
        old: Object,
        body: Mapping[str, Any],
        subresource: str,
        field_manager: str | None,
        dry_run: bool,
    ) -> Object:
        """The last part of replace and patch; ``field_manager`` None: the caller has already updated managedFields."""
        resource = served.resource
        metadata.require_shape(body)
        given = body.get("metadata") or {}
        meta = old["metadata"]
        if given.get("resourceVersion") not in (None, "", meta["resourceVersion"]):
            raise api_errors.modified(resource, meta["name"])
        self._namespace(served, meta.get("namespace", ""), given)
        new = kinds.limited_to({**body, "metadata": metadata.carried(resource, given, meta)}, old, served, subresource)
        new |= {"apiVersion": resource.api_version, "kind": resource.kind}
        new = kinds.prepare(served, new, old, self.now())
        if ownership.is_unchanged(old, new):
            return old
        new = self._admit(served, Operation("update", resource, new, old, subresource))
        if field_manager is not None and (field_manager or "managedFields" in meta):
            new = ownership.track(old, new, field_manager, subresource, self.now())
        if ownership.is_unchanged(old, new):
            return old
        if "generation" in meta and kinds.spec_changed(new, old, served):
            new["metadata"] = {**new["metadata"], "generation": meta["generation"] + 1}
        if "deletionTimestamp" in meta and deletion.finished(new, resource) and not dry_run:
            gone = self.store.remove(served.storage, meta.get("namespace", ""), meta["name"])
            version = gone["metadata"]["resourceVersion"]
            return {**new, "metadata": {**new["metadata"], "resourceVersion": version}}
        return self._commit(served, new, dry_run)

    def _admit(self, served: Served, operation: Operation) -> Object:
        for hook in self.admission:
            changed = hook(operation)
            if changed is not operation.object:
                changed = kinds.prepare(served, changed, operation.old, self.now())
                operation = Operation(operation.verb, operation.resource, changed, operation.old, operation.subresource)
        kinds.check(served, operation.object, operation.old)
        return operation.object

    def _commit(self, served: Served, obj: Object, dry_run: bool) -> Object:
        if dry_run:
            return obj
        return served.shown(
            self.store.put(served.storage, obj if served.to_storage is None else served.to_storage(obj))
        )

    def _namespace(self, served: Served, namespace: str, given: Mapping[str, Any]) -> str:
        """The namespace of a write, from the URL or the body."""
        if not served.resource.namespaced:
            return ""
        own = given.get("namespace") or namespace
        if namespace and own != namespace:
            raise api_errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        if not own:
            raise api_errors.bad_request("an empty namespace may not be set during creation")
        return str(own)

    def _require_open(self, resource: Resource, namespace: str, name: str) -> None:
        """Refuse to create objects in a namespace that does not exist or is terminating."""
        if not namespace:
            return
        home = self.store.get(NAMESPACES, "", namespace)
        if home is None:
            raise api_errors.not_found(NAMESPACES, namespace)
        if "deletionTimestamp" in home["metadata"]:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            message = f"namespace {namespace} is being terminated"
            causes = [{"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}]
            raise api_errors.forbidden(resource, name, why, causes)

    def _follow(self, event: Event) -> None:
        if event.type == "DELETED":
            self._teardown.release(event)
        if event.resource == crds.RESOURCE:
            for served in crds.served_by(event.previous or event.object):
                self._served.pop(served.resource, None)
                self._by_path.pop(_path_key(served.resource), None)
            if event.type == "ADDED":
                self.store.begin(crds.storage_of(event.object))
            if event.type != "DELETED":
                for served in crds.served_by(event.object):
                    self._served[served.resource] = self._by_path[_path_key(served.resource)] = served


def _path_key(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural
