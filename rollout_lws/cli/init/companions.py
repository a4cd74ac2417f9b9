"""Companions of a pair: what --companion asks for, and how many groups of each go with those of the workload."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.errors import UsageError
from rollout_lws.targets.target import Target, called

#: As many as a Rollout may name.
MOST = 4
_FORM = "NAME=COUNTERPART, or NAME=COUNTERPART:REPLICAS"
_REPLICAS = re.compile(r"[1-9][0-9]{0,4}|[1-9][0-9]{0,2}%")


@dataclass(frozen=True, slots=True)
class Companion:
    """One more workload of each side: ``name`` goes with the first workload of the pair, ``counterpart`` with the other
    one. ``replicas`` is a count or "N%" as written in a Rollout, "" where none is said.
    """

    name: str
    counterpart: str
    replicas: str = ""


def asked(texts: Sequence[str], workloads: Sequence[str]) -> tuple[Companion, ...]:
    """What each --companion of the command line says, beside the two ``workloads`` of the pair; UsageError, with what
    to write, for what is none.
    """
    if len(texts) > MOST:
        raise UsageError(f"a Rollout names {MOST} companions at most: leave out {len(texts) - MOST} of --companion")
    found, seen = [_read(text) for text in texts], [*workloads]
    for each in found:
        for name in (each.name, each.counterpart):
            if name in seen:
                raise UsageError(f"--companion names {name} once more: each has one place in a pair")
            seen.append(name)
    return tuple(found)


def _read(text: str) -> Companion:
    names, colon, replicas = text.partition(":")
    name, equals, counterpart = names.partition("=")
    if not (name and equals and counterpart) or "/" in names:
        raise UsageError(f"--companion {text!r} does not say which workload of each side it is: write {_FORM}")
    if colon and not _REPLICAS.fullmatch(replicas):
        raise UsageError(
            f'--companion {text!r}: {replicas!r} is no number of groups: write a count, or "N%" of those of the'
            " workload that it goes with"
        )
    return Companion(name, counterpart, replicas)


def numbered(each: Companion, capacity: CapacityStrategy, active: Target, own: Target) -> Companion:
    """With the number of groups: by default as many as ``own``, the one that serves, has beside ``active`` now, as a
    percentage if that is a whole one. UsageError where nothing says it.
    """
    if not capacity.makes_groups:
        if each.replicas:
            raise UsageError(
                f"releases scale no workload of this pair, so {each.name} has the groups that its owner gives it: leave"
                f" out :{each.replicas}"
            )
        return each
    if each.replicas:
        return each
    if not own.replicas or not active.replicas:
        raise UsageError(
            f"{called(own if active.replicas else active)} has 0 groups now, so nothing says how many of"
            f" {own.metadata.name} go with {active.metadata.name}: write --companion"
            f" {each.name}={each.counterpart}:REPLICAS"
        )
    share, rest = divmod(100 * own.replicas, active.replicas)
    whole = not rest and share < 1000
    return Companion(each.name, each.counterpart, f"{share}%" if whole else str(own.replicas))
