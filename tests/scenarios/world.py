"""A world for stories: the sandbox's API server and cluster in memory, and one decision loop right on top of its store.

There is no client, cache or queue between decision and store here, so that thousands of releases fit into a test run
and a story can stop the loop after any single write. The real shell has stories of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from rollout_lws.api import crd, keys, rollouts
from rollout_lws.api.resources import batch_releases
from rollout_lws.controller.apply import Next, classify
from rollout_lws.controller.failing import Failing
from rollout_lws.controller.observe import observe
from rollout_lws.controller.stored import StoredObject, StoredRollout, stored_object, stored_rollout
from rollout_lws.errors import ApiError
from rollout_lws.objects import resources as kinds
from rollout_lws.objects.endpoints import EndpointSlice
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, LWS_WORKER_INDEX, Resource
from rollout_lws.objects.workloads import ControllerRevision, LeaderWorkerSet, Pod, StatefulSet
from rollout_lws.objects.writes import Confirm, Write
from rollout_lws.rollout.decide import decide
from rollout_lws.rollout.decision import Decision, Notice
from rollout_lws.rollout.observation import Capabilities
from rollout_lws.sandbox import lws_crd
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Cluster, Options
from rollout_lws.sandbox.behaviours.runner import carry_out
from rollout_lws.sandbox.store import Event

NAMESPACE, NAME = "default", "llama"
ORIGIN = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = keys()
ROLLOUTS = rollouts()


class StoreWorld:
    """What ``observe`` asks for, read straight from the store."""

    capabilities = Capabilities()

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    def _get(self, resource: Resource, name: str) -> bytes | None:
        try:
            return msgspec.json.encode(self.server.get(resource, NAMESPACE, name))
        except ApiError:
            return None

    def _labelled(self, resource: Resource, selector: str) -> Iterator[bytes]:
        yield from (msgspec.json.encode(obj) for obj in self.server.list(resource, NAMESPACE, label_selector=selector))

    def rollout(self, name: str) -> StoredRollout | None:
        body = self._get(ROLLOUTS, name)
        return stored_rollout(body) if body else None

    def rollouts_of(self, workload: str) -> Iterable[StoredRollout]:
        found = (stored_rollout(msgspec.json.encode(obj)) for obj in self.server.list(ROLLOUTS, NAMESPACE))
        return [each for each in found if each.workload == workload]

    def batch_release(self, name: str) -> StoredObject | None:
        body = self._get(batch_releases(), name)
        return stored_object(body) if body else None

    def workload(self, name: str) -> LeaderWorkerSet | None:
        body = self._get(LEADER_WORKER_SETS, name)
        return msgspec.json.decode(body, type=LeaderWorkerSet) if body else None

    def canaries_of(self, workload: str) -> Iterable[LeaderWorkerSet]:
        selector = f"{KEYS.canary_leader_worker_set}={workload}"
        return [
            msgspec.json.decode(body, type=LeaderWorkerSet) for body in self._labelled(LEADER_WORKER_SETS, selector)
        ]

    def leaders(self, workload: str) -> Iterable[Pod]:
        selector = f"{LWS_NAME}={workload},{LWS_WORKER_INDEX}=0"
        return [msgspec.json.decode(body, type=Pod) for body in self._labelled(kinds.PODS, selector)]

    def pods(self, workload: str) -> Iterable[Pod]:
        return [msgspec.json.decode(body, type=Pod) for body in self._labelled(kinds.PODS, f"{LWS_NAME}={workload}")]

    def stateful_sets(self, workload: str) -> Iterable[StatefulSet]:
        selector = f"{LWS_NAME}={workload}"
        return [msgspec.json.decode(body, type=StatefulSet) for body in self._labelled(kinds.STATEFUL_SETS, selector)]

    def revisions(self, workload: str) -> Iterable[ControllerRevision]:
        selector = f"{LWS_NAME}={workload}"
        found = self._labelled(kinds.CONTROLLER_REVISIONS, selector)
        return [msgspec.json.decode(body, type=ControllerRevision) for body in found]

    def services(self, workload: str) -> Iterable[StoredObject]:
        return [stored_object(body) for body in self._labelled(kinds.SERVICES, f"{LWS_NAME}={workload}")]

    def history(self, owner_uid: str) -> Iterable[ControllerRevision]:
        found = [
            msgspec.json.decode(body, type=ControllerRevision)
            for body in self._labelled(kinds.CONTROLLER_REVISIONS, KEYS.history)
        ]
        return [each for each in found if each.metadata.controlled_by(owner_uid)]

    def every_leader(self) -> Iterable[Pod]:
        return [msgspec.json.decode(body, type=Pod) for body in self._labelled(kinds.PODS, f"{LWS_WORKER_INDEX}=0")]

    def service(self, name: str) -> StoredObject | None:
        body = self._get(kinds.SERVICES, name)
        return stored_object(body) if body else None

    def every_service(self) -> Iterable[StoredObject]:
        return [stored_object(body) for body in self._labelled(kinds.SERVICES, "")]

    def route(self, name: str) -> StoredObject | None:
        body = self._get(kinds.HTTP_ROUTES, name)
        return stored_object(body) if body else None

    def endpoints(self, service: str) -> frozenset[str]:
        found = self._labelled(kinds.ENDPOINT_SLICES, f"kubernetes.io/service-name={service}")
        return frozenset().union(*(msgspec.json.decode(body, type=EndpointSlice).ready_pods for body in found))

    def unknown_routes(self) -> str | None:
        return None

    def unknown_endpoints(self, service: str) -> str | None:
        return None


#: A controller that decides more often in one second has nothing that it could have learnt in between.
MOST_DECISIONS_A_SECOND = 5000


class Stopped(Exception):
    """The controller was killed."""


class World:
    """One cluster, one LWS ``llama``, one Rollout ``llama`` (or ``name``), and the decision loop."""

    LWS, ROLLOUT, RECORD = LEADER_WORKER_SETS, ROLLOUTS, batch_releases()

    def __init__(self, options: Options | None = None, name: str = NAME) -> None:
        self.name = name
        loop = asyncio.get_running_loop()
        self.server = ApiServer(clock=lambda: ORIGIN.timestamp() + loop.time(), seed=7)
        for manifest in (lws_crd.manifest(), *crd.render()):
            self.server.create(kinds.CUSTOM_RESOURCE_DEFINITIONS, manifest)
        self.cluster = Cluster(self.server, options)
        self.cluster.start()
        self.view = StoreWorld(self.server)
        self.writes: list[Write] = []
        self.labels: list[Write] = []
        self.notices: list[Notice] = []
        self.decisions = 0
        self.last: Decision | None = None
        self.checks: list[Callable[[World], None]] = []
        self.errors: list[BaseException] = []
        self.running = False
        self.budget: int | None = None
        self.refuse: Callable[[Write], ApiError | None] = lambda _: None
        self.failing: Failing[str] = Failing()
        self._back_off = 0.0
        self.sent: Write | None = None
        self._asked_for: ApiError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._scheduled = False
        self._second, self._spins = -1, 0
        self._waiters: set[asyncio.Future[None]] = set()
        self.server.store.subscribe(self._take)

    # The controller

    def start_controller(self, budget: int | None = None) -> None:
        """Start deciding; killed after ``budget`` writes when given."""
        self.running, self.budget = True, budget
        self._wake()

    def stop_controller(self) -> None:
        self.running = False
        if self._timer:
            self._timer.cancel()

    def kill_after(self, writes: int) -> None:
        """Let the controller carry out so many writes more, then kill it."""
        self.budget = writes
        if writes == 0:
            self.stop_controller()

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.server.clock(), UTC)

    def _take(self, _: Event) -> None:
        self._announce()
        for check in self.checks:
            try:
                check(self)
            except AssertionError as error:
                self.errors.append(error)
        self._wake()

    def _announce(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def _change(self, seconds: float) -> bool:
        """Wait for the next change; False when there was none in time."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            async with asyncio.timeout(max(0.001, seconds)):
                await waiter
        except TimeoutError:
            return False
        return True

    def _wake(self) -> None:
        if self.running and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._reconcile)

    def _reconcile(self) -> None:
        self._scheduled = False
        if not self.running:
            return
        if self._timer:
            self._timer.cancel()
            self._timer = None
        try:
            seen = observe(self.view, KEYS, self.name, self.now, self.failing.of(self.name, self.now))
            if seen is None:
                return
            self.decisions += 1
            self._spins = self._spins + 1 if int(self.server.clock()) == self._second else 0
            self._second = int(self.server.clock())
            assert self._spins < MOST_DECISIONS_A_SECOND, f"decides on and on: {self.last}"
            self.last = decision = decide(seen)
            assert decide(seen) == decision, "a decision is a function of its observation"
            for write in decision.writes:
                self._send(write)
        except Stopped:
            self.running = False
            self._announce()
            return
        except ApiError as error:
            self._failed(error)
            return
        except BaseException as error:
            self.errors.append(error)
            raise
        if not decision.only_tells:
            self.failing.forget(self.name)
            self._back_off = 0.0
        for write in decision.labels:
            try:
                carry_out(self.server, write)
                self.labels.append(write)
            except ApiError:
                continue
        self.notices += decision.notices
        if decision.wake_at is not None:
            delay = max(0.0, (decision.wake_at - self.now).total_seconds())
            self._timer = asyncio.get_running_loop().call_later(delay + 1e-6, self._wake)

    def _failed(self, error: ApiError) -> None:
        """Tried again with back-off; a refusal that no story asked for is a bug."""
        failure = classify(error, self.sent) if self.sent is not None else None
        if failure is not None:
            if failure.next is Next.REFUSED and error is not self._asked_for:
                self.errors.append(error)
            self.failing.note(self.name, failure, self.now)
        self._back_off = min(max(0.005, self._back_off * 2), 30.0)
        asyncio.get_running_loop().call_later(self._back_off, self._wake)

    def _send(self, write: Write) -> None:
        self.sent = write
        if isinstance(write, Confirm):
            live = self.server.get(write.resource, write.namespace, write.name)
            if (live["metadata"]["uid"], live["metadata"]["generation"]) != (write.uid, write.generation):
                raise ApiError(409, "Conflict", f"{write.name} is not as it was")
            return
        if self.budget is not None:
            if self.budget == 0:
                raise Stopped
            self.budget -= 1
        self._asked_for = self.refuse(write)
        if self._asked_for is not None:
            raise self._asked_for
        carry_out(self.server, write)
        self.writes.append(write)

    # The user

    def create_workload(
        self, *, replicas: int = 4, size: int = 2, tag: str = "v1", name: str = NAME, **spec: Any
    ) -> None:
        template = {
            "metadata": {"labels": {"app": "llama"}},
            "spec": {"containers": [{"name": "vllm", "image": f"vllm:{tag}"}]},
        }
        body: dict[str, Any] = {
            "apiVersion": LEADER_WORKER_SETS.api_version,
            "kind": LEADER_WORKER_SETS.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"replicas": replicas, "leaderWorkerTemplate": {"size": size, "workerTemplate": template}, **spec},
        }
        self.server.create(LEADER_WORKER_SETS, body)

    def create_rollout(self, *steps: dict[str, Any], name: str = NAME, **strategy: Any) -> None:
        canary = {"steps": list(steps), **strategy.pop("canary", {})}
        body = {
            "apiVersion": ROLLOUTS.api_version,
            "kind": ROLLOUTS.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "workloadRef": {
                    "apiVersion": LEADER_WORKER_SETS.api_version,
                    "kind": LEADER_WORKER_SETS.kind,
                    "name": NAME,
                },
                "strategy": {"canary": canary, **strategy},
            },
        }
        self.server.create(ROLLOUTS, body)

    def patch(self, resource: Resource, name: str, body: dict[str, Any], subresource: str = "") -> None:
        self.server.patch(resource, NAMESPACE, name, body, "application/merge-patch+json", subresource=subresource)

    def patch_lws(self, spec: dict[str, Any], name: str = NAME) -> None:
        self.patch(LEADER_WORKER_SETS, name, {"spec": spec})

    def set_image(self, tag: str) -> None:
        containers = [{"name": "vllm", "image": f"vllm:{tag}"}]
        self.patch_lws({"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": containers}}}})

    def patch_rollout(self, spec: dict[str, Any]) -> None:
        self.patch(ROLLOUTS, NAME, {"spec": spec})

    def approve(self) -> None:
        self.patch(ROLLOUTS, NAME, {"status": {"canaryStatus": {"currentStepState": "StepReady"}}}, "status")

    def request(self, kind: str, **fields: Any) -> None:
        action = {"type": kind, "id": f"{kind}-{self.server.clock()}", **fields}
        self.patch(ROLLOUTS, NAME, {"status": {"requestedAction": action}}, "status")

    def delete(self, resource: Resource, name: str, propagation: str = "Background") -> None:
        self.server.delete(resource, NAMESPACE, name, propagation=propagation)

    # The world

    @property
    def true_conditions(self) -> dict[str, dict[str, Any]]:
        """Conditions of status True, by type."""
        return {each["type"]: each for each in self.status.get("conditions", ()) if each["status"] == "True"}

    def status_of(self, name: str) -> dict[str, Any]:
        found = self.get(ROLLOUTS, name) or {}
        return dict(found.get("status") or {})

    def get(self, resource: Resource, name: str) -> dict[str, Any] | None:
        try:
            return self.server.get(resource, NAMESPACE, name)
        except ApiError:
            return None

    @property
    def lws(self) -> dict[str, Any]:
        found = self.get(LEADER_WORKER_SETS, NAME)
        assert found is not None
        return found

    @property
    def rollout(self) -> dict[str, Any]:
        found = self.get(ROLLOUTS, self.name)
        assert found is not None
        return found

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.rollout.get("status") or {})

    @property
    def state(self) -> str:
        return str((self.status.get("summary") or {}).get("state", ""))

    def condition(self, kind: str) -> dict[str, Any]:
        return next((each for each in self.status.get("conditions", ()) if each["type"] == kind), {})

    def groups(self, name: str = NAME) -> dict[int, str]:
        """Image tag by ordinal, with "!" when a pod of the group is not ready."""
        size = (self.get(LEADER_WORKER_SETS, name) or self.lws)["spec"]["leaderWorkerTemplate"].get("size", 1)
        found: dict[int, list[tuple[str, bool]]] = {}
        for pod in self.server.list(kinds.PODS, NAMESPACE, label_selector=f"{LWS_NAME}={name}"):
            conditions = {each["type"]: each["status"] for each in pod.get("status", {}).get("conditions", ())}
            ready = conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
            tag = pod["spec"]["containers"][0]["image"].rpartition(":")[2]
            found.setdefault(int(pod["metadata"]["labels"][kinds.LWS_GROUP_INDEX]), []).append((tag, ready))
        return {
            index: members[0][0]
            + ("" if len(members) == size and all(ready and tag == members[0][0] for tag, ready in members) else "!")
            for index, members in sorted(found.items())
        }

    def leader_uids(self, name: str = NAME) -> dict[str, str]:
        selector = f"{LWS_NAME}={name},{LWS_WORKER_INDEX}=0"
        pods = self.server.list(kinds.PODS, NAMESPACE, label_selector=selector)
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}

    def get_canary_replicas(self) -> int | None:
        canary = self.get(LEADER_WORKER_SETS, f"{NAME}-canary")
        return canary["spec"]["replicas"] if canary else None

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        await asyncio.sleep(seconds)
        self.raise_errors()

    def names(self) -> dict[str, list[str]]:
        """Everything that exists, by resource, pods of groups and events apart."""
        listed = {}
        for resource in (LEADER_WORKER_SETS, kinds.STATEFUL_SETS, batch_releases(), kinds.SERVICES):
            listed[resource.plural] = sorted(obj["metadata"]["name"] for obj in self.server.list(resource, NAMESPACE))
        return listed

    async def until(self, holds: Callable[[], bool], what: str = "", seconds: float = 600) -> None:
        """Wait, in virtual time, until something is so."""
        deadline = self.now + timedelta(seconds=seconds)
        while not holds():
            self.raise_errors()
            if self.now >= deadline:
                raise AssertionError(f"not within {seconds} s: {what or holds}\n{self.describe()}")
            await self._change((deadline - self.now).total_seconds())
        self.raise_errors()

    async def until_state(self, state: str, seconds: float = 600) -> None:
        await self.until(lambda: self.state == state, f"state {state}", seconds)

    async def rest(self, quiet: float = 3, seconds: float = 900) -> None:
        """Wait until nothing has changed for ``quiet`` seconds."""
        deadline = self.now + timedelta(seconds=seconds)
        while True:
            self.raise_errors()
            assert self.now < deadline, f"never at rest\n{self.describe()}"
            if not await self._change(quiet):
                self.raise_errors()
                return

    def raise_errors(self) -> None:
        if self.errors:
            raise self.errors[0]

    def describe(self) -> str:
        listed = {name: self.groups(name) for name in self.names()["leaderworkersets"]}
        told = "\n".join(f"  {notice.reason}: {notice.note}" for notice in self.notices[-8:])
        partition = self.lws["spec"]["rolloutStrategy"] if self.get(LEADER_WORKER_SETS, NAME) else None
        return f"groups {listed}\nstrategy {partition}\nstatus {msgspec.json.encode(self.status).decode()}\n{told}"

    def close(self) -> None:
        self.stop_controller()
        self.cluster.stop()
