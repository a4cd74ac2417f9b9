"""One Rollout as it changes, whatever becomes of connections and servers meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.rollouts import fetch_rollout
from rollout_lws.errors import ApiError, Unreachable, UsageError
from rollout_lws.objects.resources import Resource

#: Seconds between two attempts at a server that does not answer; a gate must outlive a control plane's upgrade.
RECONNECT = 2.0


def follow(transport: Transport, rollouts: Resource, first: Object, deadline: float | None) -> Iterator[Object]:
    """The Rollout, ``first`` and each time it changes, until ``time.monotonic()`` is past ``deadline``. UsageError when
    it is deleted.
    """
    meta = first["metadata"]
    name, namespace, version = meta["name"], meta["namespace"], meta["resourceVersion"]
    yield first
    while deadline is None or time.monotonic() < deadline:
        try:
            chosen = f"metadata.name={name}"
            for event in transport.watch(rollouts.path(namespace), version, deadline, fieldSelector=chosen):
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] == "DELETED":
                    raise UsageError(f"rollout/{name} was deleted while its release was waited for")
                if event["type"] != "BOOKMARK":
                    yield event["object"]
        except (ApiError, Unreachable) as error:
            if not has_forgotten(error):
                wait_out(error, deadline)
        try:
            current = fetch_rollout(transport, rollouts, name)
        except (ApiError, Unreachable) as error:
            if not passes(error):
                raise
            continue
        version = current["metadata"]["resourceVersion"]
        yield current


def wait_out(error: ApiError | Unreachable, deadline: float | None = None) -> None:
    """Say that it is tried again, and give a server that is busy or away its time; raises what no waiting mends."""
    if not passes(error):
        raise error
    click.echo(f"rollout-lws: {error}; trying again", err=True)
    time.sleep(RECONNECT if deadline is None else max(0.0, min(RECONNECT, deadline - time.monotonic())))


def has_forgotten(error: ApiError | Unreachable) -> bool:
    """Whether the server does not know any more what changed since: all has to be read anew."""
    return isinstance(error, ApiError) and error.code == 410


def passes(error: ApiError | Unreachable) -> bool:
    """Whether a server that is busy, starting or being upgraded is enough to explain it."""
    return isinstance(error, Unreachable) or error.code == 429 or error.code >= 500
