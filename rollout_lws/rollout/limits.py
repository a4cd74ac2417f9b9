"""A status that the API server takes, whatever others have put into it: routers, webhooks and containers say as much as
they like, and a status that is refused for its length would stop the release that it tells of.
"""

from __future__ import annotations

from typing import Any, TypeVar

from rollout_lws.api.base import Model
from rollout_lws.api.structural import ITEMS_LIMIT, TEXT_LIMIT
from rollout_lws.workload.trouble import shortened

_M = TypeVar("_M", bound=Model)


def within_limits(model: _M) -> _M:
    """The model with texts and lists as long as the CRD lets them be; itself where nothing is longer."""
    changes = {name: kept for name, value in vars(model).items() if (kept := _within(value)) is not value}
    return model.model_copy(update=changes) if changes else model


def _within(value: Any) -> Any:
    if not value:
        return value
    if isinstance(value, str):
        return value if len(value) <= TEXT_LIMIT else shortened(value, TEXT_LIMIT)
    if isinstance(value, Model):
        return within_limits(value)
    if isinstance(value, tuple):
        kept = [_within(each) for each in value[:ITEMS_LIMIT]]
        changed = len(kept) < len(value) or any(new is not old for new, old in zip(kept, value, strict=False))
        return tuple(kept) if changed else value
    return value
