"""Elements of SVG. What is given as text is text in the picture, whatever it contains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

#: Members whose names Python keeps for itself, or cannot have.
_NAMES = {"of": "class"}
_CONTAINERS = frozenset({"svg", "g", "defs"})


@dataclass(frozen=True, slots=True)
class Element:
    """An element with its attributes, and its children: elements, and texts."""

    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: tuple[Element | str, ...] = ()

    def __str__(self) -> str:
        return "".join(self._parts())

    def _parts(self) -> Iterator[str]:
        yield f"<{self.name}"
        yield from (f' {name}="{_escaped(value)}"' for name, value in self.attributes.items())
        if not self.children:
            yield "/>"
            return
        yield ">"
        for each in self.children:
            # A text may not get blanks that it does not have.
            yield "\n" if self.name in _CONTAINERS else ""
            if isinstance(each, Element):
                yield from each._parts()
            else:
                yield _escaped(each)
        yield f"</{self.name}>"


def element(name: str, *children: Element | str, **attributes: str | float | None) -> Element:
    """An element; ``of`` is its class, a hyphen is written as an underscore, and None leaves an attribute out."""
    told = {
        _NAMES.get(key, key.replace("_", "-")): value if isinstance(value, str) else number(value)
        for key, value in attributes.items()
        if value is not None
    }
    return Element(name, told, children)


def number(value: float) -> str:
    """With at most two decimals, and none where there are none."""
    told = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if told == "-0" else told


def _escaped(text: str) -> str:
    # XML has no place for control characters, not even escaped, and others would turn the text around.
    shown = (each if each.isprintable() or each == "\n" else " " for each in text)
    return escape(text if text.isprintable() else "".join(shown))
