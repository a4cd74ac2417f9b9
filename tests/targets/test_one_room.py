"""Only ``targets`` knows what kinds of workloads look like: rules ask a target for labels, fields and its kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import rollout_lws
from rollout_lws.objects.released import RELEASED
from rollout_lws.targets.table import TARGETS

ROOT = Path(rollout_lws.__file__).parent
RULES = ("admission", "capacity", "controller", "forecast", "observe", "rollout", "traffic", "workload")
#: Words that are one kind's alone, in a string or a name.
WORDS = (
    "LeaderWorkerSet",
    "leaderWorkerTemplate",
    "LEADER_WORKER",
    "LWS_",
    "lws-system",
    "leaderworkerset",
    "groupIdentity",
)
#: Files of the rules that may have some of them, and which.
EXCEPTIONS = {
    "observe/capabilities.py": ("LEADER_WORKER", "groupIdentity"),  # the CRD of LeaderWorkerSet
    "rollout/reasons.py": ("LeaderWorkerSet", "LWS_"),  # names of reasons, which alerts may match
    "workload/groups.py": ("LWS_",),  # the annotation with a group's size
}


def _words(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
    docstrings = {id(each.value) for body in bodies for each in body if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in docstrings:
            yield str(node.value)
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.name


def test_no_rule_names_what_belongs_to_one_kind_of_workload() -> None:
    found = {
        (str(path.relative_to(ROOT)), word)
        for room in RULES
        for path in (ROOT / room).rglob("*.py")
        for text in _words(path)
        for word in WORDS
        if word in text
    }
    allowed = {(path, word) for path, words in EXCEPTIONS.items() for word in words}
    assert found - allowed == set(), "ask the target instead"
    assert allowed - found == set(), "no exception any more"


def test_each_kind_has_its_struct_and_the_labels_of_its_pods() -> None:
    assert {each.resource: each.labels for each in TARGETS} == RELEASED
