"""init: writes a Rollout for an LWS, based on the existing objects."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click
import yaml

from rollout_lws.api.resources import Keys
from rollout_lws.capacity import known
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.cluster_snapshot import look
from rollout_lws.cli.init import render
from rollout_lws.cli.init.proposal import Proposal, propose
from rollout_lws.cli.lint.documents import LOOKED_AT
from rollout_lws.cli.lint.findings import Severity
from rollout_lws.cli.lint.linter import lint
from rollout_lws.cli.lint.manifests import Scope
from rollout_lws.cli.manifests import Source, read_manifests
from rollout_lws.cli.options import with_target
from rollout_lws.cli.plan.overlay import overlaid
from rollout_lws.cli.plan.sources import Sources, plans
from rollout_lws.cli.rollouts import find_rollouts
from rollout_lws.cli.view import plain
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import DEFAULT_API_GROUP, LEADER_WORKER_SETS
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
@with_target
def init(
    workload: str,
    strategy: str,
    name: str,
    files: tuple[str, ...],
    target: Target,
) -> None:
    """Write a Rollout for LeaderWorkerSet NAME from what leads to its groups today.

    The manifest goes to standard output, warnings to standard error; nothing is applied.
    """
    found = _look(target, _name(workload), tuple(read_manifests(files)))
    made = propose(found, _name(workload), _STRATEGIES[strategy], name)
    manifest = render.rollout(made)
    for each in (*made.warnings, *_refusals(found, made, manifest, asked=not files), *_advice(found, made, manifest)):
        click.echo(f"warning: {plain(each)}", err=True)
    click.echo(manifest, nl=False)


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


def _refusals(found: Snapshot, made: Proposal, manifest: str, *, asked: bool) -> list[str]:
    """Why the controller would refuse the proposal in the current state."""
    sources = Sources(found, (yaml.safe_load(manifest),), made.namespace, asked=asked)
    return [
        f"as things are the controller would refuse a release: {refusal}"
        for plan in plans(sources, made.name, datetime.now(UTC), None)
        for refusal in plan.refusals
    ]


def _advice(found: Snapshot, made: Proposal, manifest: str) -> list[str]:
    """Mistakes that ``lint`` finds in the proposal with the objects that it refers to."""
    items = [
        {**each, "apiVersion": resource.api_version, "kind": resource.kind}
        for resource in (LEADER_WORKER_SETS, *LOOKED_AT)
        for each in found.plain(resource)
        if resource is not LEADER_WORKER_SETS or each["metadata"]["name"] == made.workload
    ]
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    report = lint([Source("", f"{manifest}---\n{objects}")], Scope(found.keys.group, made.namespace))
    return [each.message for each in report.findings if each.code > "LWS300" and each.severity is Severity.WARNING]
