"""Renders what a plan says of two workloads that change roles: where requests go, and the way back. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.cli.plan.model import Plan, Sides, groups_of


def name(plan: Plan) -> str:
    """The workloads of a plan, for its heading."""
    pair = plan.sides
    return plan.workload if pair is None or pair.made else f"{pair.active} and {pair.inactive}"


def requests(plan: Plan, pair: Sides) -> str:
    """Where requests go, and where a release moves them."""
    has, shifts = f"which has {pair.inactive_groups}", plan.strategy is not None and plan.strategy.shifts
    if plan.owned is not None:
        what = f"moves them to {pair.inactive}, {groups_of(pair.inactive_groups)}"
    elif plan.given.kept:
        what = f"moves them to {pair.inactive}, {groups_of(plan.given.kept)}"
    elif shifts and pair.made and not pair.is_back:
        what = f"makes {pair.inactive}, which gets groups as those of {pair.active} go, until that has none"
    elif shifts:
        ends = f", and deletes {pair.active}" if pair.is_back else ""
        what = f"moves them to {pair.inactive}, {has} and gets groups as those of {pair.active} go{ends}"
    elif pair.is_back:
        what = f"loads as many of {pair.inactive}, {has}, moves them there, and deletes {pair.active}"
    elif pair.made:
        what = f"makes as many of {pair.inactive}, moves them there, and scales {pair.active} to 0"
    else:
        what = f"loads as many of {pair.inactive}, {has}, and moves them there"
    return f"go to {pair.active}, {groups_of(pair.active_groups)}; a release {what}"


def loads_by_owner(pair: Sides) -> str:
    """That the owner of the inactive side loads its groups."""
    beside = "".join(f" and {each.inactive}" for each in pair.companions)
    return f"0 by the release: the owner of {pair.inactive}{beside} loads {'their' if beside else 'its'} groups"


def way_back(plan: Plan, pair: Sides) -> str:
    """What an abort takes, and the way back when the release is over."""
    loads, most = plan.loads_afterwards, plan.parts[-1].row.back_loads if plan.parts else 0
    if pair.made:
        abort = "at once until the roles change, by abort"
        abort = f"by abort until the roles change, up to {_loads(most)}" if most else abort
        return f"{abort}; after that a release of the former version loads {groups_of(loads)}"
    release = f"after that by a release of {pair.active} (start)"
    if most:
        return f"by abort until the roles change, up to {_loads(most)}; {release}, {_loads(loads)}"
    needs = "while it has its groups" if plan.owned is not None else f"which loads {groups_of(loads)}"
    return f"at once until the roles change, by abort; {release}, {needs}"


def next_release(pair: Sides) -> Iterator[str]:
    """Which way the next release goes, in a swap."""
    if pair.then:
        yield f"{pair.inactive} keeps the requests: the next release goes by {pair.then}"
    elif pair.made:
        yield f"the next release goes the other way, from {pair.inactive} to {pair.active}"


def _loads(count: int) -> str:
    return f"{count} load{'' if count == 1 else 's'}"
