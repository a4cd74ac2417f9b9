"""The kinds of workloads as the command line names them: lws/NAME, statefulset/NAME."""

from __future__ import annotations

import click

from rollout_lws.objects.resources import LEADER_WORKER_SETS, STATEFUL_SETS
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.targets.table import TARGETS
from rollout_lws.targets.target import Target

#: The shortest name of each that kubectl knows.
SHORT = {LEADER_WORKER_SETS: "lws", STATEFUL_SETS: "sts"}
_BY_NAME = {
    name: each
    for each in TARGETS
    for kind in (each.resource,)
    for name in (SHORT[kind], kind.kind.lower(), kind.plural, f"{kind.plural}.{kind.group}")
}


def named(text: str) -> tuple[type[Target] | None, str]:
    """Kind and name of a workload in the command line, None for one that has only its name; UsageError for what is
    none.
    """
    kind, slash, name = text.rpartition("/")
    if (slash and kind not in _BY_NAME) or not name:
        ways = " or ".join(f"{SHORT[each.resource]}/NAME" for each in TARGETS)
        raise click.UsageError(f"{text!r} is no workload that can be released: write {ways}")
    return _BY_NAME.get(kind), name


def kind_of(found: Snapshot, name: str) -> type[Target]:
    """The first kind that has a workload of this name; the first of all if none has."""
    return next((each for each in TARGETS if found.workload(each.resource, name) is not None), TARGETS[0])
