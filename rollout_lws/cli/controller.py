"""controller: runs the controller until a signal stops it; each flag sets one field of Settings."""

from __future__ import annotations

import asyncio

import click

from rollout_lws.cli.durations import DURATION
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.settings import (
    DEFAULT_LEASE,
    GATE_QUERIES,
    LOG_FORMATS,
    SCRAPE_THROUGH,
    Address,
    Election,
    Guard,
    Settings,
)


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
@click.option(
    "--scrape-through",
    type=click.Choice(SCRAPE_THROUGH),
    default="pods",
    show_default=True,
    help="How gates reach pods.",
)
@click.option("--prometheus", default="", metavar="URL", help="Prometheus of Rollouts that name none.")
@click.option(
    "--gate-addresses", multiple=True, metavar="URL", help="A server that Rollouts may name in gates; repeatable."
)
@click.option(
    "--gate-queries",
    type=click.Choice(GATE_QUERIES),
    default="namespace",
    show_default=True,
    help="What PromQL of gates may read: series of the Rollout's namespace, or any.",
)
@click.option(
    "--notify",
    multiple=True,
    metavar="DIR",
    help="A receiver of notifications: files url, format, only, signing-keys, headers, ca.crt; repeatable.",
)
@click.option("--cluster-name", default="", metavar="NAME", help="What notifications call this cluster.")
@click.option(
    "--custom-network-scripts",
    default="",
    metavar="CONFIGMAP",
    help="ConfigMap with Lua scripts for customNetworkRefs, in the controller's namespace; none are run by default.",
)
@click.option(
    "--log-format", type=click.Choice(LOG_FORMATS), default="text", show_default=True, help="Form of log lines."
)
@click.option("--leader-elect", is_flag=True, help="Of several controllers one works, the others watch and wait.")
@click.option("--leader-elect-resource-namespace", metavar="NAME", help="Where its Lease is; the pod's own by default.")
@click.option(
    "--leader-elect-resource-name", default=DEFAULT_LEASE, show_default=True, metavar="NAME", help="Name of its Lease."
)
@click.option(
    "--leader-elect-lease-duration", "lease_duration", type=DURATION, default=15.0, help="Then others lead (15s)."
)
@click.option(
    "--leader-elect-renew-deadline", "renew_deadline", type=DURATION, default=10.0, help="Then the leader stops (10s)."
)
@click.option(
    "--leader-elect-retry-period", "retry_period", type=DURATION, default=2.0, help="Between its renewals (2s)."
)
@click.option("--guard", is_flag=True, help="Judge edits of LeaderWorkerSets and Rollouts, as an admission webhook.")
@click.option("--guard-bind-address", default=":9443", show_default=True, metavar="ADDRESS", help="Where it listens.")
@click.option(
    "--guard-host", "guard_hosts", multiple=True, metavar="NAME", help="How API servers reach it (its Service)."
)
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
    scrape_through: str,
    prometheus: str,
    gate_addresses: tuple[str, ...],
    gate_queries: str,
    notify: tuple[str, ...],
    cluster_name: str,
    custom_network_scripts: str,
    log_format: str,
    leader_elect: bool,
    leader_elect_resource_namespace: str | None,
    leader_elect_resource_name: str,
    lease_duration: float,
    renew_deadline: float,
    retry_period: float,
    guard: bool,
    guard_bind_address: str,
    guard_hosts: tuple[str, ...],
) -> None:
    """Run the controller until SIGINT or SIGTERM."""
    before = ctx.find_root().params
    try:
        election = Election(
            namespace=leader_elect_resource_namespace,
            name=leader_elect_resource_name,
            duration=lease_duration,
            deadline=renew_deadline,
            retry=retry_period,
        )
        settings = Settings(
            api_group=api_group or before.get("api_group") or DEFAULT_API_GROUP,
            namespaces=namespaces or ((before["namespace"],) if before.get("namespace") else ()),
            workers=workers,
            request_timeout=request_timeout or before.get("request_timeout") or 30.0,
            health=Address.parse(health_probe_bind_address, "--health-probe-bind-address"),
            metrics=Address.parse(metrics_bind_address, "--metrics-bind-address"),
            scrape_through=scrape_through,
            prometheus=prometheus.rstrip("/"),
            gate_addresses=gate_addresses,
            gate_queries=gate_queries,
            notify=notify,
            cluster_name=cluster_name,
            custom_network_scripts=custom_network_scripts,
            log_format=log_format,
            kubeconfig=kubeconfig or before.get("kubeconfig"),
            context=context or before.get("context"),
            election=election if leader_elect else None,
            guard=_guard(guard_bind_address, guard_hosts) if guard else None,
        )
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    from rollout_lws.controller import process

    asyncio.run(process.run(settings))


def _guard(address: str, hosts: tuple[str, ...]) -> Guard:
    listens = Address.parse(address, "--guard-bind-address")
    if listens is None:
        raise UsageError("--guard-bind-address 0: leave --guard out instead")
    return Guard(listens, hosts)
