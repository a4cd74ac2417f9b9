"""Text formatting: tables, JSON and YAML documents, ages. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from unicodedata import combining, east_asian_width

from rollout_lws.cli.durations import short

Object = dict[str, Any]


def table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Rows as columns, three spaces apart, without trailing blanks; empty columns are kept."""
    listed = [tuple(plain(cell) for cell in row) for row in rows]
    widths = [max(cells(cell) for cell in column) for column in zip(*listed, strict=True)]
    return [
        "   ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in listed
    ]


def plain(text: str) -> str:
    """The text with line ends and control characters, which a container's message may contain, replaced by blanks, so
    that it cannot move the cursor.
    """
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)


def sentences(text: str) -> str:
    """``plain`` for each line of a text; line breaks are kept."""
    return text if text.isprintable() else "\n".join(plain(each) for each in text.split("\n"))


def cells(text: str) -> int:
    """Width of a text in terminal columns."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def cut(text: str, width: int) -> str:
    """The text in at most ``width`` columns; an ellipsis replaces the rest."""
    if cells(text) <= width:
        return text
    kept = text[:width]
    while cells(kept) > width - 1:
        kept = kept[:-1]
    return kept + "…"


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def document(value: Any, output: str) -> str:
    """A value as JSON or YAML, as ``output`` says, with a trailing newline."""
    if output == "json":
        return json.dumps(value, indent=4) + "\n"
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False))


def age(created: str | datetime | None, now: datetime) -> str:
    """Age at ``now``; "" without a time, and a text that is not a time is returned unchanged."""
    if not created:
        return ""
    since = instant(created) if isinstance(created, str) else created
    return short((now - since).total_seconds()) if since is not None else str(created)


def instant(text: str) -> datetime | None:
    """The time that a text of an object names; None if it names none."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def line(value: Any) -> str:
    """A value as compact JSON on one line."""
    return json.dumps(value, separators=(",", ":"))


def moment(at: datetime) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
