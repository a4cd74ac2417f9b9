"""install: prints everything that a cluster needs as manifests, or applies it."""

from __future__ import annotations

import click
import yaml

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.durations import DURATION
from rollout_lws.cli.install import applying
from rollout_lws.cli.install.inventory import starting
from rollout_lws.cli.install.manifests import objects
from rollout_lws.cli.install.options import (
    DEFAULT_NAMESPACE,
    DEFAULT_REPLICAS,
    EXTRAS,
    FAILURE_POLICIES,
    Installation,
)
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.cli.install.waiting import available, wait
from rollout_lws.cli.options import with_target
from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import DEFAULT_API_GROUP


@click.command()
@click.option("--image", required=True, metavar="IMAGE", help="Image that has rollout-lws; docs/install.md builds one.")
@click.option("--watch-namespace", "watched", multiple=True, metavar="NAME", help="Only its Rollouts; repeatable.")
@click.option(
    "--replicas", type=int, default=DEFAULT_REPLICAS, show_default=True, help="One leads; 0 installs without starting."
)
@click.option("--with", "extras", multiple=True, type=click.Choice(EXTRAS), help="Install this as well; repeatable.")
@click.option(
    "--guard-failure-policy",
    type=click.Choice(FAILURE_POLICIES),
    default=FAILURE_POLICIES[0],
    show_default=True,
    help="Whether edits pass or are refused while no guard answers.",
)
@click.option(
    "--notify", multiple=True, metavar="SECRET", help="Send notifications where this Secret says; repeatable."
)
@click.option("--cluster-name", default="", metavar="NAME", help="What notifications call this cluster.")
@click.option(
    "--custom-network-scripts",
    default="",
    metavar="CONFIGMAP",
    help="ConfigMap with Lua scripts for customNetworkRefs.",
)
@click.option(
    "--custom-network-kind",
    "custom_network_kinds",
    multiple=True,
    metavar="PLURAL.GROUP",
    help="Kind of objects that these scripts may change; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be applied, without asking a cluster.")
@click.option("-o", "--output", type=click.Choice(["yaml"]), help="Print it, for a repository or kubectl.")
@click.option(
    "--timeout", type=DURATION, default=120.0, metavar="DURATION", help="Longest wait until it runs; 0: none (2m)."
)
@with_target
def install(
    image: str,
    watched: tuple[str, ...],
    replicas: int,
    extras: tuple[str, ...],
    guard_failure_policy: str,
    notify: tuple[str, ...],
    cluster_name: str,
    custom_network_scripts: str,
    custom_network_kinds: tuple[str, ...],
    dry_run: bool,
    output: str | None,
    timeout: float,
    target: Target,
) -> None:
    """Install the controller with all that it needs, or upgrade it: CRDs, rights, namespace and Deployment.

    -n names the namespace that it lives in (rollout-lws-system).
    """
    try:
        chosen = Installation(
            image=image,
            namespace=target.namespace or DEFAULT_NAMESPACE,
            replicas=replicas,
            watch_namespaces=watched,
            api_group=target.api_group or DEFAULT_API_GROUP,
            extras=extras,
            guard_failure_policy=guard_failure_policy,
            notify=notify,
            cluster_name=cluster_name,
            custom_network_scripts=custom_network_scripts,
            custom_network_kinds=custom_network_kinds,
        )
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    if dry_run or output:
        click.echo(yaml.safe_dump_all(objects(chosen), sort_keys=False), nl=False)
        return
    with Transport.to(target) as transport:
        rights = applying.install(transport, chosen, click.echo, _warn)
        if not replicas:
            click.echo(f"no controller runs: {starting(chosen.namespace)} starts one")
        elif timeout > 0:
            wait(transport, chosen.namespace, CONTROLLER, timeout, click.echo)
        if rights and available(transport, chosen.namespace, CONTROLLER):
            applying.take(rights, click.echo)


def _warn(text: str) -> None:
    click.echo(f"warning: {text}", err=True)
