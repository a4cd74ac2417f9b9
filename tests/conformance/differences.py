"""Where the sandbox's API server is not like Kubernetes', on purpose: what each of them does, and why that is left so.

A test of such a behaviour asserts what its server does, so that a difference that is no longer there fails as loudly as
a new one. docs/conformance.md shows this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

KUBERNETES = "kubernetes"
SANDBOX = "sandbox"


@dataclass(frozen=True, slots=True)
class Difference:
    """``what`` is asked, what each server answers (a message, a code, a list …), and ``why`` the sandbox's is kept."""

    what: str
    kubernetes: Any
    sandbox: Any
    why: str

    def on(self, server: str) -> Any:
        """What the server of this name is expected to answer."""
        return {KUBERNETES: self.kubernetes, SANDBOX: self.sandbox}[server]


FUTURE_WATCH = Difference(
    what="a watch from a resourceVersion that is yet to come: its events until its time is over",
    kubernetes=[],
    sandbox=[("ERROR", "Timeout")],
    why="a sandbox that is started again counts from 1: a client of the one before would wait for ever, and lists anew",
)
