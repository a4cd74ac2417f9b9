"""An edit that the guard is asked about, judged by what the caches know."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from rollout_lws.api.resources import Keys
from rollout_lws.controller.observe import World, observe, supposed
from rollout_lws.errors import Unreadable
from rollout_lws.guard import rollouts, workloads
from rollout_lws.guard.review import Request
from rollout_lws.guard.verdict import ALLOWED, Rule, Verdict, failed
from rollout_lws.objects.workloads import LeaderWorkerSet
from rollout_lws.rollout.observation import Observation
from rollout_lws.workload.hold import borrowed

#: What is known of a namespace; None while the caches fill.
Look = Callable[[str], World | None]

_lws = msgspec.json.Decoder(LeaderWorkerSet)
_ABSENT = b"null"


def judge(
    look: Look, keys: Keys, now: Callable[[], datetime], me: Callable[[], str], rule: Rule, asked: Request
) -> Verdict:
    """What the guard says. ``me`` is this controller's own account, whose writes are not judged: they are what the
    rules are about.
    """
    if asked.sub_resource or bytes(asked.object) == _ABSENT:
        return ALLOWED
    own = me()
    if not own:
        return failed("it has just started; try again if this was not meant")
    if asked.user_info.username == own:
        return ALLOWED
    world = look(asked.namespace)
    if world is None:
        return failed("it does not know now what is in this namespace, or does not watch it")
    try:
        if rule is Rule.PLAN:
            return _plan(partial(supposed, world, keys, now=now()), asked)
        return _workload(world, keys, now(), rule, asked)
    except (Unreadable, msgspec.DecodeError) as error:
        return failed(str(error))


def _plan(seen: Callable[[bytes], Observation], asked: Request) -> Verdict:
    old = bytes(asked.old_object)
    before = None if old == _ABSENT else seen(old)
    return rollouts.plan(seen(bytes(asked.object)), before)


def _workload(world: World, keys: Keys, now: datetime, rule: Rule, asked: Request) -> Verdict:
    if bytes(asked.old_object) == _ABSENT:
        return ALLOWED
    before, after = _lws.decode(bytes(asked.old_object)), _lws.decode(bytes(asked.object))
    mark = borrowed(before, keys)
    by = mark.by if mark is not None else ""
    ours = next((each for each in world.rollouts_of(before.metadata.name) if each.metadata.uid == by), None)
    o = None if ours is None else observe(world, keys, ours.metadata.name, now)
    if o is None:
        # What a Rollout that is gone has left is nobody's any more.
        return ALLOWED
    if rule is Rule.PENDING:
        return workloads.pending(o, before, after)
    return workloads.hold(o, before, after, _plain(asked.object))


def _plain(raw: msgspec.Raw) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(raw)
    return decoded
