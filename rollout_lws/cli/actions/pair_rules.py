"""What commands that edit an LWS say of a pair, whose templates they leave to their owner: what to do instead. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rollout_lws.cli.rollouts import releasing
from rollout_lws.cli.sides import Sides, has_given_up_groups, is_active_edited, scales_sides, serving_hash
from rollout_lws.cli.versions import Stored, to_undo

Object = dict[str, Any]


def way_back(rollout: Object, sides: Sides, known: Sequence[Stored], live: str, number: int | None) -> str:
    """How to go back to version ``number``, or to the one before. ``live`` is our hash of the inactive side's version.
    UsageError when there is no such version.
    """
    name = rollout["metadata"]["name"]
    if releasing(rollout):
        return (
            f"rollout/{name} is a pair whose release is on: `rollout-lws abort {name}` sends all requests back to"
            f" {sides.called(sides.active)}"
            + (", which loads the groups again that it has given up" if has_given_up_groups(rollout) else "")
        )
    stable = serving_hash(rollout)
    # While a version waits on the active side, what is undone is that edit.
    edited = is_active_edited(rollout) and number is None
    wanted = to_undo(known, "" if edited else stable, stable, number)
    images = f" ({', '.join(wanted.images)})" if wanted.images else ""
    prints = f"`rollout-lws history {name} --revision {wanted.number}` prints it"
    if sides.companions:
        prints += ", of companions only their own manifests have it"
    active, inactive = sides.called(sides.active), sides.called(sides.inactive)
    if edited:
        return (
            f"rollout/{name} is a pair, and {active}, the active side, runs revision {wanted.number}{images} and has"
            f" another version in its template{'s' if sides.companions else ''}: apply that revision to it; {prints}"
        )
    if wanted.template_hash == live:
        return (
            f"rollout/{name} is a pair, and {inactive} still has revision {wanted.number}{images}:"
            f" `rollout-lws start {name}` releases it"
        )
    return (
        f"rollout/{name} is a pair, and {inactive} has another version than revision {wanted.number}{images}: apply"
        f" that one to it, and it is released in steps; {prints}"
    )


def without_restart(rollout: Object, sides: Sides) -> str:
    return (
        f"rollout/{rollout['metadata']['name']} is a pair, and its workloads are not edited: to release the same"
        f" version once more, apply it with another annotation of its pods to {_inactive(sides)}"
        + (f"; its release begins when each of these has one{_or_start(rollout)}" if sides.companions else "")
    )


def without_edit(rollout: Object, sides: Sides) -> str:
    return (
        f"rollout/{rollout['metadata']['name']} is a pair, and its workloads are not edited: apply the change to"
        f" {_inactive(sides)}, and it is released in steps"
        + (f" when each of these has another version{_or_start(rollout)}" if sides.companions else "")
    )


def without_hold(rollout: Object, sides: Sides) -> str:
    name = rollout["metadata"]["name"]
    if scales_sides(rollout) and not sides.known:
        return f"rollout/{name} is a pair of which no side is held yet: `rollout-lws get {name}` says why"
    return f"rollout/{name} is a pair, whose workloads are not held, so there is no hold to open"


def _or_start(rollout: Object) -> str:
    return f", or by `rollout-lws start {rollout['metadata']['name']}`"


def _inactive(sides: Sides) -> str:
    if sides.known:
        return f"{sides.called(sides.inactive)}, the inactive side"
    return f"the side without requests, {sides.called(sides.active)} or {sides.called(sides.inactive)}"
