"""Shortens error messages of schemas and webhooks, since a finding has a position."""

from __future__ import annotations

import difflib
import re

from rollout_lws.api import batch_releases, rollouts
from rollout_lws.cli import durations
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.manifests import Manifest
from rollout_lws.cli.lint.paths import Path, located, value_at, written
from rollout_lws.cli.lint.schemas import spec_schema
from rollout_lws.sandbox.schemas.schema import Node

#: Top-level fields of every object.
TOP = ("apiVersion", "kind", "metadata", "spec", "status")

_IN_BODY = re.compile(r"^Invalid value: .*?: \S+ in body ")
_TYPES = {"integer,string": "a whole number or text"}
#: What to write in fields of our own kinds whose schema is a regular expression.
_TAKES = {
    "replicas": "a number of groups, or a percentage as in 25%",
    "canaryReplicas": "a number of groups, or a percentage as in 25%",
    "failureThreshold": "a number of groups, or a percentage as in 25%",
    "traffic": "a percentage as in 20%, or auto",
}
_OWN = (rollouts().kind, batch_releases().kind)
#: Names that users know from Kruise's older version and from other projects.
_ELSEWHERE = {"weight": "traffic", "setWeight": "traffic", "objectRef": "workloadRef"}
_QUANTITY = "([KMGTPE]i)|[numkMGTPE]"


def unknown(made: Manifest, path: Path, *, ours: bool) -> Finding:
    name, near = str(path[-1]), _meant(made.resource.kind, path)
    advice = f"did you mean {near}?" if near else "remove it"
    if ours:
        # The API server drops the field, or kubectl refuses to send it.
        return made.found("LWS101", path, f"{made.resource.kind} has no field {name} here: {advice}")
    return made.found(
        "LWS104",
        path,
        f"{made.resource.kind} is not known to have a field {name} here: {advice if near else 'is it new?'}",
    )


def violated(made: Manifest, text: str) -> Finding:
    """The finding for a schema error."""
    where, _, why = text.partition(": ")
    path = located(made.body, where)
    if why == "Required value":
        within = written(path[:-1]) or made.what
        return made.found("LWS103", path, f"{path[-1]} is missing in {within}: add it")
    field, value = written(path), value_at(made.body, path)
    if why.startswith("Unsupported value"):
        allowed = why.partition("supported values: ")[2]
        near = difflib.get_close_matches(str(value), re.findall(r'"([^"]*)"', allowed), 1, 0.6)
        advice = f"did you mean {near[0]}?" if near else f"use one of {allowed}"
        return made.found("LWS102", path, f"{field} cannot be {value!r}: {advice}")
    said = _IN_BODY.sub("", why)
    wrong_type = re.match(r'must be of type ([\w,-]+): "(\w+)"', said)
    wanted = wrong_type[1] if wrong_type else ""
    instead = _instead(made, path, value, wanted, said)
    if instead:
        return made.found("LWS102", path, f"{field} cannot be {_shown(value)}: {instead}")
    if wrong_type:
        said = f"must be of type {_TYPES.get(wanted, wanted)}, not {wrong_type[2]}"
    return made.found("LWS102", path, f"{field} {said[:1].lower()}{said[1:]}")


def _instead(made: Manifest, path: Path, value: object, wanted: str, said: str) -> str:
    """What to write instead of ``value``, "" when only the schema's message applies."""
    name, own = str(path[-1]), made.resource.kind in _OWN
    if own and name in _TAKES and ("should match" in said or wanted):
        return f"write {_TAKES[name]}"
    if _QUANTITY in said:
        return "write a quantity, as in 2, 500m or 64Gi"
    if wanted == "integer" and isinstance(value, str):
        if value.isdigit():
            return f"write {value} without quotes"
        return _seconds(value) if own and (name == "duration" or name.endswith("Seconds")) else ""
    if wanted == "string" and isinstance(value, int | float):
        return f'quote it, as in "{_shown(value)}"'
    return ""


def _seconds(value: str) -> str:
    try:
        return f"write whole seconds, {durations.parse(value):.0f}"
    except ValueError:
        return "write whole seconds"


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def refused(made: Manifest, text: str) -> Finding:
    where, _, why = text.partition(": ")
    path = located(made.body, where)
    said = re.sub(r"^Invalid value: ", "", why)
    return made.found("LWS105", path, f"LeaderWorkerSet refuses {where}: {said}")


def _meant(kind: str, path: Path) -> str:
    """An existing field at that place with a similar name, "" without one."""
    if path[0] != "spec":
        return next(iter(difflib.get_close_matches(str(path[-1]), TOP, 1, 0.6)), "")
    node: Node | None = spec_schema(kind)
    for part in path[1:-1]:
        node = (node.items if isinstance(part, int) else node.properties.get(part)) if node else None
    known = {each.lower(): each for each in node.properties} if node else {}
    elsewhere = _ELSEWHERE.get(str(path[-1]), "")
    if elsewhere.lower() in known:
        return elsewhere
    return next((known[each] for each in difflib.get_close_matches(str(path[-1]).lower(), known, 1, 0.6)), "")
