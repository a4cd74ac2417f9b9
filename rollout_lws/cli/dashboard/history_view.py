"""The versions that a Rollout has stored, and what each changed."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.actions import undo_rules
from rollout_lws.cli.changes import changed
from rollout_lws.cli.releases import stored_versions
from rollout_lws.cli.rollouts import fetch_rollout
from rollout_lws.cli.sides import serving_hash
from rollout_lws.cli.versions import Stored, left_because, role_of
from rollout_lws.objects.resources import Resource

Object = dict[str, Any]


def fetch_history(transport: Transport, rollouts: Resource, name: str) -> Object:
    """The versions of a Rollout, newest release first."""
    rollout = fetch_rollout(transport, rollouts, name)
    return history_view(stored_versions(transport, rollouts, rollout), rollout)


def history_view(known: list[Stored], rollout: Object) -> Object:
    """The same of versions that are known. ``change`` is against the one below, "" for the first; ``undo`` is what an
    undo to the version does.
    """
    return {"versions": [_version(each, was, rollout) for each, was in zip_longest(known, known[1:])]}


def _version(each: Stored, before: Stored | None, rollout: Object) -> Object:
    return {
        "number": each.number,
        "role": role_of(each, rollout),
        "revision": each.revision,
        "version": each.template_hash,
        "created": each.created,
        "images": each.images,
        "left": left_because(each),
        "change": changed(before.members, each.members) if before is not None else "",
        "undo": _undo(each, rollout),
    }


def _undo(each: Stored, rollout: Object) -> Object:
    """What an undo to the version does, and whether it aborts the release first."""
    version, stable = each.template_hash, serving_hash(rollout)
    return {
        "effect": undo_rules.effect(rollout, version, stable, f"version {each.number}"),
        "aborts": undo_rules.aborts(rollout, version, stable),
    }
