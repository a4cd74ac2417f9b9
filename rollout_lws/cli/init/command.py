"""init: writes a Rollout for an LWS, and what else it needs, based on the existing objects."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import yaml

from rollout_lws.api.resources import Keys
from rollout_lws.capacity import known
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.cluster_snapshot import look
from rollout_lws.cli.init import render
from rollout_lws.cli.init.proposal import Proposal, propose
from rollout_lws.cli.manifests import read_manifests
from rollout_lws.cli.options import with_target
from rollout_lws.cli.plan.overlay import overlaid
from rollout_lws.cli.plan.sources import Sources, plans
from rollout_lws.cli.rollouts import find_rollouts
from rollout_lws.cli.view import plain
from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.observe.assume import running
from rollout_lws.observe.snapshot import Snapshot

_KINDS = ("lws", "leaderworkerset", "leaderworkersets", "leaderworkersets.leaderworkerset.x-k8s.io")
_STRATEGIES = {each.flag: each for each in known.STRATEGIES}


@click.command("init")
@click.argument("workload", metavar="lws/NAME")
@click.option(
    "--strategy", type=click.Choice(list(_STRATEGIES)), default="canary", show_default=True, help="How to release."
)
@click.option("--name", metavar="NAME", default="", help="Name of the Rollout; the LWS's by default.")
@click.option("-f", "--filename", "files", multiple=True, metavar="FILE", help="Ask no cluster, but these manifests.")
@click.option(
    "--output-dir", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write files there."
)
@click.option("--force", is_flag=True, help="Replace files of --output-dir that are there.")
@with_target
def init(
    workload: str,
    strategy: str,
    name: str,
    files: tuple[str, ...],
    output_dir: Path | None,
    force: bool,
    target: Target,
) -> None:
    """Write a Rollout for LeaderWorkerSet NAME, with all that it needs, from what leads to its groups today.

    Manifests go to standard output, warnings to standard error; nothing is applied.
    """
    if force and output_dir is None:
        raise click.UsageError("--force is about files: give --output-dir")
    found = _look(target, _name(workload), tuple(read_manifests(files)))
    made = propose(found, _name(workload), _STRATEGIES[strategy], name)
    for each in (*made.warnings, *_refusals(found, made, asked=not files)):
        click.echo(f"warning: {plain(each)}", err=True)
    if output_dir is None:
        click.echo(render.documents(made), nl=False)
    else:
        _write(output_dir, render.files(made), force=force)


def _name(text: str) -> str:
    kind, slash, name = text.rpartition("/")
    if (slash and kind not in _KINDS) or not name:
        raise click.UsageError(f"{text!r} is no LeaderWorkerSet: write lws/NAME")
    return name


def _look(target: Target, workload: str, given: tuple[Object, ...]) -> Snapshot:
    if given:
        keys = Keys(target.api_group or DEFAULT_API_GROUP)
        namespace = target.namespace or next(
            (each["metadata"]["namespace"] for each in given if each["metadata"].get("namespace")), "default"
        )
        return running(overlaid(Snapshot(keys, {}), given, namespace), workload)
    transport = click.get_current_context().with_resource(Transport.to(target))
    keys = Keys(find_rollouts(transport, target.api_group).group)
    return running(look(transport, keys, [workload]), workload)


def _refusals(found: Snapshot, made: Proposal, *, asked: bool) -> list[str]:
    """Why the controller would refuse the proposal in the current state."""
    given = tuple(each for each in yaml.safe_load_all(render.documents(made)) if each)
    sources = Sources(found, given, made.namespace, asked=asked)
    return [
        f"as things are the controller would refuse a release: {refusal}"
        for plan in plans(sources, made.name, datetime.now(UTC), None)
        for refusal in plan.refusals
    ]


def _write(directory: Path, texts: dict[str, str], *, force: bool) -> None:
    there = sorted(name for name in texts if (directory / name).exists())
    if there and not force:
        raise UsageError(f"{directory} has {', '.join(there)} already: give another --output-dir, or --force")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (directory / name).write_text(text)
            click.echo(directory / name)
    except OSError as error:
        raise UsageError(f"{directory} cannot be written to: {error.strerror}; give another --output-dir") from error
