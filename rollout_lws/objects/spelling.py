"""What LeaderWorkerSet may write differently without meaning another version.

It reads templates into Go's types. Those compare quantities by value and know no difference between a struct that is
empty and one that is absent; and whatever they write back has the canonical quantities and the empty structs in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any, TypeAlias

from rollout_lws.objects.quantities import canonical

#: Steps from the members of a LeaderWorkerSet's spec inwards; each value of an object or list for ``_EACH``.
_Path: TypeAlias = tuple[str, ...]
_EACH = "*"
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
_DIVISORS: tuple[_Path, ...] = tuple(
    (*container, "env", _EACH, "valueFrom", "resourceFieldRef", "divisor") for container in _CONTAINERS
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
#: Structs that Go writes even when they are empty.
_STRUCTS: tuple[_Path, ...] = (
    *_RESOURCES,
    *((*outer, "metadata") for outer in (*_TEMPLATES, *_CLAIMS)),
    (_GROUPS, "volumeClaimTemplates", _EACH, "status"),
)


def plain(members: Mapping[str, Any]) -> dict[str, Any]:
    """A spec, or some members of it, in the shortest way to write it: equal for all that mean the same version."""
    told = _each(dict(members), _QUANTITIES, _canonical)
    told = _each(told, _DIVISORS, lambda value: _GONE if value == "0" else value)
    return _each(told, _STRUCTS, lambda value: _GONE if value == {} else value)


def in_full(members: Mapping[str, Any]) -> dict[str, Any]:
    """A spec, or some members of it, as Go's types write it back."""
    told = _each(dict(members), _QUANTITIES, _canonical)
    for *outer, name in (*_STRUCTS, *_DIVISORS):
        told = _each(told, (tuple(outer),), _filler(name, "0" if name == "divisor" else {}))
    return told


def _filler(name: str, default: Any) -> Callable[[Any], Any]:
    return lambda value: {**value, name: value.get(name, default)} if isinstance(value, dict) else value


def _canonical(value: Any) -> Any:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return value
    try:
        return canonical(str(value))
    except ValueError:
        return value


def _each(members: dict[str, Any], paths: Iterable[_Path], change: Callable[[Any], Any]) -> dict[str, Any]:
    for path in paths:
        members = _along(members, path, change)
    return members


def _along(value: Any, path: _Path, change: Callable[[Any], Any]) -> Any:
    """``value`` with what stands at ``path`` changed, or taken out; what has another form than expected stays."""
    if not path:
        return change(value)
    step, rest = path[0], path[1:]
    if isinstance(value, list) and step == _EACH:
        return [_along(item, rest, change) for item in value]
    if not isinstance(value, dict):
        return value
    names = set(value) if step == _EACH else {step} & set(value)
    if not names:
        return value
    made = {name: _along(item, rest, change) if name in names else item for name, item in value.items()}
    return {name: item for name, item in made.items() if item is not _GONE}
