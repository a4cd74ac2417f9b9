"""Words that the product no longer uses: each has a term of the field, which people search for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: The word that is retired, and what is said instead. What a word is replaced by everywhere joins this table.
RETIRED = {
    "anybody": "the actor's name",
    "borrow": "managed by the release",
    "borrowed": "managed by the release",
    "brevity": "throttle",
    "chore": "best-effort write",
    "everybody": "the actor's name",
    "fight": "write conflict",
    "ghost": "deleted Rollout",
    "given back": "restored",
    "gives back": "restores",
    "going_back": "rollback",
    "handover": "traffic shift",
    "in stead": "in place of",
    "made anew": "recreated",
    "mended": "fixed",
    "nobody": "the actor's name",
    "portion": "batch",
    "quarrel": "write conflict",
    "routable": "routing preflight",
    "somebody": "the actor's name",
    "someone": "the actor's name",
    "take back": "roll back",
    "takes back": "rolls back",
    "the last word": "verdict",
    "truce": "back-off",
    "whoever": "the actor's name",
    "whomever": "the actor's name",
    "GivenBack": "Restored",
    "GoingBack": "RollingBack",
    "VersionWaits": "UpdateHeld",
    "holdFights": "holdConflicts",
}
_ANY = re.compile(rf"(?<![a-z])({'|'.join(map(re.escape, RETIRED))})s?(?![a-z])", re.IGNORECASE)


def _texts() -> Iterator[Path]:
    """The product, the pages that users read, the chart and the examples; decision records keep their words."""
    yield ROOT / "README.md"
    yield from (ROOT / "rollout_lws").rglob("*.py")
    yield from (ROOT / "docs").glob("*.md")
    for folder in (ROOT / "charts", ROOT / "examples"):
        yield from (each for each in folder.rglob("*") if each.suffix in {".md", ".tpl", ".txt", ".yaml", ".yml"})


def test_no_retired_word_comes_back() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]} (say: {RETIRED.get(match[1], match[1])})"
        for path in sorted(_texts())
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in _ANY.finditer(line)
    ]
    assert found == []
