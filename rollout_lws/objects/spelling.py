"""Normalises differences in a template that LeaderWorkerSet does not treat as another version.

LWS decodes templates into Go types and compares their encoding: with canonical quantities, and without a difference
between an empty struct, list or map and an absent one. Two equal quantities are still two versions if their canonical
forms differ: a change from 1Gi to 1073741824 restarts every group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any, TypeAlias

from rollout_lws.objects.quantities import canonical

#: Path from the members of a LeaderWorkerSet's spec inwards; ``_EACH`` stands for each value of an object or list.
_Path: TypeAlias = tuple[str, ...]
#: The same paths with common prefixes merged, so that one traversal handles them all: templates are read often.
_Tree: TypeAlias = dict[str, Any]
_EACH, _END = "*", ""
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
#: Maps that Go omits when they are empty.
_MAPS: tuple[_Path, ...] = (
    *((*outer, "metadata", name) for outer, name in product((*_TEMPLATES, *_CLAIMS), ("labels", "annotations"))),
    *((*template, "spec", name) for template, name in product(_TEMPLATES, ("nodeSelector", "overhead"))),
    *(path[:-1] for path in _QUANTITIES if path[-2] in ("limits", "requests")),
)


def _tree(paths: Iterable[_Path]) -> _Tree:
    root: _Tree = {}
    for path in paths:
        branch = root
        for step in path:
            branch = branch.setdefault(step, {})
        branch[_END] = {}
    return root


_QUANTITY_TREE, _DIVISOR_TREE, _EMPTY_TREE = _tree(_QUANTITIES), _tree(_DIVISORS), _tree((*_STRUCTS, *_MAPS))
#: By name of the filled-in member: its default, and where it is filled in.
_FILLED: dict[str, tuple[Any, _Tree]] = {
    name: ("0" if name == "divisor" else {}, _tree(path[:-1] for path in (*_STRUCTS, *_DIVISORS) if path[-1] == name))
    for name in sorted({path[-1] for path in (*_STRUCTS, *_DIVISORS)})
}


def plain(members: Mapping[str, Any]) -> dict[str, Any]:
    """A spec, or some members of it, in a short normal form: equal for specs of the same version.

    Nulls stay. Not covered are other values that Go omits, besides lists and the maps of ``_MAPS``: empty strings,
    false and 0 where that is the same as none (``hostNetwork: false``, a variable's ``value: ""``), and empty maps
    deeper inside (``matchLabels: {}``). Present or absent, these make two versions here and one for LWS.
    """
    told = _changed(_without_empty_lists(members), _QUANTITY_TREE, _written)
    told = _changed(told, _DIVISOR_TREE, lambda value: _GONE if value == "0" else value)
    return dict(_changed(told, _EMPTY_TREE, lambda value: _GONE if value == {} else value))


def in_full(members: Mapping[str, Any]) -> dict[str, Any]:
    """A spec, or some members of it, as the webhook writes it back: with everything that Go's types add, and with
    values that they would omit, which the webhook does not remove.
    """
    told = _changed(members, _QUANTITY_TREE, _written)
    for name, (default, tree) in _FILLED.items():
        told = _changed(told, tree, _filler(name, default))
    return dict(told)


def _filler(name: str, default: Any) -> Callable[[Any], Any]:
    def fill(value: Any) -> Any:
        return {**value, name: default} if isinstance(value, Mapping) and value.get(name) is None else value

    return fill


def _written(value: Any) -> Any:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return value
    try:
        return canonical(str(value))
    except ValueError:
        return value


def _without_empty_lists(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_empty_lists(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _without_empty_lists(item) for name, item in value.items() if item != []}
    return value


def _changed(value: Any, tree: _Tree, change: Callable[[Any], Any]) -> Any:
    """``value`` with the values at the ends of ``tree`` changed or removed; values of other types stay."""
    if isinstance(value, list) and _EACH in tree:
        value = [_changed(item, tree[_EACH], change) for item in value]
    elif isinstance(value, Mapping):
        made = {}
        for name, item in value.items():
            branch = tree.get(name) or tree.get(_EACH)
            made[name] = item if branch is None else _changed(item, branch, change)
        value = {name: item for name, item in made.items() if item is not _GONE}
    return change(value) if _END in tree else value
