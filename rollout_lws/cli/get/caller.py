"""How commands are printed so that they act on the cluster that the user looks at."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from rollout_lws.cli.options import flags_of
from rollout_lws.kubeconfig.target import Target


@dataclass(frozen=True, slots=True)
class Caller:
    """How to print commands so that they act on the same cluster: ``program`` is ours, ``flags`` also work with
    kubectl, ``own`` only with our program.
    """

    program: str = "rollout-lws"
    flags: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    def ours(self, words: str) -> str:
        return " ".join([self.program, words, *(shlex.quote(each) for each in (*self.flags, *self.own))])

    def kubectl(self, words: str) -> str:
        return " ".join(["kubectl", words, *(shlex.quote(each) for each in self.flags)])


def caller_of(target: Target) -> Caller:
    """How the user invoked this program: as a plugin or not, with the flags that select this cluster."""
    program = "kubectl rollout-lws" if Path(sys.argv[0]).name == "kubectl-rollout_lws" else "rollout-lws"
    own = flags_of(Target(api_group=target.api_group))
    return Caller(program, tuple(flags_of(replace(target, api_group=None))), tuple(own))
