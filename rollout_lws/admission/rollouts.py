"""Judges edits of a Rollout: changes that a release in progress cannot take, and a second Rollout for one LWS.

``spec.workloadRef`` needs no guard: the CRD itself makes it immutable while a LeaderWorkerSet is managed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, islice

from rollout_lws.admission.review import Response, denied, warned
from rollout_lws.api import Phase
from rollout_lws.api.validation import each_problem
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.preflight import older_rival, other_style, scripts_off, stands_in
from rollout_lws.rollout.routing.routing_preflight import renamed

#: A new Rollout counts as younger than all existing ones, whatever the clocks say.
_YOUNGEST = datetime.max.replace(tzinfo=UTC)
#: How many problems of a spec to report; users fix them one by one.
_TOLD = 3
#: API servers cut longer warnings.
_WIDEST = 250


def plan(o: Observation, before: Observation | None) -> Response:
    """``o`` is the observation with the edited Rollout, ``before`` with the existing one, None for a new one.

    Only problems that the edit introduces are denied: existing ones must not block unrelated edits.
    """
    known = None if before is None else before.rollout.status
    o = replace(o, rollout=o.rollout.model_copy(update={"status": known}))
    if before is None:
        youngest = o.rollout.metadata.model_copy(update={"creation_timestamp": _YOUNGEST})
        o = replace(o, rollout=o.rollout.model_copy(update={"metadata": youngest}))
        return warned(*(each[:_WIDEST] for each in (*_waits(o), *_wrong(o))))
    there = set(_refused(before))
    for message in _refused(o):
        if message not in there:
            return denied(message)
    if before.rollout.spec == o.rollout.spec:
        return warned()
    return warned(*(each[:_WIDEST] for each in _wrong(o)))


def _wrong(o: Observation) -> list[str]:
    every = chain(each_problem(o.rollout.spec), scripts_off(Draft.of(o)))
    return [f"{each.path}: {each.message}" for each in islice(every, _TOLD)]


def _waits(o: Observation) -> Iterator[str]:
    """Why a new Rollout releases nothing yet. One renamed in Git is created before the old one is deleted, so these are
    only warnings.
    """
    first = _first(o)
    if first:
        ref = o.rollout.spec.workload_ref
        yield f"{ref.kind} {ref.name} is already released by Rollout {first}: this one waits until that is gone"
    made = stands_in(Draft.of(o))
    if made is not None:
        yield made.message


def _first(o: Observation) -> str:
    """Name of the Rollout that already releases the LWS; "" for none."""
    older = older_rival(Draft.of(o))
    rival = next((each for each in o.rivals if older is not None and each.uid == older.uid), None)
    # A terminating Rollout will soon be gone.
    return rival.name if rival is not None and not rival.terminating else ""


def _refused(o: Observation) -> Iterator[str]:
    d, first, ref = Draft.of(o), _first(o), o.rollout.spec.workload_ref
    if first:
        yield f"{ref.kind} {ref.name} is already released by Rollout {first}: edit that one, or delete it first"
    # The end of a release follows the strategy with which it began, whatever the spec says then.
    if d.status.phase != Phase.PROGRESSING or d.status.finalising is not None or o.rollout.spec.strategy.style is None:
        return
    refusals = [other_style(d)]
    # Before anything is prepared, the routing may still change.
    refusals += [renamed(d)] if o.batch_release is not None else []
    yield from (each.message for each in refusals if each is not None)
