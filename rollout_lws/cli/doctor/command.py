"""doctor: checks the chain from a Rollout to its route and reports the first broken link."""

from __future__ import annotations

import json
import shutil
import sys
import time
from datetime import UTC, datetime

import click

from rollout_lws.api.resources import keys
from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.doctor.chain import chain, seen
from rollout_lws.cli.doctor.cluster import Cluster
from rollout_lws.cli.doctor.facts import Before, Facts, gather
from rollout_lws.cli.doctor.links import State, first
from rollout_lws.cli.doctor.orphans import left_standing_in
from rollout_lws.cli.doctor.output import document, text
from rollout_lws.cli.options import output_option, rollout_argument, with_target
from rollout_lws.cli.rollouts import fetch_rollout, find_rollouts, release_name
from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import Resource

#: Seconds that a controller gets for a pending action before doctor reports it as not done.
SECOND_LOOK = 2.0


@click.command()
@rollout_argument
@output_option("text", "json")
@with_target
def doctor(name: str, output: str, target: Target) -> None:
    """Name what keeps Rollout NAME from getting on, or its groups from getting requests.

    Looks from the Rollout over its workload, groups and pods to Services and routes. Works without a controller.

    \b
    Exit codes: 0 nothing is broken, 1 something is, or it cannot be looked at, 2 usage.
    """
    name = release_name(name)
    transport = click.get_current_context().with_resource(Transport.to(target))
    rollouts = find_rollouts(transport, target.api_group)
    try:
        # Reports a missing Rollout as every other command does.
        fetch_rollout(transport, rollouts, name)
    except UsageError as error:
        raise UsageError("; ".join([str(error), *left_standing_in(transport, rollouts)])) from error
    facts = _look(transport, rollouts, name)
    before = seen(facts)
    if before.pending_writes or before.broken:
        time.sleep(SECOND_LOOK)
        facts = _look(transport, rollouts, name, before)
    links = chain(facts)
    if output == "json":
        click.echo(json.dumps(document(transport.namespace, name, links), indent=4))
    else:
        click.echo("\n".join(text(links, _width())))
    if first(links, State.BROKEN) is not None:
        sys.exit(1)


def _look(transport: Transport, rollouts: Resource, name: str, before: Before | None = None) -> Facts:
    cluster = Cluster(keys(rollouts.group), transport, transport.namespace)
    found = gather(cluster, name, datetime.now(UTC), before)
    if found is None:
        raise UsageError(f"rollout/{name} was deleted while it was looked at")
    return found


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
