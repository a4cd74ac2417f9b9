"""Reads documents with the positions of their fields: reports texts that are no manifests and returns the others."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.paths import Path
from rollout_lws.cli.manifests import Object, Part, Source, Unreadable, parts, read_part
from rollout_lws.objects.codec.yaml_nodes import Mark, composed, mark_of, quoted
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
)
from rollout_lws.traffic.registry import ROUTING_KINDS

LOOKED_AT = (SERVICES, *ROUTING_KINDS, HORIZONTAL_POD_AUTOSCALERS, POD_DISRUPTION_BUDGETS)
#: A template expression on a line of its own, or as an unquoted value. The length limit keeps unclosed braces from
#: being searched to the end of the file.
_TEMPLATED = re.compile(
    r"(?:^[ \t]*|:[ \t]+|-[ \t]+|[\[,{][ \t]*)(?P<braces>\{\{.{0,1000}?\}\}|\{%.{0,1000}?%\})", re.DOTALL | re.MULTILINE
)
_KIND = r"""\bkind["']?\s*:\s*["']?(?:{})\b"""
#: Signs that a text concerns releases, and that it has any kind that lint always checks.
_OURS = re.compile(_KIND.format("LeaderWorkerSet|Rollout") + "|leaderworkerset", re.IGNORECASE)
_KNOWN = re.compile(
    f"{_OURS.pattern}|" + _KIND.format("|".join((*(each.kind for each in LOOKED_AT), "ScaledObject"))), re.IGNORECASE
)
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#.*$", re.MULTILINE)
_RENDER = (
    "this is a template of Helm or Jinja, not a manifest: lint what it renders,"
    " as in `helm template . | rollout-lws lint -f -`"
)


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One YAML document or JSON object."""

    file: str
    part: Part
    root: yaml.Node
    value: Any

    def mark(self, path: Path) -> Mark:
        return self.part.mark(mark_of(self.root, path))


def without_file(value: Object) -> Document:
    """A document of one object that no file has."""
    return Document("", Part(""), next(composed("{}")), value)


def read(source: Source) -> tuple[list[Document], list[Finding]]:
    """The documents of a file, and the problems of its text. Repositories contain many unrelated files in other
    dialects, so a text without any sign of a kind that lint checks yields no findings.
    """
    documents: list[Document] = []
    problems: list[_Problem] = []
    for each in _read(source):
        documents += [each] if isinstance(each, Document) else []
        problems += [each] if isinstance(each, _Problem) else []
    return documents, _once(each for each in problems if each.has_sign)


def read_named(source: Source, kind: str, names: Collection[str]) -> list[Finding]:
    """The problems of texts without such a sign that may be objects of this kind with one of these names."""
    sign = re.compile(_KIND.format(kind), re.IGNORECASE)
    if not names or not sign.search(source.text):
        return []
    named = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, sorted(names)))})(?![\w.-])")
    found = (each for each in _read(source) if isinstance(each, _Problem) and not each.has_sign)
    return _once(each for each in found if sign.search(each.text) and named.search(each.text))


@dataclass(frozen=True, slots=True)
class _Problem:
    """A text that cannot be read; ``has_sign`` if it has one of those by which the finding is worth telling."""

    finding: Finding
    text: str
    has_sign: bool


def _once(problems: Iterator[_Problem]) -> list[Finding]:
    """Their findings: that a file is a template is told once."""
    findings: list[Finding] = []
    for each in problems:
        if each.finding.code != "LWS002" or not any(known.code == "LWS002" for known in findings):
            findings.append(each.finding)
    return findings


def _read(source: Source) -> Iterator[Document | _Problem]:
    if source.broken is not None:
        told = Finding(source.name, 1, source.broken + 1, "LWS001", "not UTF-8 text: save it as UTF-8")
        yield _Problem(told, source.text, _KNOWN.search(source.text) is not None)
        return
    for part in parts(source.text):
        try:
            yield from [Document(source.name, part, *each) for each in read_part(part, unique=True)]
            continue
        except Unreadable as error:
            wrong, braces = error, _template(part.text, error.mark)
        code, mark, message, signs = "LWS001", wrong.mark, str(wrong), _KNOWN
        if braces is not None:
            # Any other error in a template would stem from our reading it as YAML.
            code, mark, message, signs = "LWS002", braces, _RENDER, _OURS
        place = part.mark(mark)
        told = Finding(source.name, place.line, place.column, code, message)
        yield _Problem(told, part.text, signs.search(part.text) is not None)


def _template(text: str, error: Mark) -> Mark | None:
    """Position of the template braces that may have caused the YAML error at this place, None without any."""
    broken = sum(map(len, text.splitlines(keepends=True)[: error.line - 1])) + error.column
    found = _TEMPLATED.search(_masked(text))
    if found is None or found.start("braces") > broken:
        return None
    start = found.start("braces")
    return Mark(text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))


def _masked(text: str) -> str:
    """Blanks for quoted and block scalars and for comments, in which braces break no YAML."""
    pieces, done = [], 0
    for start, end in quoted(text):
        pieces += [text[done:start], " " * (end - start)]
        done = end
    return _COMMENT.sub(lambda comment: " " * len(comment[0]), "".join((*pieces, text[done:])))
