"""Renders one release as lines of text, as wide as the terminal allows. Pure."""

from __future__ import annotations

import textwrap
from datetime import datetime

from rollout_lws.cli.get.ahead import after_approval, next_commands
from rollout_lws.cli.get.caller import Caller
from rollout_lws.cli.get.header import field, header
from rollout_lws.cli.get.listing import NARROWEST, fitted
from rollout_lws.cli.get.plan import planned_steps
from rollout_lws.cli.get.tree import tree
from rollout_lws.cli.releases import Release
from rollout_lws.cli.view import table

_INDENT = " " * len(field("", ""))

#: No flags: commands use the kubeconfig's current context.
OURS = Caller()


def release(
    shown: Release,
    now: datetime,
    *,
    caller: Caller = OURS,
    pods: bool = False,
    width: int | None = None,
) -> list[str]:
    """The whole picture of one release, ending with the commands that apply now.

    ``width`` is the terminal's, None for lines of any length.
    """
    steps = planned_steps(shown.rollout, shown.full_size)
    lines = [part for line in header(shown, steps, now) for part in _folded(line, width)]
    rows = tree(shown, now, pods=pods)
    if len(rows) > 1:
        lines += ["", *(fitted(line, width) for line in table(rows))]
    after, following = after_approval(shown, steps), next_commands(shown, caller)
    if after or following:
        lines.append("")
    if after:
        lines += _folded(f"After approval: {after}", width)
    return lines + following


def _folded(line: str, width: int | None) -> list[str]:
    if width is None or len(line) <= max(width, NARROWEST):
        return [line]
    return textwrap.wrap(
        line,
        max(width, NARROWEST),
        subsequent_indent=_INDENT,
        replace_whitespace=False,
        drop_whitespace=True,
        break_on_hyphens=False,
    )
