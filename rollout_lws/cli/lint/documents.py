"""Splits texts into YAML documents, as kubectl does: reports invalid ones and still returns the others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.paths import Path
from rollout_lws.cli.manifests import Object, Source
from rollout_lws.objects.codec.yaml_nodes import Mark, NotPlain, Reader, composed, mark_of
from rollout_lws.objects.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
)
from rollout_lws.traffic.registry import ROUTING_KINDS

_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)
LOOKED_AT = (SERVICES, *ROUTING_KINDS, HORIZONTAL_POD_AUTOSCALERS, POD_DISRUPTION_BUDGETS)
_BYTE_ORDER = re.compile("^\ufeff", re.MULTILINE)
#: A template expression on a line of its own, or as an unquoted value. The length limit keeps unclosed braces from
#: being searched to the end of the file.
_TEMPLATED = re.compile(
    r"(?:^[ \t]*|:[ \t]+|-[ \t]+|[\[,{][ \t]*)(?P<braces>\{\{.{0,1000}?\}\}|\{%.{0,1000}?%\})", re.DOTALL | re.MULTILINE
)
_KIND = r"""\bkind["']?\s*:\s*["']?(?:{})\b"""
#: Signs that a text concerns releases, and that it has any kind that lint checks.
_OURS = re.compile(_KIND.format("LeaderWorkerSet|Rollout") + "|leaderworkerset", re.IGNORECASE)
_KNOWN = re.compile(
    f"{_OURS.pattern}|" + _KIND.format("|".join((*(each.kind for each in LOOKED_AT), "ScaledObject"))), re.IGNORECASE
)
_RENDER = (
    "this is a template of Helm or Jinja, not a manifest: lint what it renders,"
    " as in `helm template . | rollout-lws lint -f -`"
)


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One YAML document; ``above`` is the number of lines before it in the file."""

    file: str
    above: int
    root: yaml.Node
    value: Any

    def mark(self, path: Path) -> Mark:
        found = mark_of(self.root, path)
        return Mark(found.line + self.above, found.column)


def without_file(value: Object) -> Document:
    """A document of one object that no file has."""
    return Document("", 0, next(composed("{}")), value)


def read(source: Source) -> tuple[list[Document], list[Finding]]:
    """The documents of a file, and the problems of its text. Repositories contain many unrelated files in other
    dialects, so a text without any sign of a kind that lint checks yields no findings.
    """
    documents: list[Document] = []
    findings: list[Finding] = []
    if source.broken is not None:
        told = Finding(source.name, 1, source.broken + 1, "LWS001", "not UTF-8 text: save it as UTF-8")
        return [], [told] if _KNOWN.search(source.text) else []
    templated = False
    for above, text in _parts(source.text):
        found, wrong = _part(source.name, above, text)
        if wrong is None:
            documents += found
            continue
        braces = _template(text, wrong.line - above, wrong.column)
        if braces is not None:
            # Any other error in a template would stem from our reading it as YAML.
            line, start = text.count("\n", 0, braces) + above + 1, text.rfind("\n", 0, braces)
            if not templated and _OURS.search(text):
                findings.append(Finding(source.name, line, braces - start, "LWS002", _RENDER))
                templated = True
        elif _KNOWN.search(text):
            findings.append(wrong)
    return documents, findings


def _template(text: str, line: int, column: int) -> int | None:
    """Position of the template braces that may have caused the YAML error at this place, None without any."""
    broken = sum(map(len, text.splitlines(keepends=True)[: line - 1])) + column
    found = _TEMPLATED.search(text)
    return found.start("braces") if found and found.start("braces") <= broken else None


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """The parts between separators, each with the number of lines before it."""
    # Concatenated files may contain byte order marks in the middle.
    text = _BYTE_ORDER.sub("", text)
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text))]
    above = 0
    for before, start, end in zip([0, *starts], starts, [*starts[1:], len(text)], strict=False):
        above, part = above + text.count("\n", before, start), text[start:end]
        # JSON may be indented by tabs, and has no tabs within its strings.
        is_json = part.removeprefix("---").lstrip()[:1] in ("{", "[")
        yield above, part.replace("\t", " ") if is_json else part


def _part(file: str, above: int, text: str) -> tuple[list[Document], Finding | None]:
    found: list[Document] = []
    try:
        for root in composed(text):
            found.append(Document(file, above, root, Reader(unique=True).value(root)))
    except NotPlain as error:
        return [], Finding(file, error.mark.line + above, error.mark.column, "LWS001", f"not a manifest: {error}")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = _inside(text, mark.line, mark.column) if mark else (0, 0)
        said = " ".join(str(each) for each in (error.context, error.problem) if each)
        return [], Finding(file, line + above + 1, column + 1, "LWS001", f"not YAML: {said or 'it cannot be read'}")
    except (yaml.YAMLError, RecursionError) as error:
        said = str(error).splitlines()[0]
        return [], Finding(file, above + 1, 1, "LWS001", f"not YAML: {said}")
    return found, None


def _inside(text: str, line: int, column: int) -> tuple[int, int]:
    """Move a position after the last line to the end of that line."""
    lines = text.rstrip().splitlines() or [""]
    return (line, column) if line < len(lines) else (len(lines) - 1, len(lines[-1]))
