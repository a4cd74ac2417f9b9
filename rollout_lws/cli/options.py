"""kubectl's global flags, accepted before and after the command's name, as in kubectl."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import click

from rollout_lws.cli.durations import DURATION
from rollout_lws.kubeconfig.target import Target


def _flag(*names: str, **more: Any) -> Callable[..., Any]:
    """A rarely used flag: accepted, but hidden from each command's help."""
    return click.option(*names, hidden=True, **more)


_OPTIONS = (
    click.option("-n", "--namespace", metavar="NAME", help="Namespace; the context's own by default."),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig; the current one by default."),
    click.option("--kubeconfig", metavar="FILE", help="Kubeconfig; $KUBECONFIG or ~/.kube/config by default."),
    click.option("--as", "impersonate", metavar="USER", help="User to impersonate."),
    click.option("--request-timeout", type=DURATION, metavar="DURATION", help="Longest time of one request (30s)."),
    click.option(
        "--api-group", metavar="GROUP", help="API group of our kinds; found by asking the cluster by default."
    ),
    _flag("--as-group", "impersonate_groups", multiple=True, metavar="GROUP"),
    _flag("--as-uid", "impersonate_uid", metavar="UID"),
    _flag("--cluster", metavar="NAME"),
    _flag("--user", metavar="NAME"),
    _flag("-s", "--server", metavar="URL"),
    _flag("--token", metavar="TOKEN"),
    _flag("--username", metavar="NAME"),
    _flag("--password", metavar="TEXT"),
    _flag("--certificate-authority", metavar="FILE"),
    _flag("--client-certificate", metavar="FILE"),
    _flag("--client-key", metavar="FILE"),
    _flag("--tls-server-name", metavar="NAME"),
    _flag("--insecure-skip-tls-verify", is_flag=True, default=None),
)


#: Flags whose names differ from those of Target's fields.
_NAMES = {"impersonate": "as", "impersonate_groups": "as-group", "impersonate_uid": "as-uid"}
#: Fields to keep out of printed commands: secrets, and fields that select neither the cluster nor the user.
_UNSAID = ("token", "password", "request_timeout")


def flags_of(target: Target) -> list[str]:
    """The flags that point another command to the same cluster as the same user, without secrets."""
    flags: list[str] = []
    for member in Target.__dataclass_fields__:
        value = None if member in _UNSAID else getattr(target, member)
        flag = f"--{_NAMES.get(member, member).replace('_', '-')}"
        if value is True:
            flags.append(flag)
        elif value:
            flags += [part for each in ((value,) if isinstance(value, str) else value) for part in (flag, each)]
    return flags


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags to the program itself and pass them on as keyword arguments."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def with_target(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags to a command and pass it ``target``; flags after the command's name win."""

    @functools.wraps(command)
    def wrapper(*args: Any, **given: Any) -> Any:
        for name in Target.__dataclass_fields__:
            del given[name]
        return command(*args, target=target_of(click.get_current_context()), **given)

    return cluster_options(wrapper)


def target_of(context: click.Context) -> Target:
    """The target from ``context``, else from its parents, which hold the flags before the command's name."""
    chosen: dict[str, Any] = {}
    for name in Target.__dataclass_fields__:
        given = (each.params.get(name) for each in _upwards(context))
        chosen[name] = next((value for value in given if value not in (None, ())), None)
    return Target(**{name: value for name, value in chosen.items() if value is not None})


def _upwards(context: click.Context | None) -> Iterator[click.Context]:
    while context is not None:
        yield context
        context = context.parent


def known_names(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion of the namespace's Rollouts; none when the cluster does not answer."""
    from rollout_lws.cli.rollouts import rollout_names

    return rollout_names(target_of(context), incomplete)


#: Arguments: the Rollout that a command acts on, or several of them.
rollout_argument = click.argument("name", shell_complete=known_names)
rollouts_argument = click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=known_names)


def output_option(*forms: str) -> Callable[..., Any]:
    """The -o option with these ``forms``, the first one being the default."""
    choice = click.Choice(forms)
    return click.option("-o", "--output", type=choice, default=forms[0], show_default=True, help="Form of output.")
