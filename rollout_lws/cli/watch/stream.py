"""One object as it changes, whatever becomes of connections and servers meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.view import plain
from rollout_lws.errors import ApiError, Unreachable, UsageError
from rollout_lws.objects.resources import Resource

#: Seconds between two attempts at a server that does not answer; a gate must outlive a control plane's upgrade.
RECONNECT = 2.0
#: Seconds that a watch lasts at least where all is well.
SHORTEST_WATCH = 1.0


def follow(transport: Transport, rollouts: Resource, first: Object, deadline: float | None) -> Iterator[Object]:
    """The Rollout, ``first`` and each time it changes, until ``time.monotonic()`` is past ``deadline``. UsageError when
    it is deleted.
    """
    for each in changes(transport, rollouts, first, deadline):
        if each is None:
            raise UsageError(f"rollout/{first['metadata']['name']} was deleted while its release was waited for")
        yield each


def changes(transport: Transport, resource: Resource, first: Object, deadline: float | None) -> Iterator[Object | None]:
    """``first`` and each later state of that very object, until ``time.monotonic()`` is past ``deadline``; None at the
    end when it is gone, also where another object of its name has taken its place.
    """
    meta = first["metadata"]
    name, namespace, version = meta["name"], meta.get("namespace") or "", meta["resourceVersion"]
    yield first
    while deadline is None or time.monotonic() < deadline:
        began = time.monotonic()
        try:
            chosen = f"metadata.name={name}"
            for event in transport.watch(resource.path(namespace), version, deadline, fieldSelector=chosen):
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] == "DELETED":
                    yield None
                    return
                if event["type"] != "BOOKMARK":
                    yield event["object"]
            rest(began, deadline)
        except (ApiError, Unreachable) as error:
            if not has_forgotten(error):
                wait_out(error, deadline)
        try:
            current = transport.find(resource.path(namespace, name))
        except (ApiError, Unreachable) as error:
            wait_out(error, deadline)
            continue
        if current is None or current["metadata"]["uid"] != meta["uid"]:
            yield None
            return
        version = current["metadata"]["resourceVersion"]
        yield current


def wait_out(error: ApiError | Unreachable, deadline: float | None = None) -> None:
    """Say that it is tried again, and give a server that is busy or away its time; raises what no waiting mends."""
    if not passes(error):
        raise error
    click.echo(f"rollout-lws: {plain(str(error))}; trying again", err=True)
    _pause(RECONNECT, deadline)


def rest(began: float, deadline: float | None) -> None:
    """A server, or what stands before it, that ends each watch at once is not asked without a pause."""
    if time.monotonic() - began < SHORTEST_WATCH:
        _pause(RECONNECT, deadline)


def _pause(seconds: float, deadline: float | None) -> None:
    time.sleep(seconds if deadline is None else max(0.0, min(seconds, deadline - time.monotonic())))


def has_forgotten(error: ApiError | Unreachable) -> bool:
    """Whether the server does not know any more what changed since: all has to be read anew."""
    return isinstance(error, ApiError) and error.code == 410


def passes(error: ApiError | Unreachable) -> bool:
    """Whether a server that is busy, starting or being upgraded is enough to explain it."""
    return isinstance(error, Unreachable) or error.code == 429 or error.code >= 500
