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
from rollout_lws.cli.lint.manifests import NAMED_ONLY, workloads_of
from rollout_lws.cli.plan import immutable, scripted
from rollout_lws.cli.plan.model import Plan
from rollout_lws.cli.plan.overlay import overlaid, states_partition
from rollout_lws.cli.plan.planning import make
from rollout_lws.cli.plan.quotas import short_of
from rollout_lws.cli.rollouts import fetch_rollout, find_rollouts, style
from rollout_lws.errors import NoCluster, Unreachable, UsageError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.released import RELEASED
from rollout_lws.objects.resources import CONFIG_MAPS, DEFAULT_API_GROUP, RESOURCE_QUOTAS, SERVICES, Resource
from rollout_lws.observe.assume import routed, running
from rollout_lws.observe.observer import observe
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.preflight import wrong_kind
from rollout_lws.targets.table import released_type
from rollout_lws.traffic.custom.scripts import scripts_in
from rollout_lws.traffic.names import ManagedRef
from rollout_lws.traffic.registry import named_in
from rollout_lws.workload.canary import name_of_canary


@dataclass(frozen=True, slots=True)
class Sources:
    """``found`` is the cluster's snapshot, empty when not ``asked``; ``given`` are manifests, ``told`` warnings about
    these inputs. ``no_scripts`` is why the controller's scripts are not known, "" where nothing kept them from that.
    """

    found: Snapshot
    given: tuple[Object, ...]
    namespace: str
    asked: bool
    told: tuple[str, ...] = ()
    no_scripts: str = ""


def gather(target: Target, name: str, given: tuple[Object, ...], *, offline: bool) -> Sources:
    """Rollout ``name`` ("": those of the manifests) and everything that concerns its release.

    UsageError for a Rollout that does not exist, or that the files have in another namespace; NoCluster, Unreachable or
    ApiError when no cluster answers.
    """
    namespace = _one_namespace(given, name, target.namespace)
    keys = Keys(target.api_group or _group(given) or DEFAULT_API_GROUP)
    if offline:
        known = scripts_in(given)
        return Sources(Snapshot(keys, {}, known_scripts=known), given, namespace or "default", asked=False)
    try:
        transport = click.get_current_context().with_resource(
            Transport.to(replace(target, namespace=namespace) if namespace else target)
        )
        if not _group(given):
            keys = Keys(find_rollouts(transport, target.api_group).group)
        named = _workloads(given)
        if name and not named:
            named = workloads_of(fetch_rollout(transport, rollouts(keys.group), name))
        workloads = [workload for _, workload in named]
        # One that a release has made may serve.
        found = look(transport, keys, (*workloads, *map(name_of_canary, workloads)))
        released = [each for each in found.plain(rollouts(keys.group)) if {*workloads_of(each)} & {*named}]
        refs = (ref for each in (*given, *released) if _is_rollout(each) for ref in _custom(each))
        found, unread = scripted.looked_up(transport, found, refs, given)
    except (NoCluster, Unreachable) as error:
        if given:
            raise type(error)(f"{error}; with --offline files are planned by themselves") from error
        raise
    return Sources(found, given, transport.namespace, asked=True, told=tuple(_unknown(found)), no_scripts=unread)


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
    chosen = [each for each in after.plain(resource) if not set(workloads_of(each)).isdisjoint(workloads)]
    if not chosen:
        named = f"releases {_listed(workloads)}" if workloads else "is in the files"
        raise UsageError(f"no Rollout {named}: give its manifest with another -f, or make one with rollout-lws init")
    return chosen


def _listed(workloads: list[tuple[Resource, str]]) -> str:
    """They by their kinds: "LeaderWorkerSet a, b"."""
    kinds = dict.fromkeys(kind for kind, _ in workloads)
    named = (f"{kind.kind} {', '.join(name for of, name in workloads if of == kind)}" for kind in kinds)
    return " or ".join(named)


def _plan(
    sources: Sources, after: Snapshot, rollout: Object, now: datetime, load_seconds: float | None, rate: float | None
) -> Plan:
    name, spec = rollout["metadata"]["name"], _checked(rollout).spec
    workload, other = spec.workload_ref.name, spec.counterpart_ref.name if spec.counterpart_ref is not None else ""
    kind = released_type(rollout["spec"].get("workloadRef"))
    resource, workloads = kind.resource, [*spec.workloads] if other else [workload]
    told = list(sources.told)
    wrong = wrong_kind(Draft.of(_seen(after, name, now)))
    if wrong is not None:
        raise UsageError(f"rollout/{name} would be refused: {wrong.message}")
    # What the cluster lacks of companions is the controller's to tell.
    for each in workloads[:2] if sources.asked else workloads:
        if after.workload(resource, each) is None:
            where = f"in namespace {sources.namespace}" if sources.asked else "in the files"
            what = f"{resource.kind} {each!r}, which is not {where}"
            raise UsageError(f"rollout/{name} refers to {what}: give its manifest with -f")
    routings = style(rollout).get("trafficRoutings") or [{}]

    def assumed(seen: Snapshot) -> tuple[Snapshot, list[str]]:
        made_up: list[str] = []
        if not sources.asked:
            seen, made_up = routed(seen, routings[0], kind, workload, other, spec.active_side or "")
        for each in workloads:
            seen = running(seen, kind, each)
        return seen, made_up

    after, made_up = assumed(after)
    refs = tuple(_custom(rollout))
    texts, why = scripted.run(Draft.of(_seen(after, name, now)), after.known_scripts, made_up)
    after = replace(after, known_scripts=texts)
    if refs:
        told += scripted.not_shown(texts, sources.no_scripts or why, refs, made_up)
    if made_up:
        told.append(f"not in the files, and assumed to be there and fit: {', '.join(made_up)}")
    known = [each for each in workloads if sources.found.find(resource, each) is not None]
    before = after
    if known:
        others = [each for each in sources.given if each["kind"] != resource.kind or _new(sources, resource, each)]
        before, _ = assumed(overlaid(sources.found, others, sources.namespace))
    if sources.asked:
        told += [
            f"{resource.kind} {each} does not exist yet: applied, all of it starts as the file says"
            for each in workloads
            if each not in known and after.find(resource, each) is not None
        ]
    held = workloads if not other or spec.scales_sides else []
    told += [
        f"the manifest of {resource.kind} {each['metadata']['name']} states {kind.strategy_path[-1]}.partition, by"
        " which the Rollout holds it: each apply lifts the hold until it is put back, and a group or two may restart;"
        " leave it out"
        for each in sources.given
        if each["kind"] == resource.kind and each["metadata"]["name"] in held and states_partition(kind, each)
    ]
    services = {each["metadata"]["name"]: each for each in after.plain(SERVICES)}
    plan = make(_seen(after, name, now), _seen(before, name, now), load_seconds, told, services, rate)
    frozen = immutable.refusals(sources.found, sources.given, sources.namespace, workloads)
    plan = replace(plan, refusals=(*frozen, *plan.refusals))
    return replace(plan, cautions=(*short_of(plan, after.plain(RESOURCE_QUOTAS)), *plan.cautions))


def _custom(rollout: Object) -> tuple[ManagedRef, ...]:
    """The objects that scripts are to change."""
    routings = style(rollout).get("trafficRoutings") or [{}]
    return named_in(routings[0]).custom


def _new(sources: Sources, resource: Resource, workload: Object) -> bool:
    """Whether the cluster does not have this workload yet."""
    return sources.found.find(resource, workload["metadata"]["name"]) is None


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
    workloads = [(kind, each) for each in given if (kind := _kind(each)) is not None]
    # Without a Rollout it is not known which of those are released that may be something else.
    released = released or [each for kind, each in workloads if kind not in NAMED_ONLY]
    released = released or [each for _, each in workloads]
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
    others = (
        each["metadata"].get("namespace")
        for each in given
        if _kind(each) not in NAMED_ONLY and each["kind"] != CONFIG_MAPS.kind
    )
    return next(iter(named), None) or next(filter(None, others), None)


def _called(manifest: Object) -> str:
    return f"{manifest['kind'].lower()}/{manifest['metadata']['name']}"


def _kind(manifest: Object) -> Resource | None:
    """The kind of a workload that can be released; None of other objects."""
    named = manifest["apiVersion"], manifest["kind"]
    return next((each for each in RELEASED if (each.api_version, each.kind) == named), None)


def _workloads(given: tuple[Object, ...]) -> list[tuple[Resource, str]]:
    """Kind and name of all workloads that Rollouts name, and that are given."""
    named = [one for each in given if _is_rollout(each) for one in workloads_of(each)]
    applied = [(kind, each["metadata"]["name"]) for each in given if (kind := _kind(each)) is not None]
    return list(dict.fromkeys((*named, *applied)))
