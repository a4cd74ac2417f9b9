"""One link of the chain from a Rollout to its route, and what is the matter with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """``waiting`` is on its way, or as somebody asked for: time or that person changes it. ``broken`` needs somebody.
    ``unknown`` could not be read.
    """

    OK = "ok"
    WAITING = "waiting"
    BROKEN = "broken"
    UNKNOWN = "unknown"


class Name(StrEnum):
    """The links, in their order: each makes sense only while those before it hold."""

    ROLLOUT = "rollout"
    CONTROLLER = "controller"
    WORKLOAD = "workload"
    HOLD = "hold"
    HISTORY = "history"
    LEADER_SET = "leader-set"
    GROUPS = "groups"
    SCHEDULING = "scheduling"
    CONTAINERS = "containers"
    READINESS = "readiness"
    SERVICE = "service"
    ENDPOINTS = "endpoints"
    ROUTE = "route"
    AUTOSCALER = "autoscaler"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Link:
    """``about`` is the object, as ``Kind/name``; ``found`` what was found there. Where the link does not hold,
    ``affected`` says who has a disadvantage, ``by_itself`` what happens if nobody does anything, and ``next`` has the
    commands to type, each whole.
    """

    name: Name
    state: State
    about: str
    found: str
    affected: str = ""
    by_itself: str = ""
    next: tuple[str, ...] = ()


def ok(name: Name, about: str, found: str) -> Link:
    return Link(name, State.OK, about, found)


def first(links: Iterable[Link], state: State) -> Link | None:
    """The first link in this state, None when there is none."""
    return next((link for link in links if link.state is state), None)
