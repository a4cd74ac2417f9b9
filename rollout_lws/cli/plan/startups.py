"""How long groups of today took to start up. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from rollout_lws.cli.plan.model import LoadTimes, groups_of
from rollout_lws.rollout.observation import Observation
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import groups

#: Startup times above this multiple of the longest that the status records are ignored.
_LONGER = 4


def load_times(o: Observation, told: float | None = None) -> LoadTimes:
    """Startup times of the current ready groups; without any, the longest in the status; in place of both, the one that
    was ``told``, in seconds.
    """
    if told is not None:
        return LoadTimes((told,), "as given")
    longest = o.rollout.status.longest_startup_seconds if o.rollout.status else None
    # A group that became unready long after its creation would look like a slow startup.
    most_likely = _LONGER * longest if longest else _deadline(o)
    known = startups((each for each in (o.stable, o.canary) if each is not None), most_likely)
    if known.seconds:
        return known
    return LoadTimes((float(longest),), "the longest of the last release") if longest else LoadTimes()


def startups(workloads: Iterable[Facts], most_likely: float) -> LoadTimes:
    """Startup times of the ready groups of workloads, up to ``most_likely`` seconds."""
    known = [
        (group.ready_since - created).total_seconds()
        for facts in workloads
        for group in groups(facts)
        if group.ready_since is not None and (created := group.leader.metadata.creation_timestamp) is not None
    ]
    known = [each for each in known if each <= most_likely]
    return LoadTimes(tuple(known), f"as {groups_of(len(known))} of today took") if known else LoadTimes()


def _deadline(o: Observation) -> float:
    """The running version's startup deadline in seconds."""
    facts = o.stable or o.canary
    return facts.workload.version.progress_deadline_seconds if facts is not None else 0.0
