"""The documentation as tests see it: its pages, their blocks of code, their links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FOLDERS = ("charts", "docs", "e2e", "examples", "tests")
_BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def pages() -> list[Path]:
    """All pages, relative to the root."""
    found = [page for folder in _FOLDERS for page in (ROOT / folder).rglob("*.md")]
    return sorted(page.relative_to(ROOT) for page in (*ROOT.glob("*.md"), *found))


def blocks(page: Path, language: str) -> Iterator[str]:
    """Blocks of code in ``language``. What is ``bash`` is meant to be run; ``sh`` is for reading."""
    for match in _BLOCK.finditer((ROOT / page).read_text()):
        if match["language"] == language:
            yield match["text"]


def links(page: Path) -> Iterator[str]:
    """Links to other pages and files, not to other sites."""
    text = _BLOCK.sub("", (ROOT / page).read_text())
    yield from (match["target"] for match in _LINK.finditer(text) if "://" not in match["target"])


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as code hosts make them."""
    titles = _HEADING.findall(_BLOCK.sub("", (ROOT / page).read_text()))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
