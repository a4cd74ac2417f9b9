"""Validates a manifest against its kind's schema and fills in defaults, as an API server would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rollout_lws.cli.lint import schema_errors
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.manifests import Manifest
from rollout_lws.cli.lint.paths import Path, located, value_at
from rollout_lws.cli.lint.pruning import pruned
from rollout_lws.cli.lint.rules import broken_rules
from rollout_lws.cli.lint.schemas import METADATA, spec_schema
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.sandbox.admission import defaults
from rollout_lws.sandbox.behaviours.lws.admission import defaulted, validate
from rollout_lws.sandbox.schemas.schema import Node

Object = dict[str, Any]


def shaped(made: Manifest, *, ours: bool) -> tuple[Object | None, list[Finding]]:
    """The object with a server's defaults, None when the server would reject it, and the findings.

    ``ours`` marks a Rollout or BatchRelease, whose fields are all known.
    """
    if made.body.get("spec") is None:
        return None, [made.found("LWS103", (), f"{made.what} has no spec: give it one")]
    body, unknown, wrong = _prepared(made)
    unknown += [(name,) for name in made.body if ours and name not in schema_errors.TOP]
    # Dumps of other programs contain nulls for unset fields.
    known = (path for path in unknown if ours or value_at(made.body, path) is not None)
    findings = [schema_errors.unknown(made, path, ours=ours) for path in known]
    findings += [schema_errors.violated(made, text) for text in wrong]
    whole: Object | None = body
    if wrong:
        whole = pruned(made.resource.kind, body, [located(body, text.partition(": ")[0]) for text in wrong])
    if whole is None:
        return None, findings
    whole = _named(made, whole)
    if made.resource != LEADER_WORKER_SETS:
        return defaults.fill(made.resource, whole), findings
    whole = defaulted(whole)
    refused = [schema_errors.refused(made, text) for text in validate(whole, None)]
    return (None if refused else whole), findings + refused


def _prepared(made: Manifest) -> tuple[Object, list[Path], list[str]]:
    """The object with its schema's defaults, its unknown fields, and the schema's errors."""
    body, schema = made.body, spec_schema(made.resource.kind)
    unknown: list[Path] = []
    spec = schema.prepared(body["spec"], "spec", lambda text: unknown.append(located(body, text)))
    # A null field counts as unset.
    metadata = METADATA.prepared(body.get("metadata"), "metadata", None)
    wrong = [*_violations(METADATA, metadata, "metadata"), *_violations(schema, spec, "spec")]
    return {**body, "metadata": metadata, "spec": spec}, unknown, wrong or [*broken_rules(schema, spec, "spec")]


def _violations(schema: Node, value: Any, path: str) -> Iterator[str]:
    if value is not None:
        yield from schema.violations(value, path)


def _named(made: Manifest, body: Object) -> Object:
    """The object in its namespace, without status."""
    sent: Object = _sent({name: value for name, value in body.items() if name != "status"})
    return sent | {"metadata": {**(sent.get("metadata") or {}), "name": made.name, "namespace": made.namespace}}


def _sent(value: Any) -> Any:
    """As a server receives it: JSON has one number type, so 2.0 is 2."""
    if isinstance(value, dict):
        return {name: _sent(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_sent(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
