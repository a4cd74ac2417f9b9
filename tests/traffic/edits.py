"""What people do to the rules of a route by hand, before a release or in the middle of it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.traffic.build import rule, stable_ref

Edit = Callable[[list[Any]], None]


def add_first(live: list[Any]) -> None:
    live.insert(0, rule(stable_ref("new"), path="/new"))


def add_last(live: list[Any]) -> None:
    live.append(rule(stable_ref("new"), path="/new"))


def remove_first(live: list[Any]) -> None:
    del live[0]


def reorder(live: list[Any]) -> None:
    live[0], live[1] = live[1], live[0]


def rename(live: list[Any]) -> None:
    live[0]["name"] = "renamed"


def time_out(live: list[Any]) -> None:
    live[1]["timeouts"] = {"request": "1s"}


def match_otherwise(live: list[Any]) -> None:
    live[1]["matches"] = [{"path": {"type": "PathPrefix", "value": "/otherwise"}}]


def filtered(live: list[Any]) -> None:
    live[0]["filters"] = [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "s", "port": 1}}}]


EDITS = [add_first, add_last, remove_first, reorder, rename, time_out, match_otherwise, filtered]


def edited(route: Any, by_hand: list[Edit]) -> dict[str, Any]:
    made = copy.deepcopy(dict(route))
    for edit in by_hand:
        if len(made["spec"]["rules"]) > 1:
            edit(made["spec"]["rules"])
    return made
