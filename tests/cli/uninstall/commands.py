"""The commands that `uninstall` prints, carried out on a server as kubectl and Helm do."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from rollout_lws.errors import ApiError
from rollout_lws.sandbox.apiserver import ApiServer

NOTHING = "nothing of an installation is left on this cluster"
INTRODUCTION = "These commands delete the rest, in this order:"


def printed(lines: list[str]) -> list[str]:
    """The commands that were printed, without remarks; [] where nothing is left."""
    if lines[-1] == NOTHING:
        return []
    told = [line.strip() for line in lines[lines.index(INTRODUCTION) + 1 :]]
    return [line for line in told if not line.startswith("#")]


def carry_out(server: ApiServer, commands: Iterable[str]) -> None:
    """``kubectl delete`` of what is named, without waiting."""
    kinds = {f"{each.resource.kind}.{each.resource.group}".lower().rstrip("."): each.resource for each in server.served}
    for command in commands:
        program, verb, *given = shlex.split(command)
        assert (program, verb) == ("kubectl", "delete"), command
        namespace = given[given.index("-n") + 1] if "-n" in given else ""
        for kind, slash, name in (each.partition("/") for each in given):
            if slash:
                try:
                    server.delete(kinds[kind], namespace, name)
                except ApiError as error:
                    # What a namespace, or a definition, has taken with it.
                    assert error.code == 404, command
