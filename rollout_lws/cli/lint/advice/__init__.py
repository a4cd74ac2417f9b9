"""Mistakes that no component refuses: each module checks one kind of object in one namespace."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.cli.lint.advice import (
    autoscalers,
    companions,
    gates,
    leaders,
    names,
    pairs,
    plans,
    services,
    shifts,
    swaps,
    templates,
)
from rollout_lws.cli.lint.file_snapshot import FileSnapshot
from rollout_lws.cli.lint.findings import Finding


def advice(files: FileSnapshot) -> Iterator[Finding]:
    """Findings of all modules."""
    for module in (leaders, templates, services, names, plans, gates, autoscalers, pairs, companions, shifts, swaps):
        yield from module.advice(files)
