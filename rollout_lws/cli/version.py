"""version: prints the program's version."""

from __future__ import annotations

import click

from rollout_lws import __version__


@click.command()
def version() -> None:
    """Print the version of this program."""
    click.echo(f"rollout-lws {__version__}")
