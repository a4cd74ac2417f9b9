"""Keeps decisions free of effects: `python -m tests.purity` names each line of the core that changes what it was given.

A function of the core answers with values. It assigns to no member or item of an argument, calls no method on one that
changes it, and drops no answer: what it does not use was called for its effect.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.sentences import report

#: Methods that change a list, set or dict.
CHANGES = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault"}
) | {"sort", "update"}


def found(_: Path, source: str) -> Iterator[tuple[int, str]]:
    """Lines with an effect, each with what it is."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            given = {each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
            yield from (
                (each.lineno, f"{function.name} {what}")
                for each in ast.walk(function)
                if isinstance(each, ast.stmt) and (what := _effect(each, given))
            )


def _effect(statement: ast.stmt, given: set[str]) -> str:
    if isinstance(statement, ast.Global | ast.Nonlocal):
        return f"changes {', '.join(statement.names)}"
    for target in _targets(statement):
        if not isinstance(target, ast.Name) and _root(target) in given:
            return f"assigns to {ast.unparse(target)}"
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return ""
    called = statement.value.func
    if isinstance(called, ast.Attribute) and called.attr in CHANGES:
        return f"changes {ast.unparse(called.value)}" if _root(called.value) in given else ""
    return "" if ast.unparse(called) == "assert_never" else f"drops what {ast.unparse(called)}() answers"


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign | ast.Delete):
        return statement.targets
    return [statement.target] if isinstance(statement, ast.AugAssign | ast.AnnAssign) else []


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def main() -> int:
    return report(found, "a rule answers with a value")


if __name__ == "__main__":
    sys.exit(main())
