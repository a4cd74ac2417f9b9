"""The site has every page in its menu, and links that lead to pages of the site."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from mkdocs_hooks import Repository, fetched, led, places
from tests.docs.pages import ROOT, pages

PAGES = {
    "README.md": "index.md",
    "docs/a.md": "a.md",
    "docs/adr/b.md": "adr/b.md",
    "examples/c/README.md": "examples/c.md",
}
SOMEWHERE = Repository("https://code.example.com/us/it/", "v1")


class _Settings(yaml.SafeLoader):
    """mkdocs.yml without what only mkdocs knows: variables of the environment, and names of Python."""


for _tag in ("!ENV", "tag:yaml.org,2002:python/"):
    _Settings.add_multi_constructor(_tag, lambda *_: None)


def menu(entry: Any) -> Iterator[str]:
    """Pages in a part of the nav."""
    if isinstance(entry, str):
        yield entry
    else:
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from menu(inner)


def test_every_page_is_in_the_menu_of_the_site_once_and_no_other() -> None:
    listed = list(menu(yaml.load((ROOT / "mkdocs.yml").read_text(), _Settings)["nav"]))
    there = places()
    assert sorted(set(there.values()) - {*listed}) == [], "give it a line in the nav of mkdocs.yml"
    assert sorted({*listed} - set(there.values())) == [], "the nav of mkdocs.yml has a page that is not there"
    assert len(listed) == len(set(listed))
    assert {str(page) for page in pages() if page.parts[0] in ("docs", "examples")} <= set(there)


@pytest.mark.parametrize(
    ("path", "written", "read"),
    [
        ("README.md", "[a](docs/a.md#here)", "[a](a.md#here)"),
        ("README.md", "[c](examples/c/README.md), [c](examples/c)", "[c](examples/c.md), [c](examples/c.md)"),
        ("README.md", "[all](docs/adr/)", "[all](adr/b.md)"),
        ("docs/a.md", "[b](adr/b.md) and [home](../README.md)", "[b](adr/b.md) and [home](index.md)"),
        ("docs/adr/b.md", "[c](../../examples/c/README.md)", "[c](../examples/c.md)"),
        ("examples/c/README.md", "[a](../../docs/a.md)", "[a](../a.md)"),
        ("docs/a.md", "[here](#b), [there](https://example.com/a.md)", "[here](#b), [there](https://example.com/a.md)"),
        ("docs/a.md", "[none](none.md)", "[none](none.md)"),
        ("README.md", "![a release](docs/pictures/release.svg)", "![a release](pictures/release.svg)"),
        ("docs/a.md", "![a release](pictures/release.svg)", "![a release](pictures/release.svg)"),
        ("docs/adr/b.md", "![a release](../pictures/release.svg)", "![a release](../pictures/release.svg)"),
        ("docs/a.md", "```sh\n[b](../Makefile)\n```\n[x](../README.md)", "```sh\n[b](../Makefile)\n```\n[x](index.md)"),
    ],
)
def test_links_between_files_become_links_between_pages(path: str, written: str, read: str) -> None:
    assert led(written, path, PAGES, SOMEWHERE) == led(written, path, PAGES, Repository()) == read


@pytest.mark.parametrize(
    ("written", "known", "unknown"),
    [
        ("[`it`](../Makefile)", "[`it`](https://code.example.com/us/it/blob/v1/Makefile)", "`it`"),
        ("see [these](../crds)", "see [these](https://code.example.com/us/it/tree/v1/crds)", "see these"),
    ],
)
def test_what_is_no_page_is_in_the_repository_if_that_has_an_address(written: str, known: str, unknown: str) -> None:
    assert led(written, "docs/a.md", PAGES, SOMEWHERE) == known
    assert led(written, "docs/a.md", PAGES, Repository()) == unknown


def test_no_link_of_a_page_is_written_in_a_way_that_the_site_does_not_see() -> None:
    """Links with a title, or by reference, would be led nowhere."""
    for page in pages():
        text = re.sub(r"^```.*?^```$|`[^`]*`", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
        assert re.findall(r"\]\([^)]*\s[^)]*\)|^\[[^\]]+\]: ", text, re.MULTILINE) == [], page


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<script src="https://cdn.example.com/a.js"></script>', ["https://cdn.example.com/a.js"]),
        ('<img alt="a" src=//example.com/a.png>', ["//example.com/a.png"]),
        ('<link rel="preconnect" href="https://fonts.example.com" crossorigin>', ["https://fonts.example.com"]),
        ('<link rel="canonical" href="https://docs.example.com/a.html">', []),
        ('<link rel="stylesheet" href="assets/main.css"><script src="../a.js"></script>', []),
        ('<a href="https://example.com">there</a>', []),
    ],
)
def test_what_a_page_would_fetch_from_elsewhere_is_found(html: str, found: list[str]) -> None:
    assert fetched(html) == found


@pytest.mark.parametrize("page", pages(), ids=str)
def test_links_to_other_sites_are_whole_and_encrypted(page: Path) -> None:
    """Nobody is asked whether they are there: whoever runs tests may have no network."""
    text = re.sub(r"^```.*?^```$|`[^`]*`", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]*://[^)\s]*)\)", text):
        address = urlsplit(target)
        assert address.scheme == "https", target
        assert re.fullmatch(r"[\w-]+(\.[\w-]+)+", address.hostname or ""), target
