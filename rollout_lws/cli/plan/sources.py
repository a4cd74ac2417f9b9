"""Input of a plan: a snapshot of the cluster, if it answers, with manifests applied on top."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import click
from pydantic import ValidationError

from rollout_lws.api import Rollout
from rollout_lws.api.resources import VERSION, Keys, rollouts
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.cluster_snapshot import look
from rollout_lws.cli.plan.model import Plan
from rollout_lws.cli.plan.overlay import overlaid, states_partition
from rollout_lws.cli.plan.planning import make
from rollout_lws.cli.plan.quotas import short_of
from rollout_lws.cli.rollouts import fetch_rollout, find_rollouts, style
from rollout_lws.errors import NoCluster, Unreachable, UsageError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import DEFAULT_API_GROUP, LEADER_WORKER_SETS, RESOURCE_QUOTAS, SERVICES
from rollout_lws.observe.assume import routed, running
from rollout_lws.observe.observer import observe
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.preflight import wrong_kind
from rollout_lws.workload.canary import name_of_canary


@dataclass(frozen=True, slots=True)
class Sources:
    """``found`` is the cluster's snapshot, empty when not ``asked``; ``given`` are manifests, ``told`` warnings about
    these inputs.
    """

    found: Snapshot
    given: tuple[Object, ...]
    namespace: str
    asked: bool
    told: tuple[str, ...] = ()


def gather(target: Target, name: str, given: tuple[Object, ...], *, offline: bool) -> Sources:
    """Rollout ``name`` ("": those of the manifests) and everything that concerns its release.

    UsageError for a Rollout that does not exist, or that the files have in another namespace; NoCluster, Unreachable or
    ApiError when no cluster answers.
    """
    namespace = _one_namespace(given, name, target.namespace)
    keys = Keys(target.api_group or _group(given) or DEFAULT_API_GROUP)
    if offline:
        return Sources(Snapshot(keys, {}), given, namespace or "default", asked=False)
    try:
        transport = click.get_current_context().with_resource(
            Transport.to(replace(target, namespace=namespace) if namespace else target)
        )
        if not _group(given):
            keys = Keys(find_rollouts(transport, target.api_group).group)
        workloads = _workloads(given)
        if name and not workloads:
            workloads = _named_by(fetch_rollout(transport, rollouts(keys.group), name))
        # One that a release has made may serve.
        found = look(transport, keys, (*workloads, *map(name_of_canary, workloads)))
    except (NoCluster, Unreachable) as error:
        if given:
            raise type(error)(f"{error}; with --offline files are planned by themselves") from error
        raise
    return Sources(found, given, transport.namespace, asked=True, told=tuple(_unknown(found)))


def _unknown(found: Snapshot) -> Iterator[str]:
    if rollouts(found.keys.group) in found.absent:
        yield "the cluster does not serve Rollouts yet: rollout-lws crds | kubectl apply -f -"
    for each, why in found.refused.items():
        yield f"{each.kind}s may not be listed, so they are not looked at: {why}"


def plans(
    sources: Sources, name: str, now: datetime, load_seconds: float | None, rate: float | None = None
) -> list[Plan]:
    """One plan for each chosen Rollout; UsageError when there is none, or when it cannot be planned."""
    after = overlaid(sources.found, sources.given, sources.namespace)
    return [_plan(sources, after, each, now, load_seconds, rate) for each in _chosen(sources, after, name)]


def _chosen(sources: Sources, after: Snapshot, name: str) -> list[Object]:
    resource = rollouts(after.keys.group)
    if name:
        found = after.find(resource, name)
        if found is None:
            raise UsageError(f"there is no Rollout {name!r} in namespace {sources.namespace!r}, nor in the files")
        return [found]
    manifests = {each["metadata"]["name"] for each in sources.given if _is_rollout(each)}
    if manifests:
        return [each for each in after.plain(resource) if each["metadata"]["name"] in manifests]
    workloads = _workloads(sources.given)
    chosen = [each for each in after.plain(resource) if not set(_named_by(each)).isdisjoint(workloads)]
    if not chosen:
        named = f"releases LeaderWorkerSet {', '.join(workloads)}" if workloads else "is in the files"
        raise UsageError(f"no Rollout {named}: give its manifest with another -f, or make one with rollout-lws init")
    return chosen


def _plan(
    sources: Sources, after: Snapshot, rollout: Object, now: datetime, load_seconds: float | None, rate: float | None
) -> Plan:
    name, spec = rollout["metadata"]["name"], _checked(rollout).spec
    workload, other = spec.workload_ref.name, spec.counterpart_ref.name if spec.counterpart_ref is not None else ""
    workloads = [*spec.workloads] if other else [workload]
    told = list(sources.told)
    wrong = wrong_kind(Draft.of(_seen(after, name, now)))
    if wrong is not None:
        raise UsageError(f"rollout/{name} would be refused: {wrong.message}")
    # What the cluster lacks of companions is the controller's to tell.
    for each in workloads[:2] if sources.asked else workloads:
        if after.find(LEADER_WORKER_SETS, each) is None:
            where = f"in namespace {sources.namespace}" if sources.asked else "in the files"
            what = f"LeaderWorkerSet {each!r}, which is not {where}"
            raise UsageError(f"rollout/{name} refers to {what}: give its manifest with -f")
    routings = style(rollout).get("trafficRoutings") or [{}]

    def assumed(seen: Snapshot) -> tuple[Snapshot, list[str]]:
        made_up: list[str] = []
        if not sources.asked:
            seen, made_up = routed(seen, routings[0], workload, other, spec.active_side or "")
        for each in workloads:
            seen = running(seen, each)
        return seen, made_up

    after, made_up = assumed(after)
    if made_up:
        told.append(f"not in the files, and assumed to be there and fit: {', '.join(made_up)}")
    known = [each for each in workloads if sources.found.find(LEADER_WORKER_SETS, each) is not None]
    before = after
    if known:
        others = [each for each in sources.given if each["kind"] != LEADER_WORKER_SETS.kind or _new(sources, each)]
        before, _ = assumed(overlaid(sources.found, others, sources.namespace))
    if sources.asked:
        told += [
            f"LeaderWorkerSet {each} does not exist yet: applied, all of it starts as the file says"
            for each in workloads
            if each not in known and after.find(LEADER_WORKER_SETS, each) is not None
        ]
    held = workloads if not other or spec.scales_sides else []
    told += [
        f"the manifest of LeaderWorkerSet {each['metadata']['name']} states rollingUpdateConfiguration.partition, by"
        " which the Rollout holds it: each apply lifts the hold until it is put back, and a group or two may restart;"
        " leave it out"
        for each in sources.given
        if each["metadata"]["name"] in held and states_partition(each)
    ]
    services = {each["metadata"]["name"]: each for each in after.plain(SERVICES)}
    plan = make(_seen(after, name, now), _seen(before, name, now), load_seconds, told, services, rate)
    return replace(plan, cautions=(*short_of(plan, after.plain(RESOURCE_QUOTAS)), *plan.cautions))


def _new(sources: Sources, lws: Object) -> bool:
    """Whether the cluster does not have this LWS yet."""
    return sources.found.find(LEADER_WORKER_SETS, lws["metadata"]["name"]) is None


def _seen(found: Snapshot, name: str, now: datetime) -> Observation:
    seen = observe(found, name, now)
    assert seen is not None, "it was chosen from there"
    return seen


def _checked(rollout: Object) -> Rollout:
    """The Rollout, validated by its CRD's rules; UsageError names the first invalid field."""
    try:
        return Rollout.model_validate(rollout)
    except ValidationError as error:
        first, *more = error.errors(include_url=False)
        place = ".".join(str(part) for part in first["loc"])
        others = f" (and {len(more)} more: rollout-lws lint lists all)" if more else ""
        raise UsageError(
            f"rollout/{rollout['metadata']['name']} would be refused by the API server: {place}: {first['msg']}{others}"
        ) from error


def _is_rollout(manifest: Object) -> bool:
    """Whether it is one of our Rollouts, in any group: Argo's have another version."""
    return bool(manifest["kind"] == "Rollout" and manifest["apiVersion"].endswith(f"/{VERSION}"))


def _group(given: tuple[Object, ...]) -> str:
    return next((each["apiVersion"].partition("/")[0] for each in given if _is_rollout(each)), "")


def _one_namespace(given: tuple[Object, ...], name: str, asked: str | None) -> str | None:
    """The requested namespace; else that of the Rollouts, or of the first manifest that has one. UsageError when these
    are several, or when it contains none of the objects to release.
    """
    released = [each for each in given if _is_rollout(each) and name in ("", each["metadata"]["name"])]
    released = released or [each for each in given if each["kind"] == LEADER_WORKER_SETS.kind]
    said = {each["metadata"].get("namespace") or asked or "": _called(each) for each in reversed(released)}
    if asked is not None:
        if said and asked not in said:
            there, one = next(reversed(said.items()))
            raise UsageError(f"{one} is of namespace {there}, {asked} was asked for: give -n {there}")
        return asked
    named = sorted(filter(None, said))
    if len(named) > 1:
        of = " and ".join(f"{said[each]} of {each}" for each in named)
        raise UsageError(f"one namespace is planned at a time, and {of}: give -n {named[0]}")
    others = (each["metadata"].get("namespace") for each in given)
    return next(iter(named), None) or next(filter(None, others), None)


def _called(manifest: Object) -> str:
    return f"{manifest['kind'].lower()}/{manifest['metadata']['name']}"


def _workloads(given: tuple[Object, ...]) -> list[str]:
    named = [name for each in given if _is_rollout(each) for name in _named_by(each)]
    applied = [each["metadata"]["name"] for each in given if each["kind"] == LEADER_WORKER_SETS.kind]
    return list(dict.fromkeys((*named, *applied)))


def _named_by(rollout: Object) -> list[str]:
    """Names of the workloads that a Rollout names."""
    spec = rollout.get("spec") or {}
    refs = [(spec.get(member) or {}).get("name") for member in ("workloadRef", "counterpartRef")]
    beside = [each.get(member) for each in spec.get("companions") or () for member in ("name", "counterpart")]
    return [name for name in (*refs, *beside) if name]
