"""Workloads that a release has made in place of the user's, and that serve on though their Rollout is gone."""

from __future__ import annotations

from rollout_lws.api.resources import keys
from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.rollouts import items
from rollout_lws.cli.sides import named
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import LEADER_WORKER_SETS, Resource

#: How many are told.
_SHOWN = 3


def left_standing_in(transport: Transport, rollouts: Resource) -> list[str]:
    """One sentence for each such LWS of the namespace: what serves, and what a person may do; [] where LWSs may not be
    read.
    """
    own = keys(rollouts.group)
    try:
        made = items(transport, LEADER_WORKER_SETS, labelSelector=own.stands_for)
        released = {named(each) for each in items(transport, rollouts)} if made else set()
    except ApiError:
        return []
    left = [(each, str(each["metadata"]["labels"][own.stands_for])) for each in made]
    return [_told(each["metadata"]["name"], users) for each, users in left if users not in released][:_SHOWN]


def _told(name: str, users: str) -> str:
    return (
        f"leaderworkerset/{name} serves in place of leaderworkerset/{users}, and the Rollout that has made it is gone:"
        f" apply that Rollout again, and `rollout-lws home` brings the requests back; or leave both as they are, then"
        f" the manifest of {users} starts nothing while it has 0 replicas"
    )
