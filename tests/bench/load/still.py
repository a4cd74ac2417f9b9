"""The Rollouts on which nothing happens while others are released: copies of recorded ones, as bytes to be listed.

A sandbox that held thousands of them as objects would need the core that the controller is measured on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, LWS_WORKER_INDEX, PODS
from tests.bench.fleet import Fleet, Stored, copied

#: One entry of what was recorded of a namespace: ``resource`` as in ``pods`` or ``statefulsets.apps``, and ``object``.
Recorded = dict[str, Any]


class Still:
    """Copies of what was recorded, each recording so many times, in namespaces that nothing else is in."""

    def __init__(self, recordings: Iterable[tuple[Sequence[Recorded], int]] = ()) -> None:
        self._objects: dict[str, list[Stored]] = {}
        self._places: dict[tuple[str, str], list[Stored]] = {}
        first = 0
        for recorded, copies in recordings:
            if not copies:
                continue
            for resource, stored in copied(recorded, copies, first).objects.items():
                # There is one, and the cluster has it.
                if resource == str(CUSTOM_RESOURCE_DEFINITIONS):
                    continue
                self._objects.setdefault(resource, []).extend(stored)
                for each in stored:
                    self._places.setdefault((resource, each.namespace), []).append(each)
            first += copies
        self._everywhere = cache(Fleet(self._objects).select)

    @property
    def counts(self) -> dict[str, int]:
        """Objects by resource."""
        return {resource: len(stored) for resource, stored in self._objects.items()}

    def select(self, resource: str, namespace: str, selector: str) -> list[Stored]:
        """What a list of a namespace, or of all of them for "", is to contain."""
        if not namespace:
            return self._everywhere(resource, selector)
        return Fleet({resource: self._places.get((resource, namespace), [])}).select(resource, selector)


def without_workers(recorded: Iterable[Recorded]) -> list[Recorded]:
    """What a controller can ask for of a Rollout at rest, whose worker pods nobody lists."""
    return [
        each
        for each in recorded
        if each["resource"] != str(PODS) or each["object"]["metadata"]["labels"].get(LWS_WORKER_INDEX) == "0"
    ]
