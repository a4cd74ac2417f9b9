"""sandbox: runs a cluster in one process, for kubectl and for trying a Rollout without accelerators."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path

import click

from rollout_lws import logs
from rollout_lws.cli.durations import DURATION
from rollout_lws.cli.install.options import DEFAULT_NAMESPACE, DEFAULT_SCRIPTS
from rollout_lws.cli.manifests import read_manifests
from rollout_lws.cli.sandbox.local_cluster import Playground, playground
from rollout_lws.controller import process
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.definitions import lws_crd
from rollout_lws.settings import Settings

#: Scripts of a sandbox are turned on, where they can run: its user is its administrator.
SCRIPTS = f"{DEFAULT_NAMESPACE}/{DEFAULT_SCRIPTS}"


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("sandbox.kubeconfig"),
    show_default=True,
    help="Where to write the kubeconfig.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; a free one by default.")
@click.option("--controller", "controlled", is_flag=True, help="Run the controller too, as a client of this cluster.")
@click.option("--nodes", type=click.IntRange(0), default=8, show_default=True, help="Nodes that have GPUs.")
@click.option("--gpus-per-node", type=click.IntRange(0), default=8, show_default=True, help="GPUs of each.")
@click.option("--ready-after", type=DURATION, default=1.0, metavar="DURATION", help="How long a pod loads (1s).")
@click.option(
    "--speed", type=click.FloatRange(0, min_open=True), default=1.0, help="10: pods take a tenth of their time."
)
@click.option(
    "--lws",
    type=click.Choice(lws_crd.VERSIONS),
    default="0.10",
    show_default=True,
    help="LeaderWorkerSet to play; 1.0 has what came after 0.10.",
)
@click.option("--api-group", default=DEFAULT_API_GROUP, show_default=True, help="API group of our kinds.")
@click.option(
    "--notify", multiple=True, metavar="DIR", help="Of --controller: a receiver of notifications, as its own flag says."
)
@click.option("-f", "files", multiple=True, metavar="FILE|DIR", help="Manifests to apply at the start; repeatable.")
def sandbox(
    kubeconfig: Path,
    port: int,
    controlled: bool,
    nodes: int,
    gpus_per_node: int,
    ready_after: float,
    speed: float,
    lws: str,
    api_group: str,
    notify: tuple[str, ...],
    files: tuple[str, ...],
) -> None:
    """Run a Kubernetes API with LeaderWorkerSet on this machine until SIGINT or SIGTERM."""
    options = Options(nodes, gpus_per_node, Timing(ready_after=ready_after, speed=speed))
    settings = Settings(
        api_group=api_group,
        kubeconfig=str(kubeconfig),
        scrape_through="api-server",
        notify=notify,
        custom_network_scripts=SCRIPTS if find_spec("lupa") is not None else "",
    )
    if notify and not controlled:
        raise click.UsageError("--notify: without --controller nothing sends: give both")
    asyncio.run(process.until_signalled(_run(options, settings, kubeconfig, port, lws, controlled, files)))


async def _run(
    options: Options,
    settings: Settings,
    kubeconfig: Path,
    port: int,
    lws: str,
    controlled: bool,
    files: tuple[str, ...],
) -> None:
    manifests = read_manifests(files)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(playground(options, settings.api_group, port, lws))
        cluster.write_kubeconfig(kubeconfig)
        if controlled:
            logs.configure(settings.log_format)
            await stack.enter_async_context(process.running(settings))
        for manifest in manifests:
            cluster.apply(manifest)
        click.echo(_welcome(cluster, kubeconfig, controlled))
        await asyncio.Event().wait()


def _welcome(cluster: Playground, kubeconfig: Path, controlled: bool) -> str:
    path = kubeconfig.resolve()
    lines = [
        f"sandbox ready at {cluster.url}",
        "",
        f"    export KUBECONFIG={path}",
        "    kubectl get nodes,lws,pods",
        "    rollout-lws get",
    ]
    if not controlled:
        lines += [
            "",
            "No controller is running. In another terminal:",
            "",
            f"    rollout-lws controller --kubeconfig {path}",
        ]
    return "\n".join([*lines, "", "Ctrl-C ends it; nothing is kept."])
