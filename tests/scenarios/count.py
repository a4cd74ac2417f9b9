"""What stands in a world, counted for those who judge it.

Groups are counted from leader pods and worker StatefulSets, and nothing is asked of the controller's own code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.objects import scaling
from rollout_lws.objects.resources import STATEFUL_SETS
from tests.scenarios.kinds import parameters
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS, World

CANARY = f"{NAME}-canary"
#: A partition that no group is at or above.
HOLD = 1_000_000


@dataclass(frozen=True, slots=True)
class Standing:
    """One group as it stands."""

    ordinal: int
    revision: str
    ready: bool


class Count:
    """Reads ``world`` as it is at this moment."""

    def __init__(self, world: World) -> None:
        self._world, self._store, self._kind = world, world.server.store, world.kind

    def groups(self, name: str = NAME) -> list[Standing]:
        """Groups whose leader exists; one whose leader terminates is not ready."""
        found, kind = [], self._kind
        live = self._store.get(kind.resource, NAMESPACE, name)
        for pod in kind.pods(self._store, name):
            meta = pod["metadata"]
            if not kind.leads(pod):
                continue
            conditions = {each["type"]: each["status"] for each in (pod.get("status") or {}).get("conditions") or ()}
            ready = conditions.get("Ready") == "True" and "deletionTimestamp" not in meta
            size = kind.pods_of_group(pod)
            ready = ready and (size == 1 or self._workers(meta) == size - 1)
            first = kind.first(live) if live is not None else 0
            found.append(Standing(kind.index(pod) - first, kind.revision(pod), ready))
        return found

    def _workers(self, leader: dict[str, Any]) -> int:
        workers = self._store.get(STATEFUL_SETS, NAMESPACE, leader["name"])
        if workers is None or workers["metadata"]["ownerReferences"][0]["uid"] != leader["uid"]:
            return 0
        gone = "deletionTimestamp" in workers["metadata"]
        return 0 if gone else int((workers.get("status") or {}).get("availableReplicas", 0))

    def ready(self, name: str = NAME) -> int:
        return sum(group.ready for group in self.groups(name))

    def ready_new(self) -> int:
        """Ready groups of the version that is released, wherever they stand."""
        sub = self._world.status_of(NAME).get("canaryStatus") or {}
        own = [group for group in self.groups() if group.revision == sub.get("canaryRevision")]
        return self.ready(CANARY) + sum(group.ready for group in own)

    def ready_old(self) -> int:
        """Ready groups of the stable version."""
        stable = self.stable(self._store.get(ROLLOUTS, NAMESPACE, NAME) or {})
        return sum(group.ready for group in self.groups() if stable and group.revision == stable["revision"])

    def live(self, name: str) -> dict[str, Any]:
        return self._world.server.get(self._kind.resource, NAMESPACE, name)

    def rollout(self) -> dict[str, Any]:
        return self._world.server.get(ROLLOUTS, NAMESPACE, NAME)

    def planned(self) -> int:
        """The most groups of the new version that a step asks for."""
        strategy = self.rollout()["spec"]["strategy"]
        total = int(self.live(NAME)["spec"]["replicas"])
        steps = (strategy.get("canary") or strategy["blueGreen"])["steps"]
        return max(min(total, scaling.scaled(step["replicas"], total)) for step in steps)

    def stable(self, rollout: dict[str, Any]) -> dict[str, Any] | None:
        lws = self._store.get(self._kind.resource, NAMESPACE, NAME)
        stable = (rollout.get("status") or {}).get("stable")
        return stable if lws and stable and stable["workloadUID"] == lws["metadata"]["uid"] else None

    def in_step(self) -> bool:
        """Whether a release is in its steps."""
        status = self._world.status_of(NAME)
        return "finalising" not in status and status.get("phase") == "Progressing"

    def task(self) -> tuple[str, str]:
        try:
            ending = (self.rollout().get("status") or {}).get("finalising") or {}
        except ApiError:
            ending = {}
        return str(ending.get("reason", "")), str(ending.get("task", ""))

    def target(self) -> str:
        """The revision that the workload's controller gives the template as it stands."""
        return self._kind.target(self._store, NAME)


def partition(lws: dict[str, Any]) -> int:
    """That of its own strategy; 0 for one that has none."""
    return int(parameters(lws).get("partition", 0))


def set_partition(leaders: dict[str, Any]) -> int:
    update = (leaders["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return int(update.get("partition", 0))
