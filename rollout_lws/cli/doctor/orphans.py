"""Workloads that a release has made in place of the user's, and that serve on though their Rollout is gone."""

from __future__ import annotations

from rollout_lws.api.resources import keys
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.rollouts import items
from rollout_lws.cli.sides import called, named
from rollout_lws.errors import ApiError
from rollout_lws.objects.released import RELEASED
from rollout_lws.objects.resources import Resource

#: How many are told.
_SHOWN = 3


def left_standing_in(transport: Transport, rollouts: Resource) -> list[str]:
    """One sentence for each such workload of the namespace: what serves, and what a person may do; none of kinds that
    may not be read.
    """
    label = keys(rollouts.group).stands_for
    made = [(kind, each) for kind in RELEASED for each in _made(transport, kind, label)]
    try:
        released = {called(each, named(each)) for each in items(transport, rollouts)} if made else set()
    except ApiError:
        return []
    found = ((kind.kind.lower(), each["metadata"]) for kind, each in made)
    left = [(kind, meta["name"], str(meta["labels"][label])) for kind, meta in found]
    return [_told(kind, name, users) for kind, name, users in left if f"{kind}/{users}" not in released][:_SHOWN]


def _made(transport: Transport, kind: Resource, label: str) -> list[Object]:
    try:
        return items(transport, kind, labelSelector=",".join(filter(None, (label, RELEASED[kind].workloads))))
    except ApiError:
        return []


def _told(kind: str, name: str, users: str) -> str:
    return (
        f"{kind}/{name} serves in place of {kind}/{users}, and the Rollout that has made it is gone:"
        f" apply that Rollout again, and `rollout-lws home` brings the requests back; or leave both as they are, then"
        f" the manifest of {users} starts nothing while it has 0 replicas"
    )
