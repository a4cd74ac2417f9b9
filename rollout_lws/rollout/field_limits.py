"""Keeps a status within bounds, whatever was written into it.

Routers, webhooks and containers report texts of any length, and a status refused for its length would stop the release.
A timestamp in the future would make a release wait for it, possibly for decades.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

from rollout_lws.api import TimelineEntry
from rollout_lws.api.base import Model
from rollout_lws.api.structural import ITEMS_LIMIT, TEXT_LIMIT
from rollout_lws.workload.trouble import shortened

_M = TypeVar("_M", bound=Model)


def within_limits(model: _M) -> _M:
    """The model with texts and lists cut to the CRD's limits; the same object if nothing is longer."""
    return _with_each(model, _short_enough, (str, tuple))


def not_ahead(model: _M, now: datetime) -> _M:
    """The model with every timestamp after ``now`` set to ``now``; the same object if there is none.

    Each timestamp is of a past event: one in the future comes from a clock that was ahead, or is forged.
    """
    return _with_each(model, lambda value: now if isinstance(value, datetime) and value > now else value, (datetime,))


def _short_enough(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= TEXT_LIMIT else shortened(value, TEXT_LIMIT)
    return value[:ITEMS_LIMIT] if isinstance(value, tuple) else value


def _with_each(model: _M, bounded: Callable[[Any], Any], kinds: tuple[type, ...]) -> _M:
    """The model with ``bounded`` applied to values of these ``kinds`` at every depth; the same object if unchanged."""
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


# Every pass walks the status, and most of its fields cannot hold such values.
@cache
def _fields(model: type[Model], kinds: tuple[type, ...]) -> tuple[str, ...]:
    """Names of the fields that may hold a value of these kinds, at any depth."""
    return tuple(name for name, field in model.model_fields.items() if _may_hold(field.annotation, kinds))


def _may_hold(annotation: Any, kinds: tuple[type, ...]) -> bool:
    origin = get_origin(annotation)
    if origin is not None:
        return origin in kinds or any(_may_hold(each, kinds) for each in get_args(annotation))
    if annotation is TimelineEntry:
        # It is put in order whenever it is written, and no decision waits for a moment of it.
        return False
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return bool(_fields(annotation, kinds))
    return isinstance(annotation, type) and issubclass(annotation, kinds)
