"""init: writes a Rollout for a workload, and what else it needs, based on the existing objects."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import click
import yaml
from click.core import ParameterSource

from rollout_lws.api import Touch
from rollout_lws.api.resources import Keys, rollouts
from rollout_lws.capacity import known
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.cluster_snapshot import look
from rollout_lws.cli.init import render
from rollout_lws.cli.init.companions import asked
from rollout_lws.cli.init.kinds import kind_of, named
from rollout_lws.cli.init.pair import propose_pair
from rollout_lws.cli.init.proposal import Proposal, propose
from rollout_lws.cli.lint.documents import LOOKED_AT
from rollout_lws.cli.lint.findings import Finding, Severity
from rollout_lws.cli.lint.linter import check_valid, judge
from rollout_lws.cli.lint.manifests import Scope
from rollout_lws.cli.manifests import read_manifests
from rollout_lws.cli.options import with_target
from rollout_lws.cli.plan.overlay import overlaid
from rollout_lws.cli.plan.sources import Sources, plans
from rollout_lws.cli.rollouts import find_rollouts
from rollout_lws.cli.view import plain
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.released import RELEASED
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.observe.assume import running
from rollout_lws.observe.snapshot import Snapshot

_STRATEGIES = {each.flag: each for each in known.OF_ONE}


@click.command("init")
@click.argument("workload", metavar="lws/NAME|sts/NAME")
@click.option(
    "--strategy", type=click.Choice(list(_STRATEGIES)), default="canary", show_default=True, help="How to release."
)
@click.option(
    "--counterpart",
    metavar="NAME",
    help="Make a pair: requests move to this workload of yours, of the same kind, and back.",
)
@click.option(
    "--companion",
    "companions",
    multiple=True,
    metavar="NAME=COUNTERPART[:REPLICAS]",
    help="Of a pair: one workload more of each side, such as prefill; by default with as many groups as now.",
)
@click.option(
    "--touch",
    type=click.Choice([each.value for each in Touch]),
    help="Of a pair: releases write the route alone, and you scale both workloads.",
)
@click.option(
    "--shift", is_flag=True, help="Of a pair: one side gives up groups as the other one gets some, and hardly more run."
)
@click.option("--name", metavar="NAME", default="", help="Name of the Rollout; the workload's by default.")
@click.option("-f", "--filename", "files", multiple=True, metavar="FILE", help="Ask no cluster, but these manifests.")
@with_target
def init(
    workload: str,
    strategy: str,
    counterpart: str | None,
    companions: tuple[str, ...],
    touch: str | None,
    shift: bool,
    name: str,
    files: tuple[str, ...],
    target: Target,
) -> None:
    """Write a Rollout for LeaderWorkerSet or StatefulSet NAME, with all that it needs, from what leads to its groups
    today. Without lws/ or sts/ it is the LeaderWorkerSet of this name, if there is one.

    Manifests go to standard output, warnings to standard error; nothing is applied.
    """
    given_as = click.get_current_context().get_parameter_source("strategy")
    if counterpart is not None and given_as is not ParameterSource.DEFAULT:
        raise click.UsageError("--counterpart is a way of its own to release: leave out --strategy")
    if touch is not None and counterpart is None:
        raise click.UsageError("--touch is of a pair: name its other workload with --counterpart NAME")
    if shift and counterpart is None:
        raise click.UsageError(
            "--shift is of a pair: name its other workload with --counterpart NAME, or take --strategy shift"
        )
    if companions and counterpart is None:
        raise click.UsageError("--companion is of a pair: name its other workload with --counterpart NAME")
    if companions and shift:
        raise click.UsageError("groups of companions cannot be exchanged one by one: leave out --shift, or --companion")
    if shift and touch is not None:
        raise click.UsageError(f"--shift scales both workloads, and with --touch {touch} none is scaled: leave out one")
    given = tuple(read_manifests(files))
    check_valid(given, Scope(target.api_group))
    asked_kind, first = named(workload)
    other_kind, other = named(counterpart) if counterpart is not None else (None, "")
    beside = asked(companions, (first, other))
    further = (each for one in beside for each in (one.name, one.counterpart))
    every = (first, other, *further) if other else (first,)
    found = _look(target, every, given)
    kind = asked_kind or other_kind or kind_of(found, first)
    if other_kind not in (None, kind):
        raise click.UsageError(f"the workloads of a pair are of one kind: {workload} and {counterpart} are not")
    for each in every:
        found = running(found, kind, each)
    if other:
        made = propose_pair(found, kind, first, other, name, touch or "", shift=shift, companions=beside)
    else:
        made = propose(found, kind, first, _STRATEGIES[strategy], name)
    text = render.documents(made)
    proposed = tuple(yaml.safe_load_all(text))
    refusals = _refusals(found, made, proposed, asked=not files)
    for each in (*made.warnings, *refusals, *_advice(found, made, proposed, given)):
        click.echo(f"warning: {plain(each)}", err=True)
    click.echo(text, nl=False)


def _look(target: Target, workloads: tuple[str, ...], given: tuple[Object, ...]) -> Snapshot:
    if given:
        keys = Keys(target.api_group or DEFAULT_API_GROUP)
        namespace = target.namespace or next(
            (each["metadata"]["namespace"] for each in given if each["metadata"].get("namespace")), "default"
        )
        return overlaid(Snapshot(keys, {}), given, namespace)
    transport = click.get_current_context().with_resource(Transport.to(target))
    keys = Keys(find_rollouts(transport, target.api_group).group)
    return look(transport, keys, workloads)


def _refusals(found: Snapshot, made: Proposal, proposed: tuple[Object, ...], *, asked: bool) -> list[str]:
    """Why the controller would refuse the proposal in the current state."""
    sources = Sources(found, proposed, made.namespace, asked=asked)
    return [
        f"as things are the controller would refuse a release: {refusal}"
        for plan in plans(sources, made.name, datetime.now(UTC), None)
        for refusal in plan.refusals
    ]


def _advice(found: Snapshot, made: Proposal, proposed: tuple[Object, ...], given: tuple[Object, ...]) -> Iterator[str]:
    """Mistakes that ``lint`` finds in the proposal with the objects that it refers to."""
    live = given or [
        {**each, "apiVersion": resource.api_version, "kind": resource.kind}
        for resource in (*RELEASED, *LOOKED_AT)
        for each in found.plain(resource)
    ]
    findings = judge(
        (*proposed, *(each for each in live if _concerns(each, made))), Scope(found.keys.group, made.namespace)
    )
    for each in findings:
        if each.severity is Severity.ERROR and each.code < "LWS200":
            yield f"lint does not know {each.about} as it is, and looks for no mistakes in it: {each.message}"
        elif _is_told(each, found, made, stated=bool(given)):
            yield each.message


def _is_told(finding: Finding, found: Snapshot, made: Proposal, *, stated: bool) -> bool:
    """Whether it is a mistake that only ``lint`` tells. An API server fills in replicas and partition 0, so that its
    objects do not show whether a manifest has ``stated`` them.
    """
    if finding.severity is not Severity.WARNING or finding.code < "LWS300":
        return False
    if stated or finding.code not in ("LWS305", "LWS314"):
        return True
    sides = (found.workload(made.kind.resource, name) for name in made.workloads)
    partitions = [f"{each.resource.kind}/{each.metadata.name}" for each in sides if each and each.strategy.partition]
    return finding.code == "LWS305" and finding.about in partitions


def _concerns(live: Object, made: Proposal) -> bool:
    """Whether lint judges it with the proposal: an object of the namespace, neither a Rollout nor another workload."""
    meta, kind = live["metadata"], live["kind"]
    if (meta.get("namespace") or made.namespace) != made.namespace or kind == rollouts().kind:
        return False
    released = kind in [each.kind for each in RELEASED]
    return not released or (kind == made.kind.resource.kind and meta["name"] in made.workloads)
