"""JSON merge patches (RFC 7386) between two plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest merge patch that turns ``before`` into ``after``; {} when they are equal. Lists are replaced."""
    changes: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if old == value:
            continue
        changes[key] = merge_patch(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return changes
