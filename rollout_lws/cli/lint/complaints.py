"""What a schema or a webhook says of a manifest, in fewer words: the position says the rest."""

from __future__ import annotations

import difflib
import re

from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.manifests import Manifest
from rollout_lws.cli.lint.paths import Path, located, value_at, written
from rollout_lws.cli.lint.schemas import spec_schema
from rollout_lws.sandbox.schema import Node

#: Members of every object.
TOP = ("apiVersion", "kind", "metadata", "spec", "status")

_IN_BODY = re.compile(r"^Invalid value: .*?: \S+ in body ")
_TYPES = {"integer,string": "a whole number, or text like 25%"}


def unknown(made: Manifest, path: Path, *, ours: bool) -> Finding:
    name, near = str(path[-1]), _meant(made.resource.kind, path)
    advice = f"did you mean {near}?" if near else "remove it"
    if ours:
        # The API server drops it, or kubectl refuses to send it.
        return made.found("LWS101", path, f"{made.resource.kind} has no field {name} here: {advice}")
    return made.found(
        "LWS104",
        path,
        f"{made.resource.kind} is not known to have a field {name} here: {advice if near else 'is it new?'}",
    )


def violated(made: Manifest, text: str) -> Finding:
    """What a schema says, in fewer words: the position says the rest."""
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
    if wrong_type:
        wanted = _TYPES.get(wrong_type[1], wrong_type[1])
        return made.found("LWS102", path, f"{field} must be of type {wanted}, not {wrong_type[2]}")
    return made.found("LWS102", path, f"{field} {said[:1].lower()}{said[1:]}")


def refused(made: Manifest, text: str) -> Finding:
    where, _, why = text.partition(": ")
    path = located(made.body, where)
    said = re.sub(r"^Invalid value: ", "", why)
    return made.found("LWS105", path, f"LeaderWorkerSet refuses {where}: {said}")


def _meant(kind: str, path: Path) -> str:
    """A field of that place whose name is near, "" without one."""
    if path[0] != "spec":
        return next(iter(difflib.get_close_matches(str(path[-1]), TOP, 1, 0.6)), "")
    node: Node | None = spec_schema(kind)
    for part in path[1:-1]:
        node = (node.items if isinstance(part, int) else node.properties.get(part)) if node else None
    known = {each.lower(): each for each in node.properties} if node else {}
    return next((known[each] for each in difflib.get_close_matches(str(path[-1]).lower(), known, 1, 0.6)), "")
