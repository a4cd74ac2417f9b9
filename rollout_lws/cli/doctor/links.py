"""One link of the chain from a Rollout to its route, with its state and finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """``waiting``: in progress, or as a user asked for; time or that user changes it. ``broken`` needs a person.
    ``unknown`` could not be read.
    """

    OK = "ok"
    WAITING = "waiting"
    BROKEN = "broken"
    UNKNOWN = "unknown"


class Name(StrEnum):
    """The links in order: each makes sense only while those before it are ok."""

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
    GATES = "gates"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Link:
    """``about`` is the object, as ``Kind/name``; ``found`` the finding. For a link that is not ok, ``by_itself`` says
    what happens without intervention, ``next`` lists complete commands to run, and ``affected`` says which users have a
    disadvantage now.
    """

    name: Name
    state: State
    about: str
    found: str
    by_itself: str = ""
    next: tuple[str, ...] = ()
    affected: str = ""


def ok(name: Name, about: str, found: str) -> Link:
    return Link(name, State.OK, about, found)


def first(links: Iterable[Link], state: State) -> Link | None:
    """The first link in this state, None when there is none."""
    return next((link for link in links if link.state is state), None)
