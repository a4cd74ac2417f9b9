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
    why="the words of Kubernetes 1.33, which is the version that the sandbox tells",
)

POD_VOLUMES = Difference(
    what="a Pod that names no volumes: how many it gets",
    kubernetes=1,
    sandbox=0,
    why="it is the token of a service account, and no container in a sandbox uses one",
)

STATEFUL_SET_GATE = Difference(
    what="rollingUpdate of a StatefulSet with maxUnavailable 2, as it is kept",
    kubernetes={"partition": 0},
    sandbox={"partition": 0, "maxUnavailable": 2},
    why="its feature gate is off by default; clusters that turn it on behave otherwise, and the sandbox can be either",
)

UNKNOWN_BUILT_IN = Difference(
    what="a field that a ConfigMap does not have, as it is kept",
    kubernetes=None,
    sandbox="round",
    why="built-in kinds have no schema here, so that a misspelt field of theirs is found on a real cluster only",
)

OWNED_MAP = Difference(
    what="what the maker of a ConfigMap with one key owns, in managedFields",
    kubernetes={"f:data": {".": {}, "f:key": {}}},
    sandbox={"f:data": {"f:key": {}}},
    why="only other owners of a map matter when it is empty, and no client here owns empty maps",
)

#: The order of the page.
ALL = (
    FUTURE_WATCH,
    RULED_OBJECT,
    STRICT_PATCH,
    OWNED_MAP,
    EMPTY_POD,
    UNKNOWN_BUILT_IN,
    POD_VOLUMES,
    DIGIT_SERVICE,
    STATEFUL_SET_GATE,
)


def table() -> str:
    """The differences as the table of docs/conformance.md."""
    rows = [(each.what, f"`{each.kubernetes}`", f"`{each.sandbox}`", each.why) for each in ALL]
    lines = [" | ".join(row) for row in (("asked", "Kubernetes", "sandbox", "why"), ("---",) * 4, *rows)]
    return "".join(f"| {line} |\n" for line in lines)
