"""kubectl's global flags, understood before and after the command's name, as kubectl's users expect."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from rollout_lws.cli.durations import DURATION

_OPTIONS = (
    click.option("-n", "--namespace", metavar="NAME", help="Namespace; the context's own by default."),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig; the current one by default."),
    click.option("--kubeconfig", metavar="FILE", help="Kubeconfig; $KUBECONFIG or ~/.kube/config by default."),
    click.option("--as", "impersonate", metavar="USER", help="User to impersonate."),
    click.option("--request-timeout", type=DURATION, metavar="DURATION", help="Longest time of one request (30s)."),
    click.option(
        "--api-group", metavar="GROUP", help="API group of our kinds; found by asking the cluster by default."
    ),
)


@dataclass(frozen=True, slots=True)
class Target:
    """Which cluster, namespace and API group a command is about; None where the kubeconfig or the cluster decides."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None
    impersonate: str | None = None
    request_timeout: float | None = None
    api_group: str | None = None


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags and passes them on as keyword arguments; used by the program itself."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def with_target(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the flags to a command and passes ``target``: what stands after its name wins."""

    @functools.wraps(command)
    def wrapper(*args: Any, **given: Any) -> Any:
        before = click.get_current_context().find_root().params
        names = Target.__dataclass_fields__
        chosen = {name: given.pop(name) if given.get(name) is not None else before.get(name) for name in names}
        for name in names:
            given.pop(name, None)
        return command(*args, target=Target(**chosen), **given)

    return cluster_options(wrapper)


def release_name(text: str) -> str:
    """NAME of ``NAME`` or ``rollout/NAME``."""
    kind, slash, name = text.rpartition("/")
    if slash and kind not in ("rollout", "rollouts", "lwsro"):
        raise click.UsageError(f"{text!r} is no Rollout: write NAME or rollout/NAME")
    if not name:
        raise click.UsageError("the Rollout's name is missing: write NAME or rollout/NAME")
    return name
