"""Keeps sentences out of decisions: `python -m tests.sentences` names each line of the core that looks into one.

A sentence is what a member or variable named like one holds (``SENTENCES``). It may be joined with others, cut to a
length and compared as a whole. What others say (Kueue, StatefulSets) is read at the few places named in ``OTHERS``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent / "rollout_lws"
#: Packages in which decisions are made.
CORE = ("capacity", "forecast", "rollout", "traffic", "workload")
#: What sentences are called.
SENTENCES = frozenset(
    {"advice", "detail", "message", "note", "said", "text", "told", "unaccepted", "waits", "why", "words"}
)
#: Methods that look into a text.
READS = frozenset(
    {"count", "endswith", "find", "index", "partition", "removeprefix", "removesuffix", "rfind", "rindex", "rpartition"}
) | {"rsplit", "split", "splitlines", "startswith"}
#: Functions that read what others say, where that is the only place where they say it.
OTHERS = {
    ("workload/queueing.py", "_without_quota"): "Kueue gives several states one reason",
    ("workload/trouble.py", "_refused"): "events of StatefulSets name the pod in their text only",
    ("workload/trouble.py", "_not_created"): "the API server has one reason for all that admission refuses",
}


def found(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """Lines that read a sentence, each with what is wrong."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and (path.as_posix(), function.name) not in OTHERS:
            yield from (
                (each.lineno, f"{function.name} reads {what}") for each in ast.walk(function) if (what := _read(each))
            )


def _read(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in READS and _called(node.func.value) in SENTENCES:
            return f"{ast.unparse(node.func.value)} by {node.func.attr}()"
        matched = node.func.attr in ("match", "search", "fullmatch", "sub", "findall", "finditer")
        of = next((_called(each) for each in node.args if _called(each) in SENTENCES), "")
        return f"{of} by a regular expression" if matched and of else ""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        of = _called(node.comparators[0])
        return f"{of} by what is in it" if of in SENTENCES else ""
    return ""


def _called(node: ast.expr) -> str:
    """Name of a variable, or of the last member of an expression; "" for anything else."""
    if isinstance(node, ast.BoolOp):
        return next((name for each in node.values if (name := _called(each)) in SENTENCES), "")
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def report(found: Callable[[Path, str], Iterator[tuple[int, str]]], advice: str) -> int:
    """Print what a rule has found in the core; 1 when that is anything."""
    wrong = [
        f"{path}:{line}: {what}; {advice}"
        for package in CORE
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, what in found(path.relative_to(ROOT), path.read_text())
    ]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


def main() -> int:
    return report(found, "a fact that decides has a typed field")


if __name__ == "__main__":
    sys.exit(main())
