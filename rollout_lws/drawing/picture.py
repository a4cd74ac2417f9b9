"""The picture of a course, as SVG: groups of either version over time, requests and accelerators below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from rollout_lws.drawing import geometry, words
from rollout_lws.drawing.course import Course, Kind, Moment
from rollout_lws.drawing.geometry import BANDS, Band, Box
from rollout_lws.drawing.scales import Numbers, Times
from rollout_lws.drawing.style import LETTER, PROSE, SMALL, TITLE, patterns, style
from rollout_lws.drawing.svg import Element, element, number

#: The usual width, at which texts can be read on a telephone as well, and one for pictures side by side.
WIDTH, NARROW = 480.0, 400.0
#: Room beside the panels, and around the paper.
_LEFT, _RIGHT, _EDGE = 50.0, 14.0, 14.0
#: Heights: of the panel of groups and of those of lines, of the name above these, and of a row of text.
_GROUPS, _LINE, _NAME, _ROW = 120.0, 44.0, 32.0, 20.0
#: More groups are not told apart by lines.
_COUNTED = 24


def picture(course: Course, width: float = WIDTH, among: Sequence[Course] = ()) -> str:
    """The picture as a document of its own, which a page may also have among its elements; ``among``: all that stand
    side by side, so that their scales are the same.
    """
    return f"{_Drawing(course, width, among).svg()}\n"


class _Drawing:
    """A course on its paper, panel below panel."""

    def __init__(self, course: Course, width: float, among: Sequence[Course]) -> None:
        self.course, self.width, self.right = course, width, width - _RIGHT
        self.all = (course, *among)
        self.times = Times.of(course, among, _LEFT, self.right)
        self.spans = tuple(geometry.spans(course, self.times))
        self.boxes = tuple(geometry.boxes(course, self.times))
        self.lanes = geometry.lanes(each for each in self.boxes if each.wait.kind is not Kind.APPROVAL)
        self.most = max(moment.count for each in self.all for moment in each.moments)

    def svg(self) -> Element:
        head = [*self._head()]
        names = _EDGE + TITLE + len(head[1:]) * (SMALL + 5) + 24
        lanes = names + 8
        top = lanes + len(self.lanes) * _ROW + (4 if self.lanes else 0)
        bottom, panels = top + _GROUPS, [*self._groups(Numbers(top + _GROUPS, top, self.most))]
        for name, of, most, value in self._lines():
            scale = Numbers(bottom + _NAME + _LINE, bottom + _NAME, most)
            bottom, panels = scale.bottom, [*panels, *self._line(scale, name, of, value)]
        rows = [*self._legend(bottom + 48)]
        height = bottom + 48 + _ROW * max(row for row, _ in rows) + 16
        return element(
            "svg",
            element("title", self.course.title),
            element("desc", words.description(self.course)),
            style(),
            patterns(),
            element("rect", x=0.5, y=0.5, width=self.width - 1, height=height - 1, rx=8, of="paper"),
            *head,
            *self._approvals(names - 17, bottom),
            *self._borders(names - 12, bottom),
            *panels,
            *self._now(top, bottom),
            *self._names(names),
            *self._people(names - 5),
            *self._bars(lanes),
            *self._axis(bottom),
            *(each for _, each in rows),
            xmlns="http://www.w3.org/2000/svg",
            width=self.width,
            height=height,
            viewBox=f"0 0 {number(self.width)} {number(height)}",
            role="img",
            of="rollout-course",
        )

    def _head(self) -> Iterator[Element]:
        room = self.width - 2 * _EDGE
        title = words.cut(self.course.title, int(room / (TITLE * LETTER)))
        yield element("text", title, x=_EDGE, y=_EDGE + TITLE - 2, of="title ink")
        for row, line in enumerate(words.wrapped(self.course.facts, int(room / (SMALL * PROSE))), 1):
            yield element("text", line, x=_EDGE, y=_EDGE + TITLE + row * (SMALL + 5), of="muted")

    # Above the panels

    def _edges(self) -> Iterator[tuple[str, float]]:
        """Each stretch that takes time by its name, and where it begins."""
        passed = 0
        for each in self.course.stretches:
            if each.ends > each.begins or each.approval:
                yield each.name, self.times.x(each.begins, passed)
            passed += each.approval

    def _names(self, y: float) -> Iterator[Element]:
        """The name of each stretch from its begin on, or its last word, as far as there is room for it."""
        edges, taken = [*self._edges()], 0.0
        ends = [*(left for _, left in edges[1:]), self.right]
        people = [box.left for box in self.boxes if box.wait.kind is Kind.APPROVAL]
        for at, ((name, left), end) in enumerate(zip(edges, ends, strict=True)):
            until = min([end, *(each for each in people if left < each <= end)])
            fits = [each for each in (name, name.rpartition(" ")[2]) if left + _wide(each) + 4 <= until]
            if fits and left >= taken:
                yield element("text", fits[0], x=left + 4, y=y, of="ink")
                taken = left + _wide(fits[0])
            elif at == len(edges) - 1 and until - _wide(name) >= max(taken, *(each + 18 for each in people), 0):
                # The last one may begin before its stretch does.
                yield element("text", name, x=until, y=y, text_anchor="end", of="ink")

    def _borders(self, top: float, bottom: float) -> Iterator[Element]:
        for _, left in self._edges():
            yield element("path", d=f"M{number(left)} {number(top)}V{number(bottom)}", of="border")

    def _approvals(self, top: float, bottom: float) -> Iterator[Element]:
        for box in self.boxes:
            if box.wait.kind is Kind.APPROVAL:
                yield element(
                    "rect", x=box.left, y=top, width=box.right - box.left, height=bottom - top, of="asked-pale"
                )

    def _people(self, y: float) -> Iterator[Element]:
        for box in self.boxes:
            if box.wait.kind is Kind.APPROVAL:
                yield _person((box.left + box.right) / 2, y)

    def _bars(self, top: float) -> Iterator[Element]:
        """Pauses and gates, with their names where there is room."""
        for row, lane in enumerate(self.lanes):
            ends = [*(box.left for box in lane[1:]), self.right]
            for box, end in zip(lane, ends, strict=True):
                yield from _bar(box, top + row * _ROW, end)

    # Panels

    def _groups(self, scale: Numbers) -> Iterator[Element]:
        for band in BANDS:
            d = geometry.area(self.spans, band, scale)
            if d:
                yield element("path", d=d, **_filled(band))
        if self.most <= _COUNTED:
            yield element("path", d=geometry.cuts(self.spans, scale), of="cut")
        replicas = self.course.replicas
        yield self._level(scale, replicas)
        yield from self._ticks(scale, {0: "0", replicas: str(replicas), self.most: str(self.most)})
        for band, name, of in ((BANDS[0], "old version", "on-old"), (BANDS[3], "new version", "on-new")):
            wide, high = _wide(name), SMALL + 3
            at = geometry.place(self.spans, band, scale, wide + 8, high)
            if at is not None:
                left, top = at[0] - wide / 2, at[1] - high / 2
                yield element("rect", x=left, y=top, width=wide, height=high, of=band.version)
                yield element("text", name, x=at[0], y=at[1] + 4.5, text_anchor="middle", of=of)

    def _lines(self) -> Iterator[tuple[str, str, float, Callable[[Moment], float]]]:
        """Panels with a line: name, class, the highest number, and the number at a moment."""
        yield "requests to the new version", "share", 1.0, lambda moment: moment.share
        for at, name in enumerate(self.course.resources):
            most = max(moment.accelerators[at] for each in self.all for moment in each.moments)
            yield f"accelerators: {name}", "held", float(most), lambda moment, at=at: float(moment.accelerators[at])  # type: ignore[misc]

    def _line(self, scale: Numbers, name: str, of: str, value: Callable[[Moment], float]) -> Iterator[Element]:
        title = words.cut(name, int((self.right - _LEFT) / (SMALL * LETTER)))
        yield element("text", title, x=_LEFT, y=scale.top - 8, of="named")
        for y in (scale.bottom, scale.top):
            yield element("path", d=f"M{number(_LEFT)} {number(y)}H{number(self.right)}", of="grid")
        rest = value(self.course.rest)
        if of == "share":
            d = geometry.below(self.spans, lambda each: scale.y(value(each)), scale.bottom)
            yield element("path", d=d, of="new-pale")
            yield from self._ticks(scale, {0: "0%", 1: "100%"})
        else:
            yield self._level(scale, rest)
            yield from self._ticks(scale, {each: number(each) for each in (0.0, rest, scale.most)})
        yield element("path", d=geometry.line(self.spans, lambda each: scale.y(value(each))), of=of)

    def _level(self, scale: Numbers, at: float) -> Element:
        return element("path", d=f"M{number(_LEFT)} {number(scale.y(at))}H{number(self.right)}", of="level dashed")

    def _ticks(self, scale: Numbers, labels: Mapping[float, str]) -> Iterator[Element]:
        """Numbers at the axis, each a line below the one above it at least."""
        above = float("-inf")
        for at in sorted(labels, reverse=True):
            above = max(scale.y(at) + 4.5, above + SMALL)
            yield element("text", labels[at], x=_LEFT - 6, y=above, text_anchor="end", of="muted")

    def _now(self, top: float, bottom: float) -> Iterator[Element]:
        """What comes after now is paler."""
        if self.course.now is not None:
            x = self.times.x(self.course.now, self.times.before(self.course.now))
            yield element("rect", x=x, y=top, width=self.right - x, height=bottom - top, of="later")
            yield element("path", d=f"M{number(x)} {number(top - 6)}V{number(bottom)}", of="now")

    def _axis(self, bottom: float) -> Iterator[Element]:
        for each in self.times.ticks(38):
            yield element("path", d=f"M{number(each.x)} {number(bottom)}v5", of="border")
            yield element("text", each.label, x=each.x, y=bottom + 20, text_anchor="middle", of="muted")
        yield element("text", self.times.unit.name, x=_LEFT - 6, y=bottom + 20, text_anchor="end", of="muted")

    # Below the panels

    def _legend(self, y: float) -> Iterator[tuple[int, Element]]:
        """What is in the picture with its name, each in its row, from 0."""
        x, row = _EDGE, 0
        for mark, name in self._marks():
            wide = 22 + _wide(name)
            if x + wide > self.width - _EDGE and x > _EDGE:
                x, row = _EDGE, row + 1
            yield row, mark(x, y + row * _ROW)
            yield row, element("text", name, x=x + 22, y=y + row * _ROW + 4.5, of="muted")
            x += wide + 12

    def _marks(self) -> Iterator[tuple[Callable[[float, float], Element], str]]:
        for band in BANDS:
            if any(band.count(each) for each in self.course.moments):
                yield _swatch(_filled(band)), words.band(band)
        yield _stroke("level dashed"), "at rest"
        kinds = {box.wait.kind for box in self.boxes}
        if Kind.APPROVAL in kinds:
            yield (lambda x, y: _person(x + 8, y)), "approval"
        if Kind.PAUSE in kinds:
            yield _swatch({"of": "pause"}), "pause"
        if Kind.GATE in kinds:
            yield _swatch({"of": "gate"}), "gate"
        if self.course.now is not None:
            yield _stroke("now"), "now, then forecast"


def _wide(text: str) -> float:
    """At most so wide is a small text."""
    return len(text) * SMALL * LETTER


def _filled(band: Band) -> dict[str, str]:
    if band.state == "ready":
        return {"of": band.version}
    return {"fill": f"url(#rl-{band.version}-{band.state})"}


def _swatch(filled: Mapping[str, str]) -> Callable[[float, float], Element]:
    return lambda x, y: element("rect", x=x, y=y - 6, width=16, height=12, rx=2, **filled)


def _stroke(of: str) -> Callable[[float, float], Element]:
    return lambda x, y: element("path", d=f"M{number(x)} {number(y)}h16", of=of)


def _person(x: float, y: float) -> Element:
    """The sign of an approval: head and shoulders around this point."""
    head = f"M{number(x - 3)} {number(y - 3)}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0Z"
    shoulders = f"M{number(x - 6)} {number(y + 7)}a6 5.5 0 0 1 12 0Z"
    return element("path", d=head + shoulders, of="asked")


def _bar(box: Box, y: float, end: float) -> Iterator[Element]:
    """A pause or a gate, with its name in it, or beside it where there is room until ``end``."""
    gate, wide = box.wait.kind is Kind.GATE, box.right - box.left
    yield element("rect", x=box.left, y=y, width=max(3.0, wide), height=16, rx=3, of="gate" if gate else "pause")
    name = box.wait.name if gate else "pause"
    if _wide(name) + 6 <= wide:
        of = "gate-text" if gate else "held-text"
        yield element("text", name, x=(box.left + box.right) / 2, y=y + 12.5, text_anchor="middle", of=of)
    elif gate and box.right + _wide(name) + 6 <= end:
        yield element("text", name, x=box.right + 5, y=y + 12.5, of="held-text")
