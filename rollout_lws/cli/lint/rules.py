"""CEL rules of other projects' kinds, in Python: loading a CEL evaluator would take longer than everything else.

``rollout_lws.api.validation`` and the controller's refusals cover the rules of our own kinds, with advice. A test
compares each rule here with the evaluator.
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


#: Each rule's text in the CRD, and its check of a defaulted value.
RULES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "(self.type in ['Exact','PathPrefix']) ? self.value.startsWith('/') : true": _absolute,
    "(size(self.group) == 0 && self.kind == 'Service') ? has(self.port) : true": _has_port,
    "self.kind != 'Service' || has(self.port)": _picker_has_port,
}


def broken_rules(schema: Node, value: Any, path: str) -> Iterator[str]:
    """Messages of the known rules that a value with a valid shape breaks."""
    for node, inner, _, where in schema.ruled(value, None, path):
        for rule in node.rules:
            asked = RULES.get(rule["rule"])
            if asked is not None and not asked(inner):
                yield f"{where}: {rule['message']}"
