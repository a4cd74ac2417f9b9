"""The image that the documentation builds has the program in it, and nothing else of whoever builds it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.docs.pages import ROOT, blocks

#: What a wheel is made of, and what it needs to run.
NEEDED = {"pyproject.toml", "README.md", "LICENSE", "requirements/run.txt", "rollout_lws/"}


def copied() -> set[str]:
    """What the documented Containerfile takes out of the clone."""
    (block,) = [each for each in blocks(Path("docs/install.md"), "sh") if "Containerfile" in each]
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", block, re.MULTILINE)
    return {name for line in lines for name in line.split()}


def test_it_takes_what_it_needs_and_no_more() -> None:
    assert copied() == NEEDED
    assert [name for name in NEEDED if not (ROOT / name).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert {project["project"]["readme"], *project["project"]["license-files"]} <= NEEDED
    assert {f"{name}/" for name in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]} <= NEEDED


def test_nothing_else_is_sent_to_who_builds_it() -> None:
    first, *others = (ROOT / ".containerignore").read_text().split()
    assert first == "*"
    assert {name.removeprefix("!") for name in others if name.startswith("!")} == NEEDED
