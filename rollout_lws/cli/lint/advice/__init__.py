"""What nobody refuses and a person would regret: each module looks at one kind of object, in one namespace."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.cli.lint.advice import autoscalers, leaders, names, plans, services, templates
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.world import FileWorld


def advice(world: FileWorld) -> Iterator[Finding]:
    """All of it."""
    for module in (leaders, templates, services, names, plans, autoscalers):
        yield from module.advice(world)
