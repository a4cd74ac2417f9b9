"""uninstall: detaches every Rollout from its workload, and prints the commands that delete the installation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import click

from rollout_lws.api.resources import batch_releases
from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.durations import DURATION
from rollout_lws.cli.install.inventory import listed, place_of
from rollout_lws.cli.options import with_target
from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.cli.uninstall.cluster import read
from rollout_lws.cli.uninstall.detach import Session, detach
from rollout_lws.cli.uninstall.detach_plan import Detachment
from rollout_lws.cli.uninstall.opening import Roll
from rollout_lws.cli.uninstall.plan import PUT_BACK, Plan, keeping, lines, refusal, rolling, running, title
from rollout_lws.errors import RolloutLwsError, UsageError
from rollout_lws.kubeconfig.target import Target


@click.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask, whatever rolls.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@click.option(
    "--timeout",
    type=DURATION,
    default=600.0,
    metavar="DURATION",
    help="Longest wait for each Rollout to let go (10m).",
)
@with_target
def uninstall(yes: bool, dry_run: bool, timeout: float, target: Target) -> None:
    """Take every Rollout off its workload, and print the commands that delete the rest.

    No workload is deleted. Before a hold is opened under which another version waits, it says which one would
    roll, and asks. The commands of kubectl and Helm delete the controller, its rights and the CRDs.
    """
    with Transport.to(target) as transport:
        plan = read(transport, target.api_group, target.namespace)
        for line in lines(plan):
            click.echo(line)
        why = refusal(plan)
        if why:
            raise UsageError(f"nothing was changed: {why}")
        if plan.detachments and not dry_run:
            _confirm(transport, yes)
            _detach(transport, plan, yes, timeout)
        if not dry_run:
            _refuse_rest(transport, plan)
        _tell_rest(plan.commands, " once no Rollout is left" if plan.detachments and dry_run else "")


def _confirm(transport: Transport, yes: bool) -> None:
    if not (yes or sys.stdin.isatty()):
        raise UsageError(
            "nothing was changed: there is no terminal to ask at: run it with --yes to agree to all of this"
        )
    if not (yes or _asks(transport, f"Take these Rollouts off {transport.cluster}?")):
        raise UsageError("nothing was changed")


def _detach(transport: Transport, plan: Plan, yes: bool, timeout: float) -> None:
    """Detach all Rollouts; RolloutLwsError while one is left, since the controller must then stay."""
    session = Session(transport, click.echo, _asking(transport, yes), timeout, running(plan))
    kept = [left for each in plan.detachments if (left := detach(session, each)) is not None]
    if kept:
        raise RolloutLwsError(_unfinished(kept))


def _refuse_rest(transport: Transport, plan: Plan) -> None:
    """Refuse while our objects exist: deleting CRDs deletes them, and only a controller restores what they modified."""
    for kind in (kind(group) for group in plan.groups for kind in (rollouts_of, batch_releases)):
        for each in listed(transport, kind)[:1]:
            raise RolloutLwsError(
                f"{place_of(kind, each)} is there, so the controller and the definitions have to stay: was it made"
                " anew? Run this command again, without --api-group"
            )


def _asking(transport: Transport, yes: bool) -> Callable[[Detachment, Roll], bool]:
    def agrees(each: Detachment, roll: Roll) -> bool:
        return yes or _asks(transport, f"{title(each)}: {rolling(each, roll)}. Open the hold?")

    return agrees


def _asks(transport: Transport, question: str) -> bool:
    # The prompt may take long, and servers close idle connections.
    transport.close()
    return click.confirm(question, err=True)


def _unfinished(kept: list[Detachment]) -> str:
    names = ", ".join(f"{title(each)}{'' if each.rollout else ' (held)'}" for each in kept)
    ways = dict.fromkeys(keeping(each) if each.rollout else PUT_BACK for each in kept)
    return (
        f"left: {names}; so the controller and the definitions have to stay, too; to keep what runs: {', '.join(ways)};"
        " then run this command again"
    )


def _tell_rest(commands: Iterable[str], when: str) -> None:
    if not commands:
        click.echo("nothing of an installation is left on this cluster")
        return
    click.echo(f"These commands delete the rest{when}, in this order:")
    for each in commands:
        click.echo(f"  {each}")
