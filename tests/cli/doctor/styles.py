"""The ways a new version gets its groups, as the strategies of Rollouts."""

from __future__ import annotations

from typing import Any

import pytest

STYLES: dict[str, dict[str, Any]] = {
    "ExtraWorkload": {},
    "InPlace": {"canary": {"capacity": "InPlace"}},
    "Surge": {"canary": {"capacity": "Surge"}},
    "blue-green": {"blueGreen": {}},
}
#: All of them, of which the default run tells the one that differs most from what is told elsewhere.
EVERY_STYLE = [name if name == "Surge" else pytest.param(name, marks=pytest.mark.long) for name in STYLES]
