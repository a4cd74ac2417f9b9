"""status: the gate of a pipeline. It waits for one version of one release, and its exit code says what became of it."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime

import click

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.durations import DURATION
from rollout_lws.cli.following import follow
from rollout_lws.cli.options import Target, release_name, rollout_argument, with_target
from rollout_lws.cli.releases import (
    fetch_rollout,
    fetch_workload,
    find_rollouts,
    message,
    stored_versions,
    summary,
    todays_hashes,
)
from rollout_lws.cli.verdict import Goal, Verdict, is_stranger, judge, not_seen, pin
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.objects.resources import Resource


class GoalParameter(click.ParamType[Goal]):
    name = "goal"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Goal:
        if isinstance(value, Goal):
            return value
        try:
            return Goal.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command()
@rollout_argument
@click.option(
    "--for", "goal", type=GoalParameter(), default="healthy", show_default=True, metavar="healthy|paused|step=N|aborted"
)
@click.option("--timeout", type=DURATION, metavar="DURATION", help="Longest wait; 0 looks once, for ever by default.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "jsonl"]), default="text", show_default=True)
@with_target
def status(name: str, goal: Goal, timeout: float | None, output: str, target: Target) -> None:
    """Wait until the release of Rollout NAME is where --for says.

    \b
    Exit codes: 0 reached, 1 API error or not found, 2 usage, 3 aborted, failed or stalled, 4 timeout,
    5 waiting for approval while healthy was asked for, 6 superseded by a newer version, 130 and 143 signals.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    name = release_name(name)
    transport = click.get_current_context().with_resource(Transport.to(target))
    rollouts = find_rollouts(transport, target.api_group)
    rollout = fetch_rollout(transport, rollouts, name)
    pinned = pin(rollout, fetch_workload(transport, rollout))
    told, today = "", dict[str, str]()
    for seen in follow(transport, rollouts, rollout, deadline):
        line = _line(seen)
        if line != told and output != "json":
            click.echo(json.dumps({"time": _now(), **summary(seen)}) if output == "jsonl" else f"{_now()} {line}")
            told = line
        if is_stranger(seen, pinned, today):
            today |= {seen["status"]["observedTemplateHash"]: "", **_hashes(transport, rollouts, seen)}
        verdict = judge(seen, goal, pinned, today)
        if verdict is not None:
            _finish(seen, verdict, output)
        rollout = seen
    why = "no controller has seen this version yet; is one running?" if not_seen(rollout, pinned) else _line(rollout)
    _finish(rollout, Verdict(4, "timeout", f"rollout/{name} is not {goal} yet: {why}"), output)


def _hashes(transport: Transport, rollouts: Resource, rollout: Object) -> dict[str, str]:
    """Our hash of each stored version, by the controller's; none where the history cannot be read."""
    try:
        return todays_hashes(stored_versions(transport, rollouts, rollout))
    except (ApiError, Unreachable):
        return {}


def _line(rollout: Object) -> str:
    said = summary(rollout)
    parts = [said["state"] or "Unknown"]
    parts += [f"{word} {said[word]}" for word in ("step", "traffic", "new", "stable") if said[word]]
    text = message(rollout)
    return " ".join(parts) + (f": {text}" if text else "")


def _finish(rollout: Object, verdict: Verdict, output: str) -> None:
    identity = (rollout.get("status") or {}).get("observedRolloutID") or "-"
    meta = rollout["metadata"]
    if verdict.code:
        click.echo(f"rollout-lws: {verdict.text}", err=True)
    if output == "text":
        click.echo(
            f"result={verdict.word} rollout={meta['namespace']}/{meta['name']} release={identity} exit={verdict.code}"
        )
    else:
        last = {"result": verdict.word, "namespace": meta["namespace"], "name": meta["name"], "release": identity}
        click.echo(json.dumps({**last, "exit": verdict.code, "message": verdict.text}))
    sys.exit(verdict.code)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
