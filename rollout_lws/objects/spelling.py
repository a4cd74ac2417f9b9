"""Normalises differences in a template that LeaderWorkerSet does not treat as another version.

LWS decodes templates into Go types and compares their encoding: with canonical quantities, and without a difference
between an empty struct, list or map and an absent one. Two equal quantities are still two versions if their canonical
forms differ: a change from 1Gi to 1073741824 restarts every group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, TypeAlias

from rollout_lws.objects.quantities import canonical

#: Path from the members of a LeaderWorkerSet's spec inwards; ``_EACH`` stands for each value of an object or list.
_Path: TypeAlias = tuple[str, ...]
_Change: TypeAlias = Callable[[Any], Any]
#: Paths with common prefixes merged, so that one traversal handles them all: templates are read often. A path's change
#: is at ``_END``, which is no name in JSON.
_Tree: TypeAlias = dict[str | None, Any]
_EACH, _END = "*", None
_GONE: Any = object()

_GROUPS = "leaderWorkerTemplate"
_TEMPLATES: tuple[_Path, ...] = ((_GROUPS, "leaderTemplate"), (_GROUPS, "workerTemplate"))
_CONTAINERS: tuple[_Path, ...] = tuple(
    (*template, "spec", kind, _EACH)
    for template, kind in product(_TEMPLATES, ("containers", "initContainers", "ephemeralContainers"))
)
_CLAIMS: tuple[_Path, ...] = (
    (_GROUPS, "volumeClaimTemplates", _EACH),
    *((*template, "spec", "volumes", _EACH, "ephemeral", "volumeClaimTemplate") for template in _TEMPLATES),
)
_DOWNWARD: tuple[_Path, ...] = tuple(
    (*template, "spec", "volumes", _EACH, *where, "downwardAPI", "items", _EACH)
    for template, where in product(_TEMPLATES, ((), ("projected", "sources", _EACH)))
)
_DIVISORS: tuple[_Path, ...] = (
    *((*container, "env", _EACH, "valueFrom", "resourceFieldRef", "divisor") for container in _CONTAINERS),
    *((*item, "resourceFieldRef", "divisor") for item in _DOWNWARD),
)
_RESOURCES: tuple[_Path, ...] = (
    *((*container, "resources") for container in _CONTAINERS),
    *((*claim, "spec", "resources") for claim in _CLAIMS),
)
_QUANTITIES: tuple[_Path, ...] = (
    *((*resources, kind, _EACH) for resources, kind in product(_RESOURCES, ("limits", "requests"))),
    *((*template, "spec", "resources", kind, _EACH) for template, kind in product(_TEMPLATES, ("limits", "requests"))),
    *((*template, "spec", "overhead", _EACH) for template in _TEMPLATES),
    *((*template, "spec", "volumes", _EACH, "emptyDir", "sizeLimit") for template in _TEMPLATES),
    *_DIVISORS,
)
#: Structs that Go encodes even when they are empty.
_STRUCTS: tuple[_Path, ...] = (
    *_RESOURCES,
    *((*outer, "metadata") for outer in (*_TEMPLATES, *_CLAIMS)),
    (_GROUPS, "volumeClaimTemplates", _EACH, "status"),
)
_ALWAYS = (*_STRUCTS, *_DIVISORS)
#: Maps that Go omits when they are empty.
_MAPS: tuple[_Path, ...] = (
    *((*outer, "metadata", name) for outer, name in product((*_TEMPLATES, *_CLAIMS), ("labels", "annotations"))),
    *((*template, "spec", name) for template, name in product(_TEMPLATES, ("nodeSelector", "overhead"))),
    *(path[:-1] for path in _QUANTITIES if path[-2] in ("limits", "requests")),
)


def plain(members: dict[str, Any]) -> dict[str, Any]:
    """A spec, or some members of it, in a short normal form: equal for specs of the same version.

    Nulls stay. Not covered are other values that Go omits, besides lists and the maps of ``_MAPS``: empty strings,
    false and 0 where that is the same as none (``hostNetwork: false``, a variable's ``value: ""``), and empty maps
    deeper inside (``matchLabels: {}``). Present or absent, these make two versions here and one for LWS.
    """
    return dict(_changed(_without_empty_lists(members), _PLAIN))


def in_full(members: dict[str, Any]) -> dict[str, Any]:
    """A spec, or some members of it, as the webhook writes it back: with everything that Go's types add, and with
    values that they would omit, which the webhook does not remove.
    """
    told = _changed(members, _WRITTEN)
    for tree in _FILLED:
        told = _changed(told, tree)
    return dict(told)


def _written(value: Any) -> Any:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        return value
    try:
        return canonical(str(value))
    except ValueError:
        return value


def _divisor(value: Any) -> Any:
    written = _written(value)
    return _GONE if written == "0" else written


def _unless_empty(value: Any) -> Any:
    return _GONE if value == {} else value


def _filler(name: str, default: Any) -> _Change:
    def fill(value: Any) -> Any:
        return {**value, name: default} if isinstance(value, dict) and value.get(name) is None else value

    return fill


def _without_empty_lists(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_empty_lists(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_empty_lists(item) for name, item in value.items() if item != []}
    return value


def _changed(value: Any, tree: _Tree) -> Any:
    """``value`` with the values at the ends of ``tree`` changed or removed, the innermost first; values of other types
    stay.
    """
    if isinstance(value, list) and _EACH in tree:
        value = [_changed(item, tree[_EACH]) for item in value]
    elif isinstance(value, dict):
        made = {}
        for name, item in value.items():
            branch = tree.get(name) or tree.get(_EACH)
            kept = item if branch is None else _changed(item, branch)
            if kept is not _GONE:
                made[name] = kept
        value = made
    return tree[_END](value) if _END in tree else value


def _tree(changes: Mapping[_Path, _Change]) -> _Tree:
    root: _Tree = {}
    for path, change in changes.items():
        branch = root
        for step in path:
            branch = branch.setdefault(step, {})
        branch[_END] = change
    return root


_WRITTEN = _tree(dict.fromkeys(_QUANTITIES, _written))
_PLAIN = _tree(
    dict.fromkeys(_QUANTITIES, _written)
    | dict.fromkeys(_DIVISORS, _divisor)
    | dict.fromkeys((*_STRUCTS, *_MAPS), _unless_empty)
)
#: For each name of a member that Go fills in: the objects that it is missing in.
_FILLED = tuple(
    _tree({path[:-1]: _filler(name, "0" if name == "divisor" else {}) for path in _ALWAYS if path[-1] == name})
    for name in sorted({path[-1] for path in _ALWAYS})
)
