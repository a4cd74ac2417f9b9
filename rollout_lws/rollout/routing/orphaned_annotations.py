"""Restores objects that deleted Rollouts still pin or route, by the annotations on those objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import timedelta

from rollout_lws.objects.resources import SERVICES
from rollout_lws.objects.writes import Write
from rollout_lws.rollout.decision import BestEffort, ReleaseEvent
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.rollout.routing import draining
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.traffic.marked import Kept

#: Seconds between retries of best-effort restores.
TRIED_AGAIN_SECONDS = 30


def take_back(d: Draft) -> tuple[Draft, bool]:
    """Restores what deleted Rollouts (deleted while this controller was down, or with their finalizer removed)
    modified. True while objects remain that carry requests for this Rollout's groups and can be restored. The rest is
    restored as best effort and blocks nothing. Selectors that would match more than one version stay pinned (see
    ``left_pinned``).
    """
    annotated, here = d.o.marked, _here(d)
    if annotated.waits and annotated.deleted_uids:
        return d, True
    waits = False
    for deleted_uid in annotated.deleted_uids:
        if not annotated.concerns(deleted_uid, here):
            d = _take_back_last(d, deleted_uid)
            continue
        writes = [*annotated.take_back(deleted_uid, here, "the Rollout that wrote it was deleted")]
        waits = waits or bool(writes)
        if not writes or any(_is_written(d, each) for each in writes):
            # Or another rule of this decision has done so already.
            continue
        d = d.write(writes)
        stays = [*annotated.kept(deleted_uid, here)]
        given = [f"{each.resource.kind} {each.name}" for each in writes if not _is_kept(each, stays)]
        if given:
            told = _given_back(deleted_uid, ", ".join(given))
            d = d.event(EventReason.RESTORED, "; ".join((told, *(_kept(d, each) for each in stays[:1]))), warning=True)
    return d, waits


def _here(d: Draft) -> str:
    """Name of the LWS that has the requests, or whose canary has some."""
    return d.name if d.swapped else d.o.rollout.spec.workload_ref.name


def take_back_last(d: Draft) -> Draft:
    """Restores everything that deleted Rollouts modified, as best-effort writes: a refusal blocks nothing."""
    if not d.o.marked.waits:
        for deleted_uid in d.o.marked.deleted_uids:
            d = _take_back_last(d, deleted_uid)
    return d


def _take_back_last(d: Draft, deleted_uid: str) -> Draft:
    annotated, here = d.o.marked, _here(d)
    stays = [*annotated.kept(deleted_uid, here)]
    for write in annotated.take_back(deleted_uid, here, "the Rollout that wrote it was deleted"):
        if _is_written(d, write):
            continue
        what = f"{write.resource.kind} {write.name}"
        told = ReleaseEvent(EventReason.RESTORED.value, _given_back(deleted_uid, what), "Warning")
        d = d.write_if_possible((BestEffort(write, None if _is_kept(write, stays) else told),))
        # No event reports when the API server will accept a refused write.
        d = d.wake(d.now + timedelta(seconds=TRIED_AGAIN_SECONDS))
    return d


def _is_kept(write: Write, stays: Collection[Kept]) -> bool:
    """True if the object keeps the annotation: it stays pinned itself or is a Service, and another kind does."""
    last = write.resource == SERVICES and any(each.selecting.resource != SERVICES for each in stays)
    return last or any((each.selecting.resource, each.name) == (write.resource, write.name) for each in stays)


def _is_written(d: Draft, write: Write) -> bool:
    """True if this decision already writes the object."""
    decided = (*d.writes, *(each.write for each in d.best_effort))
    return any((each.resource, each.name) == (write.resource, write.name) for each in decided)


def _given_back(deleted_uid: str, what: str) -> str:
    return f"{what} carried what a deleted Rollout (UID {deleted_uid}) had written; it is restored"


def left_pinned(d: Draft) -> Routed:
    """Done if no deleted Rollout still pins an object that carries requests for this Rollout's groups.

    ``needs_person`` if that waits for a pod that does not terminate by itself.
    """
    kept = next((each for each in _all_kept(d) if _routes_by(d, each)), None)
    if kept is None:
        return DONE
    unknown = next((why or f"pods of {name} are being listed" for name, why in d.o.marked.unknown_pods.items()), None)
    if unknown:
        return Routed(False, unknown)
    message = f"{_kept(d, kept)}; to end that earlier, correct the selector of {kept.ref} and take annotation"
    return draining.waits_for(d, f"{message} {d.keys.original} off it", kept.pods)


def others_left(d: Draft) -> str:
    """What else stays as a deleted Rollout wrote it, and how that ends; "" for nothing."""
    kept = next((each for each in _all_kept(d) if each.pods and not _routes_by(d, each)), None)
    told = [_others_refused(d)]
    if kept is not None:
        told.append(f"of a deleted Rollout: {_kept(d, kept)}; a Rollout for that {d.kind} ends what it had begun")
    return "; ".join(filter(None, told))


def _others_refused(d: Draft) -> str:
    """Other objects that still carry fields of a deleted Rollout; "" if there are none."""
    own = d.o.rollout.spec.workloads
    effort = [each.write for each in d.best_effort if each.event is not None and each.write.name not in own]
    left = [f"{each.resource.kind} {each.name}" for each in effort]
    if not left:
        return ""
    return (
        f"of a deleted Rollout: {', '.join(left)} still carries what it had written; the controller tries to give"
        f" it back every {TRIED_AGAIN_SECONDS} s, and its log says what refuses that"
    )


def _all_kept(d: Draft) -> Iterator[Kept]:
    for deleted_uid in d.o.marked.deleted_uids:
        yield from d.o.marked.kept(deleted_uid, _here(d))


def _routes_by(d: Draft, kept: Kept) -> bool:
    if d.o.marked.is_of(_here(d), kept.workload):
        return True
    return (kept.selecting.resource, kept.name) in d.o.marked.named


def _kept(d: Draft, kept: Kept) -> str:
    pods, workloads = draining.named(kept.pods), sorted({pod.workload for pod in kept.pods})
    until = f"pod {pods} of {d.kind} {', '.join(workloads)} is gone" if pods else "all pods are known"
    return f"{kept.ref}, which it had pinned, stays pinned to groups of {d.kind} {kept.workload} until {until}"
