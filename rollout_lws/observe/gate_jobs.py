"""Reads the Jobs of a Rollout's gates, their pods, and the CronJobs that they are made from."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from rollout_lws.api import Rollout
from rollout_lws.objects.jobs import Job
from rollout_lws.objects.meta import Meta
from rollout_lws.objects.resources import CRON_JOBS, JOBS
from rollout_lws.objects.workloads import CoreEvent
from rollout_lws.observe.routing import plain_all
from rollout_lws.observe.world import World
from rollout_lws.rollout.observation import GateJobs

_jobs = msgspec.json.Decoder(Job)


def gate_jobs(world: World, rollout: Rollout, refusals: Iterable[CoreEvent]) -> GateJobs:
    """Those that the Rollout's status and plan name, and what its gates have made; nothing is read for one that names
    none.
    """
    style, status = rollout.spec.strategy.style, rollout.status
    gates = style.every_gate if style is not None else ()
    sources = {gate.job.from_cron_job for gate in gates if gate.job is not None}
    records = status.gate_jobs if status is not None else ()
    if not sources and not records:
        return GateJobs()
    names = {each.name for each in records}
    found = (_jobs.decode(each.body) for each in world.every(JOBS) if _is_theirs(world, rollout, each.metadata, names))
    jobs = {each.metadata.name: each for each in found}
    # Of those that have ended nothing more is asked.
    open_ones = jobs.keys() - {each.name for each in records if each.ended}
    said = tuple(refusals)
    return GateJobs(
        jobs=jobs,
        pods={name: tuple(sorted(world.job_pods(name), key=lambda pod: pod.metadata.name)) for name in open_ones},
        pods_pending=frozenset(name for name in open_ones if world.unknown_job_pods(name) is not None),
        refusals={
            name: tuple(each for each in said if each.involved_object.uid == job.metadata.uid)
            for name, job in jobs.items()
        },
        cron_jobs=plain_all(each for each in world.every(CRON_JOBS) if each.metadata.name in sources),
        unknown=world.unknown(JOBS),
        cron_jobs_unknown=world.unknown(CRON_JOBS),
    )


def _is_theirs(world: World, rollout: Rollout, meta: Meta, names: Collection[str]) -> bool:
    """Whether the status names the Job, or has lost it."""
    return meta.name in names or (world.keys.gate in meta.labels and meta.controlled_by(rollout.metadata.uid))
