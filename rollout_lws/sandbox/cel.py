"""CEL rules of custom resources (x-kubernetes-validations), evaluated by cel-python.

What it cannot evaluate: Kubernetes' own libraries (quantity, url, ip, cidr, format, semver), optional types and cost
limits. A rule that does not compile, or fails while it runs, refuses the write and
says so: nothing passes unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

_USES_OLD = re.compile(r"\boldSelf\b")


def violations(rules: Sequence[Mapping[str, Any]], value: Any, old: Any, path: str) -> Iterator[str]:
    """What ``rules`` refuse about ``value``; rules about ``oldSelf`` are asked only when there is an old value."""
    import celpy

    bindings: dict[str, Any] = {}
    for rule in rules:
        transition = _USES_OLD.search(rule["rule"]) is not None
        if transition and old is None:
            continue
        if not bindings:
            bindings["self"] = celpy.json_to_cel(value)
        if transition and "oldSelf" not in bindings:
            bindings["oldSelf"] = celpy.json_to_cel(old)
        try:
            passed = bool(_program(rule["rule"]).evaluate(bindings))
            why = _message(rule, bindings)
        except (celpy.CELEvalError, celpy.CELParseError) as failure:
            passed, why = False, f"rule {rule['rule']} cannot be evaluated: {failure.args[0] if failure.args else ''}"
        if not passed:
            where = path + (rule.get("fieldPath") or "")
            shown = "object" if isinstance(value, dict) else value
            text = f"Invalid value: {_quoted(shown)}: {why}"
            if rule.get("reason") == "FieldValueForbidden":
                text = f"Forbidden: {why}"
            elif rule.get("reason") == "FieldValueRequired":
                text = f"Required value: {why}"
            yield f"{where or '<nil>'}: {text}".lstrip(".")


@lru_cache(maxsize=1024)
def _program(source: str) -> Any:
    import celpy

    environment = celpy.Environment()
    return environment.program(environment.compile(source))


def _message(rule: Mapping[str, Any], bindings: Mapping[str, Any]) -> str:
    if rule.get("messageExpression"):
        return str(_program(rule["messageExpression"]).evaluate(dict(bindings)))
    return str(rule.get("message") or f"failed rule: {rule['rule']}")


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
