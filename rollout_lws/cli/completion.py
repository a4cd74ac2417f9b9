"""completion: shell completion scripts, and kubectl's protocol for completing plugins."""

from __future__ import annotations

import sys

import click
from click.shell_completion import ShellComplete, get_completion_class

#: Directive for kubectl: the list is complete; offer no file names.
_NO_FILES = ":4"
#: Directive for kubectl: let the shell complete file names.
_FILES = ":0"
_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes rollout-lws in a shell.

    \b
    bash   source <(rollout-lws completion bash)          # or once and for all, in ~/.bashrc
    zsh    source <(rollout-lws completion zsh)           # in ~/.zshrc
    fish   rollout-lws completion fish | source           # in ~/.config/fish/config.fish

    `kubectl rollout-lws` is completed by kubectl's own script, as soon as kubectl_complete-rollout_lws is on the PATH.
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, "rollout-lws", "_ROLLOUT_LWS_COMPLETE").source())


def kubectl_complete() -> None:
    """Entry point kubectl_complete-rollout_lws: completes a line ``kubectl rollout-lws …``.

    kubectl passes the words after the plugin's name, the last one incomplete, and reads one completion a line.
    """
    from rollout_lws.cli.main import program

    *words, incomplete = sys.argv[1:] or [""]
    offers = ShellComplete(program, {}, "kubectl rollout-lws", "").get_completions(words, incomplete)
    plain = [offer for offer in offers if offer.type == "plain"]
    for offer in plain:
        told = f"\t{offer.help}" if offer.help else ""
        sys.stdout.write(f"{offer.value}{told}\n")
    sys.stdout.write(f"{_NO_FILES if len(plain) == len(offers) else _FILES}\n")
