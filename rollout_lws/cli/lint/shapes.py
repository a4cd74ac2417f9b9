"""Whether a manifest has the shape that its kind asks for, and the object that an API server would make of it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.manifests import Manifest, written
from rollout_lws.cli.lint.nodes import Path
from rollout_lws.cli.lint.schemas import METADATA, spec_schema
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.sandbox import defaults
from rollout_lws.sandbox.behaviours.lws_admission import defaulted, validate
from rollout_lws.sandbox.schema import Node

Object = dict[str, Any]
_IN_BODY = re.compile(r"^Invalid value: .*?: \S+ in body ")
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_TOP = ("apiVersion", "kind", "metadata", "spec", "status")
#: Kubernetes' own prefixes of what is wrong, and what they say here.
_TYPES = {"integer,string": "a whole number, or text like 25%"}


def shaped(made: Manifest, *, ours: bool) -> tuple[Object | None, list[Finding]]:
    """The object with the defaults that a server would fill in, None when it would refuse it; and what is wrong.

    ``ours`` is whether it is a Rollout or BatchRelease, of which every field is known.
    """
    body, kind = made.body, made.resource.kind
    findings: list[Finding] = []
    unknown: list[Path] = [(name,) for name in body if ours and name not in _TOP]
    wrong = [*_violations(METADATA, body.get("metadata"), "metadata")]
    spec, schema = body.get("spec"), spec_schema(kind)
    if spec is None:
        findings.append(made.found("LWS103", (), f"{made.what} has no spec: give it one"))
    else:
        prepared = schema.prepared(spec, "spec", lambda text: unknown.append(located(body, text)))
        wrong += _violations(schema, prepared, "spec")
    # What other programs print has nulls for what was left out.
    findings += [_unknown(made, path, ours=ours) for path in unknown if ours or _at(body, path) is not None]
    findings += [_violated(made, text) for text in wrong]
    if wrong or spec is None:
        return None, findings
    whole: Object = {**body, "spec": prepared, "metadata": {**(body.get("metadata") or {}), "name": made.name}}
    whole["metadata"]["namespace"] = made.namespace
    whole.pop("status", None)
    if made.resource == LEADER_WORKER_SETS:
        whole = defaulted(whole)
        refused = [_refused(made, text) for text in validate(whole, None)]
        return (None if refused else whole), findings + refused
    return defaults.fill(made.resource, whole), findings


def _violations(schema: Node, value: Any, path: str) -> Iterator[str]:
    if value is not None:
        yield from schema.violations(value, path)


def located(body: Object, text: str) -> Path:
    """The path that ``text`` writes, as ``spec.steps[0].replicas``; keys may have dots in them, as those of labels."""
    path: list[str | int] = []
    value: Any = body
    while text:
        if isinstance(value, dict):
            fitting = [key for key in value if text == key or text.startswith((f"{key}.", f"{key}["))]
            key = max(fitting, key=len, default=None)
            if key is not None:
                path.append(key)
                value, text = value[key], text[len(key) :].removeprefix(".")
                continue
        match = _STEP.match(text)
        if match is None:
            break
        step: str | int = int(match[1]) if match[1] else match[2]
        path.append(step)
        value = value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None
        text = text[match.end() :].removeprefix(".")
    return tuple(path)


def _unknown(made: Manifest, path: Path, *, ours: bool) -> Finding:
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


def _meant(kind: str, path: Path) -> str:
    """A field of that place whose name is near, "" without one."""
    if path[0] != "spec":
        return next(iter(difflib.get_close_matches(str(path[-1]), _TOP, 1, 0.6)), "")
    node: Node | None = spec_schema(kind)
    for part in path[1:-1]:
        node = (node.items if isinstance(part, int) else node.properties.get(part)) if node else None
    known = {each.lower(): each for each in node.properties} if node else {}
    return next((known[each] for each in difflib.get_close_matches(str(path[-1]).lower(), known, 1, 0.6)), "")


def _violated(made: Manifest, text: str) -> Finding:
    """What a schema says, in fewer words: the position says the rest."""
    where, _, why = text.partition(": ")
    path = located(made.body, where)
    if why == "Required value":
        within = written(path[:-1]) or made.what
        return made.found("LWS103", path, f"{path[-1]} is missing in {within}: add it")
    field, value = written(path), _at(made.body, path)
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


def _refused(made: Manifest, text: str) -> Finding:
    where, _, why = text.partition(": ")
    path = located(made.body, where)
    said = re.sub(r"^Invalid value: ", "", why)
    return made.found("LWS105", path, f"LeaderWorkerSet refuses {where}: {said}")


def _at(body: Any, path: Path) -> Any:
    for part in path:
        if isinstance(body, dict) and isinstance(part, str):
            body = body.get(part)
        elif isinstance(body, list) and isinstance(part, int) and part < len(body):
            body = body[part]
        else:
            return None
    return body
