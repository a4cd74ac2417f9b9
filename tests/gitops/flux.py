"""How Flux judges health: kstatus' rules for conditions, and its evaluation of ``healthCheckExprs``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import celpy
import yaml

from tests.docs.pages import ROOT

KUSTOMIZATION = ROOT / "examples" / "flux" / "kustomization.yaml"


def kstatus(obj: Mapping[str, Any]) -> str:
    """Current, InProgress or Failed: the generic rules of cli-utils' kstatus, which kinds without rules of their own
    are judged by.
    """
    status = obj.get("status") or {}
    if status.get("observedGeneration", obj["metadata"]["generation"]) != obj["metadata"]["generation"]:
        return "InProgress"
    told = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    if told.get("Reconciling") == "True":
        return "InProgress"
    if told.get("Stalled") == "True":
        return "Failed"
    return "InProgress" if told.get("Ready", "True") != "True" else "Current"


def by_expressions(obj: Mapping[str, Any], kustomization: Path = KUSTOMIZATION) -> str:
    """Current, InProgress or Failed by the Kustomization's expressions for that kind, in the order in which Flux asks;
    InProgress where an expression fails, as Flux then asks again. To its CEL a member that is not there at all is a
    variable that nobody has declared, which even ``has`` does not forgive; ours is milder.
    """
    if "status" not in obj:
        return "InProgress"
    status = obj["status"]
    if status.get("observedGeneration", obj["metadata"]["generation"]) != obj["metadata"]["generation"]:
        return "InProgress"
    known = {key: celpy.json_to_cel(value) for key, value in obj.items()}
    rules = _rules(kustomization)[obj["apiVersion"], obj["kind"]]
    for member, verdict in (("inProgress", "InProgress"), ("failed", "Failed"), ("current", "Current")):
        if member not in rules:
            continue
        try:
            if _program(rules[member]).evaluate(known):
                return verdict
        except celpy.CELEvalError:
            return "InProgress"
    return "InProgress"


def _rules(kustomization: Path) -> dict[tuple[str, str], Mapping[str, str]]:
    spec = yaml.safe_load(kustomization.read_text())["spec"]
    return {(each["apiVersion"], each["kind"]): each for each in spec["healthCheckExprs"]}


@cache
def _program(expression: str) -> Any:
    environment = celpy.Environment()
    return environment.program(environment.compile(expression))
