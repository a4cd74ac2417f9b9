"""Whether gateways have accepted what was written: a route that no gateway accepts routes no request.

HTTPRoutes and InferencePools both report it in status.parents. A gateway that was broken before a release must not
block it, so the parents that accepted are recorded before the first write, and only those are checked later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rollout_lws.objects.meta import Struct
from rollout_lws.traffic.split import Object

#: Condition → the status in which requests are routed as written.
_WANTED = {"Accepted": "True", "ResolvedRefs": "True", "PartiallyInvalid": "False"}


class Parent(Struct, frozen=True):
    """What an object is attached to: usually a Gateway, or one listener (``section``) or port of it."""

    name: str
    namespace: str = ""
    section: str = ""
    port: int = 0
    kind: str = "Gateway"
    group: str = "gateway.networking.k8s.io"

    def __str__(self) -> str:
        section = f" (section {self.section})" if self.section else ""
        port = f" (port {self.port})" if self.port else ""
        return f"{self.kind} {self.namespace}/{self.name}{section}{port}"


def parent(reference: Mapping[str, Any], namespace: str) -> Parent:
    """The parent that a parentRef names; ``namespace`` is the referring object's."""
    return Parent(
        name=str(reference.get("name", "")),
        namespace=str(reference.get("namespace") or namespace),
        section=str(reference.get("sectionName") or ""),
        port=int(reference.get("port") or 0),
        kind=str(reference.get("kind") or "Gateway"),
        group=str(reference.get("group", "gateway.networking.k8s.io")),
    )


def accepting(live: Object, required: Iterable[str]) -> tuple[Parent, ...]:
    """Parents in status that accept the object, possibly an older generation of it: another writer may have just
    written the newest. A parent that reports no generation could never be waited for, and does not count.
    """
    required = tuple(required)
    found = {at for at, status in _statuses(live) if not _complaint(status, required, generation=1)}
    return tuple(sorted(found, key=str))


def reporting(live: Object) -> set[Parent]:
    """Parents that report a status for the object."""
    return {at for at, _ in _statuses(live)}


def complaint(live: Object, at: Parent, required: Iterable[str]) -> str:
    """Why this parent does not accept the live generation; "" when it does. ``required`` conditions must be present."""
    generation = int(live["metadata"].get("generation") or 0)
    required = tuple(required)
    complaints = [_complaint(status, required, generation) for where, status in _statuses(live) if where == at]
    if not complaints:
        return f"{at} says nothing about it"
    # More than one controller may report for a parent; one that routes is enough.
    return "" if "" in complaints else f"{at}: {complaints[0]}"


def denied(live: Object) -> str:
    """The first Gateway that reports that it cannot use the live generation, with its condition and message; "" when
    none does. A missing report is no denial.
    """
    generation = int(live["metadata"].get("generation") or 0)
    for at, status in _statuses(live):
        for condition in status.get("conditions") or ():
            refused = condition.get("type") in ("Accepted", "ResolvedRefs") and condition.get("status") == "False"
            if refused and int(condition.get("observedGeneration") or 0) >= generation:
                return f"{at}: {_complaint({'conditions': [condition]}, (), generation)}"
    return ""


def _statuses(live: Object) -> list[tuple[Parent, Mapping[str, Any]]]:
    namespace = str(live["metadata"].get("namespace", ""))
    parents = (live.get("status") or {}).get("parents") or ()
    return [(parent(status.get("parentRef") or {}, namespace), status) for status in parents]


def _complaint(status: Mapping[str, Any], required: tuple[str, ...], generation: int) -> str:
    conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    for kind, wanted in _WANTED.items():
        condition = conditions.get(kind)
        if condition is None:
            if kind in required:
                return f"{kind} is not reported yet"
            continue
        observed = int(condition.get("observedGeneration") or 0)
        if condition.get("status") != wanted:
            reason = ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
            return f"{kind} is {condition.get('status')}" + (f" ({reason})" if reason else "")
        if kind != "PartiallyInvalid" and observed < generation:
            return f"{kind} is reported for generation {observed}, not yet for {generation}"
    return ""
