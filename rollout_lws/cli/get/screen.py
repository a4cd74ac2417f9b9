"""A terminal on which a picture is drawn over the one before, so that the last one stays when all is over."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from os import environ, terminal_size
from typing import TextIO

from rollout_lws.cli.view import cut, plain

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_END_OF_LINE, _END_OF_SCREEN, _CLEAR = "\x1b[K", "\x1b[J", "\x1b[2J\x1b[H"


def is_terminal() -> bool:
    """Whether whoever reads the output can have it moved about; TERM=dumb cannot."""
    return sys.stdout.isatty() and environ.get("TERM") != "dumb"


def has_colours() -> bool:
    """By the custom of no-color.org."""
    return is_terminal() and not environ.get("NO_COLOR")


def width() -> int | None:
    """Columns, None where there is no terminal."""
    return _size().columns if is_terminal() else None


def _size() -> terminal_size:
    # Only a terminal has one, and the module takes 3 ms to import.
    import shutil

    return shutil.get_terminal_size()


class Screen:
    """Draws pictures in place; used as a context, which hides the cursor meanwhile."""

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
        """Nothing is written when nothing has changed. ``footer`` is a last line that is always there."""
        size = self._size()
        fitting = _fitting(lines, footer, size)
        resized = self._drawn and size.columns != self._columns
        if fitting == self._drawn and not resized:
            return
        # The terminal itself has folded what stands there by its new width: nobody knows how many lines that is.
        start = _CLEAR if resized else f"\x1b[{len(self._drawn)}F" if self._drawn else ""
        body = "".join(f"{self._paint(line)}{_END_OF_LINE}\n" for line in fitting)
        self._write(start + body + _END_OF_SCREEN)
        self._drawn, self._columns = fitting, size.columns

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _fitting(lines: Sequence[str], footer: str, size: terminal_size) -> list[str]:
    """What stands above the top, or beyond the right edge, could not be drawn over."""
    foot = [footer] if footer else []
    most = max(size.lines - 1 - len(foot), 2)
    kept = list(lines)
    if len(lines) > most:
        left = len(lines) - most + 1
        kept = [*lines[: most - 1], f"… {left} more lines: make the window taller, or use -o json"]
    # A line as wide as the window would have its last character erased with the rest of the line.
    return [cut(plain(line), size.columns - 1) for line in (*kept, *foot)]
