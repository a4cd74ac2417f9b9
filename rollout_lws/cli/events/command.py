"""events: the Events of a release and its objects, in order; -w follows them until the release has ended."""

from __future__ import annotations

import json
import sys
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
from rollout_lws.cli.watch.stream import has_forgotten, passes, wait_out
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
    found, version = _listed(transport, scope)
    _tell([happening(each) for each in found], output, following=watch)
    if watch:
        pinned = pinned_now(transport, rollout)
        log = Log(transport, scope, found, version)
        for each in log.until(lambda: has_ended(fetch_rollout(transport, rollouts, name), pinned)):
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


def _listed(transport: Transport, scope: Scope) -> tuple[list[Object], str]:
    """All Events of the scope, and the resourceVersion from which a watch misses none."""
    found: list[Object] = []
    query = {"limit": _PAGE}
    while True:
        answer = transport.get(CORE_EVENTS.path(transport.namespace), **query)
        found += (each for each in answer.get("items") or () if _is_of(each, scope))
        if not answer["metadata"].get("continue"):
            return found, str(answer["metadata"].get("resourceVersion") or "")
        query["continue"] = answer["metadata"]["continue"]


def _is_of(event: Object, scope: Scope) -> bool:
    about = event.get("involvedObject") or {}
    return scope.has(str(about.get("kind")), str(about.get("name")))


class Log:
    """Events after ``version`` as they arrive, without those ``known`` and without repeats.

    A field selector has no "or", so lists and the watch cover the whole namespace.
    """

    def __init__(self, transport: Transport, scope: Scope, known: Iterable[Object], version: str) -> None:
        self._transport, self._scope, self._version = transport, scope, version
        self._known = {each["metadata"]["uid"]: happening(each) for each in known}

    def until(self, ended: Callable[[], bool]) -> Iterator[Happening]:
        """Yield Events until ``ended``, which is checked after each Event about the Rollout and every few seconds."""
        if self._asked(ended):
            return
        yield from self._for(_LOOK_SECONDS, stop_at="Rollout")
        while not self._asked(ended):
            yield from self._for(_LOOK_SECONDS, stop_at="Rollout")
        yield from self._for(_FAREWELL_SECONDS)

    def _asked(self, ended: Callable[[], bool]) -> bool:
        try:
            return ended()
        except (ApiError, Unreachable) as error:
            if not passes(error):
                raise
            return False

    def _for(self, seconds: float, stop_at: str = "") -> Iterator[Happening]:
        """Events of the next ``seconds``, or up to the first one about an object of kind ``stop_at``."""
        path = CORE_EVENTS.path(self._transport.namespace)
        try:
            for change in self._transport.watch(path, self._version, time.monotonic() + seconds):
                event = change["object"]
                self._version = event["metadata"]["resourceVersion"]
                told = self._new(event) if change["type"] in ("ADDED", "MODIFIED") else None
                if told is not None:
                    yield told
                    if stop_at and told.about.startswith(f"{stop_at}/"):
                        return
        except (ApiError, Unreachable) as error:
            if has_forgotten(error):
                yield from self._again()
            else:
                wait_out(error)

    def _again(self) -> Iterator[Happening]:
        """Relist after the watch expired and yield the Events that it missed."""
        found, self._version = _listed(self._transport, self._scope)
        new = (told for told in map(self._new, found) if told is not None)
        yield from sorted(new, key=lambda each: each.last)

    def _new(self, event: Object) -> Happening | None:
        """The Event if it is new, or if its series has a higher count."""
        if not _is_of(event, self._scope):
            return None
        told, uid = happening(event), event["metadata"]["uid"]
        before = self._known.get(uid)
        self._known[uid] = told
        if before is not None and (before.count, before.last) >= (told.count, told.last):
            return None
        return told


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
