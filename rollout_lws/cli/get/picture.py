"""How one release looks, and how all of them do: values in, lines out, as wide as there is room. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from rollout_lws.cli.get.ahead import Call, after_approval, next_commands
from rollout_lws.cli.get.header import field, header
from rollout_lws.cli.get.plan import planned_steps
from rollout_lws.cli.get.tree import tree
from rollout_lws.cli.releases import Release, summary
from rollout_lws.cli.view import age, table

Object = dict[str, Any]
#: Narrower than this nothing is folded or cut: it would be all margin.
_NARROWEST = 40
_INDENT = " " * len(field("", ""))
#: What the summary's states mean for somebody who glances: all is well, look at it, do something.
_COLOURS = {
    "Healthy": 32,
    **dict.fromkeys(("Stalled", "Aborted"), 31),
    **dict.fromkeys(("AwaitingApproval", "Paused", "WaitingForQuota", "WaitingForAccelerators", "HoldReleased"), 33),
}
_STATES = re.compile(rf"\b({'|'.join(_COLOURS)})\b")


def release(
    shown: Release,
    now: datetime,
    *,
    call: Call = "rollout-lws {}".format,
    pods: bool = False,
    width: int | None = None,
) -> list[str]:
    """The whole picture of one release, ending with the commands that make sense now.

    ``width`` is that of the terminal, None where lines may be of any length.
    """
    replicas = shown.stable.lws.spec.replicas if shown.stable is not None else 0
    steps = planned_steps(shown.rollout, replicas)
    lines = [part for line in header(shown, steps, now) for part in _folded(line, width)]
    rows = tree(shown, now, pods=pods)
    if len(rows) > 1:
        lines += ["", *(_cut(line, width) for line in table(rows))]
    after, following = after_approval(shown, steps), next_commands(shown, call)
    if after or following:
        lines.append("")
    if after:
        lines += _folded(f"After approval: {after}", width)
    return lines + following


def overview(
    rollouts: Iterable[Object], now: datetime, *, namespaces: bool, wide: bool = False, width: int | None = None
) -> list[str]:
    """One line a Rollout; ``namespaces`` adds their column, ``wide`` what ``kubectl get -o wide`` has too."""
    heading = ("NAMESPACE", "NAME", "STATUS", "STEP", "TRAFFIC", "NEW", "STABLE", "AGE")
    more = ("ACCELERATORS", "SINCE", "PHASE", "MESSAGE")
    rows = [(*heading, *more)]
    for each in rollouts:
        said, meta, status = summary(each), each["metadata"], each.get("status") or {}
        words = (said["state"] or "Unknown", said["step"], said["traffic"], said["new"], said["stable"])
        rest = (said["accelerators"], age(said["since"], now), status.get("phase") or "", status.get("message") or "")
        rows.append((meta["namespace"], meta["name"], *words, age(meta.get("creationTimestamp"), now), *rest))
    first, last = 0 if namespaces else 1, None if wide else len(heading)
    return [_cut(line, width) for line in table(row[first:last] for row in rows)]


def coloured(line: str) -> str:
    """A line as a terminal shows it: states in their colours, headings of tables bold."""
    if line.startswith(("NAME ", "NAMESPACE ")):
        return f"\x1b[1m{line}\x1b[0m"
    return _STATES.sub(lambda match: f"\x1b[{_COLOURS[match[1]]}m{match[1]}\x1b[0m", line, count=1)


def _folded(line: str, width: int | None) -> list[str]:
    if width is None or len(line) <= max(width, _NARROWEST):
        return [line]
    return textwrap.wrap(
        line,
        max(width, _NARROWEST),
        subsequent_indent=_INDENT,
        replace_whitespace=False,
        drop_whitespace=True,
        break_on_hyphens=False,
    )


def _cut(line: str, width: int | None) -> str:
    return line if width is None or len(line) <= max(width, _NARROWEST) else line[: max(width, _NARROWEST) - 1] + "…"
