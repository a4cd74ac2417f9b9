"""One Rollout taken off its LeaderWorkerSet: deleted, waited for until it is really gone, and the hold opened."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from rollout_lws.api.resources import keys
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.durations import short
from rollout_lws.cli.releases import typed
from rollout_lws.cli.rollouts import message, rollouts_of
from rollout_lws.cli.uninstall.departures import Departure, Roll, opening, waiting
from rollout_lws.cli.uninstall.plan import rolling, title
from rollout_lws.cli.uninstall.reading import found, listed, revision
from rollout_lws.cli.uninstall.waiting import wait_gone
from rollout_lws.errors import ApiError, RolloutLwsError
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, LWS_WORKER_INDEX, PODS, STATEFUL_SETS
from rollout_lws.objects.workloads import LeaderWorkerSet

#: Seconds in which a controller has seen that a Rollout is deleted, another one that takes its place included.
ANSWER = 30.0
#: Writes of one LWS that others may come before; it changes rarely.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Hands:
    """How it is carried out. ``agrees`` asks whether a version may roll; ``patience`` is seconds for each Rollout,
    ``run`` the command that runs a controller on any machine.
    """

    transport: Transport
    tell: Callable[[str], None]
    agrees: Callable[[Departure, Roll], bool]
    patience: float
    run: str = "rollout-lws controller"


def leave(hands: Hands, each: Departure) -> Departure | None:
    """None when it is gone, and its LWS without a hold; what is left when somebody does not want a version to roll:
    the LWS alone where that came up only after its Rollout was gone.

    RolloutLwsError when nobody lets go of it in time.
    """
    resource = rollouts_of(each.group)
    rollout = found(hands.transport, resource, each.namespace, each.rollout) if each.rollout else None
    agreed = ""
    if each.roll is not None:
        if not hands.agrees(each, each.roll):
            return each
        agreed = each.roll.version
    if rollout is not None:
        _delete(hands, each, rollout)
    held = replace(each, rollout="")
    return None if _open(hands, held, agreed) else held


def _delete(hands: Hands, each: Departure, rollout: Object) -> None:
    resource, began = rollouts_of(each.group), time.monotonic()
    try:
        hands.transport.delete(resource.path(each.namespace, each.rollout), rollout["metadata"]["uid"])
    except ApiError as error:
        if error.code != 404:
            raise
    deadline, answer = began + hands.patience, min(began + ANSWER, began + hands.patience)
    left = wait_gone(hands.transport, resource, rollout, answer, _answered)
    if left is not None and not _answered(left):
        raise RolloutLwsError(
            f"{title(each)} is marked as deleted, and no controller has let go of it within"
            f" {short(answer - began)}: is one running? `{hands.run}` runs one on this machine. Nothing is"
            " lost: the Rollout goes as soon as one runs, then run this command again"
        )
    told = ""

    def look(seen: Object) -> bool:
        nonlocal told
        if message(seen) != told:
            told = message(seen)
            hands.tell(f"{title(each)}: {told}")
        return False

    left = None if left is None else wait_gone(hands.transport, resource, left, deadline, look)
    if left is not None:
        raise RolloutLwsError(
            f"{title(each)} is not gone after {short(hands.patience)}: {message(left)}. It goes on by itself; run this"
            " command again, or with a longer --timeout"
        )
    hands.tell(f"{title(each)} deleted")


def _answered(rollout: Object) -> bool:
    """Whether a controller has seen that it is deleted: the deletion is a generation of its own."""
    seen = int((rollout.get("status") or {}).get("observedGeneration") or 0)
    meta = rollout["metadata"]
    return "deletionTimestamp" in meta and seen >= int(meta.get("generation") or 0)


def _open(hands: Hands, each: Departure, agreed: str) -> bool:
    """Take our marks off the LWS, with the user's own strategy back, once it is agreed what starts by that."""
    for _ in range(_TRIES):
        lws = found(hands.transport, LEADER_WORKER_SETS, each.namespace, each.workload)
        if lws is None:
            return True
        body = opening(typed(lws, LeaderWorkerSet), keys(each.group))
        if body is None:
            return True
        roll = _waits(hands.transport, each, lws)
        if roll is not None and roll.version != agreed:
            if not hands.agrees(each, roll):
                return False
            agreed = roll.version
            continue
        body["metadata"]["resourceVersion"] = lws["metadata"]["resourceVersion"]
        try:
            hands.transport.merge_patch(LEADER_WORKER_SETS.path(each.namespace, each.workload), body)
        except ApiError as error:
            if error.code != 409:
                raise
            continue
        what = rolling(roll) if roll is not None else "nothing rolls"
        hands.tell(f"leaderworkerset/{each.workload} in namespace {each.namespace} has its own strategy back: {what}")
        return True
    raise RolloutLwsError(
        f"leaderworkerset/{each.workload} in namespace {each.namespace} changes all the time and stays held: run this"
        " command again"
    )


def _waits(transport: Transport, each: Departure, lws: Object) -> Roll | None:
    leader_set = found(transport, STATEFUL_SETS, each.namespace, each.workload)
    leaders = listed(transport, PODS, each.namespace, labelSelector=f"{LWS_NAME}={each.workload},{LWS_WORKER_INDEX}=0")
    running = [revision(pod) for pod in leaders if "deletionTimestamp" not in pod["metadata"]]
    return waiting(lws, each.group, wanted=revision(leader_set) if leader_set else "", running=running)
