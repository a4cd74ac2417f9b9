"""docs/flags.md, made of the commands: what each does and takes.

``python -m tests.docs.flags`` writes the page; ``--check`` only compares.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

import click

from rollout_lws.api.generate import bring
from rollout_lws.cli.main import program
from tests.docs.pages import ROOT
from tests.docs.tables import code, prose, table

PAGE = ROOT / "docs/flags.md"
_INTRODUCTION = """\
<!-- Generated from the commands by 'make generate'; do not edit. -->
# Command line

Every command with all that it takes; `rollout-lws COMMAND --help` says the same. What each answers in every state of a
release: [Every command in every state](commands.md). As a plugin of kubectl it is `kubectl rollout-lws`.

Durations are written like `90s`, `10m` or `1h30m`. Exit codes are 0, 1 for what was refused or failed, and 2 for a
command line that makes no sense, where a command does not say more below.
"""
_CLUSTER = """\
These stand before or after the name of any command that speaks to a cluster. kubectl's others are understood as well:
"""


def commands(group: click.Group = program, path: str = "rollout-lws") -> Iterator[tuple[str, click.Command]]:
    """All commands with what a user types for them, those of groups included."""
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def page() -> str:
    """The page as it should be."""
    common = _of(program)
    shown = {_said(each) for each in common if not each.hidden}
    others = ", ".join(f"`{each.opts[-1]}`" for each in common if each.hidden)
    parts = [_INTRODUCTION, "## Which cluster, and as whom", f"{_CLUSTER}{others}.", _options(common)]
    for typed, command in commands():
        if isinstance(command, click.Group):
            continue
        options = _of(command)
        of_clusters = shown <= {_said(each) for each in options}
        own = [each for each in options if not (of_clusters and _said(each) in shown)]
        parts += [f"## {typed.removeprefix('rollout-lws ')}", _synopsis(typed, command), _help(command)]
        parts += [_options(own)] if [each for each in own if not each.hidden] else []
        parts += ["And [which cluster, and as whom](#which-cluster-and-as-whom)."] if of_clusters else []
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _of(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option)]


def _said(option: click.Option) -> tuple[tuple[str, ...], str | None]:
    return tuple(option.opts), option.help


def _synopsis(typed: str, command: click.Command) -> str:
    context = click.Context(command, info_name=typed)
    return f"`{' '.join([typed, *command.collect_usage_pieces(context)])}`"


def _help(command: click.Command) -> str:
    """Paragraphs of the help; those that keep their lines there (after a \\b) are a block here."""
    parts = []
    for part in re.split(r"\n\s*\n", (command.help or "").strip()):
        if part.lstrip().startswith("\b"):
            lines = [line for line in part.replace("\b", "").splitlines() if line.strip()]
            parts.append("```text\n" + "\n".join(line.strip() for line in lines) + "\n```")
        else:
            parts.append(prose(part))
    return "\n\n".join(parts)


def _options(options: Sequence[click.Option]) -> str:
    rows = []
    for option in options:
        if not option.hidden:
            names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
            value = "" if option.is_flag else code(option.make_metavar(click.Context(program)))
            default = f"`{option.default}`" if option.show_default and option.default is not None else ""
            if not option.help:
                raise ValueError(f"{names} has no help: give it some")
            rows.append((names, value, default, prose(option.help)))
    return table(("flag", "value", "default", "what it does"), rows)


if __name__ == "__main__":
    sys.exit(bring({PAGE: page()}, sys.argv[1:]))
