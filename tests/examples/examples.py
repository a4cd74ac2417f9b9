"""The manifests of examples/, and the ones of them that a test asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rollout_lws.api import Rollout
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.cli.manifests import read_manifests

Object = dict[str, Any]
FOLDER = Path(__file__).parents[2] / "examples"
#: Shares requests by a script, for which test worlds and the demo have neither a kind nor a data plane.
BY_SCRIPT = "contour"
NAMES = tuple(sorted(each.parent.name for each in FOLDER.glob("*/lws.yaml") if each.parent.name != BY_SCRIPT))
#: Those in which the release says which share of the requests each version gets.
ROUTED = ("blue-green", "gateway", "grpc", "in-place", "inference-pool", "ingress", "istio", "surge")


def objects(name: str) -> list[Object]:
    """The objects of one example in the order in which kubectl applies them."""
    return read_manifests([str(FOLDER / name)])


def manifests(name: str) -> dict[str, Object]:
    """The objects of one example by kind; the first where it has several of a kind."""
    found: dict[str, Object] = {}
    for each in objects(name):
        found.setdefault(each["kind"], each)
    return found


def style(name: str) -> CapacityStrategy:
    """How an example's Rollout makes groups of a new version."""
    plan = Rollout.model_validate(manifests(name)["Rollout"]).spec.strategy.style
    assert plan is not None
    return strategy_of_plan(plan)


def pod_templates(lws: Object) -> dict[str, Object]:
    """The pod templates of an LWS by role; a leader without its own has the workers'."""
    group = lws["spec"]["leaderWorkerTemplate"]
    return {"leader": group.get("leaderTemplate") or group["workerTemplate"], "worker": group["workerTemplate"]}


def mostly_long(*short: str) -> list[Any]:
    """All examples as parameters; what is not in ``short`` is for the longer lane."""
    return [name if name in short else pytest.param(name, marks=pytest.mark.long) for name in NAMES]
