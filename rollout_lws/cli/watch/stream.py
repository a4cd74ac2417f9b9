"""Follows one object through its changes, across lost connections and server restarts."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.view import plain
from rollout_lws.errors import ApiError, Unreachable, UsageError
from rollout_lws.objects.resources import Resource

#: Seconds between attempts at a server that does not answer; `status` must outlive a control plane upgrade.
RECONNECT = 2.0
#: Seconds that a healthy watch lasts at least.
SHORTEST_WATCH = 1.0


def follow(transport: Transport, rollouts: Resource, first: Object, deadline: float | None) -> Iterator[Object]:
    """Yield ``first`` and each later state of the Rollout until ``time.monotonic()`` passes ``deadline``. UsageError
    when it is deleted.
    """
    for each in changes(transport, rollouts, first, deadline):
        if each is None:
            raise UsageError(f"rollout/{first['metadata']['name']} was deleted while its release was waited for")
        yield each


def changes(transport: Transport, resource: Resource, first: Object, deadline: float | None) -> Iterator[Object | None]:
    """Yield ``first`` and each later state of that object (same UID) until ``time.monotonic()`` passes ``deadline``;
    None at the end when it is gone, also when another object of its name has replaced it.
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
    """Report the retry and give a busy or unreachable server time; raise an error that waiting cannot fix."""
    if not passes(error):
        raise error
    click.echo(f"rollout-lws: {plain(str(error))}; trying again", err=True)
    _pause(RECONNECT, deadline)


def rest(began: float, deadline: float | None) -> None:
    """Pause before the next watch when a server or proxy ended the last one at once."""
    if time.monotonic() - began < SHORTEST_WATCH:
        _pause(RECONNECT, deadline)


def _pause(seconds: float, deadline: float | None) -> None:
    time.sleep(seconds if deadline is None else max(0.0, min(seconds, deadline - time.monotonic())))


def has_forgotten(error: ApiError | Unreachable) -> bool:
    """Whether the server no longer has the changes since our resourceVersion (410), so a relist is needed."""
    return isinstance(error, ApiError) and error.code == 410


def passes(error: ApiError | Unreachable) -> bool:
    """Whether the error is transient: a server that is busy, starting or being upgraded."""
    return isinstance(error, Unreachable) or error.code == 429 or error.code >= 500
