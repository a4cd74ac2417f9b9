"""JSON patch and JSON merge patch; the result shares unchanged parts with the original."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rollout_lws.sandbox.wire.api_errors import bad_request, rejected_patch

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(document: Any, operations: Any) -> Any:
    """RFC 6902; ApiError 400 for an invalid patch, 422 Invalid when a test fails or a path does not exist."""
    if not isinstance(operations, Sequence) or isinstance(operations, str):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    for operation in operations:
        try:
            document = _carry_out(document, operation)
        except (KeyError, IndexError, ValueError, TypeError) as failure:
            raise rejected_patch() from failure
    return document


def _carry_out(document: Any, operation: Mapping[str, Any]) -> Any:
    kind, path = operation["op"], _pointer(operation["path"])
    if kind == "add":
        return _at(document, path, lambda parent, key: _insert(parent, key, operation["value"]), operation["value"])
    if kind == "replace":
        return _at(document, path, lambda parent, key: _put(parent, key, operation["value"]), operation["value"])
    if kind == "remove":
        return _at(document, path, _drop, None)
    if kind == "test":
        if _look_up(document, path) != operation["value"]:
            raise ValueError("testing value failed")
        return document
    source = _pointer(operation["from"])
    value = _look_up(document, source)
    if kind == "move":
        document = _at(document, source, _drop, None)
    elif kind != "copy":
        raise ValueError(f"unknown operation {kind}")
    return _at(document, path, lambda parent, key: _insert(parent, key, value), value)


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError("a path starts with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _look_up(document: Any, path: Sequence[str]) -> Any:
    for part in path:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def _at(document: Any, path: Sequence[str], change: Callable[[Any, str], Any], whole: Any) -> Any:
    """``document`` with ``change`` applied to a copy of the parent of the last part of ``path``."""
    if not path:
        return whole
    if len(path) == 1:
        return change(document.copy(), path[0])
    key: Any = int(path[0]) if isinstance(document, list) else path[0]
    copied = document.copy()
    copied[key] = _at(document[key], path[1:], change, whole)
    return copied


def _insert(parent: Any, key: str, value: Any) -> Any:
    if isinstance(parent, list):
        index = len(parent) if key == "-" else int(key)
        if not 0 <= index <= len(parent):
            raise IndexError(f"no index {key} in a list of {len(parent)}")
        parent.insert(index, value)
    else:
        parent[key] = value
    return parent


def _put(parent: Any, key: str, value: Any) -> Any:
    if isinstance(parent, list):
        parent[int(key)] = value
    else:
        # RFC 6902 requires an existing member; Kubernetes' library does not.
        parent[key] = value
    return parent


def _drop(parent: Any, key: str) -> Any:
    del parent[int(key) if isinstance(parent, list) else key]
    return parent
