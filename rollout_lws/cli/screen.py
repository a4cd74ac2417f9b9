"""A terminal screen that redraws a picture in place; the last picture stays when the command ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from os import environ, terminal_size
from typing import TextIO

from rollout_lws.cli.view import cut, plain

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_END_OF_LINE, _END_OF_SCREEN, _CLEAR = "\x1b[K", "\x1b[J", "\x1b[2J\x1b[H"


def is_terminal() -> bool:
    """Whether the output is a terminal that can move the cursor; TERM=dumb cannot."""
    return sys.stdout.isatty() and environ.get("TERM") != "dumb"


def has_colours() -> bool:
    """Whether to use colours, following no-color.org."""
    return is_terminal() and not environ.get("NO_COLOR")


def width() -> int | None:
    """Terminal columns, None when the output is no terminal."""
    return _size().columns if is_terminal() else None


def _size() -> terminal_size:
    # Imported only for terminals, because the module takes 3 ms to import.
    import shutil

    return shutil.get_terminal_size()


class Screen:
    """Draws pictures in place; as a context manager it hides the cursor."""

    def __init__(
        self,
        paint: Callable[[str], str],
        out: TextIO | None = None,
        size: Callable[[], terminal_size] = _size,
    ) -> None:
        self._paint, self._out, self._size = paint, out or sys.stdout, size
        self._drawn: list[str] = []
        self._columns = 0

    def __enter__(self) -> Screen:
        self._write(_HIDE)
        return self

    def __exit__(self, *_: object) -> None:
        self._write(_SHOW)

    def draw(self, lines: Sequence[str], footer: str = "") -> None:
        """Draw the lines, and ``footer`` as a last line that is always visible; an unchanged picture writes nothing."""
        size = self._size()
        fitting = _fitting(lines, footer, size)
        resized = self._drawn and size.columns != self._columns
        if fitting == self._drawn and not resized:
            return
        # After a resize the terminal has rewrapped the old picture into an unknown number of lines, so clear it.
        start = _CLEAR if resized else f"\x1b[{len(self._drawn)}F" if self._drawn else ""
        body = "".join(f"{self._paint(line)}{_END_OF_LINE}\n" for line in fitting)
        self._write(start + body + _END_OF_SCREEN)
        self._drawn, self._columns = fitting, size.columns

    def print_above(self, line: str) -> None:
        """Print ``line`` above the picture, which moves down by it."""
        drawn, self._drawn = self._drawn, []
        start = f"\x1b[{len(drawn)}F" if drawn else ""
        self._write(f"{start}{plain(line)}{_END_OF_LINE}\n{_END_OF_SCREEN}")
        self.draw(drawn)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _fitting(lines: Sequence[str], footer: str, size: terminal_size) -> list[str]:
    """Cut lines that would scroll off the top or pass the right edge, where they could not be redrawn."""
    foot = [footer] if footer else []
    most = max(size.lines - 1 - len(foot), 2)
    kept = list(lines)
    if len(lines) > most:
        left = len(lines) - most + 1
        kept = [*lines[: most - 1], f"… {left} more lines: make the window taller, or use -o json"]
    # Clearing to the end of the line would erase the last character of a full-width line.
    return [cut(plain(line), size.columns - 1) for line in (*kept, *foot)]
