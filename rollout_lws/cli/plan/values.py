"""A plan as a JSON value. Pure: a plan in, a value out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from rollout_lws.cli.plan import gates, show_companions
from rollout_lws.cli.plan.model import Amounts, Part, Plan, Sides, name_of
from rollout_lws.cli.plan.scripted import Scripted
from rollout_lws.cli.plan.written import Planned


def value(plan: Plan) -> dict[str, Any]:
    """The plan as JSON: groups as counts, shares and loads as fractions, times in seconds."""
    found = plan.forecast
    known = bool(plan.loads.seconds)
    return {
        "rollout": plan.rollout,
        "namespace": plan.namespace,
        "workload": plan.workload,
        "kind": plan.kind,
        "pair": None if plan.sides is None or plan.sides.made else _sides(plan, plan.sides),
        "swap": None if plan.sides is None or not plan.sides.made else _swap(plan, plan.sides),
        "replicas": plan.replicas,
        "size": plan.size,
        "style": plan.strategy.name if plan.strategy else None,
        "change": plan.change or None,
        "begins": None if plan.begins is None else {"when": plan.begins.when, "seconds": plan.begins.seconds},
        "at": plan.at or None,
        "possible": not plan.refusals,
        "loadSeconds": {"typical": plan.loads.typical, "source": plan.loads.source} if known else None,
        "accelerators": {"now": dict(plan.now), "peak": dict(plan.peak), "after": dict(plan.afterwards)},
        "totals": None
        if found is None
        else {
            "modelLoads": found.loads,
            "loadsInARow": found.rounds,
            "extraGroups": found.extra,
            "windows": found.windows,
            "disruptedGroups": found.disrupted,
            "disruptedLoad": round(found.disrupted_load, 3),
            "connectionCuts": found.cuts,
            "fewestReadyGroups": found.ready,
            "peakLoad": round(found.peak_load, 3),
            "seconds": found.seconds if plan.is_timed else None,
            "approvals": list(found.approvals),
        },
        "steps": [_part(plan, part) for part in plan.parts],
        "writes": [_written(each) for each in plan.writes],
        "scripts": [_scripted(each) for each in plan.scripted],
        "refusals": list(plan.refusals),
        "cautions": list(plan.cautions),
    }


def _part(plan: Plan, part: Part) -> Mapping[str, Any]:
    row, known = part.row, plan.is_timed
    return {
        "name": name_of(row),
        "step": row.step,
        "groups": {"new": plan.replicas if row.step is None else row.new, "old": part.old, "extra": row.extra},
        "companions": show_companions.values_of(plan, row),
        "fewestReadyGroups": row.ready,
        "modelLoads": row.loads,
        "loadsInARow": row.rounds,
        "windows": row.windows,
        "disruptedGroups": row.disrupted,
        "accelerators": _sorted(part.accelerators),
        "share": round(row.share, 4),
        "load": {"new": _rounded(row.load_new), "old": _rounded(row.load_stable), "peak": _rounded(row.peak_load)},
        "pauseSeconds": part.pause,
        "gates": [gates.value(each, plan.given.rate) for each in part.gates],
        "seconds": row.seconds if known else None,
        "waitSeconds": None if known else row.seconds,
        "approval": row.approval,
        "wayBack": {
            "modelLoads": row.back_loads,
            "seconds": row.back_seconds if known else None,
            "disruptedGroups": row.back_disrupted,
        },
    }


def _sides(plan: Plan, pair: Sides) -> Mapping[str, Any]:
    return {**_roles(plan, pair), "companions": show_companions.values(plan)}


def _swap(plan: Plan, swap: Sides) -> Mapping[str, Any]:
    alternates = {"from": swap.inactive, "to": swap.active}
    return {**_roles(plan, swap), "next": None if swap.then else alternates}


def _roles(plan: Plan, sides: Sides) -> Mapping[str, Any]:
    return {
        "active": {"name": sides.active, "groups": sides.active_groups},
        "inactive": {"name": sides.inactive, "groups": sides.inactive_groups},
        "wayBackAfterwards": {"modelLoads": plan.loads_afterwards},
    }


def _written(each: Planned) -> Mapping[str, Any]:
    named = {"name": each.name} if each.name else {}
    kind = {"apiVersion": each.resource.api_version, "kind": each.resource.kind}
    return {**kind, **named, "verbs": list(each.verbs), "why": each.why}


def _scripted(each: Scripted) -> Mapping[str, Any]:
    values = [{"path": path} | ({} if value is UNSET else {"value": value}) for path, value in each.values]
    ref = {"apiVersion": each.ref.api_version, "kind": each.ref.kind, "name": each.ref.name}
    return {**ref, "share": each.share, "writes": values}


def _rounded(load: float | None) -> float | None:
    return None if load is None else round(load, 3)


def _sorted(amounts: Amounts) -> dict[str, int]:
    return dict(sorted(amounts.items()))
