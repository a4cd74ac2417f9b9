"""Paths of fields in an object: their text form, and how to resolve them."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

#: Keys and list indices from the root to a field.
Path: TypeAlias = tuple[str | int, ...]

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def written(path: Path) -> str:
    """A path's text form: ``spec.steps[0].replicas``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def located(body: Any, text: str) -> Path:
    """The path for a text such as ``spec.steps[0].replicas``; keys may contain dots, as labels do."""
    path: list[str | int] = []
    value: Any = body
    while text:
        if isinstance(value, dict):
            fitting = [key for key in value if text == key or text.startswith((f"{key}.", f"{key}["))]
            key = max(fitting, key=len, default=None)
            if key is not None:
                path.append(key)
                value, text = value[key], text[len(key) :].removeprefix(".")
                continue
        match = _STEP.match(text)
        if match is None:
            break
        step: str | int = int(match[1]) if match[1] else match[2]
        path.append(step)
        value = value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None
        text = text[match.end() :].removeprefix(".")
    return tuple(path)


def value_at(body: Any, path: Path) -> Any:
    """The value at a path, None when there is none."""
    for part in path:
        if isinstance(body, dict) and isinstance(part, str):
            body = body.get(part)
        elif isinstance(body, list) and isinstance(part, int) and part < len(body):
            body = body[part]
        else:
            return None
    return body
