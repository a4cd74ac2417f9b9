"""CEL rules of custom resources (x-kubernetes-validations), evaluated by cel-python.

Not supported: Kubernetes' own libraries (quantity, url, ip, cidr, format, semver), optional types and cost limits. A
rule that fails to compile or to run refuses the write with an error, so none is skipped silently.

Results are cached by the members that a rule reads: root rules run at every status write, and most of them read a name
that never changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

_USES_OLD = re.compile(r"\boldSelf\b")
#: self or oldSelf with a path of members; a last one with a parenthesis is a function's name, and the regex marks paths
#: inside has(), of which only the presence matters.
_READ = re.compile(r"((?<![\w.])has\s*\(\s*)?\b(self|oldSelf)\b((?:\s*\.\s*\w+)*)(\s*\()?")

#: Members that a rule reads, each with those read below it; None is the whole value.
_Members: TypeAlias = "dict[str, _Members] | None"


def violations(rules: Sequence[Mapping[str, Any]], value: Any, old: Any, path: str) -> Iterator[str]:
    """Violations of ``rules`` by ``value``; rules about ``oldSelf`` run only if there is an old value."""
    import celpy

    for rule in rules:
        if old is None and _USES_OLD.search(rule["rule"]) is not None:
            continue
        try:
            passed = bool(_ask(rule["rule"], value, old))
            why = "" if passed else _message(rule, value, old)
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


def _ask(source: str, value: Any, old: Any) -> Any:
    values = {"self": value, "oldSelf": old}
    return _answer(source, *((name, _part(values[name], members)) for name, members in _read(source).items()))


def _part(value: Any, members: _Members) -> bytes:
    return msgspec.json.encode(_only(value, members))


def _only(value: Any, members: _Members) -> Any:
    if members is None or not isinstance(value, dict):
        return value
    return {name: _only(member, members[name]) for name, member in value.items() if name in members}


@lru_cache(maxsize=4096)
def _answer(source: str, *values: tuple[str, bytes]) -> Any:
    import celpy

    bindings = {name: celpy.json_to_cel(msgspec.json.decode(value)) for name, value in values}
    return _program(source).evaluate(bindings)


@lru_cache(maxsize=1024)
def _read(source: str) -> dict[str, _Members]:
    """An upper bound of the members that a rule reads, derived from its text."""
    found: dict[str, _Members] = {}
    for asked_for, name, rest, called in _READ.findall(source):
        path = [name, *(part.strip() for part in rest.split(".")[1:])]
        if called and len(path) > 1:
            path.pop()
        here: _Members = found
        for part in path[:-1]:
            here = None if here is None else here.setdefault(part, {})
        if here is not None and asked_for:
            here.setdefault(path[-1], {})
        elif here is not None:
            here[path[-1]] = None
    return found


@lru_cache(maxsize=1024)
def _program(source: str) -> Any:
    import celpy

    environment = celpy.Environment()
    return environment.program(environment.compile(source))


def _message(rule: Mapping[str, Any], value: Any, old: Any) -> str:
    if rule.get("messageExpression"):
        return str(_ask(rule["messageExpression"], value, old))
    return str(rule.get("message") or f"failed rule: {rule['rule']}")


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
