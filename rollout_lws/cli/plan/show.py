"""Renders a plan as text. Pure: a plan in, lines out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from textwrap import wrap

from msgspec import UNSET

from rollout_lws.cli.durations import short
from rollout_lws.cli.plan import gates, show_companions, show_sides
from rollout_lws.cli.plan.model import Part, Plan, Sides, name_of, unit
from rollout_lws.cli.plan.written import Planned
from rollout_lws.cli.view import table
from rollout_lws.forecast.model import Forecast, Row

_LABEL = 14
_VERBS = {"create": "made", "patch": "changed", "delete": "deleted"}


def lines(plan: Plan, width: int = 0) -> list[str]:
    """The whole plan as text; sentences are wrapped at ``width`` columns, 0 does not wrap."""
    told = _header(plan)
    if plan.parts:
        told += ["", *table(_rows(plan) if plan.owned is None else _rows_by_owner(plan, plan.owned))]
    if plan.gates:
        told += ["", "Gates need", *_sentences(_gates(plan), width)]
    if plan.writes and not plan.refusals:
        told += ["", "Will be written", *table(("  " + _what(each), _verbs(each), each.why) for each in plan.writes)]
    if plan.scripted:
        told += ["", "By scripts", *table(_scripted(plan))]
    if plan.refusals:
        told += ["", "Will not be possible", *_sentences(plan.refusals, width)]
    if plan.cautions:
        told += ["", "Mind that", *_sentences(plan.cautions, width)]
    return told


def _scripted(plan: Plan) -> Iterator[tuple[str, ...]]:
    """Table columns: the object, the share of requests, and each value that is written, by its path."""
    for each in plan.scripted:
        head = f"  {each.ref}", each.share
        for path, value in each.values:
            yield (
                *head,
                path,
                "taken out" if value is UNSET else json.dumps(value, ensure_ascii=False, sort_keys=True),
            )
            head = "", ""


def _gates(plan: Plan) -> Iterator[str]:
    return (f"{gates.name(each)}: {gates.sentence(each, plan.given.rate, plan.engine)}" for each in plan.gates)


def _sentences(told: Iterable[str], width: int) -> Iterator[str]:
    for each in told:
        if width:
            yield from wrap(each, width, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)
        else:
            yield f"  - {each}"


def _header(plan: Plan) -> list[str]:
    pair = plan.sides
    place = f"{plan.kind}/{show_sides.name(plan)}  ns {plan.namespace}"
    groups = "groups" if plan.owned is not None else _counted(plan.replicas, "group")
    how = f"{groups} of {_counted(plan.size, 'pod')}"
    told = [f"{plan.rollout}  {place}   {', '.join(filter(None, (how, plan.how)))}"]
    if pair is not None:
        told.append(_field("Requests", show_sides.requests(plan, pair)))
        told += [_field("Companion", each) for each in show_companions.header(plan)]
    told.append(_field("Change", plan.change or "none yet: this is how the next version would be released"))
    if plan.begins is not None:
        told.append(_field("Begins", plan.begins.when))
    if plan.at:
        told.append(_field("Now at", plan.at + _left(plan)))
    found = plan.forecast
    if found is None:
        return told
    for name in plan.peak:
        now, most, end = (each.get(name, 0) for each in (plan.now, plan.peak, plan.afterwards))
        told.append(_field(unit(name), f"{now} now   {most} at peak{_when(plan, name)}   {end} after"))
    loads = _all_loads(plan, found) if plan.owned is None else show_sides.loads_by_owner(plan.owned)
    told.append(_field("Model loads", loads))
    told.append(_field("Takes", _takes_all(plan)))
    told.append(_field("Disrupts", _disrupts(found)))
    if pair is not None:
        told.append(_field("Way back", show_sides.way_back(plan, pair)))
        told += [_field("Then", each) for each in show_sides.next_release(pair)]
    return told


def _all_loads(plan: Plan, found: Forecast) -> str:
    extra = f"at most {_counted(found.extra, 'group')} more" if found.extra else "no group more"
    each = show_companions.loads_of_each(plan, found)
    return f"{found.loads}{each}, {found.rounds} one after the other, {extra} than today"


def _disrupts(found: Forecast) -> str:
    """Without a rate of requests, what they lose is only known as a multiple of those that run at one moment."""
    if not found.disrupted:
        return "no group that gets requests"
    most = f"up to {found.disrupted_load:.2f} times the requests that run at one moment"
    return f"{_counted(found.disrupted, 'group')} that get{'s' if found.disrupted == 1 else ''} requests, {most}"


def _left(plan: Plan) -> str:
    """What remains after the current step; "" when no release is in progress."""
    here = next((number for number, part in enumerate(plan.parts) if name_of(part.row) == plan.at), None)
    if here is None:
        return ""
    rows = [part.row for part in plan.parts[here + 1 :]]
    loads, seconds = sum(row.loads for row in rows), sum(row.seconds for row in rows)
    left = [_counted(loads, "load")] if plan.owned is None else []
    left += [f"about {_time(seconds)}"] if plan.is_timed else []
    return f"; after it {', '.join(left)}" if rows else ""


def _when(plan: Plan, name: str) -> str:
    """Where the peak is first reached; "" when it is the current value."""
    most = plan.peak[name]
    if plan.now.get(name, 0) == most:
        return ""
    first = next(part for part in plan.parts if part.accelerators.get(name, 0) == most)
    return f" ({name_of(first.row)})"


def _takes_all(plan: Plan) -> str:
    found = plan.forecast
    assert found is not None
    approvals = ""
    if found.approvals:
        steps = ", ".join(str(each) for each in found.approvals)
        approvals = f", and the time until step{'s' if len(found.approvals) > 1 else ''} {steps}" + (
            " are approved" if len(found.approvals) > 1 else " is approved"
        )
    if plan.owned is not None:
        return f"about {_time(found.seconds)} from when the groups of {plan.owned.inactive} are ready{approvals}"
    if not plan.loads.seconds:
        waits = f" and {_time(found.seconds)}" if found.seconds else ""
        known = "how long a group loads is not known here (--load-time says it)"
        return f"{_counted(found.rounds, 'load')} one after the other{waits}{approvals}; {known}"
    loads = f"a group loads for about {_time(plan.loads.typical)}, {plan.loads.source}"
    return f"about {_time(found.seconds)}{approvals}; {loads}{show_companions.load_times(plan)}"


def _rows(plan: Plan) -> Iterator[tuple[str, ...]]:
    """Table columns: groups of both versions at the end, startups, accelerators, requests, and time."""
    names = list(plan.peak)
    carried = ("SHARE", "LOAD NEW", "LOAD OLD", "BUSIEST")
    yield ("STEP", "NEW", "OLD", "LOADS", *map(unit, names), *carried, "TAKES", "THEN", "WAY BACK")
    for part in plan.parts:
        row = part.row
        mark = "> " if plan.at == name_of(row) else ""
        yield (
            f"{mark}{row.step or 'promotion'}",
            show_companions.new(plan, plan.replicas if row.step is None else row.new, row),
            show_companions.old(plan, part.old, row),
            _loads(row),
            *(str(part.accelerators.get(name, 0)) for name in names),
            f"{100 * row.share:.0f}%",
            _load(row.load_new),
            _load(row.load_stable),
            _load(row.peak_load),
            _takes(plan, row),
            _then(plan, part),
            _back(plan, row),
        )
    after = (str(plan.afterwards.get(name, 0)) for name in names)
    back = _counted(plan.loads_afterwards, "load") if plan.sides is not None else ""
    cells = show_companions.new(plan, plan.replicas, None), show_companions.old(plan, 0, None)
    yield ("after", *cells, "0", *after, "", "1.00", "", "1.00", "", "", back)


def _rows_by_owner(plan: Plan, pair: Sides) -> Iterator[tuple[str, ...]]:
    """Table columns: the ready groups of the inactive side that a step waits for, requests, and time."""
    yield ("STEP", "WAITS FOR", "SHARE", "LOAD NEW", "LOAD OLD", "BUSIEST", "TAKES", "THEN", "WAY BACK")
    for part in plan.parts:
        row = part.row
        mark = "> " if plan.at == name_of(row) else ""
        yield (
            f"{mark}{row.step or 'promotion'}",
            show_companions.waited(plan, row),
            f"{100 * row.share:.0f}%",
            _load(row.load_new),
            _load(row.load_stable),
            _load(row.peak_load),
            _takes(plan, row),
            _then(plan, part),
            _back(plan, row),
        )
    carried = _load(plan.parts[-1].row.load_new)
    yield ("after", "", "100%", carried, _load(0.0), carried, "", "", f"a release of {pair.active}")


def _time(seconds: float) -> str:
    return f"{round(seconds)}s" if seconds < 10 else short(seconds)


def _loads(row: Row) -> str:
    """Startups, and the number of rounds when they are not all concurrent."""
    return str(row.loads) if row.rounds <= 1 else f"{row.loads} in {row.rounds}"


def _load(load: float | None) -> str:
    return "-" if load is None else f"{load:.2f}"


def _takes(plan: Plan, row: Row) -> str:
    if plan.is_timed or not row.rounds:
        return _time(row.seconds)
    waits = f" + {_time(row.seconds)}" if row.seconds else ""
    return f"{_counted(row.rounds, 'load')}{waits}"


def _then(plan: Plan, part: Part) -> str:
    row = part.row
    if row.step is None:
        return ""
    if row.approval:
        return "approval"
    if part.pause:
        return f"pause {_time(part.pause)}"
    return "goes on" if row.step < len(plan.parts) - 1 else "promotion"


def _back(plan: Plan, row: Row) -> str:
    if not row.back_loads:
        return "at once"
    most = "up to " if row.step is None else ""
    took = f", {_time(row.back_seconds)}" if plan.loads.seconds else ""
    return f"{most}{_counted(row.back_loads, 'load')}{took}"


def _what(each: Planned) -> str:
    return f"{each.resource.kind} {each.name}" if each.name else f"{each.resource.kind}s"


def _verbs(each: Planned) -> str:
    return ", ".join(_VERBS[verb] for verb in each.verbs)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _field(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}"
