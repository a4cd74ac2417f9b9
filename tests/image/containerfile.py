"""A Containerfile as tests see it: its instructions, its stages, what it takes from whoever builds it."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass

from tests.docs.pages import ROOT

_COMMENT = re.compile(r"^\s*#.*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Instruction:
    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """Of the shell form or of the JSON form."""
        return json.loads(self.text) if self.text.startswith("[") else shlex.split(self.text)

    @property
    def pairs(self) -> dict[str, str]:
        """Of ENV, LABEL and ARG."""
        return {key: value for key, _, value in (word.partition("=") for word in self.words)}


@dataclass(frozen=True, slots=True)
class Stage:
    base: str
    name: str
    instructions: tuple[Instruction, ...]

    def every(self, name: str) -> list[Instruction]:
        return [each for each in self.instructions if each.name == name]

    def only(self, name: str) -> Instruction:
        (found,) = self.every(name)
        return found


def _instructions() -> list[Instruction]:
    joined = re.sub(r"\\\n\s*", "", _COMMENT.sub("", (ROOT / "Containerfile").read_text()))
    split = [line.partition(" ") for line in joined.splitlines() if line.strip()]
    return [Instruction(name, rest.strip()) for name, _, rest in split]


def stages() -> list[Stage]:
    """In their order; what stands before the first FROM belongs to none."""
    found: list[tuple[str, str, list[Instruction]]] = []
    for each in _instructions():
        if each.name == "FROM":
            base, _, name = each.text.partition(" AS ")
            found.append((base, name, []))
        elif found:
            found[-1][2].append(each)
    return [Stage(base, name, tuple(instructions)) for base, name, instructions in found]


def copied(stage: Stage) -> list[tuple[list[str], str]]:
    """What a stage takes out of the clone, and where it puts it."""
    words = [each.words for each in stage.every("COPY") if not each.text.startswith("--from")]
    return [(sources, target) for *sources, target in words]


def sent(path: str) -> bool:
    """Whether an engine gets to see a file, by its path from the root: the last pattern that matches it, or a folder
    that it is in, decides.
    """
    seen = True
    for line in (ROOT / ".containerignore").read_text().split():
        pattern = line.removeprefix("!").rstrip("/")
        anywhere = "(.*/)?" if pattern.startswith("**/") else ""
        if re.fullmatch(f"{anywhere}{_glob(pattern.removeprefix('**/'))}(/.*)?", path):
            seen = line.startswith("!")
    return seen


def _glob(pattern: str) -> str:
    return "".join("[^/]*" if char == "*" else re.escape(char) for char in pattern)
