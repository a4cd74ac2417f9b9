"""Until an object is gone, whatever becomes of connections and servers meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.following import has_forgotten, rest, wait_out
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.objects.resources import Resource


def wait_gone(
    transport: Transport,
    resource: Resource,
    first: Object,
    deadline: float,
    look: Callable[[Object], bool] = lambda _: False,
) -> Object | None:
    """None when the very object ``first`` is gone; what was seen last when ``time.monotonic()`` is past ``deadline``,
    or when ``look``, which is shown every change, has seen enough.
    """
    meta, current = first["metadata"], first
    namespace, name = meta.get("namespace") or "", meta["name"]
    while True:
        try:
            current = transport.get(resource.path(namespace, name))
        except ApiError as error:
            if error.code == 404:
                return None
            wait_out(error, deadline)
        except Unreachable as error:
            wait_out(error, deadline)
        if current["metadata"]["uid"] != meta["uid"]:
            return None
        if look(current) or time.monotonic() >= deadline:
            return current
        began = time.monotonic()
        try:
            chosen, version = f"metadata.name={name}", current["metadata"]["resourceVersion"]
            for event in transport.watch(resource.path(namespace), version, deadline, fieldSelector=chosen):
                if event["type"] == "DELETED":
                    return None
                if event["type"] != "BOOKMARK":
                    changed: Object = event["object"]
                    if look(changed):
                        return changed
            rest(began, deadline)
        except (ApiError, Unreachable) as error:
            if not has_forgotten(error):
                wait_out(error, deadline)
