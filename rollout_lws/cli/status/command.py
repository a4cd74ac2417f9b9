"""status: the gate for pipelines. It waits for one version of one release, and its exit code is the outcome."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import click

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.durations import DURATION
from rollout_lws.cli.options import output_option, rollout_argument, with_target
from rollout_lws.cli.releases import fetch_companions, side_hash
from rollout_lws.cli.rollouts import (
    fetch_rollout,
    fetch_workload,
    find_rollouts,
    gates,
    message,
    release_name,
    summary,
    words,
)
from rollout_lws.cli.sides import (
    called,
    edited,
    have_turned,
    is_active_edited,
    is_arriving,
    is_settled,
    names_served,
    released_kind,
    scales_sides,
    sides_of,
    standing_in,
)
from rollout_lws.cli.status.gate import (
    Goal,
    Pin,
    Verdict,
    has_taken_over,
    id_of,
    id_on,
    judge,
    judge_id,
    not_seen,
    pin,
    refused,
    replaced,
    waits_on_active,
)
from rollout_lws.cli.view import moment, plain, sentences
from rollout_lws.cli.watch.stream import follow, wait_out
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kubeconfig.target import Target
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
    "--for",
    "goal",
    type=GoalParameter(),
    default="healthy",
    show_default=True,
    metavar="healthy|paused|step=N|aborted",
    help="What is waited for.",
)
@click.option("--timeout", type=DURATION, metavar="DURATION", help="Longest wait; 0 looks once, for ever by default.")
@click.option("--release-id", "release", metavar="ID", help="Wait for the release with this rollout-id and no other.")
@click.option("--fail-on-capacity", is_flag=True, help="End with 7 when the release waits for quota or accelerators.")
@output_option("text", "json", "jsonl")
@with_target
def status(
    name: str,
    goal: Goal,
    timeout: float | None,
    release: str | None,
    fail_on_capacity: bool,
    output: str,
    target: Target,
) -> None:
    """Wait until the release of Rollout NAME is where --for says.

    \b
    Exit codes: 0 reached, 1 API error or not found, 2 usage, 3 aborted, failed or stalled, 4 timeout,
    5 waiting for approval while healthy was asked for, or for the rest of a version, 6 superseded by a newer version,
    7 waiting for capacity with --fail-on-capacity, 130 and 143 signals.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    name = release_name(name)
    transport = click.get_current_context().with_resource(Transport.to(target))
    transport.until(deadline)
    rollouts = find_rollouts(transport, target.api_group)
    rollout = fetch_rollout(transport, rollouts, name)
    gate = Gate(transport, rollouts, goal, release, fail_on_capacity, deadline)
    told = ""
    for seen in follow(transport, rollouts, rollout, deadline):
        verdict, line = gate.look(seen), _line(seen)
        if line != told and output != "json":
            now = moment(datetime.now(UTC))
            click.echo(json.dumps({"time": now, **_as_json(seen)}) if output == "jsonl" else f"{now} {line}")
            told = line
        if verdict is not None:
            _finish(seen, verdict, output, release)
        rollout = seen
    _finish(rollout, Verdict(4, "timeout", f"rollout/{name} is not {goal} yet: {gate.why_not(rollout)}"), output)


#: A workload, the active side of a pair, and companions by name.
_Fetched: TypeAlias = tuple[Object, Object | None, dict[str, Object]]


@dataclass
class Gate:
    """One wait, pinned to a version at the first look, or as soon as the release with the given id exists."""

    transport: Transport
    rollouts: Resource
    goal: Goal
    release: str | None
    fail_on_capacity: bool
    deadline: float | None = None
    _begun: bool = False
    _pinned: Pin | None = None
    #: Whether the LWS or the status has carried the awaited id, and the id on the LWS at the last look.
    _known: bool = False
    _carried: str = ""

    def look(self, rollout: Object) -> Verdict | None:
        """The verdict on this Rollout, None to keep waiting."""
        if self._pinned is not None and has_taken_over(rollout, self._pinned):
            # The id in the status may be of a later release.
            return judge(rollout, self.goal, self._pinned)
        if self._pinned is None or not self._is_about(rollout):
            workload, active, companions = self._workload(rollout)
            if self.release is not None:
                verdict = judge_id(rollout, workload, self.rollouts.group, self.release, known=self._known)
                if verdict is not None:
                    return verdict
                self._carried = id_on(workload, self.rollouts.group)
                self._known |= self.release in (self._carried, id_of(rollout))
            if not self._is_about(rollout) and not self._is_of_pair(rollout, workload):
                return refused(rollout, self.goal) if self._carried == self.release else None
            self._pinned = pin(rollout, workload, active, companions)
        if self._is_replaced(rollout, self._pinned):
            return replaced(rollout)
        verdict = judge(rollout, self.goal, self._pinned, fail_on_capacity=self.fail_on_capacity)
        if verdict is not None and verdict.warns and self.release is not None:
            return Verdict(6, "superseded", f"release {self.release} is not the one that serves: {verdict.text}")
        return verdict

    def _is_replaced(self, rollout: Object, pinned: Pin) -> bool:
        """Whether the workloads of a side have another version than the pinned one, which was not released yet: the
        status counts the generations of one of them only. While another LWS stands in for the pinned one, whether that
        was deleted and recreated, of which the status says nothing.
        """
        stood_for = bool(standing_in(rollout))
        if not (pinned.is_joint or stood_for) or not not_seen(rollout, pinned) or have_turned(rollout):
            return False
        workload, _, companions = self._workload(rollout)
        if stood_for:
            return bool(pinned.workload_uids) and workload["metadata"].get("uid") not in pinned.workload_uids
        own = workload["metadata"]["name"] == pinned.workload
        return own and side_hash(rollout, workload, companions) != pinned.template_hash

    def why_not(self, rollout: Object) -> str:
        """Why there is no verdict on ``rollout`` yet."""
        if self.release is not None and not self._is_about(rollout) and not self._known:
            named = f"carries release {self._carried}" if self._carried else "carries no rollout-id"
            lws = edited(rollout)
            return f"{called(rollout, lws)} {named}, not {self.release}: has it been applied?"
        if is_arriving(rollout):
            return _line(rollout)
        if self._pinned is None or not_seen(rollout, self._pinned):
            what = "this version" if self.release is None else f"release {self.release}"
            return f"no controller has seen {what} yet; is one running?"
        sides = sides_of(rollout)
        if sides is not None and waits_on_active(rollout, self._pinned) and is_settled(rollout):
            what = f"the version in the template of {called(rollout, sides.active)}, the active side,"
            return f"no controller has judged {what} yet; is one running?"
        return _line(rollout)

    def _workload(self, rollout: Object) -> _Fetched:
        """The LWS, the active side of a pair whose releases scale it, and companions. Once the gate has begun, waits
        for a server that is busy or unreachable.
        """
        while True:
            try:
                found = self._fetched(rollout)
            except (ApiError, Unreachable) as error:
                if not self._begun or (self.deadline is not None and time.monotonic() >= self.deadline):
                    raise
                wait_out(error, self.deadline)
            else:
                self._begun = True
                return found

    def _fetched(self, rollout: Object) -> _Fetched:
        """The LWS whose version is waited for: of a pair the active side, if that is the one with the awaited id, or it
        has just become the active one in a release, and nothing was applied to the other one since. Then the active
        side of a pair whose releases scale it, None of others, and the companions of both sides.
        """
        sides, active, scaled = sides_of(rollout), None, scales_sides(rollout)
        turned = have_turned(rollout)
        if sides is not None and sides.known and (scaled or turned or self.release is not None):
            resource = released_kind(rollout)
            active = self.transport.find(resource.path(rollout["metadata"]["namespace"], sides.active))
        held, companions = active if scaled else None, fetch_companions(self.transport, rollout)
        if active is not None and self.release is not None and id_on(active, self.rollouts.group) == self.release:
            return active, held, companions
        found = fetch_workload(self.transport, rollout)
        own = side_hash(rollout, found, companions)
        if active is not None and turned and own == (rollout["status"].get("inactiveHash") or ""):
            return active, held, companions
        return found, held, companions

    def _is_of_pair(self, rollout: Object, workload: Object) -> bool:
        """Whether a side of a pair at rest has the awaited id, which the status does not name then."""
        carried = id_on(workload, self.rollouts.group) == self.release
        return carried and sides_of(rollout) is not None and (is_settled(rollout) or is_active_edited(rollout))

    def _is_about(self, rollout: Object) -> bool:
        return self.release is None or id_of(rollout) == self.release


def _line(rollout: Object) -> str:
    text = message(rollout)
    return plain(words(rollout) + (f": {text}" if text else ""))


def _as_json(rollout: Object) -> Object:
    return {**_identity(rollout), **summary(rollout), "message": message(rollout), "gates": gates(rollout)}


def _identity(rollout: Object) -> dict[str, str]:
    meta, release = rollout["metadata"], id_of(rollout) if names_served(rollout) else ""
    return {"namespace": meta["namespace"], "name": meta["name"], "release": release or "-"}


def _finish(rollout: Object, verdict: Verdict, output: str, release: str | None = None) -> None:
    """Prints the end of the wait, for ``release`` if one was asked for, and exits with its code."""
    said = _identity(rollout)
    if release is not None and not verdict.code and said["release"] == "-":
        said["release"] = release
    if verdict.code or verdict.warns:
        click.echo(f"rollout-lws: {sentences(verdict.text)}", err=True)
    if output == "text":
        place = f"{said['namespace']}/{said['name']}"
        click.echo(f"result={verdict.word} rollout={place} release={plain(said['release'])} exit={verdict.code}")
    else:
        stamp = {"time": moment(datetime.now(UTC))} if output == "jsonl" else {}
        last = {**stamp, "result": verdict.word, **said, "exit": verdict.code, "message": verdict.text}
        click.echo(json.dumps({**last, "gates": gates(rollout)}))
    sys.exit(verdict.code)
