"""Blocks of pages in `console`: commands after "$ ", and below each what it printed when the page was written.

`python -m tests.docs.recordings` writes all of them anew, from a sandbox with a controller; a test fails when a command
prints something else by now, times apart.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT, pages
from tests.reader import reading

_BLOCK = re.compile(r"^```(?P<language>bash|console)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT = "$ "
_BEGIN, _END = "<<<< recording", ">>>> recording"
#: What is different every time: durations, times of day, and generations, which count how writes fell together.
_DURATION = re.compile(r"\b\d+(?:\.\d+)?(?:ms|s|m|h|d)(?:\d+[smh])?\b")
_TIME = re.compile(r"\b(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| UTC)?")
_GENERATION = re.compile(r"\bgeneration \d+\b")
#: There is one only where a load took long enough to be measured in seconds.
_ESTIMATE = ", about #"


@dataclass(frozen=True, slots=True)
class Recording:
    """A command and what it printed, standard error included."""

    command: str
    output: str

    @property
    def masked(self) -> str:
        """Without what differs from one time to the next, and without the widths of columns that hang on it."""
        text = _GENERATION.sub("generation N", _DURATION.sub("#", _TIME.sub("@", self.output)))
        text = text.replace(_ESTIMATE, "")
        return "\n".join(" ".join(line.split()) for line in text.splitlines())


def recordings(page: Path) -> list[Recording]:
    """Those of a page, in order."""
    return [each for language, text in _blocks(page) if language == "console" for each in _parsed(text)]


def commands(page: Path) -> list[str]:
    """What a reader of the page types, in order, with marks around what is recorded."""
    lines: list[str] = []
    for language, text in _blocks(page):
        if language == "bash":
            lines += [line for line in text.splitlines() if not line.startswith("make ")]
            continue
        for each in _parsed(text):
            lines += ["{ set +x; } 2> /dev/null", f"echo; echo '{_BEGIN}'", each.command, f"echo '{_END}'", "set -x"]
    return lines


def recorded(page: Path, printed: str) -> list[Recording]:
    """The page's commands with what they printed now, out of all that its script did."""
    outputs = [part.partition(_END)[0] for part in printed.split(f"{_BEGIN}\n")[1:]]
    return [Recording(each.command, text) for each, text in zip(recordings(page), outputs, strict=True)]


def _blocks(page: Path) -> Iterator[tuple[str, str]]:
    for match in _BLOCK.finditer((ROOT / page).read_text()):
        yield match["language"], match["text"]


def _parsed(text: str) -> Iterator[Recording]:
    for part in re.split(rf"^{re.escape(_PROMPT)}", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield Recording(command, output)


def _renewed(text: str, found: Iterator[Recording]) -> str:
    def block(match: re.Match[str]) -> str:
        if match["language"] != "console":
            return match[0]
        told = (next(found) for _ in _parsed(match["text"]))
        return "```console\n" + "".join(f"{_PROMPT}{each.command}\n{each.output}" for each in told) + "```"

    return _BLOCK.sub(block, text)


async def renew() -> None:
    for page in pages():
        if not recordings(page):
            continue
        with tempfile.TemporaryDirectory() as directory:
            async with reading(Path(directory)) as reader:
                printed = await reader.run("\n".join(commands(page)))
        place = ROOT / page
        place.write_text(_renewed(place.read_text(), iter(recorded(page, printed))))
        print(page)


if __name__ == "__main__":
    asyncio.run(renew())
