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

DIGIT_SERVICE = Difference(
    what="a Service whose name begins with a digit: the answer's code",
    kubernetes=201,
    sandbox=422,
    why="Kubernetes before 1.36 refuses it, and what works on the sandbox is to work there too",
)

EMPTY_POD = Difference(
    what="a Pod without containers: the answer's code",
    kubernetes=422,
    sandbox=201,
    why="the sandbox validates metadata and custom resources; of built-in kinds only what a release writes to",
)

STRICT_PATCH = Difference(
    what="a patch with a field that the schema lacks and fieldValidation=Strict: the answer's code",
    kubernetes=422,
    sandbox=400,
    why="Kubernetes calls the patched object invalid and prints all of it; what is wrong is told in the same words",
)

RULED_OBJECT = Difference(
    what="what is said before the message of a CEL rule about an object",
    kubernetes="Invalid value",
    sandbox='Invalid value: "object"',
    why="the words of Kubernetes 1.33, which people will meet more often, and which the documentation shows",
)
