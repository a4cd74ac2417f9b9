"""docs/logs.md lists what a controller logs, with its level and its fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/logs.md"
#: Where a controller's code is.
PLACES = ("controller/*.py", "measuring/*.py", "notifications/*.py", "admission/*.py", "kube/*.py", "inbound.py")
LEVELS = {"info": "info", "warning": "warning", "error": "error", "exception": "error"}


def logged() -> Iterator[tuple[str, str]]:
    """Message and level of each call of a logger, debugging apart; ``*`` for a message that is not constant."""
    for place in PLACES:
        for path in sorted((ROOT / "rollout_lws").glob(place)):
            for node in ast.walk(ast.parse(path.read_text())):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "log"):
                    continue
                if node.func.attr in LEVELS:
                    message = node.args[0]
                    constant = isinstance(message, ast.Constant) and isinstance(message.value, str)
                    yield (message.value if constant else "*", LEVELS[node.func.attr])


def listed() -> set[tuple[str, str]]:
    return set(re.findall(r"^\| `([^`]+)` \| (\w+) \|", PAGE.read_text(), re.MULTILINE))


def test_the_page_lists_every_message_and_no_other() -> None:
    said = [each for each in logged() if each != ("*", "info")]
    assert sorted(set(said) - listed()) == [], "list it in docs/logs.md"
    assert sorted(listed() - set(said)) == [], "nobody says so any more: docs/logs.md"


def test_messages_are_constant_but_for_those_of_events() -> None:
    assert [each for each in logged() if "%" in each[0]] == []
    assert [message for message, _ in logged()].count("*") == 1
