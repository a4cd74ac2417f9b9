"""The installation taken away, when no Rollout is left; then the marks of releases, and a last look."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from rollout_lws.api.resources import Keys, batch_releases, keys
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.durations import short
from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.cli.uninstall.homes import Home
from rollout_lws.cli.uninstall.leftovers import KINDS, handed_down, leftovers, still_held
from rollout_lws.cli.uninstall.parts import Part, part_of
from rollout_lws.cli.uninstall.plan import Plan
from rollout_lws.cli.uninstall.reading import found, leases, listed, neighbours
from rollout_lws.cli.uninstall.waiting import wait_gone
from rollout_lws.errors import ApiError, RolloutLwsError
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    LWS_NAME,
    MUTATING_WEBHOOKS,
    PODS,
    STATEFUL_SETS,
    VALIDATING_WEBHOOKS,
    Resource,
)

Tell = Callable[[str], None]


def remove(transport: Transport, plan: Plan, groups: Iterable[str], patience: float, tell: Tell) -> None:
    """Delete what an installation has made, a line for each; ``patience`` is seconds for each that others have to let
    go of. RolloutLwsError before anything is deleted when Rollouts are there again, or their records still.
    """
    for group in groups:
        _refuse_rest(transport, group)
    for each in plan.parts.doomed:
        # Pods that still run need their rights, and keep their Lease.
        _delete(transport, each, tell, patience if each.resource == DEPLOYMENTS else 0)
    for each in plan.parts.definitions:
        _delete(transport, each, tell, patience)
    if plan.home is not None and plan.home.doomed is not None:
        _refuse_newcomers(transport, plan.home, plan.parts.doomed)
        _delete(transport, plan.home.doomed, tell, patience)


def silence(transport: Transport, plan: Plan, tell: Tell) -> None:
    """Delete the guard's webhooks before anything is given back, where no controller runs that could answer them: with
    failurePolicy Fail the API server would refuse every write. Where one runs they stay until no Rollout is left.
    """
    if not plan.controller.available:
        for each in plan.parts.doomed:
            if each.resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
                _delete(transport, each, tell)


def tidy(transport: Transport, group: str) -> None:
    """Take away what Rollouts leave behind that does nothing any more: labels on leader pods; copies of marks, which
    LeaderWorkerSet hands down to StatefulSets, and these to their revisions, and nobody takes back before a group is
    made anew; and stored versions, where the garbage collector has not come by yet. Nothing restarts by it.
    """
    own = keys(group)
    for each in listed(transport, PODS, labelSelector=own.rollout_batch_id):
        body = {"metadata": {"labels": dict.fromkeys((own.rollout_batch_id, own.rollout_id))}}
        _unless_gone(partial(transport.merge_patch, part_of(PODS, each).path, body))
    for each in listed(transport, CONTROLLER_REVISIONS, labelSelector=own.history):
        part = part_of(CONTROLLER_REVISIONS, each)
        _unless_gone(partial(transport.delete, part.path, part.uid))
    for resource in (STATEFUL_SETS, CONTROLLER_REVISIONS):
        for each in listed(transport, resource, labelSelector=f"{LWS_NAME},!{own.history}"):
            marks = handed_down(resource, each, own)
            if marks:
                _unless_gone(partial(transport.merge_patch, part_of(resource, each).path, {"metadata": marks}))


def look_again(transport: Transport, groups: Iterable[str]) -> list[str]:
    """What is left all the same, each with the command that takes it away."""
    lists = {resource: listed(transport, resource) for resource in KINDS if resource not in _CHOSEN}
    told: list[str] = []
    for group in groups:
        own = keys(group)
        chosen = {
            each: [found for label in labels(own) for found in listed(transport, each, labelSelector=label)]
            for each, labels in _CHOSEN.items()
        }
        told += leftovers({**lists, **chosen}, own)
    return [*told, *(still_held(each) for each in leases(transport))]


#: Kinds with more objects than anybody wants to read, with selectors of those that may be marked.
_CHOSEN: Mapping[Resource, Callable[[Keys], tuple[str, ...]]] = {
    PODS: lambda own: (own.rollout_batch_id,),
    CONTROLLER_REVISIONS: lambda own: (own.history, f"{LWS_NAME},!{own.history}"),
    STATEFUL_SETS: lambda _: (LWS_NAME,),
}


def _refuse_rest(transport: Transport, group: str) -> None:
    """Definitions take their objects with them, without anybody to give back what these hold."""
    left = [(each, listed(transport, each)) for each in (rollouts_of(group), batch_releases(group))]
    for resource, objects in left:
        if objects:
            meta = objects[0]["metadata"]
            raise RolloutLwsError(
                f"{resource.kind.lower()}/{meta['name']} in namespace {meta['namespace']} is there{_more(objects)}, so"
                " the controller and the definitions stay: was it made anew? Run this command again"
            )


def _refuse_newcomers(transport: Transport, home: Home, doomed: Collection[Part]) -> None:
    """Somebody may have moved in since the plan was told."""
    found = neighbours(transport, home.name, doomed)
    came = None if found is None else sorted({*found} - {*home.inside})
    if came is None or came:
        what = "what is in it can be read no more" if came is None else f"{', '.join(came)} came into it meanwhile"
        raise RolloutLwsError(f"namespace/{home.name} stays, all else is gone: {what}; run this command again")


def _more(objects: Sequence[Object]) -> str:
    return f" ({len(objects) - 1} more)" if len(objects) > 1 else ""


def _delete(transport: Transport, part: Part, tell: Tell, patience: float = 0) -> None:
    """Waits for what others have to let go of, where there is ``patience``."""
    first = found(transport, part.resource, part.namespace, part.name)
    if first is None or first["metadata"]["uid"] != part.uid:
        return
    # A Deployment is gone when its pods are, only in the foreground.
    propagation = "Foreground" if part.resource == DEPLOYMENTS else ""
    _unless_gone(partial(transport.delete, part.path, part.uid, propagation))
    if patience and wait_gone(transport, part.resource, first, time.monotonic() + patience) is not None:
        raise RolloutLwsError(
            f"{part} is being deleted, and not gone after {short(patience)}: see kubectl get {part.resource}"
            f" {part.name}{f' -n {part.namespace}' if part.namespace else ''} -o yaml; run this command again"
        )
    tell(f"{part} deleted")


def _unless_gone(write: Callable[[], object]) -> None:
    """Somebody else may have been quicker."""
    try:
        write()
    except ApiError as error:
        if error.code not in (404, 409):
            raise
