"""A program at a terminal: started in a pseudo-terminal, and what stands on the screen after what it wrote."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from rollout_lws.cli.view import cells

_CONTROL = re.compile(r"\x1b\[(?P<number>[0-9;?]*)(?P<command>[A-Za-z])|\r|\n|[^\x1b\r\n]+")
#: Seconds after which a program is taken for hung; a busy machine is not.
_PATIENCE = 30.0


class Display:
    """The lines of a screen, as far as programs of ours move the cursor about: no scrolling back, no colours."""

    def __init__(self, columns: int) -> None:
        self.lines = [""]
        self._columns = columns
        self._row = self._column = 0

    def write(self, text: str) -> None:
        for match in _CONTROL.finditer(text):
            if match["command"]:
                self._control(match["command"], match["number"])
            elif match[0] == "\r":
                self._column = 0
            elif match[0] == "\n":
                self._row += 1
                self.lines += [""] * (self._row + 1 - len(self.lines))
            else:
                self._put(match[0])

    def _put(self, text: str) -> None:
        line = self.lines[self._row].ljust(self._column)
        self.lines[self._row] = line[: self._column] + text + line[self._column + len(text) :]
        self._column += len(text)
        assert cells(self.lines[self._row]) < self._columns, f"a line runs over the edge: {self.lines[self._row]!r}"

    def _control(self, command: str, number: str) -> None:
        if command == "F":
            self._row, self._column = self._row - int(number or 1), 0
            assert self._row >= 0, "the cursor was moved above the top"
        elif command == "K":
            self.lines[self._row] = self.lines[self._row][: self._column]
        elif command == "J" and number == "":
            self.lines[self._row :] = [self.lines[self._row][: self._column]]
        elif command == "J":
            self.lines = [""] * (self._row + 1)
        elif command == "H":
            self._row = self._column = 0
            self.lines = self.lines or [""]
        else:
            assert command in "mhl", f"no terminal of these tests knows \\x1b[{number}{command}"


class Program:
    """A program in a pseudo-terminal of its own; used as a context, which ends it."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], *, columns: int = 100, lines: int = 40
    ) -> None:
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        # The size is the terminal's own.
        environment = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
        environment["TERM"] = "xterm"
        self.process = subprocess.Popen(
            arguments, stdin=terminal, stdout=terminal, stderr=terminal, env=environment, start_new_session=True
        )
        os.close(terminal)
        self._controller = controller
        self.display = Display(columns)
        self.written = 0
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(controller,), daemon=True)
        self._thread.start()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(_PATIENCE)
        self._thread.join(_PATIENCE)

    def type(self, text: str) -> None:
        os.write(self._controller, text.encode())

    def text(self) -> str:
        with self._changed:
            return "\n".join(self.display.lines)

    def shows(self, wanted: Callable[[str], bool]) -> float:
        """Wait until the screen is as wanted; the answer is when it was (``time.monotonic()``)."""

        def there() -> bool:
            return wanted("\n".join(self.display.lines))

        with self._changed:
            self._changed.wait_for(lambda: there() or self._ended, _PATIENCE)
            at = time.monotonic()
            assert there(), "\n".join(self.display.lines)
        return at

    def _read(self, controller: int) -> None:
        self._follow(controller)
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _follow(self, controller: int) -> None:
        with os.fdopen(controller, "rb", buffering=0) as stream:
            rest = b""
            while True:
                try:
                    chunk = stream.read(65536)
                except OSError:
                    # That is how the last process of a terminal that ends is told on Linux.
                    return
                if not chunk:
                    return
                # A chunk may end in the middle of a character or of a control sequence.
                whole, rest = _complete(rest + chunk)
                with self._changed:
                    self.written += len(chunk)
                    self.display.write(whole)
                    self._changed.notify_all()


def _complete(data: bytes) -> tuple[str, bytes]:
    end = len(data)
    start = data.rfind(b"\x1b")
    if start >= 0 and not re.match(rb"\x1b\[[0-9;?]*[A-Za-z]", data[start:]):
        end = start
    while end and end == len(data) and data[end - 1] & 0x80:
        try:
            return data.decode(), b""
        except UnicodeDecodeError as error:
            if error.end < len(data):
                raise
            end = error.start
    return data[:end].decode(), data[end:]
