"""The BatchRelease of a release and the batch labels of its pods, for OpenKruise's tools."""

from __future__ import annotations

from rollout_lws.api import BatchReleasePhase, rollouts
from rollout_lws.capacity import batch_release as record
from rollout_lws.objects.meta import LABEL_VALUE
from rollout_lws.objects.resources import PODS
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.decision import BestEffort
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import Ending
from rollout_lws.rollout.roles import swapping
from rollout_lws.rollout.state import CleaningUp, InSteps, Promoting, ending_of
from rollout_lws.rollout.status.counts import groups_released


def begin(d: Draft) -> Draft:
    """Creates the BatchRelease, if missing, of a release that is recorded and whose Services are pinned.

    Not in a decision that ends the release: nothing would remove the BatchRelease afterwards.
    """
    meta = d.o.rollout
    leaves = meta.metadata.deletion_timestamp is not None and not swapping.goes_home(d)
    ends = not isinstance(d.state, InSteps) or leaves
    if ends or d.o.batch_release is not None or not d.on_record:
        return d
    resource = rollouts(d.keys.group)
    owner = record.owner_reference(meta, resource.kind, resource.api_version)
    return d.write((record.create(meta, _wanted(d), d.keys, owner),))


def follow(d: Draft) -> Draft:
    """Updates the BatchRelease to the Rollout's state; the clean-up task deletes it."""
    known = d.o.batch_release
    if isinstance(d.state, CleaningUp):
        return d
    if known is None or known.metadata.deletion_timestamp is not None:
        return d
    spec = record.update_spec(known, d.o.rollout, _wanted(d), d.keys)
    # The response to a spec patch starts the next reconcile, which writes the status of that generation.
    return d.write(spec or record.update_status(known, d.o.rollout, _wanted(d), d.batch, d.keys, d.now))


def _wanted(d: Draft) -> record.Wanted:
    ending = ending_of(d.state)
    return record.Wanted(
        partition=None if ending is Ending.SUCCESS else max(0, d.sub.current_step_index - 1),
        rollout_id=d.status.observed_rollout_id or "",
        stable_revision=d.stable_revision,
        update_revision=d.sub.new_revision,
        phase=BatchReleasePhase.PROGRESSING if ending is None else BatchReleasePhase.FINALIZING,
        replicas=d.replicas,
    )


def label_pods(d: Draft) -> Draft:
    """Labels live leader pods of the new version with the release ID and their batch, again after a recreation."""
    if not isinstance(d.state, InSteps | Promoting) or d.paired:
        return d
    steps, release = d.strategy.steps, d.status.observed_rollout_id or ""
    of_canary = {each.uid for each in d.canary_groups}
    for group in groups_released(d):
        if group.terminating:
            continue
        number, place = len(steps), d.capacity.place(group.ordinal, d.replicas, in_canary=group.uid in of_canary)
        if place is not None:
            asked = (i for i in range(1, len(steps) + 1) if d.wanted(i) > place)
            number = next(asked, len(steps))
        labels = {d.keys.rollout_batch_id: str(number)}
        # An ID from an annotation may be any text; the API server would refuse both labels.
        if LABEL_VALUE.fullmatch(release):
            labels[d.keys.rollout_id] = release
        meta = group.leader.metadata
        if any(meta.labels.get(key) != value for key, value in labels.items()):
            body = {"metadata": {"labels": labels}}
            patch = Patch(PODS, meta.namespace, meta.name, body, "which batch it is of")
            d = d.write_if_possible((BestEffort(patch),))
    return d
