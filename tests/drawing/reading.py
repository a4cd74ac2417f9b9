"""Pictures as tests read them: what stands at a place, from the shapes alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

_SVG = "{http://www.w3.org/2000/svg}"
_PART = re.compile(r"([MVHZ])(-?[\d.]+)?(?: (-?[\d.]+))?")
#: Bands by their class, or the pattern that fills them, from the bottom to the top.
BANDS = tuple((version, state) for version in ("old", "new") for state in ("ready", "draining", "loading"))


class Picture:
    """An SVG document. It is XML, whatever was drawn."""

    def __init__(self, svg: str) -> None:
        self.root = ElementTree.fromstring(svg)

    @property
    def texts(self) -> list[str]:
        """All texts that are seen, in their order."""
        return [each.text or "" for each in self.root.iter(f"{_SVG}text")]

    def told(self, name: str) -> str:
        """The text of the title, or of the description."""
        found = self.root.find(f"{_SVG}{name}")
        assert found is not None
        return found.text or ""

    def boxes(self, of: str) -> list[tuple[float, float]]:
        """Left and right edges of rectangles of a class."""
        found = [each for each in self.root.iter(f"{_SVG}rect") if each.get("class") == of]
        return [(float(each.attrib["x"]), float(each.attrib["x"]) + float(each.attrib["width"])) for each in found]

    def height(self, version: str, state: str, x: float) -> float:
        """How high a band is at this place."""
        fill = None if state == "ready" else f"url(#rl-{version}-{state})"
        for path in self.root.iter(f"{_SVG}path"):
            if path.get("fill") == fill and path.get("class") == (version if fill is None else None):
                return sum(max(0.0, lower - upper) for lower, upper in _edges(path.attrib["d"], x))
        return 0.0

    def line(self, of: str, x: float) -> list[float]:
        """Where lines of a class are at this place, from the top of the picture."""
        found = [each for each in self.root.iter(f"{_SVG}path") if each.get("class") == of]
        return [y for each in found for left, right, y in _levels(each.attrib["d"]) if left <= x < right]


def _levels(d: str) -> Iterator[tuple[float, float, float]]:
    """Level parts of a path: left, right, and where it is."""
    x = y = 0.0
    for kind, first, second in _PART.findall(d):
        if kind == "M":
            x, y = float(first), float(second)
        elif kind == "V":
            y = float(first)
        elif kind == "H":
            yield min(x, float(first)), max(x, float(first)), y
            x = float(first)


def _edges(d: str, x: float) -> Iterator[tuple[float, float]]:
    """Lower and upper edge of each shape of a path at this place."""
    for shape in filter(None, d.split("Z")):
        there = [y for left, right, y in _levels(shape) if left <= x < right]
        if there:
            yield max(there), min(there)
