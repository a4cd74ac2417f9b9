"""What a user may not expect of a release that shifts: groups of one workload go as those of another come. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.capacity.batches import is_last_full
from rollout_lws.capacity.weights import sharing_step
from rollout_lws.cli.plan.model import Sides, groups_of, when_drained
from rollout_lws.forecast.model import Forecast
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.groups.shifting import margin
from rollout_lws.rollout.routing.group_drains import named_selectors, removable
from rollout_lws.rollout.routing.weights import settings

#: Load of a group, relative to normal, above which it is worth a warning.
_MUCH = 1.005


def cautions(d: Draft, found: Forecast, there: Sides) -> Iterator[str]:
    """Warnings about the release, a sentence each."""
    yield from _shares(d, found)
    yield from _busiest(d, found)
    yield from _last_group(d, found, there)
    yield from _drains(d, there)
    yield from _labels(d, there)
    yield from _way_back(d, found, there)


def _shares(d: Draft, found: Forecast) -> Iterator[str]:
    """Shares that do not fit the groups which are left."""
    for row in found.rows:
        # The last step of 100% gives way to the promotion at once.
        if row.step is None or is_last_full(d.strategy, row.step):
            continue
        new, old = row.load_new or 0.0, row.load_stable or 0.0
        if max(new, old) <= _MUCH or sharing_step(d.strategy, row.step).traffic == "auto":
            continue
        kept, auto = d.replicas - row.new, max(1, round(100 * row.new / d.replicas))
        if new > old:
            who = "each of these" if row.new > 1 else "it"
        else:
            who = "each of the others" if kept > 1 else "the other one"
        yield (
            f"step {row.step} sends {row.share:.0%} of requests to {row.new} of {d.replicas} groups, and {who} gets"
            f" {max(new, old):.2f} times what a group has at rest: traffic: auto sends {auto}%"
        )


def _busiest(d: Draft, found: Forecast) -> Iterator[str]:
    row = max(found.rows, key=lambda each: each.peak_load)
    if row.peak_load <= _MUCH:
        return
    where = "the promotion" if row.step is None else f"step {row.step}"
    more = ", or set shift.maxUnavailableGroups to 0 and maxExtraGroups to 1" if margin(d).unavailable else ""
    yield (
        f"in {where} a group carries up to {row.peak_load:.2f} times what it has at rest: release when there are few"
        f" requests{more}"
    )


def _last_group(d: Draft, found: Forecast, there: Sides) -> Iterator[str]:
    if not margin(d).extra:
        yield (
            f"with shift.maxExtraGroups 0 the last group of {there.inactive} is created when the release is over: until"
            f" it has loaded, {groups_of(d.replicas - 1)} {'has' if d.replicas == 2 else 'have'} all requests,"
            f" {found.rows[-1].load_new:.2f} times what a group has at rest"
        )


def _drains(d: Draft, there: Sides) -> Iterator[str]:
    """What becomes of requests that run for longer than a drain."""
    asked = settings(d)
    if asked is None:
        return
    when = when_drained(asked, "its requests")
    each = "the group" if d.replicas == 1 else "each group"
    yield (
        f"{each} of {there.active} goes {when}: what runs there for longer ends as its preStop and"
        " terminationGracePeriodSeconds allow"
    )


def _labels(d: Draft, there: Sides) -> Iterator[str]:
    """That a group which goes is not selected any more by what goes by the label that its Service selects by."""
    facts = d.o.routing
    if facts is None or d.replicas == 1:
        return
    found = (removable(selecting.selector(live), d.stable.workload) for selecting, live in named_selectors(facts))
    lost = list(dict.fromkeys(keys[0] for keys in found if keys))
    if lost:
        which = f"label{'s' if len(lost) > 1 else ''} {' or '.join(lost)}"
        yield (
            f"groups of {there.active} that go lose {which}, so that no request finds them: what else selects pods by"
            " it, as a NetworkPolicy or a PodMonitor, does not apply to them while their requests end"
        )


def _way_back(d: Draft, found: Forecast, there: Sides) -> Iterator[str]:
    by = d.command("start") if d.paired else "another release"
    most, release = found.rows[-1].back_loads, f"a way back after the release ({by}) loads"
    if not most:
        yield f"{release} {groups_of(d.replicas)}"
        return
    yield (
        f"a way back loads again what {there.active} has given up by then, up to {groups_of(most)} before the roles"
        f" change; {release} {groups_of(d.replicas)}"
    )
