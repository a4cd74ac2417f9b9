"""The ways a new version gets its groups, as the strategies of Rollouts."""

from __future__ import annotations

from typing import Any

STYLES: dict[str, dict[str, Any]] = {
    "ExtraWorkload": {},
    "InPlace": {"canary": {"capacity": "InPlace"}},
    "Surge": {"canary": {"capacity": "Surge"}},
    "blue-green": {"blueGreen": {}},
}
