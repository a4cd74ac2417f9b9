"""promote, pause, resume, abort, retry, skip, start, home: requests about a release that the controller carries out.

All of them need only ``patch`` on rollouts/status.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.actions import action_rules
from rollout_lws.cli.actions.action_client import PATIENCE, Looking, ask
from rollout_lws.cli.durations import DURATION
from rollout_lws.cli.options import rollout_argument, rollouts_argument, with_target
from rollout_lws.cli.rollouts import chosen_names, fetch_workload, find_rollouts
from rollout_lws.cli.sides import sides_of
from rollout_lws.cli.view import sentences
from rollout_lws.errors import ApiError, RolloutLwsError
from rollout_lws.kubeconfig.target import Target

_timeout = click.option(
    "--timeout",
    type=DURATION,
    default=PATIENCE,
    metavar="DURATION",
    help=f"How long the controller's answer is waited for ({PATIENCE:g}s); 0 does not wait for it.",
)


def _of_releases(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every action: names or a selector, and how long to wait for the controller's answer."""
    for option in (
        _timeout,
        click.option("-l", "--selector", metavar="SELECTOR", help="Every Rollout with these labels."),
        rollouts_argument,
    ):
        command = option(command)
    return with_target(command)


_reason = click.option("--reason", metavar="TEXT", help="Why; kept in the Rollout's status and in the event.")
_step = click.option("--step", type=int, metavar="N", help="Only if the release is at step N.")
_release = click.option("--release-id", "release", metavar="ID", help="Only if it is the release with this id.")


@click.command()
@_of_releases
@click.option("--full", is_flag=True, help="Promote all of it, without the steps that are left.")
@click.option("--to-step", type=int, metavar="N", help="Go to step N, forward or back.")
@_step
@_release
@_reason
def promote(full: bool, to_step: int | None, step: int | None, release: str | None, **given: Any) -> None:
    """Approve the step at which the release of Rollout NAME waits."""
    if full and to_step is not None:
        raise click.UsageError("--full skips every step, --to-step goes to one: leave out either")
    judge: action_rules.Judge = action_rules.approve
    if full:
        judge = action_rules.promote_full
    elif to_step is not None:
        judge = action_rules.jump_to(to_step)
    _each(action_rules.at(judge, step, release), **given)


@click.command()
@_of_releases
@_release
@_reason
@click.option(
    "--force",
    is_flag=True,
    help="Remove the new version after grace and drain even if no router has taken its share away; requests may fail.",
)
def abort(release: str | None, force: bool, **given: Any) -> None:
    """Abort the release of Rollout NAME and go back to the stable version."""
    _each(action_rules.at(action_rules.abort(force=force), None, release), **given)


@click.command()
@_of_releases
@_reason
def retry(**given: Any) -> None:
    """Release the aborted version of Rollout NAME again; in its steps, count deadlines and failures anew."""
    _each(action_rules.retry, **given)


@click.command()
@_of_releases
@_reason
def pause(**given: Any) -> None:
    """Hold the release of Rollout NAME where it is; what is being done is finished."""
    _each(action_rules.pause, **given)


@click.command()
@_of_releases
@_reason
def resume(**given: Any) -> None:
    """Go on with the release of Rollout NAME."""
    _each(action_rules.resume, **given)


@click.command()
@_of_releases
@_reason
def start(**given: Any) -> None:
    """Release the version of the inactive side of Rollout NAME, a pair, though it was there before: this is how to go
    back after a release.
    """
    _each(Looking(judge_start), **given)


@click.command()
@_of_releases
@_reason
def home(**given: Any) -> None:
    """Bring the requests of Rollout NAME back to its own LWS, while one that a release has made (promotion Swap,
    capacity Shift) serves in its place: its version is released in steps, even if it is the same, and each of its
    groups loads.
    """
    _each(action_rules.home, **given)


def judge_start(transport: Transport, rollout: Object) -> action_rules.Judge:
    """Judges a start by the version that the inactive side has now, as far as that may be read."""
    # Only this action needs the libraries that decode workloads.
    from rollout_lws.cli.releases import fetch_companions, side_hash

    if sides_of(rollout) is None:
        return action_rules.start("")
    try:
        workload, companions = fetch_workload(transport, rollout), fetch_companions(transport, rollout)
        return action_rules.start(side_hash(rollout, workload, companions))
    except ApiError as error:
        if error.code != 403:
            raise
        return action_rules.start("")


@click.command()
@with_target
@rollout_argument
@click.argument("gate", metavar="GATE")
@_timeout
@_release
@_reason
def skip(name: str, gate: str, release: str | None, **given: Any) -> None:
    """Pass GATE of the current step of Rollout NAME by hand, without waiting for what it measures."""
    _each(action_rules.at(action_rules.skip(gate), None, release), names=(name,), selector=None, **given)


def _each(
    judge: action_rules.Judge | Looking,
    names: tuple[str, ...],
    selector: str | None,
    target: Target,
    timeout: float,
    reason: str | None = None,
) -> None:
    """Send the request for every chosen Rollout; exit 1 when any was refused, each with its reason on stderr."""
    transport = click.get_current_context().with_resource(Transport.to(target))
    rollouts = find_rollouts(transport, target.api_group)
    meant = chosen_names(transport, rollouts, names, selector)
    refused: list[RolloutLwsError] = []
    for name in meant:
        try:
            click.echo(sentences(ask(transport, rollouts, name, judge, reason=reason, patience=timeout)))
        except RolloutLwsError as error:
            if len(meant) == 1:
                raise
            click.echo(f"rollout-lws: {sentences(str(error))}", err=True)
            refused.append(error)
    if refused:
        click.get_current_context().exit(1)
