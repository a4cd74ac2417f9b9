"""Detaches one Rollout: deletes it, waits until it is gone, and opens the hold of its workload."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rollout_lws.api.resources import keys
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.durations import short
from rollout_lws.cli.install.inventory import listed
from rollout_lws.cli.releases import pods_of, typed
from rollout_lws.cli.rollouts import message, rollouts_of
from rollout_lws.cli.uninstall.cluster import revisions
from rollout_lws.cli.uninstall.detach_plan import Detachment
from rollout_lws.cli.uninstall.opening import Roll, pending_roll, restoring_patch
from rollout_lws.cli.uninstall.plan import rolling, title
from rollout_lws.cli.watch.stream import changes
from rollout_lws.errors import ApiError, RolloutLwsError
from rollout_lws.objects.meta import selects
from rollout_lws.objects.resources import PODS, Resource
from rollout_lws.objects.workloads import Pod
from rollout_lws.targets.target import Target
from rollout_lws.workload.draining import draining, lost_labels, put_back

#: Seconds within which a controller observes a deletion; covers a change of leader.
ANSWER = 30.0
#: Attempts to write a workload against conflicting writers; one rarely changes.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Session:
    """One run of the command. ``agrees`` asks the user whether a version may roll; ``patience`` is seconds per Rollout,
    ``run`` the command that runs a controller on any machine.
    """

    transport: Transport
    tell: Callable[[str], None]
    agrees: Callable[[Detachment, Roll], bool]
    patience: float
    run: str = "rollout-lws controller"


def detach(session: Session, each: Detachment) -> Detachment | None:
    """None when the Rollout is gone and no workload of it is held. If the user declines to let a version roll, returns
    what is left: only a workload when that version was found after the Rollout was gone.

    RolloutLwsError when no controller removes the finalizer in time.
    """
    rollout = None
    if each.rollout:
        rollout = session.transport.find(rollouts_of(each.group).path(each.namespace, each.rollout))
    agreed = frozenset[str]()
    for roll in each.rolls:
        if not session.agrees(each, roll):
            return each
        agreed |= {roll.version}
    if rollout is not None:
        _delete(session, each, rollout)
    return next((held for held in each.held if not _open(session, held, agreed)), None)


def _delete(session: Session, each: Detachment, rollout: Object) -> None:
    resource, began = rollouts_of(each.group), time.monotonic()
    answered = session.transport.delete(resource.path(each.namespace, each.rollout), rollout["metadata"]["uid"])
    # Of what has gone at once the answer is a Status, however short the wait is.
    left = answered if answered is not None and answered.get("kind") == rollout["kind"] else None
    deadline, answer = began + session.patience, began + min(ANSWER, session.patience)
    left = None if left is None else _wait(session, resource, left, answer, _answered)
    if left is not None and not _answered(left):
        raise RolloutLwsError(
            f"{title(each)} is marked as deleted, and no controller has let go of it within"
            f" {short(answer - began)}: is one running? `{session.run}` runs one on this machine. Nothing is"
            " lost: the Rollout goes as soon as one runs, then run this command again"
        )
    told = ""

    def look(seen: Object) -> bool:
        nonlocal told
        if message(seen) != told:
            told = message(seen)
            session.tell(f"{title(each)}: {told}")
        return False

    left = None if left is None else _wait(session, resource, left, deadline, look)
    if left is not None:
        raise RolloutLwsError(
            f"{title(each)} is not gone after {short(session.patience)}: {message(left)}. It goes on by itself; run"
            " this command again, or with a longer --timeout"
        )
    session.tell(f"{title(each)} deleted")


def _wait(
    session: Session, resource: Resource, last: Object, deadline: float, enough: Callable[[Object], bool]
) -> Object | None:
    """None when the object is gone; its last state when ``enough`` accepts it, or at the deadline."""
    for seen in changes(session.transport, resource, last, deadline):
        if seen is None:
            return None
        last = seen
        if enough(seen):
            break
    return last


def _answered(rollout: Object) -> bool:
    """Whether a controller has observed the deletion, which increments the generation."""
    seen = int((rollout.get("status") or {}).get("observedGeneration") or 0)
    meta = rollout["metadata"]
    return "deletionTimestamp" in meta and seen >= int(meta.get("generation") or 0)


def _open(session: Session, each: Detachment, agreed: frozenset[str]) -> bool:
    """Remove our annotations from the workload and its pods, and restore the user's strategy, once the user agrees to
    what will roll, unless that is a version that is ``agreed`` on.
    """
    path, called = each.kind.resource.path(each.namespace, each.workload), each.called(each.workload)
    _serve_again(session, each)
    for _ in range(_TRIES):
        workload = _find(session, each, path)
        body = None if workload is None else restoring_patch(workload, keys(each.group))
        if workload is None or body is None:
            return True
        wanted, running = revisions(session.transport, each.namespace, each.workload)(workload)
        roll = pending_roll(workload, each.group, wanted=wanted, running=running)
        if roll is not None and roll.version not in agreed:
            if not session.agrees(each, roll):
                return False
            agreed |= {roll.version}
            continue
        body["metadata"]["resourceVersion"] = workload.metadata.resource_version
        try:
            session.transport.merge_patch(path, body)
        except ApiError as error:
            # Changed or deleted since it was read.
            if error.code not in (404, 409):
                raise
            continue
        what = rolling(each, roll) if roll is not None else "nothing rolls"
        given = "has its own strategy back" if "annotations" in body["metadata"] else "is labelled no more"
        given += f", and gets its {body['spec']['replicas']} groups" if "replicas" in body.get("spec", {}) else ""
        session.tell(f"{called} in namespace {each.namespace} {given}: {what}")
        return True
    raise RolloutLwsError(
        f"{called} in namespace {each.namespace} changes all the time and stays held: run this command again"
    )


def _find(session: Session, each: Detachment, path: str) -> Target | None:
    """The workload; None when it is gone, and for what another controller has made, which no release holds."""
    live = session.transport.find(path)
    found = typed(live, each.kind) if live is not None else None
    return found if found is None or selects(each.kind.labels.workloads, found.metadata.labels) else None


def _serve_again(session: Session, each: Detachment) -> None:
    """Give the pods of groups that were about to go the labels back by which requests find them."""
    own, of = keys(each.group), pods_of(each.kind, [each.workload])
    for live in listed(session.transport, PODS, each.namespace, labelSelector=of):
        pod = typed(live, Pod)
        record = draining(pod, own)
        if record is None or pod.metadata.terminating or pod.workload != each.workload:
            continue
        body = put_back(lost_labels(record, each.kind.labels.prefixes), own)
        try:
            session.transport.merge_patch(PODS.path(each.namespace, pod.metadata.name), body)
        except ApiError as error:
            if error.code != 404:
                raise
