"""Entry point of `rollout-lws` (and `kubectl rollout-lws`): lists every command and loads only the one that runs.

Help and completion must be instant, so this module imports click only; a command's module is imported when it runs.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from rollout_lws import __version__
from rollout_lws.cli.options import cluster_options
from rollout_lws.errors import RolloutLwsError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class Entry:
    """Module and attribute of a command, and the summary that help shows without loading it."""

    module: str
    attribute: str
    summary: str


COMMANDS = {
    "abort": Entry("actions.command", "abort", "Go back to stable; what serves is not restarted."),
    "analyze": Entry("analyze.command", "analyze", "Try the gates of a plan on the version that serves."),
    "completion": Entry("completion", "completion", "Print the script that completes commands and names in a shell."),
    "controller": Entry("controller", "controller", "Run the controller."),
    "crds": Entry("crds", "crds", "Print the CustomResourceDefinitions."),
    "dashboard": Entry("dashboard.command", "dashboard", "Show releases on a page in the browser."),
    "demo": Entry("demo.command", "demo", "Watch a whole release on a throw-away cluster."),
    "doctor": Entry("doctor.command", "doctor", "Name the first broken link from a Rollout to its route."),
    "events": Entry("events.command", "events", "Print the events of a release, in order."),
    "get": Entry("get.command", "get", "Show one release, or list them all."),
    "history": Entry("actions.edits", "history", "List the versions that are stored."),
    "home": Entry("actions.command", "home", "Bring requests back to your own LWS after a swap."),
    "init": Entry("init.command", "init", "Write a Rollout for an LWS from what is there."),
    "install": Entry("install.command", "install", "Put the controller on a cluster, or print its manifests."),
    "lint": Entry("lint.command", "lint", "Find in manifests what the controller would refuse, without a cluster."),
    "pause": Entry("actions.command", "pause", "Hold a release where it is."),
    "plan": Entry("plan.command", "plan", "Show what a release will do before anything is written."),
    "promote": Entry("actions.command", "promote", "Approve the step that waits, or all of them."),
    "release-hold": Entry("actions.edits", "release_hold", "Let the workload roll by itself."),
    "restart": Entry("actions.edits", "restart", "Release the same version once more."),
    "resume": Entry("actions.command", "resume", "Go on with a release that was paused."),
    "retry": Entry("actions.command", "retry", "Release the aborted version again."),
    "skip": Entry("actions.command", "skip", "Pass a gate of the current step by hand."),
    "sandbox": Entry("sandbox.command", "sandbox", "Run a cluster in one process, for kubectl and for trying things."),
    "set": Entry("actions.edits", "set_", "Change a container's image."),
    "start": Entry("actions.command", "start", "Release the version of a pair's inactive side."),
    "status": Entry("status.command", "status", "Wait for a release and return its outcome as an exit code."),
    "undo": Entry("actions.edits", "undo", "Put the version before into the LWS."),
    "uninstall": Entry("uninstall.command", "uninstall", "Open the holds, and print what deletes the rest."),
    "version": Entry("version", "version", "Print the version."),
}


#: Optional packages by import name, and the extra of this package that installs each.
EXTRAS = {
    "celpy": "sandbox",
    "cryptography": "admission",
    "python_socks": "proxy",
    "urllib3": "proxy",
}


class LazyGroup(click.Group):
    """A click group that imports a command on first use; its help imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        # The objects of an import stay alive. Collecting garbage costs 6 ms here and 9 ms at exit, so skip it.
        gc.disable()
        try:
            command = getattr(importlib.import_module(f"rollout_lws.cli.{entry.module}"), entry.attribute)
        finally:
            gc.freeze()
            gc.enable()
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Command names with their summaries; loads no command."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=COMMANDS[name].summary)
            for name in sorted(COMMANDS)
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in sorted(COMMANDS)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="rollout-lws %(version)s")
@cluster_options
def program(**_given: object) -> None:
    """Progressive delivery for LeaderWorkerSets: releases of multi-node model servers, group by group."""


def _run() -> object:
    """Run the program; return the command's result or raise its error, unwrapped from an ExceptionGroup of one."""
    try:
        return program.main(standalone_mode=False)
    except ExceptionGroup as group:
        error: Exception = group
        while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None


def main() -> None:
    """Entry point: errors that a user can fix print one line on stderr; exit codes 1 (failed), 2 (usage), 130, 143."""
    gc.freeze()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        code = _run()
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # The reader of the pipe has exited; flushing buffered output must not fail at the interpreter's exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        extra = EXTRAS[package]
        click.echo(
            f"rollout-lws: this needs the Python package {package}, which is not installed: install rollout-lws with"
            f" its extra {extra} (pip install '.[{extra}]' in a clone)",
            err=True,
        )
        sys.exit(1)
    except RolloutLwsError as error:
        from rollout_lws.cli.view import sentences

        # The text may contain a webhook's or a container's message.
        click.echo(f"rollout-lws: {sentences(str(error))}", err=True)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)
