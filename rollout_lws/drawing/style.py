"""Colours and patterns of pictures: for light and dark, and told apart without colour as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rollout_lws.drawing.svg import Element, element

#: Sizes of texts, and the widths of a letter relative to them, of a name and in a sentence, in the widest of the fonts
#: that a reader may have.
TITLE, SMALL, LETTER, PROSE = 16.0, 13.0, 0.56, 0.52

_ROOT = "svg.rollout-course"
_LIGHT = {
    "paper": "#ffffff",
    "edge": "#d5dae1",
    "ink": "#1c2430",
    "muted": "#525d6c",
    "grid": "#e3e7ec",
    "old": "#a9b3c1",
    "old-ink": "#1c2430",
    "new": "#1668b0",
    "new-ink": "#ffffff",
    "new-pale": "#cfe3f6",
    "old-pale": "#e6e9ee",
    "share": "#b4470a",
    "asked": "#8a5a00",
    "asked-pale": "#fbe7bd",
    "held": "#4a3f8f",
}
_DARK = {
    "paper": "#161b22",
    "edge": "#343c48",
    "ink": "#e8ecf1",
    "muted": "#a8b2bf",
    "grid": "#2b323d",
    "old": "#667283",
    "old-ink": "#ffffff",
    "new": "#5cb0f5",
    "new-ink": "#08182a",
    "new-pale": "#1d3d5c",
    "old-pale": "#2c343f",
    "share": "#ff9e5e",
    "asked": "#f2c14e",
    "asked-pale": "#4a3a12",
    "held": "#b7acf5",
}
#: By class: fill, stroke, and its width.
_SHAPES = {
    "paper": ("paper", "edge", 1.0),
    "cut": ("none", "paper", 1.4),
    "grid": ("none", "grid", 1.0),
    "border": ("none", "edge", 1.0),
    "level": ("none", "ink", 1.2),
    "old": ("old", "none", 0.0),
    "new": ("new", "none", 0.0),
    "old-pale": ("old-pale", "none", 0.0),
    "new-pale": ("new-pale", "none", 0.0),
    "old-line": ("none", "old", 1.6),
    "new-line": ("none", "new", 1.6),
    "old-dot": ("old", "none", 0.0),
    "new-dot": ("new", "none", 0.0),
    "share": ("none", "share", 2.4),
    "held": ("none", "held", 2.2),
    "asked": ("asked", "none", 0.0),
    "asked-pale": ("asked-pale", "none", 0.0),
    "gate": ("held", "none", 0.0),
    "pause": ("none", "held", 1.2),
    "later": ("paper", "none", 0.0),
    "now": ("none", "ink", 1.6),
}
#: By class: colour of a text, and of what is around it, so that it can be read on lines.
_TEXTS = {
    "ink": ("ink", "none"),
    "muted": ("muted", "none"),
    "named": ("muted", "paper"),
    "on-old": ("old-ink", "none"),
    "on-new": ("new-ink", "none"),
    "held-text": ("held", "none"),
    "gate-text": ("paper", "none"),
}


def style() -> Element:
    """The style sheet. It concerns nothing outside pictures, in a page that has them among its own elements too."""
    rules = [
        f"{_ROOT}{{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}}",
        f"{_ROOT} text{{font-size:{SMALL:.0f}px;paint-order:stroke;stroke-width:5;stroke-linejoin:round}}",
        f"{_ROOT} .title{{font-size:{TITLE:.0f}px;font-weight:600}}",
        f"{_ROOT} .dashed{{stroke-dasharray:5 4}}",
        f"{_ROOT} .later{{opacity:.55}}",
        *(f"{_ROOT} .{name}{{stroke-width:{width:g}}}" for name, (_, _, width) in _SHAPES.items() if width),
        *_coloured(_LIGHT),
        "@media (prefers-color-scheme:dark){",
        *_coloured(_DARK),
        "}",
    ]
    return element("style", "\n".join(rules))


def _coloured(colours: Mapping[str, str]) -> Iterator[str]:
    # Not by variables of CSS, which not all that show SVG understand.
    for name, (fill, stroke, _) in _SHAPES.items():
        yield f"{_ROOT} .{name}{{fill:{colours.get(fill, fill)};stroke:{colours.get(stroke, stroke)}}}"
    for name, (fill, stroke) in _TEXTS.items():
        yield f"{_ROOT} text.{name}{{fill:{colours[fill]};stroke:{colours.get(stroke, stroke)}}}"


def patterns() -> Element:
    """What loads is hatched, and what is about to go is dotted."""
    return element("defs", *(_hatched(each) for each in ("old", "new")), *(_dotted(each) for each in ("old", "new")))


def _hatched(version: str) -> Element:
    paper = element("rect", width=8, height=8, of=f"{version}-pale")
    line = element("path", d="M-2 2 L2 -2 M0 8 L8 0 M6 10 L10 6", of=f"{version}-line")
    return element("pattern", paper, line, id=f"rl-{version}-loading", width=8, height=8, patternUnits="userSpaceOnUse")


def _dotted(version: str) -> Element:
    paper = element("rect", width=6, height=6, of=f"{version}-pale")
    dot = element("circle", cx=3, cy=3, r=1.4, of=f"{version}-dot")
    return element("pattern", paper, dot, id=f"rl-{version}-draining", width=6, height=6, patternUnits="userSpaceOnUse")
