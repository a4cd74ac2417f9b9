"""analyze: tries the gates of a plan on the version that serves."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from rollout_lws.api.resources import keys
from rollout_lws.api.validation import problems
from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.analyze import output as rendered
from rollout_lws.cli.analyze.model import Planned, Tried, Ways, planned
from rollout_lws.cli.analyze.trying import Trying
from rollout_lws.cli.doctor.cluster import Cluster
from rollout_lws.cli.durations import DURATION
from rollout_lws.cli.options import output_option, rollout_argument, with_target
from rollout_lws.cli.plan.planning import at_rest
from rollout_lws.cli.rollouts import fetch_rollout, find_rollouts, release_name
from rollout_lws.cli.view import document
from rollout_lws.clock import WallClock
from rollout_lws.errors import UsageError
from rollout_lws.kube.client import Client
from rollout_lws.kube.connection import connected
from rollout_lws.kubeconfig import context as kubeconfig
from rollout_lws.kubeconfig.context import Context
from rollout_lws.kubeconfig.proxies import proxy_of
from rollout_lws.kubeconfig.target import Target
from rollout_lws.observe.observer import observe
from rollout_lws.origins import Allowed
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.metrics_endpoints import metrics_of_stable
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.preflight import wrong_kind
from rollout_lws.settings import GATE_QUERIES


@click.command()
@rollout_argument
@click.option(
    "--window", type=DURATION, metavar="DURATION", help="How long it is measured; a gate's own, 60s of pods at most."
)
@click.option("--prometheus", default="", metavar="URL", help="The Prometheus of gates, as it is reached from here.")
@click.option("--token-file", type=Path, metavar="FILE", help="Bearer token for it.")
@click.option(
    "--gate-queries",
    type=click.Choice(GATE_QUERIES),
    default="namespace",
    show_default=True,
    help="What PromQL may read, as the controller's own flag says.",
)
@click.option("--http", is_flag=True, help="Send the requests of gates, too, once each.")
@output_option("text", "json")
@with_target
def analyze(
    name: str,
    window: float | None,
    prometheus: str,
    token_file: Path | None,
    gate_queries: str,
    http: bool,
    output: str,
    target: Target,
) -> None:
    """Judge the gates of Rollout NAME once, by the version that serves, as if it were the new one as well.

    So limits are tried before a release needs them. Nothing is written. Pods are asked through the API server, which
    takes the right to get pods/proxy. Jobs are not run.

    \b
    Exit codes: 0 no gate has failed, 1 one has, or could not be judged for an error, 2 usage.
    """
    if window is not None and window < 1:
        raise click.UsageError("--window is shorter than 1s: give at least some seconds")
    if prometheus:
        Allowed.parse(prometheus, "--prometheus")
    elif token_file is not None:
        raise click.UsageError("--token-file is for the --prometheus that it is sent to: give both")
    ways = Ways(
        window=round(window) if window is not None else None,
        prometheus=prometheus.rstrip("/"),
        token=_token(token_file) if token_file is not None else "",
        confine=gate_queries == "namespace",
        http=http,
    )
    name = release_name(name)
    with Transport.to(target) as transport:
        d = Draft.of(_seen(transport, target, name))
        namespace = transport.namespace
    gates = planned(d.strategy)
    if not gates:
        raise UsageError(f"rollout/{name} has no gates: add them to the steps of its plan")
    if not metrics_of_stable(d):
        raise UsageError(
            f"no group of {d.called} is ready at its stable version, so there is nothing to judge gates by:"
            f" see {d.command('doctor')}"
        )
    tried = asyncio.run(_try(d, gates, ways, target))
    if output == "json":
        click.echo(document(rendered.document(namespace, name, d.stable_revision, tried), "json"), nl=False)
    else:
        click.echo("\n".join(rendered.text(tried)))
    if any(each.bad for each in tried):
        sys.exit(1)


def _seen(transport: Transport, target: Target, name: str) -> Observation:
    """The Rollout with the version that serves, as if it were adopted. UsageError for one that cannot be released."""
    rollouts = find_rollouts(transport, target.api_group)
    # Reports a missing Rollout as every other command does.
    fetch_rollout(transport, rollouts, name)
    seen = observe(Cluster(keys(rollouts.group), transport, transport.namespace), name, datetime.now(UTC))
    if seen is None:
        raise UsageError(f"rollout/{name} was deleted while it was looked at")
    wrong = wrong_kind(Draft.of(seen))
    if wrong is not None:
        raise UsageError(f"rollout/{name} would be refused: {wrong.message}")
    found = next(iter(problems(seen.rollout.spec)), None)
    if found is not None:
        raise UsageError(f"rollout/{name} would be refused: {found.path}: {found.message}")
    if seen.stable is None:
        raise UsageError(f"rollout/{name} refers to {Draft.of(seen).called}, which does not exist: apply it first")
    if seen.undecided:
        raise UsageError(
            f"rollout/{name}: requests go to both workloads of the pair, or to neither, so it is not known which one"
            " serves: name it in spec.activeSide"
        )
    return at_rest(seen, seen.stable.workload.version)


async def _try(d: Draft, gates: tuple[Planned, ...], ways: Ways, target: Target) -> tuple[Tried, ...]:
    connection = await connected(proxied(kubeconfig.load(target)))
    try:
        client = Client(connection, timeout=target.request_timeout or 30.0)
        return await Trying(d, ways, client, WallClock(), _progress).all(gates)
    finally:
        await connection.close()
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", err=True, nl=False)


def proxied(context: Context) -> Context:
    """The context with the proxy that all commands use; a controller takes none from its environment."""
    proxy = proxy_of(context.server, context.cluster, os.environ)
    return replace(context, cluster={**context.cluster, "proxy-url": proxy})


def _progress(done: float, window: float) -> None:
    if sys.stderr.isatty():
        click.echo(f"\rmeasured for {done:.0f} s of {window:.0f} s ", err=True, nl=False)


def _token(file: Path) -> str:
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file {file} cannot be read: {error}") from error
    if not token or not token.isprintable():
        raise UsageError(f"--token-file {file} has no token: give a file with nothing else in it")
    return token
