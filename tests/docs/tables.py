"""Tables and sentences of pages that are generated."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, each line ended."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def prose(docstring: str) -> str:
    """A docstring or a message as one line that a cell of a table can have."""
    return " ".join(docstring.split()).replace("``", "`").replace("|", "&#124;").replace("<", "&lt;")


def code(text: str) -> str:
    """Code in a cell; a bar would end the cell even in backticks, and not everywhere can it be escaped in them."""
    if "|" not in text:
        return f"`{text}`"
    return f"<code>{html.escape(text, quote=False).replace('|', '&#124;')}</code>"
