"""get -w: redraws the picture on every change on a terminal; prints one line per change everywhere else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import click

from rollout_lws.cli import view
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.get import listing, picture
from rollout_lws.cli.get.caller import Caller
from rollout_lws.cli.get.live import Live
from rollout_lws.cli.rollouts import fetch_rollout, words
from rollout_lws.cli.screen import Screen, has_colours, is_terminal, width
from rollout_lws.cli.status.gate import Pin, has_ended, pinned_now
from rollout_lws.cli.watch.cache import WatchCache
from rollout_lws.cli.watch.stream import follow
from rollout_lws.objects.resources import Resource

#: Seconds to collect changes before a redraw, since a group that starts up causes many.
_GATHER = 0.05
#: Seconds between redraws without a change, to update ages.
_TICK = 1.0


def one(transport: Transport, rollouts: Resource, name: str, output: str | None, caller: Caller) -> None:
    """Watch one release until that of the LWS's current version, or of a later one, has ended."""
    rollout = fetch_rollout(transport, rollouts, name)
    pinned = pinned_now(transport, rollout)
    if output == "jsonl" or not is_terminal():
        _in_lines(transport, rollouts, rollout, pinned, output)
        return
    wide = output == "wide"
    changed = threading.Event()
    with Live(transport, rollouts, name, changed, known=rollout, pods=wide) as live, _screen() as drawn:
        shown = None
        while shown is None or not has_ended(shown.rollout, pinned):
            _await(changed)
            shown = live.look() or shown
            if shown is not None:
                now = datetime.now(UTC)
                lines = picture.release(shown, now, caller=caller, pods=wide, width=width())
                drawn.draw(lines, _old(live.trouble))


def every(transport: Transport, rollouts: Resource, namespace: str, selector: str | None, output: str | None) -> None:
    """Watch all Rollouts until the user interrupts it."""
    changed = threading.Event()
    query = {"labelSelector": selector} if selector else {}
    cache: WatchCache[Object] = WatchCache(transport, rollouts.path(namespace), query, dict, changed)
    try:
        if output != "jsonl" and is_terminal():
            with _screen() as drawn:
                for found in _looks(cache, changed):
                    drawn.draw(_overview(found, namespace, output), _old(cache.trouble))
            return
        tell = _listing(output, named=True)
        for found in _looks(cache, changed):
            tell(found)
            cache.report()
    finally:
        cache.stop()
        cache.join()


def _looks(cache: WatchCache[Object], changed: threading.Event) -> Iterator[list[Object]]:
    """All Rollouts by namespace and name, on every change and every second."""
    while True:
        _await(changed)
        if cache.failure is not None:
            raise cache.failure
        found = cache.objects()
        if found is not None:
            yield sorted(found, key=lambda each: (each["metadata"]["namespace"], each["metadata"]["name"]))


def _overview(rollouts: list[Object], namespace: str, output: str | None) -> list[str]:
    if not rollouts:
        return ["No Rollouts found"]
    now = datetime.now(UTC)
    return listing.overview(rollouts, now, namespaces=not namespace, wide=output == "wide", width=width())


def _old(trouble: str) -> str:
    """Footer of a stale picture, "" for a current one."""
    return f"Old: {trouble}; trying again" if trouble else ""


def _in_lines(
    transport: Transport, rollouts: Resource, rollout: Object, pinned: Pin | None, output: str | None
) -> None:
    told = _listing(output)
    for seen in follow(transport, rollouts, rollout, None):
        told([seen])
        if has_ended(seen, pinned):
            return


def _listing(output: str | None, *, named: bool = False) -> Callable[[list[Object]], None]:
    """A function that prints one line, JSON or text, for each Rollout whose line has changed."""
    told: dict[str, str] = {}

    def tell(rollouts: list[Object]) -> None:
        for each in rollouts:
            meta = each["metadata"]
            name = f"{meta['namespace']}/{meta['name']} " if named else ""
            line = view.line(each) if output == "jsonl" else name + words(each)
            if told.get(meta["uid"]) != line:
                told[meta["uid"]] = line
                click.echo(line if output == "jsonl" else f"{view.moment(datetime.now(UTC))} {line}")

    return tell


def _screen() -> Screen:
    return Screen(listing.coloured if has_colours() else str)


def _await(changed: threading.Event) -> None:
    """Wait for a change and collect the ones that follow, or return after a second."""
    if changed.wait(_TICK):
        time.sleep(_GATHER)
        changed.clear()
