"""The picture of the corridor in docs/architecture.md, drawn like those of releases."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.drawing.style import style
from rollout_lws.drawing.svg import Element, element, number

_WIDTH, _HEIGHT = 480.0, 438.0
#: The API server, and the rooms of the corridor: their edges, and how high a room is and where the first one begins.
_SERVER, _ROOMS = (14.0, 112.0), (178.0, 440.0)
_TOP, _HIGH, _STEP = 52.0, 50.0, 80.0
#: Each room with what it does, and what it hands to the next one.
_CORRIDOR = (
    ("kube.informer", "caches of what is in the cluster", "key"),
    ("kube.queue", "one worker at a time for a Rollout", ""),
    ("observe", "caches and the time", "Observation"),
    ("rollout.decide", "writes, events, when to look again", "Decision"),
    ("controller.apply", "writes in their order, up to a failure", ""),
)
_DESCRIPTION = (
    "The API server is watched by kube.informer, which keeps caches and hands keys to kube.queue. observe makes an"
    " Observation of the caches and the time, rollout.decide makes a Decision of it, and controller.apply sends the"
    " writes to the API server. The answers enter the caches at once. observe and rollout.decide are pure."
)


def corridor() -> str:
    """The picture as a document of its own."""
    return f"{_drawn()}\n"


def _drawn() -> Element:
    return element(
        "svg",
        element("title", "One corridor"),
        element("desc", _DESCRIPTION),
        style(),
        element("rect", x=0.5, y=0.5, width=_WIDTH - 1, height=_HEIGHT - 1, rx=8, of="paper"),
        element("text", "One corridor", x=14, y=28, of="title ink"),
        *_pure(),
        *_box(_SERVER, _TOP, 4 * _STEP + _HIGH, "API", "server"),
        *(part for at, (name, does, _) in enumerate(_CORRIDOR) for part in _box(_ROOMS, _y(at), _HIGH, name, does)),
        *_arrows(),
        xmlns="http://www.w3.org/2000/svg",
        width=_WIDTH,
        height=_HEIGHT,
        viewBox=f"0 0 {number(_WIDTH)} {number(_HEIGHT)}",
        role="img",
        of="rollout-course",
    )


def _y(at: int) -> float:
    """The upper edge of a room."""
    return _TOP + at * _STEP


def _pure() -> Iterator[Element]:
    """What has no effect, behind its rooms."""
    left, right, top, bottom = _ROOMS[0] - 14, _ROOMS[1] + 14, _y(2) - 12, _y(3) + _HIGH + 12
    yield element("rect", x=left, y=top, width=right - left, height=bottom - top, rx=8, of="new-pale")
    yield element("text", "pure: no I/O", x=right - 8, y=(_y(2) + _HIGH + _y(3)) / 2 + 4.5, text_anchor="end", of="ink")


def _box(edges: tuple[float, float], top: float, high: float, name: str, does: str) -> Iterator[Element]:
    left, right = edges
    yield element("rect", x=left, y=top, width=right - left, height=high, rx=6, of="paper")
    middle = (left + right) / 2
    y = top + high / 2 + (-3 if does else 5)
    yield element("text", name, x=middle, y=y, text_anchor="middle", of="title ink")
    if does:
        yield element("text", does, x=middle, y=y + 19, text_anchor="middle", of="muted")


def _arrows() -> Iterator[Element]:
    (left, right), (_, server) = _ROOMS, _SERVER
    middle = (left + right) / 2
    for at, (_, _, hands) in enumerate(_CORRIDOR[:-1]):
        yield from _arrow([(middle, _y(at) + _HIGH), (middle, _y(at + 1))])
        if hands:
            yield element("text", hands, x=middle - 10, y=_y(at) + _HIGH + 19, text_anchor="end", of="held-text")
    yield from _arrow([(server, _y(0) + _HIGH / 2), (left, _y(0) + _HIGH / 2)], "watch")
    yield from _arrow([(left, _y(4) + _HIGH / 2), (server, _y(4) + _HIGH / 2)], "writes")
    side, up, down = right + 24, _y(0) + _HIGH / 2, _y(4) + _HIGH / 2
    yield from _arrow([(right, down), (side, down), (side, up), (right, up)])
    yield element("text", "answers", x=side - 6, y=_y(1) - 10, text_anchor="end", of="held-text")


def _arrow(points: list[tuple[float, float]], name: str = "") -> Iterator[Element]:
    """A line through these points with a head at its end, and its name above its middle."""
    d = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    yield element("path", d=f"M{d}", of="held")
    (before_x, before_y), (x, y) = points[-2:]
    if x == before_x:
        turn = 7 if y > before_y else -7
        head = f"M{number(x)} {number(y)}l-5 {-turn}h10Z"
    else:
        turn = 7 if x > before_x else -7
        head = f"M{number(x)} {number(y)}l{-turn} -5v10Z"
    yield element("path", d=head, of="gate")
    if name:
        yield element("text", name, x=(points[0][0] + x) / 2, y=y - 8, text_anchor="middle", of="held-text")
