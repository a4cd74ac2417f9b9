"""The CEL rules of other projects' kinds, in Python: to load a whole evaluator would take longer than all the rest.

Those of our own kinds are not here, since ``rollout_lws.api.validation`` and the controller's refusals say the same and
what to do besides. A test holds each of these against the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rollout_lws.sandbox.schemas.schema import Node


def _absolute(path: Mapping[str, Any]) -> bool:
    return path.get("type") == "RegularExpression" or str(path.get("value", "")).startswith("/")


def _has_port(reference: Mapping[str, Any]) -> bool:
    return "port" in reference or (reference.get("group"), reference.get("kind")) != ("", "Service")


def _picker_has_port(reference: Mapping[str, Any]) -> bool:
    return "port" in reference or reference.get("kind") != "Service"


#: Rule, as it stands in a definition, to what it asks of a value that has its defaults.
RULES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "(self.type in ['Exact','PathPrefix']) ? self.value.startsWith('/') : true": _absolute,
    "(size(self.group) == 0 && self.kind == 'Service') ? has(self.port) : true": _has_port,
    "self.kind != 'Service' || has(self.port)": _picker_has_port,
}


def broken_rules(schema: Node, value: Any, path: str) -> Iterator[str]:
    """What the known rules refuse about a value whose shape is right, as a schema says it."""
    for node, inner, _, where in schema.ruled(value, None, path):
        for rule in node.rules:
            asked = RULES.get(rule["rule"])
            if asked is not None and not asked(inner):
                yield f"{where}: {rule['message']}"
