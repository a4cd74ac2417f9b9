"""events: the Events of a release and its objects, in order; -w follows them until the release has ended."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial

import click

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.events.event_log import Happening, Scope, document, happening, lines, merged
from rollout_lws.cli.options import output_option, rollout_argument, with_target
from rollout_lws.cli.releases import workload_names
from rollout_lws.cli.rollouts import fetch_rollout, find_rollouts, release_name, style
from rollout_lws.cli.screen import has_colours
from rollout_lws.cli.sides import released_kind
from rollout_lws.cli.status.gate import has_ended, pinned_now
from rollout_lws.cli.watch.cache import WatchCache
from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import CORE_EVENTS, Resource
from rollout_lws.traffic.registry import named_in, spec_of
from rollout_lws.traffic.router import written_name
from rollout_lws.traffic.services import canary_service_name

#: Seconds between looks at the clock while nothing changes.
_TICK = 1.0
#: Seconds to wait for the last Events of a release that has ended, or whose Rollout was deleted.
_FAREWELL_SECONDS = 2.0


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
    found, version = _listed(transport, scope)
    _tell(_new(found, known), output, following=watch)
    if watch:
        for each in _followed(transport, rollouts, rollout, scope, known, version):
            _tell([each], output, following=True)


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


def _listed(transport: Transport, scope: Scope) -> tuple[list[Happening], str]:
    """The Events of the scope, and the resourceVersion to watch later ones from."""
    # A field selector has no "or", so lists and watches cover the whole namespace.
    found, version = list[Happening](), ""
    for page in transport.pages(CORE_EVENTS.path(transport.namespace)):
        version = version or str(page["metadata"]["resourceVersion"])
        decoded = (_of_scope(scope, each) for each in page.get("items") or ())
        found += [each for each in decoded if each is not None]
    return found, version


def _of_scope(scope: Scope, event: Object) -> Happening | None:
    """The Event, None for one of another release: a namespace has thousands of them, so no more of it is kept."""
    about = event.get("involvedObject") or {}
    return happening(event) if scope.has(str(about.get("kind")), str(about.get("name"))) else None


def _new(found: Iterable[Happening], known: dict[str, Happening]) -> list[Happening]:
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


def _followed(
    transport: Transport, rollouts: Resource, rollout: Object, scope: Scope, known: dict[str, Happening], version: str
) -> Iterator[Happening]:
    """Events after ``version`` that are not ``known``, as they arrive, until the release has ended. UsageError when the
    Rollout is deleted; a permanent error from the server is raised unchanged.
    """
    pinned, meta = pinned_now(transport, rollout), rollout["metadata"]
    if has_ended(rollout, pinned):
        return
    changed, namespace = threading.Event(), transport.namespace
    named = {"fieldSelector": f"metadata.name={meta['name']}"}
    states: WatchCache[Object] = WatchCache(transport, rollouts.path(namespace), named, dict, changed)
    log = WatchCache(transport, CORE_EVENTS.path(namespace), {}, partial(_of_scope, scope), changed, version)
    end, deleted = math.inf, False
    try:
        while time.monotonic() < end:
            changed.wait(min(_TICK, end - time.monotonic()))
            changed.clear()
            log.report()
            states.report()
            yield from _new(log.objects() or (), known)
            found = states.objects()
            if found is None or end < math.inf:
                continue
            state = next((each for each in found if each["metadata"]["uid"] == meta["uid"]), None)
            deleted = state is None
            if state is None or has_ended(state, pinned):
                end = time.monotonic() + _FAREWELL_SECONDS
        if deleted:
            raise UsageError(f"rollout/{meta['name']} was deleted while its Events were followed")
    finally:
        for cache in (states, log):
            cache.stop()
        for cache in (states, log):
            cache.join()


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
