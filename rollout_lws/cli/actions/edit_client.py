"""Edits of the LWS of a release as JSON Patches, refused when it has changed since it was read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rollout_lws.cli import gitops, versions
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.actions import action_rules, pair_rules, undo_rules
from rollout_lws.cli.actions.action_client import ask
from rollout_lws.cli.releases import fetch_companions, side_hash, stored_versions
from rollout_lws.cli.rollouts import fetch_named, fetch_rollout, fetch_workload, releasing
from rollout_lws.cli.sides import Sides, called, scales_sides, sides_of
from rollout_lws.cli.watch.stream import follow
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.objects.resources import Resource
from rollout_lws.targets.table import released_type


@dataclass(frozen=True, slots=True)
class Seen:
    """A release as an edit reads it. ``live``, ``stable`` and ``aborted`` are our hashes of the LWS's current version,
    the serving version, and the last aborted one ("": none). ``beside`` are companions of a pair's active side.
    """

    transport: Transport
    rollouts: Resource
    rollout: Object
    lws: Object
    known: list[versions.Stored]
    live: str
    stable: str
    aborted: str
    beside: tuple[Object, ...] = ()

    @property
    def called(self) -> str:
        """The edited workload as commands name it."""
        return called(self.rollout, self.lws["metadata"]["name"])


#: Why an edit of a pair is refused, and what to do instead.
Instead = Callable[[Seen, Sides], str]


def of_pair(seen: Seen, sides: Sides) -> str:
    return pair_rules.without_edit(seen.rollout, sides)


def look(
    transport: Transport, rollouts: Resource, name: str, instead: Instead = of_pair, *, held: bool = False
) -> Seen:
    """Reads the release; UsageError for a pair, whose templates only their owner edits. ``held``: what is meant is the
    hold, which the active side of a pair has if releases scale it.
    """
    rollout = fetch_rollout(transport, rollouts, name)
    known = stored_versions(transport, rollouts, rollout)

    def told(record: str) -> str:
        return str(((rollout.get("status") or {}).get(record) or {}).get("templateHash") or "")

    sides = sides_of(rollout)
    of_active = held and sides is not None and sides.known and scales_sides(rollout)
    if of_active and sides is not None:
        lws = fetch_named(transport, rollout, sides.active)
    else:
        lws = fetch_workload(transport, rollout)
    companions = fetch_companions(transport, rollout)
    live = side_hash(rollout, lws, companions)
    beside = [companions[each] for each in sides.members(sides.active)[1:] if each in companions] if sides else ()
    seen = Seen(transport, rollouts, rollout, lws, known, live, told("stable") or live, told("aborted"), (*beside,))
    if sides is not None and not of_active:
        raise UsageError(instead(seen, sides))
    return seen


#: Maps what was read to JSON Patch operations (empty: nothing to do) and a description of them.
Edit = Callable[[Seen], tuple[versions.Operations, str]]
#: Raises UsageError when the Rollout is not as the user has seen it.
Pin = Callable[[Object], object]


def undo(
    transport: Transport,
    rollouts: Resource,
    name: str,
    *,
    number: int | None = None,
    force: bool = False,
    pin: Pin | None = None,
    reason: str | None = None,
    tell: Callable[[str], object],
) -> str:
    """Put stored version ``number`` into the LWS, by default the one before, and return what was done as a message.
    What is done before that is passed to ``tell``; ``reason`` is that of an abort, which comes first with surge groups.
    """

    def make(seen: Seen) -> tuple[versions.Operations, str]:
        found = versions.to_undo(seen.known, seen.live, seen.stable, number)
        what = undo_rules.becomes(seen.rollout, found.template_hash, seen.stable)
        message = f"has revision {found.number} again ({', '.join(found.images)}): {what}"
        return versions.putting_back(seen.lws, found.members), message

    def prepare(seen: Seen) -> bool:
        found = versions.to_undo(seen.known, seen.live, seen.stable, number)
        if not undo_rules.aborts(seen.rollout, found.template_hash, seen.stable):
            return False
        _abort(seen, pin, reason or "undo", tell)
        return True

    def instead(seen: Seen, sides: Sides) -> str:
        return pair_rules.way_back(seen.rollout, sides, seen.known, seen.live, number)

    return edit(transport, rollouts, name, make, force=force, prepare=prepare, instead=instead, pin=pin)


def edit(
    transport: Transport,
    rollouts: Resource,
    name: str,
    make: Edit,
    *,
    force: bool = False,
    prepare: Callable[[Seen], bool] | None = None,
    instead: Instead = of_pair,
    pin: Pin | None = None,
) -> str:
    """Edit the LWS, and return what was done as a message. ``prepare`` runs before a needed edit and returns whether it
    has ended the release. With ``force`` also what a GitOps controller keeps. ``pin`` is judged before each write.
    """
    seen = look(transport, rollouts, name, instead)
    if pin is not None:
        pin(seen.rollout)
        _refuse_unseen(seen)
    operations, told = make(seen)
    if operations:
        _refuse_kept(seen.lws, force)
        if prepare is not None and prepare(seen):
            before, seen = seen, look(transport, rollouts, name, instead)
            _refuse_others(before, seen)
            operations, told = make(seen)
        elif pin is not None:
            # To read the history and the workload may have taken long.
            pin(fetch_rollout(transport, rollouts, name))
    if operations:
        patch(seen, operations)
    return f"{seen.called} {told}"


def _refuse_unseen(seen: Seen) -> None:
    """UsageError when the template has a version that is not the one of which the status tells: a user who sees the
    release does not see that one yet.
    """
    _, judged = _judged(seen.rollout)
    if judged and judged != seen.live:
        name = seen.rollout["metadata"]["name"]
        raise UsageError(
            f"{seen.called} has another version in its template since, of which rollout/{name} does not tell yet: look"
            f" again in a moment; `rollout-lws undo {name}` undoes what there is now"
        )


def _refuse_others(before: Seen, seen: Seen) -> None:
    """UsageError when what an abort has left is not what was to be undone: that took as long as requests run."""
    name = seen.rollout["metadata"]["name"]
    if (seen.lws["metadata"]["uid"], seen.live) != (before.lws["metadata"]["uid"], before.live):
        what = f"{seen.called} was given another version in its template meanwhile"
    elif releasing(seen.rollout):
        what = f"rollout/{name} releases its version again"
    elif (seen.rollout["metadata"]["uid"], seen.stable) != (before.rollout["metadata"]["uid"], before.stable):
        what = f"rollout/{name} has another stable version than before"
    else:
        return
    raise UsageError(
        f"{what}, so no version was put back: look with `rollout-lws get {name}`; `rollout-lws undo {name}` undoes"
        " what there is now"
    )


def patch(seen: Seen, operations: versions.Operations) -> None:
    """Apply the patch; UsageError when the LWS has changed since it was read."""
    try:
        seen.transport.json_patch(_path(seen.lws), operations)
    except ApiError as error:
        if error.code in (409, 422) and _moved(seen):
            raise UsageError(
                f"{seen.called} was changed by another client meanwhile, nothing was"
                " changed here: look and decide again"
            ) from error
        raise


def _abort(seen: Seen, pin: Pin | None, reason: str, tell: Callable[[str], object]) -> None:
    """Abort the release that was seen, and wait until the rollback has finished or another release is on."""
    name, meant = seen.rollout["metadata"]["name"], _judged(seen.rollout)

    def judge(rollout: Object) -> action_rules.Ask | action_rules.Already:
        if _judged(rollout) != meant:
            raise UsageError(
                f"rollout/{name} is about another release now, nothing was changed: look with `rollout-lws get {name}`"
                " and decide again"
            )
        if pin is not None:
            pin(rollout)
        return action_rules.abort()(rollout)

    tell(ask(seen.transport, seen.rollouts, name, judge, reason=reason))
    current, goes_back = fetch_rollout(seen.transport, seen.rollouts, name), False
    for rollout in follow(seen.transport, seen.rollouts, current, None):
        ending = bool((rollout.get("status") or {}).get("finalising"))
        # Another release may begin without a moment in which none is on.
        if not releasing(rollout) or _judged(rollout) != meant or (goes_back and not ending):
            return
        goes_back = goes_back or ending


def _judged(rollout: Object) -> tuple[str, str | None]:
    """The Rollout, and the version that its status is about."""
    return rollout["metadata"]["uid"], (rollout.get("status") or {}).get("observedTemplateHash")


def _path(lws: Object) -> str:
    return released_type(lws).resource.path(lws["metadata"]["namespace"], lws["metadata"]["name"])


def _moved(seen: Seen) -> bool:
    before = seen.lws["metadata"]
    now = fetch_named(seen.transport, seen.rollout, before["name"])["metadata"]
    return (now["uid"], now["generation"]) != (before["uid"], before["generation"])


def _refuse_kept(lws: Object, force: bool) -> None:
    keeper = gitops.owner(lws)
    if keeper and not force:
        raise UsageError(
            f"{lws['kind'].lower()}/{lws['metadata']['name']} is kept by {keeper}, which may take this back: change it"
            " in Git, or give the command --force"
        )
