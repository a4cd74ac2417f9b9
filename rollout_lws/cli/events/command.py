"""events: the Events of a release and its objects, in order; -w follows them until the release has ended."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

import click

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.events.event_log import Happening, Scope, document, happening, lines, merged
from rollout_lws.cli.options import output_option, rollout_argument, with_target
from rollout_lws.cli.releases import workload_names
from rollout_lws.cli.rollouts import fetch_rollout, find_rollouts, release_name, style
from rollout_lws.cli.screen import has_colours
from rollout_lws.cli.status.gate import has_ended, pinned_now
from rollout_lws.cli.watch.cache import WatchCache
from rollout_lws.cli.watch.stream import passes
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import CORE_EVENTS
from rollout_lws.traffic.registry import named_in, spec_of
from rollout_lws.traffic.router import written_name
from rollout_lws.traffic.services import canary_service_name

#: Page size of the list of Events.
_PAGE = "500"
#: Seconds between checks whether the release has ended without an Event saying so.
_LOOK_SECONDS = 10.0
#: Seconds to wait for the last Events of a release that has ended.
_FAREWELL_SECONDS = 1.0


@click.command()
@rollout_argument
@click.option("-w", "--watch", is_flag=True, help="Go on until the release has ended.")
@output_option("text", "json", "jsonl")
@with_target
def events(name: str, watch: bool, output: str, target: Target) -> None:
    """Print the events of a release of Rollout NAME, also of its LeaderWorkerSets, groups, Services and routes."""
    if watch and output == "json":
        raise click.UsageError("-w goes on and on: use -o jsonl, one document a line")
    name = release_name(name)
    transport = click.get_current_context().with_resource(Transport.to(target))
    rollouts = find_rollouts(transport, target.api_group)
    rollout = fetch_rollout(transport, rollouts, name)
    scope = scope_of(rollout)
    known: dict[str, Happening] = {}
    _tell(_new(_listed(transport), scope, known), output, following=watch)
    if watch:
        pinned = pinned_now(transport, rollout)

        def ended() -> bool:
            return has_ended(fetch_rollout(transport, rollouts, name), pinned)

        for each in _followed(transport, scope, known, ended):
            _tell([each], output, following=True)


def scope_of(rollout: Object) -> Scope:
    """The objects that belong to a release, whether they exist now or not."""
    name, workloads = rollout["metadata"]["name"], workload_names(rollout)
    objects = {("Rollout", name), ("BatchRelease", name)}
    objects |= {(kind, each) for each in workloads for kind in ("LeaderWorkerSet", "Service")}
    for routing in style(rollout).get("trafficRoutings") or ():
        objects |= _routing(routing)
    return Scope(frozenset(objects), workloads)


def _routing(said: Object) -> set[tuple[str, str]]:
    names = named_in(said)
    found = {(ref.kind, ref.name) for ref in names.refs}
    if names.service:
        found |= {("Service", names.service), ("Service", canary_service_name(names.service))}
    known = ((spec_of(ref.kind), ref) for ref in names.refs)
    return found | {(ref.kind, written_name(spec, ref.name)) for spec, ref in known if spec is not None}


def _listed(transport: Transport) -> Iterator[Object]:
    """All Events of the namespace."""
    query = {"limit": _PAGE}
    while True:
        answer = transport.get(CORE_EVENTS.path(transport.namespace), **query)
        yield from answer.get("items") or ()
        if not answer["metadata"].get("continue"):
            return
        query["continue"] = answer["metadata"]["continue"]


def _new(events: Iterable[Object], scope: Scope, known: dict[str, Happening]) -> list[Happening]:
    """Events of the scope, by time, that are not ``known`` by UID, or whose series has a higher count; ``known`` is
    brought up to date.
    """
    found = []
    for event in events:
        about = event.get("involvedObject") or {}
        if scope.has(str(about.get("kind")), str(about.get("name"))):
            told, uid = happening(event), event["metadata"]["uid"]
            before = known.get(uid)
            if before is None or (before.count, before.last) < (told.count, told.last):
                found.append(told)
                known[uid] = told
    return sorted(found, key=lambda each: each.last)


def _followed(
    transport: Transport, scope: Scope, known: dict[str, Happening], ended: Callable[[], bool]
) -> Iterator[Happening]:
    """Events that are not ``known`` as they arrive, until ``ended``, which is asked after each Event about the Rollout
    and every few seconds.
    """
    if ended():
        return
    changed = threading.Event()
    # A field selector has no "or", so lists and watches cover the whole namespace.
    cache: WatchCache[Object] = WatchCache(transport, CORE_EVENTS.path(transport.namespace), {}, dict, changed)
    look, end = time.monotonic() + _LOOK_SECONDS, math.inf
    try:
        while time.monotonic() < end:
            changed.wait(min(look, end) - time.monotonic())
            changed.clear()
            cache.report()
            new = _new(cache.objects() or (), scope, known)
            yield from new
            if time.monotonic() >= look or any(told.about.startswith("Rollout/") for told in new):
                look = time.monotonic() + _LOOK_SECONDS
                if end == math.inf and _asked(ended):
                    end = time.monotonic() + _FAREWELL_SECONDS
    finally:
        cache.stop()
        cache.join()


def _asked(ended: Callable[[], bool]) -> bool:
    try:
        return ended()
    except (ApiError, Unreachable) as error:
        if not passes(error):
            raise
        return False


# Printing


def _tell(found: Iterable[Happening], output: str, *, following: bool) -> None:
    told = merged(found)
    if output == "json":
        click.echo(json.dumps({"events": [document(each) for each in told]}, indent=4))
    elif output == "jsonl":
        for each in told:
            click.echo(json.dumps(document(each)))
    elif not told and not following:
        click.echo("No Events are left of this release: a cluster keeps them for an hour, mostly", err=True)
    else:
        # An age would be wrong a second later in a followed log, and at once in a file.
        now = datetime.now(UTC) if sys.stdout.isatty() and not following else None
        for line in lines(told, now, following=following, coloured=has_colours()):
            click.echo(line)
    # Flush, so that the reader of a pipe gets each line when it happens.
    sys.stdout.flush()
