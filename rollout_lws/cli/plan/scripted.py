"""What scripts write in a release: runs them here, as the controller would, on the objects that the plan sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from msgspec import UNSET

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.custom_networks import kind_of, scripts_of
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.routing import scripts
from rollout_lws.rollout.routing.weights import share_of_step, told
from rollout_lws.scripting.runner import Runner
from rollout_lws.traffic.custom.kinds import CustomKinds
from rollout_lws.traffic.custom.scripts import UNKNOWN_SCRIPTS, Scripts, scripts_in
from rollout_lws.traffic.names import ManagedRef
from rollout_lws.traffic.routers.custom import CustomRouter
from rollout_lws.traffic.routers.of_rollout import routers
from rollout_lws.traffic.split import Split


@dataclass(frozen=True, slots=True)
class Scripted:
    """What a script writes in one object for one share of requests, told as ``20%``: ``values`` by their path, unset
    where it takes something out.
    """

    ref: ManagedRef
    share: str
    values: tuple[tuple[str, Any], ...]


# What is known


def looked_up(
    transport: Transport, found: Snapshot, refs: Iterable[ManagedRef], given: Iterable[Object]
) -> tuple[Snapshot, str]:
    """``found`` with the kinds and objects of these references, and with the scripts; and why these are not known."""
    refs, manifests = tuple(refs), tuple(given)
    if not refs:
        return found, ""
    kinds = dict.fromkeys(ref.custom_kind for ref in refs)
    answers = {kind: kind_of(transport, *kind) for kind in kinds}
    defined = _defined(manifests)
    served = {kind: resource or defined.get(kind) for kind, (resource, why) in answers.items() if why is None}
    unknown = {kind: why for kind, (_, why) in answers.items() if why is not None}
    objects, refused = dict(found.objects), dict(found.refused)
    for resource in (resource for resource, _ in answers.values() if resource is not None):
        try:
            objects[resource] = transport.get(resource.path(transport.namespace)).get("items") or ()
        except ApiError as error:
            if error.code != 403:
                raise
            refused[resource] = error.message
    known, in_files = scripts_of(transport), scripts_in(manifests)
    told, why = known.scripts, known.unknown
    if in_files.source is not None and told.source in (None, in_files.source):
        told, why = in_files, ""
    custom = CustomKinds(served, unknown)
    return replace(found, objects=objects, refused=refused, custom=custom, known_scripts=told), why


def _defined(manifests: Iterable[Object]) -> dict[tuple[str, str], Resource]:
    """The kinds that CustomResourceDefinitions among the manifests define, by apiVersion and kind."""
    found: dict[tuple[str, str], Resource] = {}
    for each in manifests:
        if each["kind"] != CUSTOM_RESOURCE_DEFINITIONS.kind:
            continue
        spec = each["spec"]
        for version in spec["versions"]:
            names, group = spec["names"], spec["group"]
            found[f"{group}/{version['name']}", names["kind"]] = Resource(
                group, version["name"], names["kind"], names["plural"]
            )
    return found


# What comes of it


def run(d: Draft, known: Scripts, made_up: Iterable[str]) -> tuple[Scripts, str]:
    """``known`` with the results of all that the release of ``d`` needs; and why there are none, "" if there are.
    Nothing is run for objects that are ``made_up``, as "Kind name".
    """
    facts = d.o.routing
    if facts is None or not facts.names.custom or not known.texts:
        return known, ""
    if find_spec("lupa") is None:
        return known, "the library that runs Lua is not installed here: pip install 'rollout-lws[lua]'"
    missing = frozenset(made_up)
    every = [each for each in routers(facts) if isinstance(each, CustomRouter) and str(each.named) not in missing]
    # The controller needs no result of a share that is written already, while the plan shows it.
    shown = (each.evaluation(split) for each in every for split in _splits(d))
    asked = (*scripts.of_steps(d, every), *(each for each in shown if each is not None))
    runner = Runner()
    try:
        outcomes = {each: runner.run(each.script, each.given) for each in dict.fromkeys(asked)}
    finally:
        runner.close()
    return replace(known, outcomes=outcomes), ""


def written(d: Draft) -> tuple[Scripted, ...]:
    """What scripts write for each step, as far as their results are known; the same share is told once."""
    return tuple({(each.ref, each.share): each for each in _written(d)}.values())


def _written(d: Draft) -> Iterator[Scripted]:
    facts = d.o.routing
    every = routers(facts) if facts is not None and facts.names.custom else ()
    for router in (each for each in every if isinstance(each, CustomRouter)):
        for split in _splits(d):
            made = router.changes(split)
            if made is not None:
                values = (each for one in made for each in _values(".".join(one.path), one.before, one.after))
                yield Scripted(router.named, told(split), tuple(values))


def _splits(d: Draft) -> list[Split]:
    return [share_of_step(d, index) for index in range(1, len(d.strategy.steps) + 1)]


def _values(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any]]:
    """What differs, as deep as both have the same members."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            yield from _values(f"{path}.{key}", before.get(key, UNSET), after.get(key, UNSET))
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            was, becomes = (items[index] if index < len(items) else UNSET for items in (before, after))
            yield from _values(f"{path}[{index}]", was, becomes)
    elif before != after:
        yield path, after


def not_shown(known: Scripts, why: str, refs: Iterable[ManagedRef], made_up: Iterable[str]) -> Iterator[str]:
    """A warning about objects for which nothing was run."""
    missing = frozenset(made_up)
    absent = [str(ref) for ref in refs if str(ref) in missing]
    if why:
        yield f"what scripts write is not shown: {why}"
    elif known == UNKNOWN_SCRIPTS:
        yield "what scripts write is not shown: no file has the ConfigMap with them"
    elif absent:
        yield f"what scripts write in {', '.join(absent)} is not shown: no file has it"
