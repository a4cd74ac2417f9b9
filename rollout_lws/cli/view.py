"""How values look as text: columns, documents, ages. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from rollout_lws.cli.durations import short

Object = dict[str, Any]


def table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Rows as columns, three spaces apart, without trailing blanks; empty columns stay."""
    listed = [tuple(row) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*listed, strict=True)]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in listed]


def document(value: Any, output: str) -> str:
    """A value as ``output`` (json or yaml) writes it, with its last line end."""
    if output == "json":
        return json.dumps(value, indent=4) + "\n"
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False))


def age(created: str | datetime | None, now: datetime) -> str:
    """How long ago; "" for never, and a text that is no time as it is."""
    if not created:
        return ""
    try:
        moment = datetime.fromisoformat(created) if isinstance(created, str) else created
    except ValueError:
        return str(created)
    return short((now - moment).total_seconds())


def line(value: Any) -> str:
    """A value as one line of JSON."""
    return json.dumps(value, separators=(",", ":"))


def moment(at: datetime) -> str:
    """A time as RFC 3339 has it, in UTC with milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
