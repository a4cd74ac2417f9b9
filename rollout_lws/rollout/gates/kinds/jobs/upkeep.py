"""Jobs that no gate waits for any more: those that run are stopped, those of earlier releases are deleted.

A Job is stopped by being suspended: Kubernetes ends its pods, and the Job stays with its Events and with the pods, and
so the logs, of attempts that had ended. Kueue would start a suspended Job again, so that one that it queues is deleted.
A Job is never needed for a release to go on: what cannot be stopped or deleted is tried again at the next change.
"""

from __future__ import annotations

from rollout_lws.api import GateJobRecord
from rollout_lws.api.base import with_fields
from rollout_lws.objects.jobs import Job
from rollout_lws.objects.kueue import QUEUE_NAME
from rollout_lws.objects.resources import JOBS
from rollout_lws.objects.writes import Delete, Patch
from rollout_lws.rollout.decision import BestEffort, Wanted
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.kinds.jobs.manifest import MOST_JOBS, job_name
from rollout_lws.rollout.gates.records import begun
from rollout_lws.rollout.state import InSteps


def wanted(d: Draft) -> Wanted:
    """Jobs are watched until each has ended, and those of earlier releases are gone."""
    waits = any(each.earlier or not each.ended for each in d.status.gate_jobs)
    return Wanted(kinds=(JOBS,)) if waits else Wanted()


def follow(d: Draft) -> Draft:
    """After all other rules: stops and deletes, and forgets what is gone."""
    records = _known(d)
    if not records or d.o.gate_jobs.unknown is not None:
        return d
    awaited = _awaited(d)
    kept = []
    for record in records:
        live = d.o.gate_jobs.jobs.get(record.name)
        ours = live if live is not None and live.metadata.controlled_by(d.uid) else None
        if record.name in awaited:
            kept.append(record)
        elif ours is not None:
            d, after = _left(d, record, ours)
            kept.append(after)
    return d.set(gate_jobs=tuple(kept))


def _known(d: Draft) -> tuple[GateJobRecord, ...]:
    """Those on record, and Jobs of gates that a status which was wiped has lost, as far as there is room for them."""
    records = d.status.gate_jobs
    names, room = {each.name for each in records}, max(0, MOST_JOBS - len(records))
    owned = (name for name, live in sorted(d.o.gate_jobs.jobs.items()) if live.metadata.controlled_by(d.uid))
    lost = [GateJobRecord(name=name) for name in owned if name not in names]
    return (*lost[:room], *records)


def _awaited(d: Draft) -> frozenset[str]:
    """Jobs of gates of the current step that have no result yet."""
    if not isinstance(d.state, InSteps) or d.o.stable is None or d.o.rollout.spec.strategy.style is None:
        return frozenset()
    asked = (each for each in begun(d) if each[1].result is None and each[0].job is not None)
    return frozenset(job_name(d, gate, record) for gate, record in asked)


def _left(d: Draft, record: GateJobRecord, live: Job) -> tuple[Draft, GateJobRecord]:
    meta = live.metadata
    if meta.terminating:
        return d, record
    if record.earlier or (not live.has_ended and QUEUE_NAME in meta.labels):
        why = "another release has begun" if record.earlier else "no gate waits for it"
        return d.write_if_possible((BestEffort(Delete(JOBS, meta.namespace, meta.name, meta.uid, why)),)), record
    if live.has_ended or live.spec.suspend:
        return d, with_fields(record, ended=True)
    body = {"spec": {"suspend": True}}
    stop = Patch(JOBS, meta.namespace, meta.name, body, "no gate waits for it", meta.resource_version)
    return d.write_if_possible((BestEffort(stop),)), record
