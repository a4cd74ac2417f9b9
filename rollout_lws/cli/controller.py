"""controller: runs the controller until it is told to stop; every flag becomes one field of Settings."""

from __future__ import annotations

import asyncio

import click

from rollout_lws.cli.durations import DURATION
from rollout_lws.errors import UsageError
from rollout_lws.settings import DEFAULT_API_GROUP, LOG_FORMATS, Address, Settings


@click.command()
@click.option("--kubeconfig", metavar="FILE", help="Kubeconfig; inside a pod its service account by default.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; the current one by default.")
@click.option("-n", "--namespace", "namespaces", multiple=True, metavar="NAME", help="Only this one; repeatable.")
@click.option("--api-group", metavar="GROUP", help=f"API group of our kinds ({DEFAULT_API_GROUP}).")
@click.option("--workers", type=int, default=4, show_default=True, help="Rollouts decided at the same time.")
@click.option("--request-timeout", type=DURATION, metavar="DURATION", help="Longest time of one request (30s).")
@click.option("--metrics-bind-address", default=":8080", show_default=True, metavar="ADDRESS", help="0 for none.")
@click.option(
    "--health-probe-bind-address", default=":8081", show_default=True, metavar="ADDRESS", help="0 switches it off."
)
@click.option("--log-format", type=click.Choice(LOG_FORMATS), default="text", show_default=True)
@click.option("--leader-elect", is_flag=True, help="Refused: the elector is not built yet, run one replica.")
@click.pass_context
def controller(
    ctx: click.Context,
    kubeconfig: str | None,
    context: str | None,
    namespaces: tuple[str, ...],
    api_group: str | None,
    workers: int,
    request_timeout: float | None,
    metrics_bind_address: str,
    health_probe_bind_address: str,
    log_format: str,
    leader_elect: bool,
) -> None:
    """Run the controller until SIGINT or SIGTERM."""
    if leader_elect:
        raise click.UsageError("--leader-elect: the elector is not built yet; run one replica, without this flag")
    before = ctx.find_root().params
    try:
        settings = Settings(
            api_group=api_group or before.get("api_group") or DEFAULT_API_GROUP,
            namespaces=namespaces or ((before["namespace"],) if before.get("namespace") else ()),
            workers=workers,
            request_timeout=request_timeout or before.get("request_timeout") or 30.0,
            health=Address.parse(health_probe_bind_address, "--health-probe-bind-address"),
            metrics=Address.parse(metrics_bind_address, "--metrics-bind-address"),
            log_format=log_format,
            kubeconfig=kubeconfig or before.get("kubeconfig"),
            context=context or before.get("context"),
        )
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    from rollout_lws.controller import process

    asyncio.run(process.run(settings))
