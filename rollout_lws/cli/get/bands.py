"""Versions of a release in the workloads that run them: which groups each has, wants, and gives up. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from rollout_lws.cli.releases import Release
from rollout_lws.cli.rollouts import condition, releasing
from rollout_lws.cli.sides import (
    Sides,
    has_promoted,
    have_turned,
    kept_version,
    roles_of,
    scales_sides,
    serves_alone,
    tells_share,
)
from rollout_lws.objects.workloads import Pod
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.pod_words import pod_trouble

#: Reasons why groups are not ready, as the controller reported them, by LWS and group.
Reasons = Mapping[tuple[str, str], str]
#: Since when groups have got no more requests that are about to go, by UID.
Drains = Mapping[str, datetime]
NO_DRAINS: Drains = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Band:
    """One version in one LWS. ``asked`` is the number of groups of it that are wanted; ``own`` is the role of groups of
    this revision, and ``info`` what there is to know of the LWS. ``drains`` are groups that are about to go,
    ``reasons`` why others are not ready.
    """

    facts: Facts
    role: str
    revision: str
    groups: tuple[Group, ...]
    asked: int
    weight: str
    is_new: bool
    own: str
    info: str = ""
    drains: Drains = field(default_factory=dict)
    reasons: Reasons = field(default_factory=dict)


def bands(shown: Release) -> Iterator[Band]:
    """Every version in every workload, those that serve first."""
    reasons, drains = _reasons(shown), _drains(shown)
    return (replace(band, drains=drains, reasons=reasons) for band in _bands(shown))


def _bands(shown: Release) -> Iterator[Band]:
    sides = roles_of(shown.rollout)
    if sides is not None:
        yield from _of_sides(shown, sides)
        return
    new_weight, old_weight = _weights(shown)
    if shown.stable is not None:
        yield from _of_stable(shown, shown.stable, new_weight, old_weight)
    if shown.canary is not None:
        role = "green" if (shown.rollout["spec"].get("strategy") or {}).get("blueGreen") else "canary"
        gone, found = shown.is_replaced, groups(shown.canary)
        yield Band(
            shown.canary,
            "old" if gone else role,
            _set_revision(shown.canary),
            found,
            shown.canary.workload.replicas,
            new_weight,
            not gone and not has_promoted(shown.rollout),
            "old" if gone else "new",
            "kept for undo" if gone and kept_version(shown.rollout) else "",
        )


def _of_sides(shown: Release, sides: Sides) -> Iterator[Band]:
    """Workloads that change roles, those of the active side first. Outside a release neither has a version that is
    new.
    """
    is_on = releasing(shown.rollout) and not have_turned(shown.rollout)
    at_rest = ("0%", "100%") if serves_alone(shown.rollout, parked=shown.is_parked) else ("", "")
    new_weight, old_weight = _weights(shown) if is_on else at_rest
    kept = kept_version(shown.rollout)
    retirable = "may be retired" if condition(shown.rollout, "ReadyToRetire") is not None else ""
    unused = "parked" if shown.is_parked else "kept for undo" if kept else retirable
    for facts in (*shown.of_active, *shown.of_inactive):
        is_active = facts.name in sides.members(sides.active)
        leads, is_new = facts.name in (sides.active, sides.inactive), is_on and not is_active
        runs, waits = _held_back(shown, facts) if is_active else (_set_revision(facts), "")
        # Its template has the version of the one that serves by now.
        runs = next((group.revision for group in groups(facts)), runs) if kept and not is_active else runs
        leader = sides.active if is_active else sides.inactive
        found = (waits if is_active else unused, "" if leads else f"goes with {leader}")
        members = groups(facts)
        if is_new and runs:
            # While the owner updates this side, the LWS still has groups of earlier revisions.
            before = tuple(group for group in members if group.revision != runs)
            members = tuple(group for group in members if group.revision == runs)
            for revision in dict.fromkeys(group.revision for group in before):
                left = tuple(group for group in before if group.revision == revision)
                yield Band(facts, sides.role(facts.name), revision, left, len(left), "", False, "")
        yield Band(
            facts,
            sides.role(facts.name),
            runs,
            members,
            facts.workload.replicas,
            (old_weight if is_active else new_weight) if leads else "",
            is_new,
            ("new" if is_new else "old") if is_on else "",
            ", ".join(filter(None, found)),
        )


def _held_back(shown: Release, facts: Facts) -> tuple[str, str]:
    """The revision that a workload of a pair's active side runs, and, in words, the one that it holds back, "" when it
    holds none back.
    """
    asked = _set_revision(facts)
    running = {group.revision for group in groups(facts)}
    runs = shown.stable_revision if facts is shown.stable else running.pop() if len(running) == 1 else asked
    if scales_sides(shown.rollout) and asked and runs not in ("", asked):
        return runs, f"revision {asked} waits"
    return asked, ""


def _of_stable(shown: Release, facts: Facts, new_weight: str, old_weight: str) -> Iterator[Band]:
    """An LWS runs two versions while its groups are updated in place, or while it has surge groups."""
    found = groups(facts)
    known = shown.stable_revision
    new = tuple(group for group in found if known and group.revision != known)
    old = tuple(group for group in found if not known or group.revision == known)
    beside = shown.canary is not None
    if old or not new:
        asked = len(old) if new and len(old) < facts.workload.replicas else facts.workload.replicas
        yield Band(facts, "stable", known or _set_revision(facts), old, asked, old_weight, False, "old")
    if new:
        weight = "" if beside and old else old_weight if beside else new_weight
        yield Band(facts, "new", new[0].revision, new, len(new), weight, True, "new")


def _weights(shown: Release) -> tuple[str, str]:
    """Traffic of the new and the stable version as routers accepted it; ("", "") when traffic is not split."""
    applied = ((shown.rollout.get("status") or {}).get("traffic") or {}).get("applied")
    if not applied or not releasing(shown.rollout) or not tells_share(shown.rollout):
        return "", ""
    weight = int(applied.get("weight") or 0)
    return f"{weight}%", f"{100 - weight}%"


def _set_revision(facts: Facts) -> str:
    return facts.leader_set.revision if facts.leader_set is not None else ""


def _reasons(shown: Release) -> Reasons:
    told = (shown.rollout.get("status") or {}).get("notReadyGroups") or ()
    return {(str(each.get("workload")), str(each.get("group"))): str(each.get("reason") or "") for each in told}


def _drains(shown: Release) -> Drains:
    every = (*shown.of_active, *shown.of_inactive)
    known = ((group.uid, shown.drains_since(group.leader)) for facts in every for group in groups(facts))
    return {uid: since for uid, since in known if since is not None}


def trouble_of(pod: Pod) -> str:
    """The reason in one word, for problems only, not for normal startup."""
    found = pod_trouble(pod)
    return found.reason if found.severity > 1 else ""
