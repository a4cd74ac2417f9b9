"""What stands in a world, counted for those who judge it.

Groups are counted from leader pods and worker StatefulSets, and nothing is asked of the controller's own code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.objects import scaling
from rollout_lws.objects.resources import (
    LEADER_WORKER_SETS,
    LWS_GROUP_INDEX,
    LWS_NAME,
    LWS_REVISION,
    LWS_WORKER_INDEX,
    PODS,
    STATEFUL_SETS,
)
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
        self._world, self._store = world, world.server.store

    def groups(self, name: str = NAME) -> list[Standing]:
        """Groups whose leader exists; one whose leader terminates is not ready."""
        found = []
        for pod in self._store.list(PODS, NAMESPACE, {LWS_NAME: name}):
            meta = pod["metadata"]
            if meta["labels"].get(LWS_WORKER_INDEX) != "0":
                continue
            conditions = {each["type"]: each["status"] for each in (pod.get("status") or {}).get("conditions") or ()}
            ready = conditions.get("Ready") == "True" and "deletionTimestamp" not in meta
            size = int(meta["annotations"]["leaderworkerset.sigs.k8s.io/size"])
            ready = ready and (size == 1 or self._workers(meta) == size - 1)
            found.append(Standing(int(meta["labels"][LWS_GROUP_INDEX]), meta["labels"][LWS_REVISION], ready))
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
        return self._world.server.get(LEADER_WORKER_SETS, NAMESPACE, name)

    def rollout(self) -> dict[str, Any]:
        return self._world.server.get(ROLLOUTS, NAMESPACE, NAME)

    def planned(self) -> int:
        """The most groups of the new version that a step asks for."""
        strategy = self.rollout()["spec"]["strategy"]
        total = int(self.live(NAME)["spec"]["replicas"])
        steps = (strategy.get("canary") or strategy["blueGreen"])["steps"]
        return max(min(total, scaling.scaled(step["replicas"], total)) for step in steps)

    def stable(self, rollout: dict[str, Any]) -> dict[str, Any] | None:
        lws = self._store.get(LEADER_WORKER_SETS, NAMESPACE, NAME)
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
        """The revision that LWS gives the template as it stands."""
        leaders = self._store.get(STATEFUL_SETS, NAMESPACE, NAME)
        return str(leaders["metadata"]["labels"][LWS_REVISION]) if leaders else ""


def rolling(lws: dict[str, Any]) -> dict[str, Any]:
    return dict(lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"])


def partition(lws: dict[str, Any]) -> int:
    return int(rolling(lws)["partition"])


def set_partition(leaders: dict[str, Any]) -> int:
    update = (leaders["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return int(update.get("partition", 0))
