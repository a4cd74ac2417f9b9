"""Which Events belong to a release, and which of them are new. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rollout_lws.cli.events.event_log import Happening, Scope, happening
from rollout_lws.cli.releases import workload_names
from rollout_lws.cli.rollouts import style
from rollout_lws.cli.sides import released_kind
from rollout_lws.traffic.copy_names import canary_service_name, written_name
from rollout_lws.traffic.registry import named_in, spec_of

Object = dict[str, Any]


def scope_of(rollout: Object) -> Scope:
    """The objects that belong to a release, whether they exist now or not."""
    name, workloads = rollout["metadata"]["name"], workload_names(rollout)
    objects = {("Rollout", name), ("BatchRelease", name)}
    objects |= {(kind, each) for each in workloads for kind in (released_kind(rollout).kind, "Service")}
    for routing in style(rollout).get("trafficRoutings") or ():
        objects |= _routing(routing)
    return Scope(frozenset(objects), workloads)


def _routing(said: Object) -> set[tuple[str, str]]:
    names = named_in(said)
    found = {(ref.kind, ref.name) for ref in names.refs}
    if names.service:
        found |= {("Service", names.service), ("Service", names.canary_service or canary_service_name(names.service))}
    known = ((spec_of(ref.kind), ref) for ref in names.refs)
    return found | {(ref.kind, written_name(spec, ref.name)) for spec, ref in known if spec is not None}


def in_scope(scope: Scope, event: Object) -> Happening | None:
    """The Event, None for one of another release: a namespace has thousands of them, so no more of it is kept."""
    about = event.get("involvedObject") or {}
    return happening(event) if scope.has(str(about.get("kind")), str(about.get("name"))) else None


def news(found: Iterable[Happening], known: dict[str, Happening]) -> list[Happening]:
    """Those that are not ``known`` by UID, or whose series has a higher count, by time; ``known`` is brought up to
    date.
    """
    new = []
    for told in found:
        before = known.get(told.uid)
        if before is None or (before.count, before.last) < (told.count, told.last):
            new.append(told)
            known[told.uid] = told
    return sorted(new, key=lambda each: each.last)
