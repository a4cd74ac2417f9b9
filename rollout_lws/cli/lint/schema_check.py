"""Validates a manifest against its kind's schema and fills in defaults, as an API server would."""

from __future__ import annotations

import difflib
import re
from typing import Any

from rollout_lws.api.resources import rollouts
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.manifests import Manifest
from rollout_lws.cli.lint.paths import Path, located, value_at, written
from rollout_lws.cli.lint.schemas import ANY, METADATA, spec_schema
from rollout_lws.cli.lint.stateful_sets import violations
from rollout_lws.objects.codec.durations import parse
from rollout_lws.objects.resources import LEADER_WORKER_SETS, STATEFUL_SETS
from rollout_lws.sandbox.admission import defaults
from rollout_lws.sandbox.behaviours.lws.admission import defaulted, validate
from rollout_lws.sandbox.schemas.schema import Node

Object = dict[str, Any]
#: Top-level fields of every object.
_TOP = ("apiVersion", "kind", "metadata", "spec", "status")
#: Names that users know from Kruise's older version and from other projects.
_ELSEWHERE = {"weight": "traffic", "setWeight": "traffic", "objectRef": "workloadRef"}
_IN_BODY = re.compile(r"^Invalid value: (.*?: \S+ in body )?")


def shaped(made: Manifest, *, ours: bool) -> tuple[Object | None, list[Finding]]:
    """The object with a server's defaults, None when the server would reject it, and the findings.

    ``ours`` marks a Rollout, whose fields are all known.
    """
    if made.body.get("spec") is None:
        return None, [made.found("LWS103", (), f"{made.what} has no spec: give it one")]
    schema = ANY if made.custom else spec_schema(made.resource.kind)
    unknown: list[Path] = []
    spec = schema.prepared(made.body["spec"], "spec", lambda text: unknown.append(located(made.body, text)))
    # A null field of the metadata counts as unset.
    metadata = METADATA.prepared(made.body.get("metadata"), "metadata", None)
    wrong = [
        text
        for node, value, path in ((METADATA, metadata, "metadata"), (schema, spec, "spec"))
        if value is not None
        for text in node.violations(value, path)
    ]
    unknown += [(name,) for name in made.body if ours and name not in _TOP]
    # Dumps of other programs contain nulls for unset fields.
    known = (path for path in unknown if ours or value_at(made.body, path) is not None)
    findings = [_unknown(made, path, ours=ours) for path in known] + [_violated(made, text) for text in wrong]
    if wrong:
        return None, findings
    whole = _sent({name: value for name, value in made.body.items() if name != "status"} | {"spec": spec})
    whole["metadata"] = {**_sent(metadata or {}), "name": made.name, "namespace": made.namespace}
    if made.resource != LEADER_WORKER_SETS:
        refused = [_violated(made, text) for text in violations(whole)] if made.resource == STATEFUL_SETS else []
        return (None if refused else defaults.fill(made.resource, whole)), findings + refused
    whole = defaulted(whole)
    refused = [_refused(made, text) for text in validate(whole, None)]
    return (None if refused else whole), findings + refused


def _sent(value: Any) -> Any:
    """As a server receives it: JSON has one number type, so 2.0 is 2."""
    if isinstance(value, dict):
        return {name: _sent(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_sent(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unknown(made: Manifest, path: Path, *, ours: bool) -> Finding:
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


def _meant(kind: str, path: Path) -> str:
    """An existing field at that place with a similar name, "" without one."""
    node: Node | None = spec_schema(kind) if path[0] == "spec" else None
    for part in path[1:-1]:
        node = (node.items if isinstance(part, int) else node.properties.get(part)) if node else None
    known = {each.lower(): each for each in (node.properties if node else _TOP if len(path) == 1 else ())}
    elsewhere = _ELSEWHERE.get(str(path[-1]), "")
    if elsewhere.lower() in known:
        return elsewhere
    return next((known[each] for each in difflib.get_close_matches(str(path[-1]).lower(), known, 1, 0.6)), "")


def _violated(made: Manifest, text: str) -> Finding:
    """The schema's own error, without the value, which the finding's position shows."""
    where, _, why = text.partition(": ")
    path = located(made.body, where)
    if why == "Required value":
        within = written(path[:-1]) or made.what
        return made.found("LWS103", path, f"{path[-1]} is missing in {within}: add it")
    said = _IN_BODY.sub("", why)
    return made.found("LWS102", path, f"{written(path)}: {said[:1].lower()}{said[1:]}{_seconds(made, path)}")


def _seconds(made: Manifest, path: Path) -> str:
    """What to write instead of a duration, which other projects' fields take; "" for other values."""
    name, value = str(path[-1]), value_at(made.body, path)
    if made.resource.kind != rollouts().kind or not isinstance(value, str) or not re.search("duration|Seconds$", name):
        return ""
    try:
        return f"; write whole seconds, {parse(value):.0f}"
    except ValueError:
        return "; write whole seconds"


def _refused(made: Manifest, text: str) -> Finding:
    where, _, why = text.partition(": ")
    said = why.removeprefix("Invalid value: ")
    return made.found("LWS105", located(made.body, where), f"LeaderWorkerSet refuses {where}: {said}")
