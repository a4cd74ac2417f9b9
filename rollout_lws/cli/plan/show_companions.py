"""Companions of a pair in a plan, as text and as JSON values. Pure.

In a cell of the table their groups stand after those of the workload that they go with: "4 + 2".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rollout_lws.cli.durations import short
from rollout_lws.cli.plan.model import LoadTimes, Plan, groups_of
from rollout_lws.forecast.model import Forecast, Row


def header(plan: Plan) -> Iterator[str]:
    """A line for each companion."""
    for each in plan.beside:
        told = f"+ {each.active}, {groups_of(each.active_groups)} of {_pods(each.size)}; a release"
        if plan.owned is not None:
            yield f"{told} waits for {each.inactive}, {groups_of(each.inactive_groups)}"
        else:
            yield f"{told} loads {each.replicas} of {each.inactive}, which has {each.inactive_groups}"


def new(plan: Plan, own: int, row: Row | None) -> str:
    """Cell of the new version's groups at the end of ``row``; None: after the release. ``own`` are those of the
    workload that gets the requests.
    """
    beside = (each.replicas for each in plan.beside) if row is None or row.step is None else _waited(row)
    return _joined(own, beside)


def old(plan: Plan, own: int, row: Row | None) -> str:
    """Cell of the same of the old version."""
    gone = row is None or row.step is None
    return _joined(own, (0 if gone else each.active_groups for each in plan.beside))


def waited(plan: Plan, row: Row) -> str:
    """Cell of the ready groups that a row waits for, of those which their owner has made."""
    counts = [(row.new, plan.replicas), *zip(_waited(row), (each.replicas for each in plan.beside), strict=True)]
    return " + ".join(f"{count} of {there}" for count, there in counts)


def loads_of_each(plan: Plan, found: Forecast) -> str:
    """How many of all loads are groups of which workload, in brackets; "" without companions."""
    if plan.sides is None or not plan.beside:
        return ""
    beside = [sum(row.companions[at].loads for row in found.rows) for at in range(len(plan.beside))]
    names = (plan.sides.inactive, *(each.inactive for each in plan.beside))
    counts = zip((found.loads - sum(beside), *beside), names, strict=True)
    return f" ({', '.join(f'{count} of {name}' for count, name in counts)})"


def load_times(plan: Plan) -> str:
    """How long a group of each companion loads, as it continues what is told of the others; "" where it is the same."""
    return "".join(_load_time(each.inactive, each.loads) for each in plan.beside if each.loads != plan.loads)


def _load_time(name: str, loads: LoadTimes) -> str:
    if not loads.seconds:
        return f", and one of {name}, of which that is not known, for as long"
    return f", one of {name} for about {short(loads.typical)}, {loads.source}"


def values(plan: Plan) -> list[Mapping[str, Any]]:
    """Each companion, as JSON."""
    return [
        {
            "active": {"name": each.active, "groups": each.active_groups},
            "inactive": {"name": each.inactive, "groups": each.inactive_groups},
            "replicas": each.replicas,
            "size": each.size,
            "change": each.change or None,
            "loadSeconds": (
                {"typical": each.loads.typical, "source": each.loads.source} if each.loads.seconds else None
            ),
        }
        for each in plan.beside
    ]


def values_of(plan: Plan, row: Row) -> list[Mapping[str, Any]]:
    """Each companion in a row, as JSON."""
    stays = plan.owned is not None or row.step is not None
    return [
        {
            "name": each.inactive,
            "groups": {"new": there.new, "old": each.active_groups if stays else 0},
            "modelLoads": there.loads,
        }
        for each, there in zip(plan.beside, row.companions, strict=True)
    ]


def _waited(row: Row) -> Iterator[int]:
    return (each.new for each in row.companions)


def _joined(own: int, beside: Iterable[int]) -> str:
    return " + ".join(map(str, (own, *beside)))


def _pods(count: int) -> str:
    return f"{count} pod{'' if count == 1 else 's'}"
