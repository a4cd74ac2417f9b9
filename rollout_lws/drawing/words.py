"""What pictures say in words: lines that fit, and a description for those who do not see them."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from rollout_lws.drawing.course import Course, Kind, Moment, Stretch
from rollout_lws.drawing.geometry import Band


def wrapped(text: str, letters: int) -> list[str]:
    """The text in lines of at most so many letters."""
    return wrap(text, max(letters, 1))


def cut(text: str, letters: int) -> str:
    """The text, and an ellipsis in place of what has no room."""
    return text if len(text) <= letters else f"{text[: max(letters - 1, 0)].rstrip()}…"


def duration(seconds: float) -> str:
    """How long something takes: the two largest units of it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def band(shown: Band) -> str:
    """What a band shows."""
    return shown.version if shown.state == "ready" else f"{shown.version}, {shown.state}"


def description(course: Course) -> str:
    """The course in sentences."""
    return " ".join([f"{course.facts.rstrip('.')}." if course.facts else "", *_sentences(course)]).strip()


def _sentences(course: Course) -> Iterator[str]:
    yield f"At rest: {_groups(course.rest)}."
    for each in course.stretches:
        yield f"{each.name[:1].upper()}{each.name[1:]}, until {duration(each.ends)}: {_stretch(course, each)}."
    if course.now is not None:
        yield f"What comes after {duration(course.now)} is a forecast."


def _stretch(course: Course, stretch: Stretch) -> str:
    told = [_groups(stretch.moments[-1]) if stretch.moments else ""]
    if stretch.moments:
        told.append(f"{stretch.moments[-1].share:.0%} of requests to the new version")
    for at, name in enumerate(course.resources):
        most = max((each.accelerators[at] for each in stretch.moments), default=0)
        told.append(f"at most {most} {name}")
    told += [f"gate {wait.name}" if wait.kind is Kind.GATE else wait.kind.value for wait in stretch.waits]
    return ", ".join(filter(None, [*told, "then an approval" if stretch.approval else ""]))


def _groups(moment: Moment) -> str:
    parts = []
    for version, groups in (("old", moment.old), ("new", moment.new)):
        states = (("", groups.ready), (" that load", groups.loading), (" that go", groups.draining))
        parts += [f"{counted(count, f'{version} group')}{what}" for what, count in states if count]
    return " and ".join(parts) or "no group"
