"""Words that the product no longer uses: each has a term of the field, which people search for."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: The word that is retired, and what is said instead. What a word is replaced by everywhere joins this table.
RETIRED = {
    "borrow": "managed by the release",
    "brevity": "throttle",
    "fight": "write conflict",
    "going_back": "rollback",
    "handover": "traffic shift",
    "in stead": "in place of",
    "quarrel": "write conflict",
    "routable": "routing preflight",
    "take back": "roll back",
    "takes back": "rolls back",
    "the last word": "verdict",
    "truce": "back-off",
    "whomever": "the actor's name",
    "GivenBack": "Restored",
    "GoingBack": "RollingBack",
    "VersionWaits": "UpdateHeld",
    "holdFights": "holdConflicts",
}
_ANY = re.compile(rf"\b({'|'.join(map(re.escape, RETIRED))})s?\b", re.IGNORECASE)


def test_no_retired_word_comes_back_to_the_product() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]} (say: {RETIRED.get(match[1], match[1])})"
        for path in sorted((ROOT / "rollout_lws").rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in _ANY.finditer(line)
    ]
    assert found == []
