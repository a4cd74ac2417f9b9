"""Judges edits of a managed workload: keeps its hold, and the number of groups of one of two that change roles; denies
pending versions that would damage held groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from rollout_lws.admission.review import ALLOWED, Outcome, Response, denied
from rollout_lws.objects.json_patch import member
from rollout_lws.rollout.decision import Refusal
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.observation import Observation
from rollout_lws.rollout.preflight import claims_changed, unsafe_pending
from rollout_lws.rollout.reasons import Reason
from rollout_lws.targets.target import ROLLING_UPDATE, Target, called
from rollout_lws.workload.hold import HOLD, hold_record, kept, slips_in, stands

Object = Mapping[str, Any]


def hold(o: Observation, before: Target, after: Target, body: Object) -> Response:
    """Repairs an edit that would open the hold, or a window, of the LWS of ``o``, or change its number of groups where
    releases scale two; ``body`` is the JSON of ``after``.

    The edited values of the hold are recorded as the user's own. The controller would do the same afterwards, but by
    then the first group is gone, or has begun to load.
    """
    leaving = o.rollout.metadata.deletion_timestamp is not None or o.rollout.spec.disabled
    if leaving and o.keys.original not in after.metadata.annotations:
        # The user detaches an LWS whose Rollout does not hold it any longer.
        return ALLOWED
    if not _in_care(o, before, after):
        return ALLOWED
    patch = kept(before, after, o.keys)
    number = not leaving and after.replicas != before.replicas and Draft.of(o).scales_sides
    if patch is None and not number:
        return ALLOWED
    operations = _operations(after, patch, body) if patch is not None else []
    warnings = _told(o, before, after, patch) if patch is not None else ()
    if number:
        operations.append({"op": "add", "path": "/spec/replicas", "value": before.replicas})
        warnings = (*warnings, _told_number(o, before))
    return Response(Outcome.REPAIRED, warnings=warnings, patch=tuple(operations))


def pending(o: Observation, before: Target, after: Target) -> Response:
    """Denies an edit that leaves a version which must not even wait under the hold. An LWS that already has one may
    still be edited to fix it.
    """
    record = o.rollout.status.stable if o.rollout.status else None
    adopted = record is not None and record.workload_uid == after.metadata.uid
    if o.rollout.spec.disabled or not adopted or not _in_care(o, before, after):
        return ALLOWED
    found = _unfit(o, after)
    if found is None or found == _unfit(o, before):
        return ALLOWED
    if found.reason is Reason.UNSAFE_PENDING:
        way_out = f'to have it roll without steps, annotate it {o.keys.release_hold}: "true" in the same write'
        return denied(f"{found.message}; {way_out}")
    return denied(found.message)


def _in_care(o: Observation, before: Target, after: Target) -> bool:
    """Whether this Rollout holds the LWS, and the user neither breaks the glass nor deletes it."""
    mark = hold_record(before, o.keys)
    ours = mark is not None and mark.by == o.rollout.metadata.uid and stands(before, o.keys)
    return ours and not after.metadata.terminating and after.metadata.annotations.get(o.keys.release_hold) != "true"


def _unfit(o: Observation, lws: Target) -> Refusal | None:
    if o.stable is None or lws.replicas == 0:
        # Without groups nothing can be damaged, and a change becomes stable by itself.
        return None
    d = Draft.of(replace(o, stable=replace(o.stable, workload=lws))).supposing(lws.supposed_version)
    return claims_changed(d) or unsafe_pending(d)


def _told(o: Observation, before: Target, after: Target, patch: Object) -> tuple[str, ...]:
    rollout, name = o.rollout.metadata.name, called(after)
    if slips_in(before, after):
        return (
            f"Rollout {rollout} renews groups of {name} now: the version that comes waits, and nothing"
            " of it starts in this window",
        )
    users = _on_record(o, after, patch)
    _, strategy, _ = after.strategy_path
    of_type = [member for member in ("type",) if member in ((patch.get("spec") or {}).get(strategy) or {})]
    written = [*of_type, *sorted(_strategy(after, patch), reverse=True)]
    words = " and ".join(f"{each} {users[each]}" for each in written if each in users)
    if words:
        held = before.strategy.partition >= HOLD
        does = f"holds {name}" if held else f"renews groups of {name} now"
        later = "is what it gets back when the Rollout lets go"
        return (f"Rollout {rollout} {does}: {words} {later}; remove it from the manifest",)
    if after.metadata.annotations.get(o.keys.original) != before.metadata.annotations[o.keys.original]:
        return (f"annotation {o.keys.original} stays: it has what Rollout {rollout} restores to {name}",)
    return ()


def _told_number(o: Observation, before: Target) -> str:
    name, namespace = o.rollout.metadata.name, o.rollout.metadata.namespace
    place = "" if namespace == "default" else f" -n {namespace}"
    return (
        f"Rollout {name} says how many groups {called(before)} has, {before.replicas} now: scale that, by kubectl scale"
        f" rollout {name}{place} --replicas=N, and remove replicas from the manifest"
    )


def _on_record(o: Observation, after: Target, patch: Object) -> Object:
    """The user's own values as recorded after the edit."""
    marks = (patch.get("metadata") or {}).get("annotations") or {}
    text = marks.get(o.keys.original) or after.metadata.annotations[o.keys.original]
    found: Object = msgspec.json.decode(text)["original"]
    return found


def _strategy(workload: Target, body: Object) -> Object:
    for step in workload.strategy_path:
        body = body.get(step) or {}
    return body


def _operations(workload: Target, patch: Object, body: Object) -> list[Object]:
    """A merge patch of annotations and strategy as a JSON Patch, which requires every parent to exist."""
    operations: list[Object] = []
    marks = (patch.get("metadata") or {}).get("annotations") or {}
    if marks:
        whole = {**((body.get("metadata") or {}).get("annotations") or {}), **marks}
        value = {key: text for key, text in whole.items() if text is not None}
        operations.append({"op": "add", "path": "/metadata/annotations", "value": value})
    changed = _strategy(workload, patch)
    if changed:
        spec, holder, update = workload.strategy_path
        strategy = (body.get(spec) or {}).get(holder) or {}
        value = {**strategy, "type": ROLLING_UPDATE, update: {**_strategy(workload, body), **changed}}
        operations.append({"op": "add", "path": member(f"/{spec}", holder), "value": value})
    return operations
