"""Pictures that are drawn over one another: what stands on the screen afterwards is the last one."""

from __future__ import annotations

import io
from os import terminal_size

import pytest

from rollout_lws.cli import screen
from rollout_lws.cli.screen import Screen
from tests.terminal import Display


class Terminal:
    """A screen and what it shows."""

    def __init__(self, columns: int = 20, lines: int = 6) -> None:
        self.size = terminal_size((columns, lines))
        self.out = io.StringIO()
        self.screen = Screen(str, self.out, lambda: self.size)

    def draw(self, *lines: str, footer: str = "") -> list[str]:
        self.screen.draw(lines, footer)
        display = Display(self.size.columns)
        display.write(self.out.getvalue().replace("\n", "\r\n"))
        return display.lines[:-1]


def test_the_next_picture_takes_the_place_of_the_one_before() -> None:
    terminal = Terminal()
    assert terminal.draw("status loading", "group 0", "group 1") == ["status loading", "group 0", "group 1"]
    assert terminal.draw("status ready", "group 0") == ["status ready", "group 0"]
    assert terminal.draw("a", "b", "c", "d") == ["a", "b", "c", "d"]


def test_the_same_picture_again_writes_nothing() -> None:
    terminal = Terminal()
    terminal.draw("status")
    before = terminal.out.getvalue()
    terminal.draw("status")
    assert terminal.out.getvalue() == before


def test_what_does_not_fit_is_cut_and_counted() -> None:
    terminal = Terminal(columns=60, lines=5)
    assert terminal.draw(*(f"line {number}" for number in range(9))) == [
        "line 0",
        "line 1",
        "line 2",
        "… 6 more lines: make the window taller, or use -o json",
    ]
    assert Terminal(columns=10).draw("a line of many words") == ["a line o…"]


def test_the_last_line_is_there_whatever_else_is_not() -> None:
    assert Terminal(columns=60, lines=5).draw(*"abcdef", footer="Old: no answer") == [
        "a",
        "b",
        "… 4 more lines: make the window taller, or use -o json",
        "Old: no answer",
    ]


def test_a_wide_character_takes_two_columns_and_control_characters_none() -> None:
    assert Terminal(columns=10).draw("回退回退回退") == ["回退回退…"]
    assert Terminal(columns=20).draw("a\nb\x1b[2Jc") == ["a b [2Jc"]


def test_a_window_that_changes_its_size_is_drawn_anew() -> None:
    terminal = Terminal()
    terminal.draw("one", "two")
    terminal.size = terminal_size((30, 6))
    terminal.screen.draw(["one", "two"])
    assert terminal.out.getvalue().rpartition("\x1b[2J\x1b[H")[2] == "one\x1b[K\ntwo\x1b[K\n\x1b[J"


def test_the_cursor_is_hidden_meanwhile_and_comes_back() -> None:
    terminal = Terminal()
    with pytest.raises(KeyboardInterrupt), terminal.screen:
        terminal.draw("x")
        raise KeyboardInterrupt
    written = terminal.out.getvalue()
    assert written.startswith("\x1b[?25l")
    assert written.endswith("\x1b[?25h")


@pytest.mark.parametrize(
    ("tty", "environment", "terminal", "colours"),
    [
        (True, {"TERM": "xterm"}, True, True),
        (True, {"TERM": "dumb"}, False, False),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True, True),
        (False, {"TERM": "xterm"}, False, False),
    ],
)
def test_who_gets_control_codes(
    monkeypatch: pytest.MonkeyPatch, tty: bool, environment: dict[str, str], terminal: bool, colours: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: tty, raising=False)
    assert (screen.is_terminal(), screen.has_colours()) == (terminal, colours)
    assert (screen.width() is None) == (not terminal)
