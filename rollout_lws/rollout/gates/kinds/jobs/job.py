"""Gates that ask a Job: made when the gate begins, never twice for one attempt, judged by how it ends."""

from __future__ import annotations

from dataclasses import replace

from rollout_lws.api import GateJobRecord, GateRecord, GateResult, StepGate
from rollout_lws.objects.jobs import Job
from rollout_lws.objects.resources import CORE_EVENTS, CRON_JOBS, JOBS
from rollout_lws.objects.writes import Create
from rollout_lws.rollout.decision import Wanted
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.gates.kinds.jobs.manifest import MOST_JOBS, from_cron_job, job_name, manifest
from rollout_lws.rollout.gates.kinds.jobs.verdict import Unsettled, ending, trouble
from rollout_lws.rollout.gates.kinds.kind import Ended, Judged, Kind, Running, deadline_of


def _wanted(d: Draft, gate: StepGate, record: GateRecord) -> Wanted:
    name = job_name(d, gate, record)
    if record.job is None:
        return Wanted(kinds=(JOBS, CRON_JOBS), jobs=(name,))
    lacks_pods = not d.o.gate_jobs.pods.get(name)
    return Wanted(kinds=(JOBS, CORE_EVENTS) if lacks_pods else (JOBS,), jobs=(name,))


def _judge(d: Draft, gate: StepGate, record: GateRecord) -> tuple[Draft, Judged]:
    d, name = _recorded(d, gate, record)
    live = d.o.gate_jobs.jobs.get(name)
    if live is not None and not live.metadata.controlled_by(d.uid):
        told = f"Job {name} is there already, and not this Rollout's: delete it, if it is not needed"
        return d, Ended(GateResult.ERROR, told)
    if d.o.gate_jobs.unknown is None and record.job is not None and (live is None or live.metadata.terminating):
        return d, Ended(GateResult.ERROR, f"Job {name} was deleted before it had ended")
    shown = {"job": name} if live is not None else {}
    judged = _made(d, live) if live is not None else None
    if isinstance(judged, Ended):
        return d, replace(judged, shown=shown)
    until = deadline_of(record.since or d.now, gate.deadline, record)
    told = _hindrance(d, live) if live is not None else lacking(d, gate)
    if until <= d.now:
        what = f"Job {name} has not ended" if live is not None or record.job is not None else "no Job was made"
        return d, Ended(GateResult.ERROR, f"{what} within {gate.deadline} s" + (f": {told}" if told else ""), shown)
    if live is None and record.job is None:
        d = _make(d, gate, record, name)
    told = f"Job {name}: {told}" if live is not None and told else told
    return d, Running(min(until, judged.until) if judged is not None else until, told, shown)


def _recorded(d: Draft, gate: StepGate, record: GateRecord) -> tuple[Draft, str]:
    """The draft with the Job on record, before it is made, so that it is found again whatever happens."""
    name = job_name(d, gate, record)
    if any(each.name == name for each in d.status.gate_jobs):
        return d, name
    return d.set(gate_jobs=(*d.status.gate_jobs, GateJobRecord(name=name))[-MOST_JOBS:]), name


def _made(d: Draft, live: Job) -> Ended | Unsettled | None:
    """What a Job of ours says; None while it runs."""
    name, facts = live.metadata.name, d.o.gate_jobs
    if live.failed is not None and name in facts.pods_pending:
        return None
    return ending(live, facts.pods.get(name, ()), d.now)


def _hindrance(d: Draft, live: Job) -> str:
    """What keeps a Job from its end, "" if nothing is known to."""
    facts, name = d.o.gate_jobs, live.metadata.name
    return trouble(live, facts.pods.get(name, ()), facts.refusals.get(name, ()))


def lacking(d: Draft, gate: StepGate) -> str:
    """What keeps a Job from being made or found, "" if nothing is known to."""
    facts, wanted = d.o.gate_jobs, from_cron_job(gate)
    for unknown in (facts.unknown, facts.cron_jobs_unknown):
        if unknown:
            return unknown
    if facts.cron_jobs_unknown is None and wanted not in facts.cron_jobs:
        return no_cron_job(wanted)
    return ""


def no_cron_job(name: str) -> str:
    """That there is no CronJob to make the Job of."""
    return f"CronJob {name} does not exist: create it, or name another one"


def _make(d: Draft, gate: StepGate, record: GateRecord, name: str) -> Draft:
    """The draft with the Job's creation, once both kinds are known and the status has it on record."""
    facts, before = d.o.gate_jobs, d.o.rollout.status
    on_record = (
        before is not None
        and any(each.name == name for each in before.gate_jobs)
        and any((each.name, each.hash, each.since) == (gate.name, record.hash, record.since) for each in before.gates)
    )
    cron_job = facts.cron_jobs.get(from_cron_job(gate))
    if not on_record or cron_job is None or facts.unknown is not None:
        return d
    return d.write((Create(JOBS, manifest(d, gate, name, cron_job), f"gate {gate.name} asks it"),))


JOB = Kind(_judge, _wanted)
