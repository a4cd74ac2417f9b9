"""Judges one edit with the state in the caches."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from rollout_lws.admission import rollouts, workloads
from rollout_lws.admission.review import ALLOWED, Decide, Look, Request, Response, Rule, failed
from rollout_lws.errors import Unreadable
from rollout_lws.objects.meta import Struct
from rollout_lws.observe.cache_types import WHOLE
from rollout_lws.observe.observer import observe, posted, supposed
from rollout_lws.observe.world import World
from rollout_lws.targets.table import target_type
from rollout_lws.workload.hold import hold_record

#: The cached state of a namespace; None while the caches fill.
Namespaces = Callable[[str], World | None]
#: Collects the cached state for a decoded edit; the response depends only on that.
Seen = Callable[[World, datetime], Decide]


class _Head(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""


_heads = msgspec.json.Decoder(_Head)
_ABSENT = b"null"


def judge(
    namespaces: Namespaces, now: Callable[[], datetime], me: Callable[[], str], rule: Rule, asked: Request
) -> Look:
    """Decodes the edit, which may be large; the result reads the caches, and its result decides. The first and the last
    step share no mutable state, so they may run in a thread.

    ``me`` is this controller's own account, whose writes are not judged: the rules protect them.
    """
    if asked.sub_resource or bytes(asked.object) == _ABSENT:
        return _settled(ALLOWED)
    own = me()
    if not own:
        return _settled(failed("it has just started; try again if this was not meant"))
    if asked.user_info.username == own:
        return _settled(ALLOWED)
    try:
        seen = _plan(asked) if rule is Rule.PLAN else _workload(rule, asked)
    except (Unreadable, msgspec.DecodeError) as error:
        return _settled(failed(str(error)))
    return partial(_look, namespaces, now, asked.namespace, seen)


def _settled(response: Response) -> Look:
    return lambda: lambda: response


def _look(namespaces: Namespaces, now: Callable[[], datetime], namespace: str, seen: Seen) -> Decide:
    world = namespaces(namespace)
    if world is None:
        return lambda: failed("it does not know now what is in this namespace, or does not watch it")
    try:
        return seen(world, now())
    except Unreadable as error:
        message = str(error)
        return lambda: failed(message)


def _plan(asked: Request) -> Seen:
    old = bytes(asked.old_object)
    there = None if old == _ABSENT else posted(old)
    comes = posted(bytes(asked.object))

    def seen(world: World, now: datetime) -> Decide:
        before = None if there is None else supposed(world, there, now)
        return partial(rollouts.plan, supposed(world, comes, now), before)

    return seen


def _workload(rule: Rule, asked: Request) -> Seen:
    if bytes(asked.old_object) == _ABSENT:
        return lambda *_: lambda: ALLOWED
    head = _heads.decode(bytes(asked.object))
    kind = target_type(head.api_version, head.kind)
    if kind is None:
        raise Unreadable(f"{head.api_version} {head.kind} cannot be released")
    decode = WHOLE.workloads[kind.resource]
    before, after = decode(bytes(asked.old_object)), decode(bytes(asked.object))
    whole: dict[str, Any] = msgspec.json.decode(asked.object) if rule is Rule.HOLD else {}

    def seen(world: World, now: datetime) -> Decide:
        mark = hold_record(before, world.keys)
        by = mark.by if mark is not None else ""
        # What a release has made and that serves since is in the care of the Rollout that names the user's.
        names = filter(None, (before.metadata.name, before.metadata.labels.get(world.keys.stands_for)))
        near = (each for name in names for each in world.rollouts_of(name))
        ours = next((each for each in near if each.metadata.uid == by), None)
        o = None if ours is None else observe(world, ours.metadata.name, now)
        if o is None:
            # What a deleted Rollout has left is not managed any more.
            return lambda: ALLOWED
        if rule is Rule.PENDING:
            return partial(workloads.pending, o, before, after)
        return partial(workloads.hold, o, before, after, whole)

    return seen
