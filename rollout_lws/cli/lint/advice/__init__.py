"""What nobody refuses and a person would regret: each module looks at one kind of object, in one namespace."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.cli.lint.advice import autoscalers, leaders, names, plans, services, templates
from rollout_lws.cli.lint.file_snapshot import FileSnapshot
from rollout_lws.cli.lint.findings import Finding


def advice(files: FileSnapshot) -> Iterator[Finding]:
    """All of it."""
    for module in (leaders, templates, services, names, plans, autoscalers):
        yield from module.advice(files)
