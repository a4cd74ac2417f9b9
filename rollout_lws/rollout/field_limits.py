"""A status within bounds, whoever has written into it.

Routers, webhooks and containers say as much as they like, and a status that is refused for its length would stop the
release that it tells of. A moment ahead of the clock would have a release wait for it, be that for decades.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

from rollout_lws.api.base import Model
from rollout_lws.api.structural import ITEMS_LIMIT, TEXT_LIMIT
from rollout_lws.workload.trouble import shortened

_M = TypeVar("_M", bound=Model)


def within_limits(model: _M) -> _M:
    """The model with texts and lists as long as the CRD lets them be; itself where nothing is longer."""
    return _with_each(model, _short_enough, (str, tuple))


def not_ahead(model: _M, now: datetime) -> _M:
    """The model with every moment after ``now`` put to ``now``; itself where there is none.

    Each is the time of something that has happened: one ahead comes from a clock that was ahead, or is forged.
    """
    return _with_each(model, lambda value: now if isinstance(value, datetime) and value > now else value, (datetime,))


def _short_enough(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= TEXT_LIMIT else shortened(value, TEXT_LIMIT)
    return value[:ITEMS_LIMIT] if isinstance(value, tuple) else value


def _with_each(model: _M, bounded: Callable[[Any], Any], kinds: tuple[type, ...]) -> _M:
    """The model with ``bounded`` values of these ``kinds`` at every depth; itself where that changes nothing."""
    values, changes = vars(model), {}
    for name in _fields(type(model), kinds):
        value = values[name]
        kept = _bounded(value, bounded, kinds) if value else value
        if kept is not value:
            changes[name] = kept
    return model.model_copy(update=changes) if changes else model


def _bounded(value: Any, bounded: Callable[[Any], Any], kinds: tuple[type, ...]) -> Any:
    if isinstance(value, Model):
        return _with_each(value, bounded, kinds)
    kept = bounded(value)
    if isinstance(kept, tuple):
        items = tuple(_bounded(each, bounded, kinds) for each in kept)
        return items if any(new is not old for new, old in zip(items, kept, strict=True)) else kept
    return kept


# A status is looked through in every pass, and most of its fields can hold nothing of the kind.
@cache
def _fields(model: type[Model], kinds: tuple[type, ...]) -> tuple[str, ...]:
    """Names of the fields that may hold a value of these kinds, at any depth."""
    return tuple(name for name, field in model.model_fields.items() if _may_hold(field.annotation, kinds))


def _may_hold(annotation: Any, kinds: tuple[type, ...]) -> bool:
    origin = get_origin(annotation)
    if origin is not None:
        return origin in kinds or any(_may_hold(each, kinds) for each in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return bool(_fields(annotation, kinds))
    return isinstance(annotation, type) and issubclass(annotation, kinds)
