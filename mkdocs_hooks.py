"""What `mkdocs build` does besides: it brings in the pages that lie outside docs/, and leads links where they lead.

A page is written once and read on a code host and in the site, so its links go by the repository's files. In the site
they lead to pages, and to pictures; what is neither (a test, a manifest) is a link to the repository if its address is
known (`extra.repository` of mkdocs.yml), and plain text if it is not.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
#: Pages outside docs/, by their place in the site.
_BROUGHT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_FENCED = re.compile(r"^(?P<fence>`{3,}).*?^(?P=fence)$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_FETCHED = re.compile(
    r"""<(?:(?:script|img|iframe|source|video)\b[^>]*\bsrc|link\b(?![^>]*\brel=["']?canonical)[^>]*\bhref)"""
    r"""=["']?(?P<address>(?:https?:)?//[^"'\s>]*)"""
)
log = logging.getLogger("mkdocs.hooks.rollout_lws")


@dataclass(frozen=True, slots=True)
class Repository:
    """Where the files are that are no pages; no ``url`` where that is not known."""

    url: str = ""
    ref: str = "main"

    def link(self, text: str, path: str) -> str:
        """A link to a file or directory of the repository, or just its text."""
        if not self.url:
            return text
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"[{text}]({self.url.rstrip('/')}/{kind}/{self.ref}/{path})"


def places(root: Path = ROOT) -> dict[str, str]:
    """All pages: the place in the site by the path in the repository."""
    found = {path: place for path, place in _BROUGHT.items() if (root / path).exists()}
    for page in sorted(root.glob("examples/*/README.md")):
        found[page.relative_to(root).as_posix()] = f"examples/{page.parent.name}.md"
    for page in sorted((root / "docs").rglob("*.md")):
        found[page.relative_to(root).as_posix()] = page.relative_to(root / "docs").as_posix()
    return found


def led(markdown: str, path: str, pages: Mapping[str, str], repository: Repository) -> str:
    """The text of the page at ``path`` with links that lead somewhere in the site; code is left alone."""

    def link(match: re.Match[str]) -> str:
        target, mark, anchor = match["target"].partition("#")
        if not target or ":" in target:
            return match[0]
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        # A folder leads to its README, one of docs/ without any to its first page.
        first = sorted(page for page in pages if page.startswith(f"{wanted}/") and page.startswith("docs/"))
        for candidate in (wanted, f"{wanted}/README.md", *first[:1]):
            if candidate in pages:
                place = posixpath.relpath(pages[candidate], posixpath.dirname(pages[path]) or ".")
                return f"[{match['text']}]({place}{mark}{anchor})"
        if wanted.startswith("docs/") and (ROOT / wanted).is_file():
            # A picture, which is in the site as well.
            return f"[{match['text']}]({posixpath.relpath(wanted[5:], posixpath.dirname(pages[path]) or '.')})"
        # What is not there stays as it is written: mkdocs says so.
        return repository.link(match["text"], wanted) if (ROOT / wanted).exists() else match[0]

    parts, end = [], 0
    for fenced in _FENCED.finditer(markdown):
        parts += [_LINK.sub(link, markdown[end : fenced.start()]), fenced[0]]
        end = fenced.end()
    return "".join([*parts, _LINK.sub(link, markdown[end:])])


def fetched(page: str) -> list[str]:
    """What a reader's browser would fetch from another site for this page, its HTML; links are only followed."""
    return [match["address"] for match in _FETCHED.finditer(page)]


def on_files(files: Any, config: Any) -> Any:
    """mkdocs has found its files: the pages from elsewhere join them."""
    from mkdocs.structure.files import File

    for path, place in places().items():
        if not path.startswith("docs/"):
            files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001 - mkdocs' signature
    """mkdocs has read a page."""
    path = Path(page.file.abs_src_path).relative_to(ROOT).as_posix()
    return led(markdown, path, places(), Repository(**config.extra["repository"]))


def on_post_page(output: str, page: Any, config: Any) -> str:  # noqa: ARG001 - mkdocs' signature
    """mkdocs has made a page."""
    for found in fetched(output):
        log.warning("%s would be fetched from another site: %s", page.file.src_uri, found)
    return output
