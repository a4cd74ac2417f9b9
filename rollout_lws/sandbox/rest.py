"""The REST API as a function from request to response; HTTP and the in-memory transport are thin layers over it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import NAMESPACES, PODS
from rollout_lws.sandbox import codec
from rollout_lws.sandbox.admission import scaling
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.discovery import documents, openapi
from rollout_lws.sandbox.index import Object
from rollout_lws.sandbox.patching import patches
from rollout_lws.sandbox.printing import tables
from rollout_lws.sandbox.routes import Request, Response, Target, target_of, verb_of
from rollout_lws.sandbox.wire import api_errors

_log = logging.getLogger(__name__)

#: Pages of lists to keep for clients that have not fetched them yet; older ones expire.
_PAGES = 64
#: Prefix of every continue token.
_TOKEN = "page."


class Rest:
    """All requests of a server's clients except watches (see watches)."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self._pages: dict[str, tuple[int, list[Object]]] = {}
        self._page_count = 0
        self._verbs: dict[str, Callable[[Request, Target], Response]] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def handle(self, request: Request) -> Response:
        """The response, error responses included: no request makes this raise."""
        try:
            document = documents.document(self.server, request) or openapi.document(self.server, request)
            if document is not None:
                return document
            target = target_of(self.server, request.path)
            verb = self._verbs.get(verb_of(request, target))
            if verb is None:
                raise api_errors.no_such_method()
            return verb(request, target)
        except ApiError as error:
            return codec.refused(error)
        except Exception as error:
            # Built-in kinds have no schema here, so code that reads a malformed body fails on it later.
            _log.exception("request failed method=%s path=%s", request.method, request.path)
            return codec.refused(
                ApiError(500, "InternalError", f"Internal error occurred: {type(error).__name__} {error}")
            )

    def _get(self, request: Request, target: Target) -> Response:
        if target.subresource == "log":
            raise api_errors.bad_request("the sandbox runs no containers, so there are no logs")
        self._require_subresource(target)
        obj = self.server.get(target.served.resource, target.namespace, target.name)
        if target.subresource == "scale":
            return codec.answer(scaling.read(target.served, obj))
        return codec.answer(tables.shown(target.served, request, obj, self.server.clock()))

    def _list(self, request: Request, target: Target) -> Response:
        version, objects = self._page(request, target)
        limit = _whole(request, "limit")
        metadata: dict[str, Any] = {}
        if limit and len(objects) > limit:
            metadata["continue"] = self._keep(version, objects[limit:])
            if not (request.params.get("labelSelector") or request.params.get("fieldSelector")):
                metadata["remainingItemCount"] = len(objects) - limit
            objects = objects[:limit]
        return codec.answer(tables.listed(target.served, request, objects, version, metadata, self.server.clock()))

    def _page(self, request: Request, target: Target) -> tuple[int, list[Object]]:
        """The rest of a list from its continue token on; the whole list without a token."""
        token = request.params.get("continue")
        if token:
            page = self._pages.get(token)
            if page is None and not token.startswith(_TOKEN):
                raise api_errors.bad_request("invalid continue token: continue key is not valid: no list gave this one")
            if page is None:
                raise ApiError(
                    410,
                    "Expired",
                    "The provided continue parameter is too old to display a consistent list result: list again "
                    "without it",
                )
            return page
        params = request.params
        self._require_past(params.get("resourceVersion") or "0")
        objects = self.server.list(
            target.served.resource,
            target.namespace,
            params.get("labelSelector", ""),
            params.get("fieldSelector", ""),
        )
        return self.server.store.version, objects

    def _require_past(self, version: str) -> None:
        current = self.server.store.version
        if not version.isdigit():
            raise api_errors.bad_request(f"invalid resource version: {api_errors.no_version(version)}")
        if int(version) > current:
            raise api_errors.future_version(int(version), current)

    def _keep(self, version: int, rest: list[Object]) -> str:
        self._page_count += 1
        token = f"{_TOKEN}{version}.{self._page_count}"
        self._pages[token] = (version, rest)
        if len(self._pages) > _PAGES:
            del self._pages[next(iter(self._pages))]
        return token

    def _create(self, request: Request, target: Target) -> Response:
        resource = target.served.resource
        body = codec.resource_of(request, resource)
        if target.subresource == "binding" and resource == PODS:
            node = (body.get("target") or {}).get("name", "")
            self.server.patch(PODS, target.namespace, target.name, {"spec": {"nodeName": node}})
            return codec.answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}, 201)
        if target.subresource == "eviction" and resource == PODS:
            grace = (body.get("deleteOptions") or {}).get("gracePeriodSeconds")
            self.server.delete(PODS, target.namespace, target.name, grace_seconds=grace)
            return codec.answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}, 201)
        if target.name:
            raise api_errors.no_such_method()
        self._require_kind(target, body)
        warnings = _unknown_fields(request, target, body)
        made = self.server.create(
            resource,
            body,
            namespace=target.namespace,
            dry_run=_dry_run(request),
            field_manager=_manager(request),
        )
        return codec.answer(tables.shown(target.served, request, made, self.server.clock()), 201, **warnings)

    def _update(self, request: Request, target: Target) -> Response:
        if not target.name:
            raise api_errors.no_such_method()
        self._require_subresource(target)
        body = codec.resource_of(request, target.served.resource)
        if target.subresource != "scale":
            self._require_kind(target, body)
        warnings = _unknown_fields(request, target, body)
        made = self.server.replace(
            target.served.resource,
            body,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
            dry_run=_dry_run(request),
            field_manager=_manager(request),
        )
        return self._written(request, target, made, warnings)

    def _patch(self, request: Request, target: Target) -> Response:
        if not target.name:
            raise api_errors.no_such_method()
        self._require_subresource(target)
        content_type = codec.content_type(request)
        body = codec.body_of(request) if content_type == patches.JSON_PATCH else codec.object_of(request)
        if content_type == patches.APPLY_PATCH and isinstance(body, dict):
            self._require_kind(target, body)
        warnings = _unknown_fields(request, target, body) if isinstance(body, dict) else {}
        if content_type != patches.APPLY_PATCH and "force" in request.params:
            why = "force: Forbidden: may not be specified for non-apply patch"
            raise api_errors.invalid_options("PatchOptions", why)
        existed = self.server.store.get(target.served.storage, target.namespace, target.name) is not None
        made = self.server.patch(
            target.served.resource,
            target.namespace,
            target.name,
            body,
            content_type,
            subresource=target.subresource,
            dry_run=_dry_run(request),
            force=request.flag("force"),
            field_manager=request.params.get("fieldManager", "")
            if content_type == patches.APPLY_PATCH
            else _manager(request),
        )
        return self._written(request, target, made, warnings, 200 if existed else 201)

    def _written(
        self, request: Request, target: Target, made: Object, headers: dict[str, str], status: int = 200
    ) -> Response:
        if target.subresource == "scale":
            return codec.answer(scaling.scale_of(target.served, made), status)
        return codec.answer(tables.shown(target.served, request, made, self.server.clock()), status, **headers)

    def _delete(self, request: Request, target: Target) -> Response:
        if target.subresource:
            raise api_errors.no_such_resource()
        options = codec.options_of(request)
        conditions = options.get("preconditions") or {}
        resource = target.served.resource
        left = self.server.delete(
            resource,
            target.namespace,
            target.name,
            uid=conditions.get("uid"),
            resource_version=conditions.get("resourceVersion"),
            propagation=options.get("propagationPolicy") or "",
            grace_seconds=_grace(options),
            dry_run=_dry_run(request) or "All" in (options.get("dryRun") or ()),
        )
        if "deletionTimestamp" in left["metadata"] or resource == PODS:
            return codec.answer(tables.shown(target.served, request, left, self.server.clock()))
        return codec.answer(codec.success(resource.plural, resource.group, left))

    def _delete_collection(self, request: Request, target: Target) -> Response:
        resource = target.served.resource
        if resource == NAMESPACES:
            raise api_errors.no_such_method()
        options = codec.options_of(request)
        doomed = self.server.delete_collection(
            resource,
            target.namespace,
            request.params.get("labelSelector", ""),
            request.params.get("fieldSelector", ""),
            propagation=options.get("propagationPolicy") or "",
            grace_seconds=_grace(options),
            dry_run=_dry_run(request),
        )
        version, now = self.server.store.version, self.server.clock()
        return codec.answer(tables.listed(target.served, request, doomed, version, {}, now))

    @staticmethod
    def _require_subresource(target: Target) -> None:
        offered = {"": True, "status": target.served.status, "scale": target.served.scale is not None}
        if not offered.get(target.subresource):
            raise api_errors.no_such_resource()

    @staticmethod
    def _require_kind(target: Target, body: Object) -> None:
        wrong = api_errors.wrong_kind(target.served.resource, body, custom=target.served.custom)
        if wrong is not None:
            raise wrong


def _dry_run(request: Request) -> bool:
    value = request.params.get("dryRun", "")
    if value not in ("", "All"):
        kind = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}.get(request.method)
        why = f'dryRun: Unsupported value: ["{value}"]: supported values: "All"'
        raise api_errors.invalid_options(kind or "DeleteOptions", why)
    return value == "All"


def _manager(request: Request) -> str:
    """The field manager: the fieldManager parameter, else the program in User-Agent; empty for in-process callers."""
    return request.params.get("fieldManager") or request.headers.get("user-agent", "").partition("/")[0]


def _grace(options: dict[str, Any]) -> int | None:
    value = options.get("gracePeriodSeconds")
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError) as failure:
        raise api_errors.bad_request("DeleteOptions.gracePeriodSeconds is a whole number") from failure


def _whole(request: Request, name: str) -> int:
    value = request.params.get(name) or "0"
    if not value.isdigit():
        raise api_errors.bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax')
    return int(value)


def _unknown_fields(request: Request, target: Target, body: Object) -> dict[str, str]:
    """A Warning header for the fields that the schema lacks; ApiError when the field validation mode refuses them."""
    mode = request.params.get("fieldValidation", "Warn")
    schema = target.served.schema
    applied = codec.content_type(request) == patches.APPLY_PATCH
    if (mode == "Ignore" and not applied) or schema is None or target.subresource == "scale":
        return {}
    unknown: list[str] = []
    schema.prepared(body, None, unknown.append)
    if not unknown:
        return {}
    if applied:
        raise api_errors.undeclared(target.served.resource, body, min(unknown))
    texts = [f'unknown field "{path}"' for path in sorted(unknown)]
    if mode == "Strict":
        kind, version = target.served.resource.kind, target.served.resource.version
        text = f'{kind} in version "{version}" cannot be handled as a {kind}'
        raise api_errors.bad_request(f"{text}: strict decoding error: {', '.join(texts)}")
    quoted = [text.replace('"', '\\"') for text in texts]
    return {"warning": ", ".join(f'299 - "{text}"' for text in quoted)}
