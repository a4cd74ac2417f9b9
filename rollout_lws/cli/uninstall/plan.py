"""What an uninstallation does, before it does anything: a value, its words, and why it may not begin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rollout_lws.cli.uninstall.departures import Departure, Fate, Roll
from rollout_lws.cli.uninstall.parts import Home, Parts

_SHOWN_IMAGES = 3


@dataclass(frozen=True, slots=True)
class Controller:
    """The Deployment that was found, None values where there is none. ``watched`` are its namespaces, () for all."""

    namespace: str = ""
    name: str = ""
    available: int = 0
    wanted: int = 0
    watched: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return bool(self.name)


@dataclass(frozen=True, slots=True)
class Plan:
    """In the order in which it is done. ``warnings`` are about things that nobody here can mend."""

    departures: tuple[Departure, ...]
    parts: Parts
    home: Home | None = None
    controller: Controller = Controller()
    warnings: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.departures or self.parts.doomed or self.parts.definitions or self.parts.helm)


def refusal(plan: Plan) -> str:
    """Why nothing may be begun, "" when it may: a Rollout that no controller lets go would stay half deleted."""
    bound = [each for each in plan.departures if each.finalizer]
    if not bound or not plan.controller.known:
        return ""
    at = plan.controller
    if not at.available:
        start = "" if at.wanted else f"kubectl -n {at.namespace} scale deployment/{at.name} --replicas=1, then again"
        look = f"see kubectl -n {at.namespace} describe pods; once it runs, again"
        return (
            f"the controller does not run (deployment/{at.name} in namespace {at.namespace}), and {_count(bound)} by"
            f" it: {start or look}. If it can run no more, --without-controller gives back what rests"
        )
    unseen = [each for each in bound if at.watched and each.namespace not in at.watched]
    if unseen:
        first = unseen[0]
        return (
            f"rollout/{first.rollout} in namespace {first.namespace} is held by a finalizer, and the controller watches"
            f" {' and '.join(at.watched)} only: `rollout-lws install` with --watch-namespace {first.namespace} besides,"
            " then again"
        )
    return ""


def _count(bound: list[Departure]) -> str:
    return "1 Rollout is let go of" if len(bound) == 1 else f"{len(bound)} Rollouts are let go of"


def lines(plan: Plan) -> Iterator[str]:
    """The plan for people."""
    if plan.departures:
        yield "These let go of their LeaderWorkerSets, one after the other:"
        for each in plan.departures:
            yield f"  {title(each)}: {outlook(each)}"
            if each.roll is not None and each.rollout:
                yield f"    to keep what runs, first: {keeping(each)}"
    doomed = [*map(str, (*plan.parts.doomed, *plan.parts.definitions))]
    if plan.home is not None and plan.home.doomed is not None:
        doomed.append(f"namespace/{plan.home.name}")
    if doomed and not plan.parts.helm:
        yield "These are deleted then, in this order:"
        yield from (f"  {each}" for each in doomed)
    stay = [*plan.parts.stay]
    if plan.home is not None and plan.home.doomed is None:
        stay.append(f"namespace/{plan.home.name}: {plan.home.why}")
    if plan.parts.helm:
        stay += [f"{each}: until Helm's release is gone" for each in doomed]
    if stay:
        yield "These stay:"
        yield from (f"  {each}" for each in stay)
    if plan.parts.helm:
        yield f"Helm takes away what it has made: {' && '.join(plan.parts.helm)}, then this command again"


def title(each: Departure) -> str:
    name = f"rollout/{each.rollout}" if each.rollout else f"leaderworkerset/{each.workload}"
    return f"{name} in namespace {each.namespace}"


def outlook(each: Departure) -> str:
    """What becomes of its LWS."""
    said = []
    runs = f"revision {each.runs}" if each.runs else "the version that runs"
    if each.fate is Fate.BACK:
        said.append(f"its release ({each.state or 'on'}) goes back to {runs} first")
    elif each.fate is Fate.FINISHED:
        said.append("its promotion is finished first")
    elif each.runs:
        said.append(f"leaderworkerset/{each.workload} runs {runs} in {_groups(each.replicas)}")
    if each.note:
        said.append(each.note)
    said.append(rolling(each.roll) if each.roll is not None else "nothing rolls")
    return "; ".join(said)


def rolling(roll: Roll) -> str:
    """Which version rolls, and how."""
    shown = ", ".join(roll.images[:_SHOWN_IMAGES])
    more = len(roll.images) - _SHOWN_IMAGES
    what = f"the version that waits ({shown}{f' and {more} more' if more > 0 else ''})"
    surge = f", {roll.surge} more beside them" if roll.surge else ""
    why = f"; its release was aborted: {roll.aborted}" if roll.aborted else ""
    return f"{what} ROLLS in {_groups(roll.groups)}, {roll.unavailable} at a time{surge}{why}"


def keeping(each: Departure) -> str:
    """The command after which nothing rolls."""
    return f"rollout-lws undo {each.rollout} -n {each.namespace}"


def _groups(number: int) -> str:
    return "1 group" if number == 1 else f"{number} groups"
