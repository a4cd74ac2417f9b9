"""uninstall: every Rollout taken off its LeaderWorkerSet, one by one, and then everything that was installed."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.durations import DURATION
from rollout_lws.cli.options import with_target
from rollout_lws.cli.uninstall.departures import Departure, Roll
from rollout_lws.cli.uninstall.leaving import Hands, leave
from rollout_lws.cli.uninstall.plan import PUT_BACK, keeping, lines, refusal, rolling, running, title, warnings
from rollout_lws.cli.uninstall.reading import Chosen, Seen, read
from rollout_lws.cli.uninstall.removing import look_again, remove, silence, tidy
from rollout_lws.errors import RolloutLwsError, UsageError
from rollout_lws.kubeconfig.target import Target


@click.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask, whatever rolls.")
@click.option("--dry-run", is_flag=True, help="Tell what would be done, and change nothing.")
@click.option("--delete-namespace", is_flag=True, help="Its namespace too, where no pods of others are.")
@click.option(
    "--timeout",
    type=DURATION,
    default=600.0,
    metavar="DURATION",
    help="Longest wait for each Rollout to let go (10m).",
)
@with_target
def uninstall(yes: bool, dry_run: bool, delete_namespace: bool, timeout: float, target: Target) -> None:
    """Take rollout-lws off the cluster: Rollouts, controller, rights and CRDs. No LeaderWorkerSet is deleted.

    What is installed is found by its labels. Before a hold is opened under which another version waits, it says which
    one would roll, and asks.
    """
    with Transport.to(target) as transport:
        seen = read(transport, Chosen(target.api_group, target.namespace, delete_namespace))
        for each in warnings(seen.plan):
            click.echo(f"warning: {each}", err=True)
        for line in lines(seen.plan):
            click.echo(line)
        if not seen.plan.empty:
            _refuse(seen)
        if dry_run:
            return
        if not seen.plan.empty:
            _confirm(transport, yes, f"Take rollout-lws off {transport.cluster}?")
            _carry_out(transport, seen, yes, timeout)
        _tell_rest(look_again(transport, seen.groups), "else " if seen.plan.stay else "")


def _refuse(seen: Seen) -> None:
    why = refusal(seen.plan)
    if why:
        raise UsageError(f"nothing was changed: {why}")


def _confirm(transport: Transport, yes: bool, question: str) -> None:
    if not (yes or sys.stdin.isatty()):
        raise UsageError("nothing was changed, and nobody is here to be asked: if all of this is meant, say --yes")
    if not (yes or _asks(transport, question)):
        raise UsageError("nothing was changed")


def _carry_out(transport: Transport, seen: Seen, yes: bool, timeout: float) -> None:
    silence(transport, seen.plan, click.echo)
    hands = Hands(transport, click.echo, _asking(transport, yes), timeout, running(seen.plan))
    kept = [left for each in seen.plan.departures if (left := leave(hands, each)) is not None]
    if kept:
        raise RolloutLwsError(_unfinished(kept))
    for group in seen.groups:
        tidy(transport, group)
    if seen.plan.parts.helm:
        raise RolloutLwsError(
            f"no Rollout is left; what Helm has made stays until it takes it away: {' && '.join(seen.plan.parts.helm)},"
            " then run this command again for the rest"
        )
    remove(transport, seen.plan, seen.groups, timeout, click.echo)


def _asking(transport: Transport, yes: bool) -> Callable[[Departure, Roll], bool]:
    def agrees(each: Departure, roll: Roll) -> bool:
        return yes or _asks(transport, f"{title(each)}: {rolling(roll)}. Open the hold?")

    return agrees


def _asks(transport: Transport, question: str) -> bool:
    # Nobody knows how long a person thinks, and servers end connections that are not used.
    transport.close()
    return click.confirm(question, err=True)


def _unfinished(kept: list[Departure]) -> str:
    names = ", ".join(f"{title(each)}{'' if each.rollout else ' (held)'}" for each in kept)
    ways = dict.fromkeys(keeping(each) if each.rollout else PUT_BACK for each in kept)
    return (
        f"left: {names}; so the controller and the definitions stay, too; to keep what runs: {', '.join(ways)}; then"
        " run this command again"
    )


def _tell_rest(left: list[str], besides: str) -> None:
    for each in left:
        click.echo(f"left: {each}")
    if left:
        raise RolloutLwsError("all of this is left, each with the command that takes it away")
    click.echo(f"nothing {besides}of rollout-lws is left on this cluster")
