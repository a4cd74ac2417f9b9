"""Renders the chain as text or JSON. Pure: links in, text out."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from rollout_lws.cli.doctor.links import Link, State, first
from rollout_lws.cli.view import plain, table

_MARKS = {State.OK: "v", State.BROKEN: "x", State.WAITING: "…", State.UNKNOWN: "?"}
#: Longest text in the table; the link to look at has its full text below.
_SHORT = 80
_LABEL = 11


def marked(links: Sequence[Link]) -> Link | None:
    """The link to look at: the first broken one, else the first that waits, else None."""
    return first(links, State.BROKEN) or first(links, State.WAITING)


def text(links: Sequence[Link], width: int) -> list[str]:
    """One line per link, then the link to look at in four parts, and what could not be read. ``width`` is the
    terminal's, in columns; 0 never folds a line.
    """
    lines = table((f"{_MARKS[each.state]} {each.name}", each.about, _short(each.found)) for each in links)
    one = marked(links)
    if one is None:
        unknown = first(links, State.UNKNOWN)
        ending = "Nothing that could be read is broken." if unknown else "Nothing is broken."
        return [*lines, "", ending, *_unread(links, width)]
    verb = "First broken link" if one.state is State.BROKEN else "Nothing is broken; what is waited for first"
    parts = [("Cause", one.found), ("Affected", one.affected), ("By itself", one.by_itself)]
    told = [line for label, said in parts if said for line in _field(label, said, width)]
    commands = [f"{'Next' if not number else '':<{_LABEL}}{each}" for number, each in enumerate(one.next)]
    return [*lines, "", f"{verb}: {one.name} ({one.about})", *told, *commands, *_unread(links, width)]


def document(namespace: str, name: str, links: Sequence[Link]) -> dict[str, Any]:
    """The links as JSON; its members are under the versioning promise."""
    one = first(links, State.BROKEN)
    return {
        "namespace": namespace,
        "name": name,
        "broken": None if one is None else one.name.value,
        "links": [
            {
                "name": each.name.value,
                "state": each.state.value,
                "object": each.about,
                "found": each.found,
                "affected": each.affected,
                "byItself": each.by_itself,
                "next": list(each.next),
            }
            for each in links
        ],
    }


def _short(found: str) -> str:
    return textwrap.shorten(plain(found), _SHORT, placeholder=" …")


def _field(label: str, said: str, width: int) -> list[str]:
    # A container's message must not contain terminal control characters.
    said = plain(said)
    if not width:
        return [f"{label:<{_LABEL}}{said}"]
    folded = textwrap.wrap(said, max(width - _LABEL, 20), break_long_words=False, break_on_hyphens=False) or [""]
    return [f"{label if not number else '':<{_LABEL}}{line}" for number, line in enumerate(folded)]


def _unread(links: Sequence[Link], width: int) -> list[str]:
    unknown = [each for each in links if each.state is State.UNKNOWN]
    if not unknown:
        return []
    lines = [""]
    for found in dict.fromkeys(each.found for each in unknown):
        lines += _field("Not read", found, width)
    commands = dict.fromkeys(command for each in unknown for command in each.next)
    return [*lines, *(f"{'':<{_LABEL}}{each}" for each in commands)]
