"""Strategic merge patch for built-in kinds: lists with merge keys, and the $-directives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollout_lws.sandbox.wire.api_errors import bad_request

#: Merge keys of lists of objects by field name; the first key that all items have is used.
_MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "port"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "secrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "schedulingGates": ("name",),
    "resourceClaims": ("name",),
    "conditions": ("type",),
    "addresses": ("type",),
    "ownerReferences": ("uid",),
}
#: Lists of plain values that are merged as sets.
SETS = frozenset({"finalizers"})


def merge(target: Any, patch: Any) -> Any:
    """``target`` with ``patch`` merged in; unknown lists are replaced as a whole."""
    if not isinstance(patch, Mapping):
        raise bad_request("a strategic merge patch is an object")
    return _merge_object(target if isinstance(target, Mapping) else {}, patch)


def _merge_object(target: Mapping[str, Any], patch: Mapping[str, Any]) -> Any:
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return None
    merged = dict(target)
    if "$retainKeys" in patch:
        merged = {key: value for key, value in merged.items() if key in patch["$retainKeys"]}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            field = key.partition("/")[2]
            merged[field] = [entry for entry in merged.get(field) or () if entry not in value]
        elif key.startswith("$"):
            continue
        elif value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            result = _merge_object(below if isinstance(below, Mapping) else {}, value)
            if result is None:
                merged.pop(key, None)
            else:
                merged[key] = result
        elif isinstance(value, list):
            order = patch.get(f"$setElementOrder/{key}")
            merged[key] = _merge_list(key, merged.get(key) or [], value, order)
        else:
            merged[key] = value
    for key, order in patch.items():
        field = key.partition("/")[2]
        if key.startswith("$setElementOrder/") and field not in patch and merged.get(field):
            merged[field] = _ordered(field, merged[field], order)
    return merged


def _merge_list(field: str, target: list[Any], patch: list[Any], order: list[Any] | None) -> list[Any]:
    if field in SETS:
        return [*target, *(entry for entry in patch if entry not in target)]
    key = merge_key(field, [*patch, *target])
    if key is None or any(isinstance(entry, Mapping) and entry.get("$patch") == "replace" for entry in patch):
        return [entry for entry in patch if not (isinstance(entry, Mapping) and entry.get("$patch") == "replace")]
    merged = list(target)
    for entry in patch:
        position = next((at for at, old in enumerate(merged) if old.get(key) == entry.get(key)), None)
        if entry.get("$patch") == "delete":
            if position is not None:
                del merged[position]
        elif position is None:
            merged.append(_merge_object({}, entry))
        else:
            merged[position] = _merge_object(merged[position], entry)
    return merged if order is None else _ordered(field, merged, order)


def merge_key(field: str, entries: Sequence[Any]) -> str | None:
    """The merge key of a list of built-in objects; None for a list that is replaced as a whole."""
    if not entries or not all(isinstance(entry, Mapping) for entry in entries):
        return None
    candidates = _MERGE_KEYS.get(field, ())
    return next((key for key in candidates if all(key in entry or "$patch" in entry for entry in entries)), None)


def _ordered(field: str, entries: list[Any], order: list[Any]) -> list[Any]:
    """``entries`` in the order that the client asked for; entries outside that order come last."""
    key = merge_key(field, entries)
    wanted = [entry.get(key) if key and isinstance(entry, Mapping) else entry for entry in order]

    def rank(entry: Any) -> int:
        value = entry.get(key) if key else entry
        return wanted.index(value) if value in wanted else len(wanted)

    return sorted(entries, key=rank)
