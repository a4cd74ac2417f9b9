"""What comes next: the effect of an approval, and the commands that apply now. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from rollout_lws.capacity.replica_math import ALL
from rollout_lws.capacity.shifted_pair import Margin
from rollout_lws.cli.actions import action_rules
from rollout_lws.cli.durations import short
from rollout_lws.cli.get.caller import Caller
from rollout_lws.cli.get.gates import without_verdict
from rollout_lws.cli.get.header import extra_accelerators, field
from rollout_lws.cli.get.plan import PlannedStep, accompanying, margin_of, staying
from rollout_lws.cli.releases import Release
from rollout_lws.cli.rollouts import recorded_capacity, style, summary
from rollout_lws.cli.sides import (
    Sides,
    is_incomplete,
    is_settled,
    keeps_seconds,
    named,
    roles_of,
    scales_sides,
    sides_of,
    standing_in,
    swaps,
    turning,
)
from rollout_lws.errors import UsageError
from rollout_lws.targets.version import version_together

Object = dict[str, Any]


def after_approval(shown: Release, steps: tuple[PlannedStep, ...]) -> str:
    """The next step's groups, accelerators and traffic; "" unless a step awaits approval."""
    index = action_rules.step_of(shown.rollout)
    if summary(shown.rollout)["state"] != "AwaitingApproval" or shown.stable is None or not 1 <= index <= len(steps):
        return ""
    sides, margin = turning(shown.rollout), margin_of(shown.rollout, shown.full_size)
    ends = index == len(steps) or steps[index].promotes
    # Nothing waits in a last step of all groups, where those of one side go as those of the other one come.
    ends = ends or (margin is not None and index + 1 == len(steps) and steps[index].size == ALL)
    if ends and sides is not None:
        return _hand_over(shown, sides, steps[index - 1].groups, margin)
    if ends:
        return "the stable groups are renewed, all requests end at the new version"
    now, following = steps[index - 1], steps[index]
    parts = [_next_groups(shown, sides, now.groups, following.groups, margin)]
    if following.traffic:
        parts.append(f"{following.traffic} traffic" if "%" in following.traffic else f"traffic {following.traffic}")
    load = (shown.rollout.get("status") or {}).get("longestStartupSeconds")
    more = following.groups - now.groups
    if more and load and not _by_owner(shown.rollout):
        parts.append(f"about {short(_seconds(shown.rollout, more, float(load), margin))}")
    return ", ".join(parts)


def _next_groups(shown: Release, sides: Sides | None, groups: int, following: int, margin: Margin | None) -> str:
    """What becomes of groups in a step that asks for ``following`` ones, after one that has asked for ``groups``."""
    more = following - groups
    if sides is not None and _by_owner(shown.rollout):
        return f"{following} ready group{'s' if following > 1 else ''} of {sides.inactive}"
    if not more:
        return "no further group"
    if sides is not None and margin is not None:
        return _shifted(shown, sides, groups, more, staying(shown.full_size, following))
    return _added(shown, groups, following) if takes_room(shown) else f"{_counted(more)} renewed"


def _by_owner(rollout: Object) -> bool:
    """Whether the owner of a pair scales its workloads."""
    return sides_of(rollout) is not None and not scales_sides(rollout)


def _seconds(rollout: Object, more: int, load: float, margin: Margin | None) -> float:
    """Seconds that so many further groups take, of which each loads for ``load`` seconds."""
    if margin is None:
        return load
    # Some go before the next ones come.
    routing: Object = next(iter(style(rollout).get("trafficRoutings") or ()), {})
    drain = float(routing.get("gracePeriodSeconds", 3)) + float(routing.get("drainSeconds", 30))
    return (load + drain) * -(-more // max(1, margin.extra + margin.unavailable))


def _hand_over(shown: Release, sides: Sides, groups: int, margin: Margin | None) -> str:
    """The end of a release whose workloads change roles, whose last step has so many groups."""
    told = _turn(shown.rollout, sides)
    if _by_owner(shown.rollout):
        return told
    more = max(0, shown.full_size - groups)
    added = _added(shown, groups, shown.full_size) if more else ""
    if margin is None:
        return f"{f'{added}, then ' if more else ''}{told}"
    # Without room for an extra group the last one takes the place of the last old one.
    early = more if margin.extra else max(0, more - 1)
    first = f"{_shifted(shown, sides, groups, early, 1)}, then " if early else ""
    return f"{first}{told}" + (f"; then {sides.inactive} gets its last group" if early < more else "")


def _turn(rollout: Object, sides: Sides) -> str:
    """What becomes of requests and groups when the roles change."""
    goes = f"all requests go to {sides.inactive}"
    stays = keeps_seconds(rollout)
    later = f" {short(stays)} later" if stays else ""
    if standing_in(rollout):
        return f"{goes}, and {sides.active} is removed{later}"
    if swaps(rollout):
        return f"{goes}, which serves from then on, and {sides.active} is scaled to 0{later}"
    goes += ", which becomes the active side"
    return goes if _by_owner(rollout) else f"{goes}, and {_scaled_down(sides.members(sides.active))}"


def _shifted(shown: Release, sides: Sides, groups: int, more: int, stay: int) -> str:
    """What a release adds on one side and takes from the other one, of which ``stay`` groups stay."""
    fewer = staying(shown.full_size, groups) - stay
    goes = f" as {fewer} of {sides.active} {'go' if fewer > 1 else 'goes'}" if fewer > 0 else ""
    return f"+{_counted(more)} of {sides.inactive}{goes}"


def _added(shown: Release, groups: int, following: int) -> str:
    """The groups that come after ``groups`` of the new version, up to ``following``; of a pair those of companions,
    too.
    """
    each = shown.edited.workload.version.accelerators if shown.edited is not None else 0
    told = [_coming(following - groups, each)]
    before, after = (accompanying(shown.rollout, shown.full_size, count) for count in (groups, following))
    for (_, facts), had, gets in zip(shown.companions, before, after, strict=False):
        if facts is not None and gets > had:
            told.append(_coming(gets - had, facts.workload.version.accelerators, facts.name))
    return " and ".join(told)


def _coming(count: int, accelerators: int, name: str = "") -> str:
    of = f" of {name}" if name else ""
    return f"+{_counted(count)}{of}" + (f" (+{count * accelerators} GPU)" if accelerators else "")


def _scaled_down(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} {'are' if len(names) > 1 else 'is'} scaled to 0"


def _counted(count: int) -> str:
    return f"{count} group{'s' if count > 1 else ''}"


def takes_room(shown: Release) -> bool:
    """Whether a step's groups are added to the existing ones and do not replace them."""
    return recorded_capacity(shown.rollout).extra(1) > 0


def next_commands(shown: Release, caller: Caller) -> list[str]:
    """Commands with their effects as lines of the picture."""
    return [field("" if at else "Next", line) for at, line in enumerate(command_lines(shown, caller))]


def command_lines(shown: Release, caller: Caller) -> list[str]:
    """Commands with their effects, one a line. Those that approve or abort are bound to the release by its id."""
    found = _commands(shown, caller)
    width = max((len(command) for command, told in found if told), default=0)
    return [f"{command:<{width}}   # {told}" if told else command for command, told in found]


def _commands(shown: Release, caller: Caller) -> list[tuple[str, str]]:
    rollout = shown.rollout
    name, status, state = rollout["metadata"]["name"], rollout.get("status") or {}, summary(rollout)["state"]
    found: list[tuple[str, str]] = []
    if state == "HoldReleased":
        return []
    release = str(status.get("observedRolloutID") or "")
    only = f" --release-id {shlex.quote(release)}" if release else ""
    if _fits(action_rules.approve, rollout):
        step = action_rules.step_of(rollout)
        told = f"approves step {step} of {release or 'this release'} only"
        found.append((caller.ours(f"promote {name} --step {step}{only}"), told))
    if _fits(action_rules.resume, rollout):
        found.append((caller.ours(f"resume {name}"), "goes on"))
    if _fits(action_rules.abort(), rollout):
        found.append((caller.ours(f"abort {name}{only}"), effect_of_abort(shown)))
    startable = is_settled(rollout) or is_incomplete(rollout)
    if shown.canary is not None and startable and _fits(action_rules.start(live_hash(shown)), rollout):
        found.append((caller.ours(f"start {name}"), effect_of_start(shown)))
    if action_rules.waits_to_leave(rollout) and _fits(action_rules.home, rollout):
        found.append((caller.ours(f"home {name}"), effect_of_home(shown)))
    if state == "Stalled":
        found += _logs(rollout, caller)
    found += _of_gates(rollout, caller)
    stuck, gated = state == "Stalled" or action_rules.phase_of(rollout) == "Aborted", without_verdict(rollout)
    if (stuck or gated) and _fits(action_rules.retry, rollout):
        again = "measures again what has not passed" if gated else "the same version again"
        found.append((caller.ours(f"retry {name}"), again))
    return found


def _of_gates(rollout: Object, caller: Caller) -> list[tuple[str, str]]:
    """What passes gates by hand that wait for a user, and what shows the Job of one that has any."""
    name, where, found = rollout["metadata"]["name"], _namespace(rollout, caller), list[tuple[str, str]]()
    for gate in without_verdict(rollout):
        if gate.get("job"):
            found.append((caller.kubectl(" ".join(["logs", f"job/{gate['job']}", *where])), ""))
        found.append((caller.ours(f"skip {name} {shlex.quote(gate['name'])}"), "passes it by hand"))
    return found


def _fits(judge: action_rules.Judge, rollout: Object) -> bool:
    try:
        return isinstance(judge(rollout), action_rules.Ask)
    except UsageError:
        return False


def live_hash(shown: Release) -> str:
    """Our hash of the version that the inactive side's workloads have together."""
    first, *others = (each.workload.version for each in shown.of_inactive)
    return version_together(first, others).template_hash


def effect_of_start(shown: Release) -> str:
    sides = sides_of(shown.rollout)
    names = sides.members(sides.inactive) if sides is not None else ()
    told = f"releases the version of {' and '.join(names)}"
    loads = shown.full_size if scales_sides(shown.rollout) else 0
    beside = accompanying(shown.rollout, loads, loads)
    if not loads:
        return told
    counts = " and ".join([*(str(count) for count in (loads, *beside[:-1])), _counted(beside[-1])]) if beside else ""
    return f"{told}, and loads {counts}" if beside else f"{told}, and loads its {_counted(loads)}"


def effect_of_home(shown: Release) -> str:
    return f"releases the version of {named(shown.rollout)}, which loads {_counted(shown.full_size)}"


def effect_of_abort(shown: Release) -> str:
    status, sides = shown.rollout.get("status") or {}, turning(shown.rollout)
    extra = extra_accelerators(shown)
    lacking = shown.own_size - shown.stable.workload.replicas if shown.stable is not None else 0
    if sides is not None and (lacking or roles_of(shown.rollout) is not None):
        told = f"all requests go back to {sides.active}"
        told += f", which loads {_counted(lacking)} again" if lacking else ""
        removed = f"{sides.inactive} is removed" if roles_of(shown.rollout) is None else ""
        parks = f", and {removed or _scaled_down(sides.members(sides.inactive))}"
        parks += f", which frees {extra} GPU" if extra else ""
        return told + ("" if _by_owner(shown.rollout) else parks)
    renews = (status.get("finalising") or {}).get("task") or not takes_room(shown)
    if renews and not swaps(shown.rollout):
        return "groups that are renewed go back to the old version"
    return (f"frees {extra} GPU, " if extra else "") + "stable untouched"


def _logs(rollout: Object, caller: Caller) -> list[tuple[str, str]]:
    """The kubectl command for the logs of the worst container."""
    for trouble in (rollout.get("status") or {}).get("notReadyGroups") or ():
        if trouble.get("pod") and trouble.get("container"):
            before = " -p" if trouble.get("previousLogs") else ""
            words = f"logs {shlex.quote(trouble['pod'])} -c {shlex.quote(trouble['container'])}{before}"
            return [(caller.kubectl(" ".join([words, *_namespace(rollout, caller)])), "")]
    return []


def _namespace(rollout: Object, caller: Caller) -> tuple[str, ...]:
    return () if "--namespace" in caller.flags else ("-n", str(rollout["metadata"]["namespace"]))
