"""Pages have the pictures that are there, with texts for those who do not see them, and tables that fit the site."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs import pictures
from tests.docs.pages import ROOT, pages

_PICTURE = re.compile(r"!\[(?P<told>[^\]]*)\]\((?P<target>[^)\s]+\.svg)\)")
#: Width of the column of text in the site at 1,280 px, and of a letter, a cell's padding and a border there; a table of
#: six columns is set smaller.
_COLUMN, _WIDE, _SMALL, _LETTER = 720, (12.8, 20.5), (12.0, 13.5), 0.6


def shown() -> dict[Path, list[str]]:
    """Pictures in pages, with the texts in place of them."""
    found: dict[Path, list[str]] = {}
    for page in pages():
        for match in _PICTURE.finditer((ROOT / page).read_text()):
            found.setdefault((ROOT / page).parent.joinpath(match["target"]).resolve(), []).append(match["told"])
    return found


def test_pictures_are_those_of_the_plans_that_they_are_made_of() -> None:
    made = pictures.pictures()
    assert {path: path.read_text() for path in pictures.FOLDER.glob("*.svg")} == made, "run: make generate"


def test_every_picture_is_in_a_page_and_no_other() -> None:
    assert {*shown()} == {*pictures.FOLDER.glob("*.svg")}


def test_what_a_picture_shows_is_told_in_its_place() -> None:
    assert [told for texts in shown().values() for told in texts if len(told.split()) < 12] == []


@pytest.mark.parametrize("path", sorted(pictures.FOLDER.glob("*.svg")), ids=lambda path: path.stem)
def test_a_picture_has_names_of_its_own(path: Path) -> None:
    root = ElementTree.fromstring(path.read_text())
    assert [each.text for each in root if each.tag.endswith("title")] != [""]
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"


@pytest.mark.parametrize("page", [page for page in pages() if page.parts[0] in ("docs", "README.md")], ids=str)
def test_tables_fit_the_site(page: Path) -> None:
    """Words of a column cannot be broken; code can, but for the first column of a table of many."""
    for table in re.findall(r"(?:^\|.*\n)+", (ROOT / page).read_text(), re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in table.splitlines()]
        many = len(rows[0]) >= 6
        size, padding = _SMALL if many else _WIDE
        whole = (row for row in rows if len(row) == len(rows[0]))
        widest = [max(map(_longest, column)) for column in zip(*whole, strict=True)]
        assert sum(size * _LETTER * letters + padding for letters in widest) <= _COLUMN, (rows[0], widest)


def _longest(cell: str) -> int:
    """Letters of the longest word of a cell."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell)
    words = re.sub(r"`[^`]*`|<[^>]*>", " ", text)
    return max(map(len, re.split(r"[\s/-]+", words)), default=0)
