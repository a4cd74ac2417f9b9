"""Output of a demo: a tree that is redrawn in place on a terminal, one line per change everywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from rollout_lws.cli.demo.checks import Check
from rollout_lws.cli.get.tree import runs
from rollout_lws.cli.releases import Release
from rollout_lws.cli.rollouts import message, summary
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups

_KEPT_LINES = 12


class Teller(Protocol):
    def __enter__(self) -> Teller: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def say(self, who: str, text: str) -> None:
        """Print an event now."""
        ...

    def show(self, release: Release) -> None:
        """Show the release after a change."""
        ...

    def check(self, check: Check) -> None:
        """Print a check of the end state, with its evidence."""
        ...


def teller(console: Console) -> Teller:
    """The teller for ``console``: in place on a capable terminal; plain for a file, a pipe or a dumb terminal."""
    return InPlace(console) if console.is_terminal and not console.is_dumb_terminal else Plain(click.echo)


class _Elapsed:
    def __init__(self) -> None:
        self._start = time.monotonic()

    def __str__(self) -> str:
        return f"{time.monotonic() - self._start:5.1f}s"


class Plain:
    """One line per change, with the seconds since the start and without control codes."""

    def __init__(self, out: Callable[[str], object]) -> None:
        self._out = out
        self._elapsed = _Elapsed()
        self._told: dict[str, str] = {}

    def __enter__(self) -> Plain:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def say(self, who: str, text: str) -> None:
        self._out(f"[{self._elapsed}] {who:<13} {text}")

    def show(self, release: Release) -> None:
        for who, text in changes(release):
            if self._told.get(who) != text:
                self._told[who] = text
                self.say(who, text)

    def check(self, check: Check) -> None:
        self._out(f"  {'ok  ' if check.passed else 'FAIL'}  {check.claim}: {check.detail}")


class InPlace:
    """A tree of versions and groups that is redrawn in place, with the last events below it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._elapsed = _Elapsed()
        self._lines: list[Text] = []
        self._checks: list[Text] = []
        self._release: Release | None = None
        self._share = ""
        self._live = Live(console=console, get_renderable=self._picture, refresh_per_second=8, transient=False)

    def __enter__(self) -> InPlace:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, who: str, text: str) -> None:
        line = Text.assemble((f"{self._elapsed}  ", "dim"), (f"{who:<13} ", "cyan"), text)
        self._lines = [*self._lines, line][-_KEPT_LINES:]
        self._live.refresh()

    def show(self, release: Release) -> None:
        share = _share(release)
        if share and share != self._share:
            self._share = share
            self.say("traffic", share)
        self._release = release
        self._live.refresh()

    def check(self, check: Check) -> None:
        mark = ("  ✔ ", "green") if check.passed else ("  ✘ ", "bold red")
        self._checks.append(Text.assemble(mark, f"{check.claim}: ", (check.detail, "dim")))
        self._live.refresh()

    def _picture(self) -> RenderableType:
        parts: list[RenderableType] = []
        if self._release is not None:
            parts += [_tree(self._release), Text("")]
        return Group(*parts, *self._lines, *self._checks)


def changes(release: Release) -> list[tuple[str, str]]:
    """The release as pairs of a subject and a short text."""
    said = summary(release.rollout)
    told = []
    if said["state"]:
        text = said["state"] + (f" step {said['step']}" if said["step"] else "")
        note = message(release.rollout)
        told.append(("rollout", f"{text}: {note}" if note else text))
    if _share(release):
        told.append(("traffic", _share(release)))
    now = datetime.now(UTC)
    for facts in (release.stable, release.canary):
        if facts is not None:
            told += [(facts.name, _counts(facts, now))]
    return told


def _share(release: Release) -> str:
    """Traffic that routers have accepted; "" without routing."""
    share = summary(release.rollout)["traffic"]
    return f"{share} of requests to the new version" if share else ""


def _counts(facts: Facts, now: datetime) -> str:
    parts = []
    for run in runs(groups(facts), now):
        state = "terminating" if run.groups[0].terminating else "ready" if run.ready else "loading"
        parts.append(f"{run.name} {state} ({run.groups[0].revision})")
    return ", ".join(parts) or "no groups"


def _tree(release: Release) -> Tree:
    said = summary(release.rollout)
    root = Tree(
        Text.assemble((release.rollout["metadata"]["name"], "bold"), f"  {said['state']}  step {said['step'] or '-'}")
    )
    if _share(release):
        root.add(_share(release))
    if message(release.rollout):
        root.add(Text(message(release.rollout), style="dim"))
    now = datetime.now(UTC)
    for role, facts in (("stable", release.stable), ("canary", release.canary)):
        if facts is None:
            continue
        found = groups(facts)
        ready = sum(group.ready(now) for group in found)
        branch = root.add(f"{role}  {facts.name}  {ready}/{facts.workload.replicas} groups ready")
        for group in found:
            mark, style = ("●", "green") if group.ready(now) else ("✕", "red") if group.terminating else ("○", "yellow")
            branch.add(Text.assemble((f"{mark} ", style), f"group {group.index}  ", (group.revision, "dim")))
    return root
