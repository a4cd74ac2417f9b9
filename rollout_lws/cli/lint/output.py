"""Renders findings as text, JSON, or GitHub workflow commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from rollout_lws.cli.lint.findings import Finding, Severity

if TYPE_CHECKING:
    from rollout_lws.cli.lint.linter import Report

#: ANSI colours: bold red, bold yellow, bold cyan.
_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1;36"}
_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def text(report: Report, *, colour: bool = False) -> str:
    """One line per finding in compiler style, so that editors can jump to it."""
    return "".join(f"{_line(each, colour=colour)}\n" for each in report.findings)


def _line(each: Finding, *, colour: bool) -> str:
    severity = f"{each.severity}:"
    if colour:
        severity = f"\x1b[{_COLOURS[each.severity]}m{severity}\x1b[0m"
    return f"{printable(each.file)}:{each.line}:{each.column}: {severity} {printable(each.message)} [{each.code}]"


def printable(told: str) -> str:
    """A manifest's text on one line, escaped so that no terminal or pipeline interprets it."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in told)


def json(report: Report) -> str:
    """One JSON document; docs/lint.md documents its stable format."""
    document = {
        "version": 1,
        "findings": [{"severity": str(each.severity), **asdict(each)} for each in report.findings],
        "summary": {"files": report.files, "objects": report.objects, **_counts(report)},
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def github(report: Report) -> str:
    """Workflow commands, which GitHub shows next to the lines of a pull request."""
    return "".join(f"{line}\n" for line in _commands(report))


def _commands(report: Report) -> Iterator[str]:
    for each in report.findings:
        file = _escaped(printable(each.file), {":": "%3A", ",": "%2C"})
        at = f"file={file},line={each.line},col={each.column},title={each.code}"
        yield f"::{_GITHUB[each.severity]} {at}::{_escaped(printable(each.message))}"


def _escaped(told: str, more: Mapping[str, str] | None = None) -> str:
    for character, code in {"%": "%25", "\r": "%0D", "\n": "%0A", **(more or {})}.items():
        told = told.replace(character, code)
    return told


def summary(report: Report) -> str:
    """The summary line."""
    counts = _counts(report)
    found = ", ".join(_counted(number, name.removesuffix("s")) for name, number in counts.items() if number)
    looked = f"{_counted(report.objects, 'object')} in {_counted(report.files, 'file')}"
    return f"{looked}: {found or 'nothing found'}"


def _counts(report: Report) -> dict[str, int]:
    return {f"{severity}s": report.count(severity) for severity in Severity}


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


FORMATS: Mapping[str, Callable[..., Any]] = {"text": text, "json": json, "github": github}
