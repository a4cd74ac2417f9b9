"""Commands that pages show are in blocks that say whether they are run, and name what our program has."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rollout_lws.cli.main import program
from tests.docs.pages import ROOT, blocks, pages

_CODE = re.compile(r"^```(?P<language>\w*)\n(?P<block>.*?)^```$|(?P<ticks>`+)(?P<inline>[^`]+)(?P=ticks)", re.M | re.S)
_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<block>.*?)^```$", re.M | re.S)
#: Languages of blocks with commands: run, not run, and run with what they print.
_SHOWN = ("bash", "sh", "console")
#: A line that somebody is to type.
_TYPED = re.compile(r"^(?:\$ )?(?:kubectl|rollout-lws|helm|make|pip|podman|docker|cosign|promtool) \S", re.M)
#: Our program, as people type it, and not its chart's release or the product; what follows ends with the command.
_OURS = re.compile(
    r"(?<![\w./-])(?<!stall )(?<!grade )(?<! of )(?:kubectl[ -]|\.venv/bin/)?rollout[-_]lws (?P<rest>[^|;&>)#\n]*)"
)
#: A word that stands for any command.
_ANY = "COMMAND"


@pytest.mark.parametrize("page", pages(), ids=str)
def test_commands_are_in_blocks_of_their_own(page: Path) -> None:
    others = [match["block"] for match in _BLOCK.finditer((ROOT / page).read_text()) if match["language"] not in _SHOWN]
    assert [text for text in others if _TYPED.search(text)] == [], f"let it be a block in one of {_SHOWN}"


def test_what_pages_have_make_do_is_a_step_of_the_checks() -> None:
    steps = re.findall(r"^\s*make ([\w-]+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    told = {
        verb
        for page in pages()
        for block in blocks(page, "bash")
        for verb in re.findall(r"^make ([\w-]+)$", block, re.MULTILINE)
    }
    assert "demo" in told
    assert told - {*steps} == set()


def named(text: str) -> Iterator[list[str]]:
    """The words after our program's name, wherever a page's code has it; a trailing backslash goes on."""
    for match in _CODE.finditer(text):
        if match["language"] == "text":
            continue
        code = match["block"] or " ".join((match["inline"] or "").split())
        for found in _OURS.finditer(code.replace("\\\n", " ")):
            yield _words(found["rest"])


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError:  # a quotation that the cut has left open
        return rest.split()


def unknown(words: list[str]) -> list[str]:
    """What the program does not know of ``words``: a command, or a flag that neither it nor the command takes."""
    command: click.Command = program
    options = _options(program)
    waits = False
    for word in words:
        flag = word.partition("=")[0]
        if waits:
            waits = False
        elif word.startswith("-") and word.strip("-"):
            if flag not in options:
                return [f"{command.name} {flag}"]
            option = options[flag]
            waits = "=" not in word and not option.is_flag and not option.count
        elif isinstance(command, click.Group) and word not in (_ANY, "...", "…"):
            inner = command.get_command(click.Context(command), word)
            if inner is None:
                return [word]
            command, options = inner, options | _options(inner)
    return []


def _options(command: click.Command) -> dict[str, click.Option]:
    options = [each for each in command.get_params(click.Context(command)) if isinstance(each, click.Option)]
    return {name: each for each in options for name in (*each.opts, *each.secondary_opts)}


@pytest.mark.parametrize("page", pages(), ids=str)
def test_commands_and_flags_that_a_page_names_are_there(page: Path) -> None:
    assert [found for words in named((ROOT / page).read_text()) for found in unknown(words)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`rollout-lws promote chat --step 1`", []),
        ("`rollout-lws -n prod promote\nchat --full`", []),
        ("`kubectl rollout-lws set image chat '*=vllm:2' --role leader`", []),
        ("`rollout-lws COMMAND --help`", []),
        ("`rollout-lws promot chat`", ["promot"]),
        ("`rollout-lws promote chat --all`", ["promote --all"]),
        ("```sh\nrollout-lws install --image a \\\n  --wiht b | cat --any\n```", ["install --wiht"]),
        ("```sh\nkubectl get pods -n rollout-lws-system --any\n```", []),
        ("`rollout-lws set imag chat`", ["imag"]),
    ],
)
def test_what_is_not_there_is_found(text: str, found: list[str]) -> None:
    assert [each for words in named(text) for each in unknown(words)] == found
