"""The ways a new version gets its groups, each with its words, its usual steps and what it promises.

Stories and judges ask a style and never compare names, so that a style more is one value more here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Style:
    """``key`` is the member of spec.strategy with ``words`` in it; ``steps`` names the plan that the matrix goes by."""

    name: str
    steps: str
    #: Groups of the new version that stand beside the R there are.
    extra: Literal["none", "as planned", "all"]
    key: str = "canary"
    words: Mapping[str, Any] = field(default_factory=dict)
    #: Whether new groups stand in an LWS of their own: before the promotion no group of the stable one is touched.
    apart: bool = True
    #: Whether all new groups are ready before the first old one goes.
    whole_first: bool = False
    #: Whether an old group goes only when another one is ready in its place.
    spared: bool = False
    #: The fewest groups that can be released in this way.
    least: int = 1

    def __str__(self) -> str:
        return self.name

    def most_extra(self, planned: int, replicas: int) -> int:
        """Groups beyond ``replicas`` that may exist when the steps ask for ``planned`` new ones at most."""
        return {"none": 0, "as planned": max(1, planned), "all": max(1, planned, replicas)}[self.extra]

    @property
    def sub_status(self) -> str:
        """The member of the status that tells of its steps."""
        return f"{self.key}Status"


CANARY_STYLE = Style("canary", "pair", "as planned")
BLUE_GREEN = Style("blue-green", "green", "all", key="blueGreen", whole_first=True)
IN_PLACE = Style("in place", "pair", "none", words={"capacity": "InPlace"}, apart=False, least=2)
SURGE = Style("surge", "pair", "as planned", words={"capacity": "Surge"}, apart=False, spared=True)

#: Who is told of in the matrix and in walks.
STYLES = (CANARY_STYLE, BLUE_GREEN, IN_PLACE, SURGE)
