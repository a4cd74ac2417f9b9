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
from rollout_lws.cli.events.event_log import Happening, Scope, document, lines, merged
from rollout_lws.cli.events.scope import in_scope, news, scope_of
from rollout_lws.cli.options import output_option, rollout_argument, with_target
from rollout_lws.cli.rollouts import fetch_rollout, find_rollouts, release_name
from rollout_lws.cli.screen import has_colours
from rollout_lws.cli.status.gate import has_ended, pinned_now
from rollout_lws.cli.watch.cache import WatchCache
from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import CORE_EVENTS, Resource

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
    _tell(news(found, known), output, following=watch)
    if watch:
        for each in _followed(transport, rollouts, rollout, scope, known, version):
            _tell([each], output, following=True)


def _listed(transport: Transport, scope: Scope) -> tuple[list[Happening], str]:
    """The Events of the scope, and the resourceVersion to watch later ones from."""
    # A field selector has no "or", so lists and watches cover the whole namespace.
    found, version = list[Happening](), ""
    for page in transport.pages(CORE_EVENTS.path(transport.namespace)):
        version = version or str(page["metadata"]["resourceVersion"])
        decoded = (in_scope(scope, each) for each in page.get("items") or ())
        found += [each for each in decoded if each is not None]
    return found, version


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
    log = WatchCache(transport, CORE_EVENTS.path(namespace), {}, partial(in_scope, scope), changed, version)
    end, deleted = math.inf, False
    try:
        while time.monotonic() < end:
            changed.wait(min(_TICK, end - time.monotonic()))
            changed.clear()
            log.report()
            states.report()
            yield from news(log.objects() or (), known)
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
