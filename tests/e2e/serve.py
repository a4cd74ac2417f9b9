"""The process of what a control plane without machines lacks: the sandbox's behaviours and LeaderWorkerSet's webhooks.

Usage: python -m tests.e2e.serve KUBECONFIG [--webhooks CERTIFICATE KEY AUTHORITY]. It tells one line when all is ready,
runs until SIGTERM, and ends with an error if a behaviour failed inside. With webhooks the definition of
LeaderWorkerSet must be installed before.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from pathlib import Path

import click

from rollout_lws.cli.durations import DURATION
from rollout_lws.controller.process import until_signalled
from rollout_lws.kube.client import Client
from rollout_lws.kube.connection import connect
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from tests.bench.lines import tell
from tests.e2e import behaviours, registration, webhooks

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("kubeconfig", type=_FILE)
@click.option("--webhooks", "tls", type=(_FILE, _FILE, _FILE), help="PEM files: certificate, its key, who signed it.")
@click.option("--nodes", type=click.IntRange(0), default=8, show_default=True)
@click.option("--gpus-per-node", type=click.IntRange(0), default=8, show_default=True)
@click.option("--ready-after", type=DURATION, default=1.0, metavar="DURATION", help="How long a pod loads (1s).")
@click.option("--terminate-after", type=DURATION, default=0.2, metavar="DURATION", help="How long it ends (0.2s).")
@click.option("--gateway-lag", type=DURATION, default=0.2, metavar="DURATION", help="Until a route is accepted (0.2s).")
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(behaviours.NAMES),
    metavar="NAME",
    help="What somebody else does on this cluster, by its name in the ready line; may be repeated.",
)
def serve(
    kubeconfig: Path,
    tls: tuple[Path, Path, Path] | None,
    nodes: int,
    gpus_per_node: int,
    ready_after: float,
    terminate_after: float,
    gateway_lag: float,
    without: tuple[str, ...],
) -> None:
    """Run what a control plane without machines lacks, until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    timing = Timing(ready_after=ready_after, terminate_after=terminate_after)
    options = Options(nodes, gpus_per_node, timing, gateway_lag=gateway_lag)
    asyncio.run(until_signalled(_serve(kubeconfig, tls, options, without)))


async def _serve(
    kubeconfig: Path, tls: tuple[Path, Path, Path] | None, options: Options, without: tuple[str, ...]
) -> None:
    chosen = [each for each in behaviours.everything(options) if each.name not in without]
    async with AsyncExitStack() as stack:
        connection = await connect(str(kubeconfig))
        stack.push_async_callback(connection.close)
        if tls is not None:
            certificate, key, authority = (path.read_bytes() for path in tls)
            url = await stack.enter_async_context(webhooks.served(certificate, key))
            await registration.register(connection, url, authority)
        client = Client(connection, field_manager="sandbox")
        await stack.enter_async_context(behaviours.running(client, options, chosen))
        tell(ready=[each.name for each in chosen])
        await asyncio.Event().wait()


if __name__ == "__main__":
    serve()
