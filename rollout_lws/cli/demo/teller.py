"""Output of a demo: a line for each change, and on a terminal below the lines the picture that `get` shows."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import click

from rollout_lws.cli.demo.checks import Check
from rollout_lws.cli.get import picture
from rollout_lws.cli.get.caller import Caller
from rollout_lws.cli.get.tree import runs
from rollout_lws.cli.releases import Release
from rollout_lws.cli.rollouts import message, summary
from rollout_lws.cli.screen import Screen, width
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups


class Teller:
    """Prints lines with the seconds since the start; with a ``screen`` it redraws a picture below them."""

    def __init__(self, screen: Screen | None) -> None:
        self._screen = screen
        self._start = time.monotonic()
        self._told: dict[str, str] = {}

    def say(self, who: str, text: str) -> None:
        """Print an event now."""
        self._print(f"[{time.monotonic() - self._start:5.1f}s] {who:<13} {text}")

    def show(self, release: Release, caller: Caller) -> None:
        """Show the release after a change; ``caller`` is how the user would act on it."""
        for who, text in changes(release):
            if self._told.get(who) != text:
                self._told[who] = text
                self.say(who, text)
        if self._screen is not None:
            self._screen.draw(picture.release(release, datetime.now(UTC), caller=caller, width=width()))

    def check(self, check: Check) -> None:
        """Print a check of the end state, with its evidence."""
        self._print(f"  {'ok  ' if check.passed else 'FAIL'}  {check.claim}: {check.detail}")

    def _print(self, line: str) -> None:
        if self._screen is None:
            click.echo(line)
        else:
            self._screen.print_above(line)


def changes(release: Release) -> list[tuple[str, str]]:
    """The release as pairs of a subject and a short text."""
    said = summary(release.rollout)
    told = []
    if said["state"]:
        text = said["state"] + (f" step {said['step']}" if said["step"] else "")
        note = message(release.rollout)
        told.append(("rollout", f"{text}: {note}" if note else text))
    if said["traffic"]:
        told.append(("traffic", f"{said['traffic']} of requests to the new version"))
    now = datetime.now(UTC)
    return told + [(facts.name, _counts(facts, now)) for facts in (*release.of_active, *release.of_inactive)]


def _counts(facts: Facts, now: datetime) -> str:
    parts = []
    for run in runs(groups(facts), now):
        state = "terminating" if run.groups[0].terminating else "ready" if run.ready else "loading"
        parts.append(f"{run.name} {state} ({run.groups[0].revision})")
    return ", ".join(parts) or "no groups"
