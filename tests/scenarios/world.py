"""A world for stories: the sandbox's API server and cluster in memory, and one decision loop right on top of its store.

There is no client, cache or queue between decision and store here, so that thousands of releases fit into a test run
and a story can stop the loop after any single write. The real shell has stories of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime

from rollout_lws.api.resources import batch_releases
from rollout_lws.cli.versions import putting_back, stored, to_undo
from rollout_lws.controller.apply import Next, classify, in_its_stead
from rollout_lws.controller.write_failures import WriteFailures
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import request_of
from rollout_lws.objects.owners import OURS
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    CUSTOM_RESOURCE_DEFINITIONS,
    HORIZONTAL_POD_AUTOSCALERS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    LEADER_WORKER_SETS,
    PODS,
    SERVICES,
)
from rollout_lws.objects.writes import Confirm, Create, Patch, Write
from rollout_lws.observe.capabilities import of_schema, schema_of
from rollout_lws.observe.observer import observe
from rollout_lws.rollout.decide import decide
from rollout_lws.rollout.decision import BestEffort, Decision, ReleaseEvent, Wanted
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.behaviours.cluster import Cluster, Options
from rollout_lws.sandbox.behaviours.runner import carry_out
from rollout_lws.sandbox.definitions import lws_crd
from rollout_lws.sandbox.patching import verbatim
from rollout_lws.sandbox.patching.patches import JSON_PATCH
from rollout_lws.sandbox.store import Event
from tests.definitions import definitions
from tests.scenarios.borders import assert_within
from tests.scenarios.kinds import LWS, LeaderWorkerSets
from tests.scenarios.names import KEYS, NAME, NAMESPACE, ORIGIN, ROLLOUTS
from tests.scenarios.store_world import StoreWorld
from tests.scenarios.user import User
from tests.scenarios.waits import Waits
from tests.scenarios.words import says_since_when, says_what_ends_it, says_why

#: Stories take their world and its names from here.
__all__ = ["KEYS", "NAME", "NAMESPACE", "ORIGIN", "ROLLOUTS", "World"]

#: What a release shares with others who write it.
ROUTING = frozenset({HORIZONTAL_POD_AUTOSCALERS, HTTP_ROUTES, INFERENCE_POOLS, INGRESSES, SERVICES})
#: A controller that decides more often in one second has nothing that it could have learnt in between.
MOST_DECISIONS_A_SECOND = 5000
#: And in one moment, in which time stands still: some fifty are usual where many objects change.
MOST_DECISIONS_A_MOMENT = 500
#: As long as a controller waits that decides only when everything has happened that happens at once; no timer is as
#: short.
AN_INSTANT = 1e-6


def as_sent(write: Create) -> Create:
    """A creation with its data in the very bytes in which the client sends it."""
    _, _, document, _ = request_of(write)
    return replace(write, body=verbatim.sent(dict(write.body), document))


class Stopped(Exception):
    """The controller was killed."""


class Running:
    """How often the same time was counted in a row."""

    def __init__(self) -> None:
        self._at, self.times = -1.0, 0

    def count(self, at: float) -> None:
        self._at, self.times = at, self.times + 1 if at == self._at else 0


class World(User, Waits):
    """One cluster, one LWS ``llama``, one Rollout ``llama`` (or ``name``), and the decision loop."""

    LWS, ROLLOUT, RECORD = LEADER_WORKER_SETS, ROLLOUTS, batch_releases()
    #: Whether the controller decides on each single change, as one that is faster than all others, or once on all
    #: changes of an instant, as one that is slower. Both come to the same end; the first sees more of what is between.
    each_change = True

    def __init__(self, options: Options | None = None, name: str = NAME) -> None:
        self.name = name
        loop = asyncio.get_running_loop()
        #: By how many seconds the clocks of all machines were set forward.
        self.ahead = 0.0
        self.server = ApiServer(clock=lambda: ORIGIN.timestamp() + self.ahead + loop.time(), seed=7)
        for manifest in definitions():
            self.server.create(CUSTOM_RESOURCE_DEFINITIONS, manifest)
        self.cluster = Cluster(self.server, options)
        self.cluster.start()
        self.view = StoreWorld(self.server)
        self.writes: list[Write] = []
        self.labels: list[Write] = []
        self.events: list[ReleaseEvent] = []
        self.decisions = 0
        self.last: Decision | None = None
        self.checks: list[Callable[[World], None]] = []
        self.errors: list[BaseException] = []
        self.running = False
        self.budget: int | None = None
        #: Whether each status has to say why; not where others write statuses, too.
        self.judges_words = True
        self.refuse: Callable[[Write], ApiError | None] = lambda _: None
        self.failing: WriteFailures[str] = WriteFailures()
        #: Whether a story has stored a version in a spelling in which it cannot be patched.
        self.misspelt = False
        self._back_off = 0.0
        self.sent: Write | None = None
        self._asked_for: ApiError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._scheduled = False
        self._in_second, self._in_moment = Running(), Running()
        self._waiters: set[asyncio.Future[None]] = set()
        self.server.store.subscribe(self._take)

    def release(self, kind: LeaderWorkerSets) -> None:
        """What is released from now on."""
        self.kind = kind
        if kind.generation != LWS.generation:
            self.upgrade_lws(kind.generation)

    def upgrade_lws(self, version: str = "1.0") -> None:
        """Another LeaderWorkerSet than the one that most stories have: the installed definition says which it is."""
        definition = lws_crd.manifest(version)
        name = definition["metadata"]["name"]
        self.server.patch(CUSTOM_RESOURCE_DEFINITIONS, "", name, definition, "application/merge-patch+json")
        self.view.capabilities = of_schema(schema_of(definition))

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

    def _take(self, event: Event) -> None:
        self._announce()
        if self.judges_words and event.resource == ROLLOUTS and event.type == "MODIFIED":
            try:
                says_why(event.object)
            except AssertionError as error:
                self.errors.append(error)
        for check in self.checks:
            try:
                check(self)
            except AssertionError as error:
                self.errors.append(error)
        self._wake()

    def _wake(self) -> None:
        if self.running and not self._scheduled:
            self._scheduled = True
            loop = asyncio.get_running_loop()
            loop.call_soon(self._reconcile) if self.each_change else loop.call_later(AN_INSTANT, self._reconcile)

    def _reconcile(self) -> None:
        self._scheduled = False
        if not self.running:
            return
        if self._timer:
            self._timer.cancel()
            self._timer = None
        try:
            seen = observe(self.view, self.name, self.now, self.failing.of(self.name, self.now))
            if seen is None:
                return
            self.decisions += 1
            self._in_second.count(int(self.server.clock()))
            self._in_moment.count(self.server.clock())
            spins = self._in_second.times >= MOST_DECISIONS_A_SECOND or self._in_moment.times >= MOST_DECISIONS_A_MOMENT
            assert not spins, f"decides on and on: {self.last}"
            self.last = decision = decide(seen)
            if decision.verdict is not None and self.judges_words:
                says_what_ends_it(decision.verdict, lambda verb: f"kubectl rollout-lws {verb} {self.name}")
            # One that does nothing is made over and over anyway; of the others some have to do, for time's sake.
            if (decision.writes or decision.events) and self.decisions % 4 == 0:
                assert decide(seen) == decision, "a decision is a function of its observation"
            events_after = len(decision.writes) if decision.events_after is None else decision.events_after
            for number, write in enumerate(decision.writes):
                if number == events_after:
                    self.events += decision.events
                self._carry_out(write)
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
        if not decision.aside:
            self.failing.forget(self.name)
            self._back_off = 0.0
        if not self._write_best_effort(decision.best_effort):
            return
        if events_after >= len(decision.writes):
            self.events += decision.events
        if not decision.aside:
            self.measure(decision.wanted)
        new = None if decision.aside else self.view.want(decision.wanted.kinds)
        if not decision.aside:
            pods, jobs = self.view.want_pods(decision.wanted.pods), self.view.want_job_pods(decision.wanted.jobs)
            if pods or jobs or self.view.want_scripts(decision.wanted):
                self._wake()
        if new is not None:
            asyncio.get_running_loop().call_later(new + 1e-6, self._wake)
        if decision.wake_at is not None:
            delay = max(0.0, (decision.wake_at - self.now).total_seconds())
            self._timer = asyncio.get_running_loop().call_later(delay + 1e-6, self._wake)

    def measure(self, wanted: Wanted) -> None:
        """Nothing is measured here: see ``MeasuredWorld``."""

    def _write_best_effort(self, best_effort: Iterable[BestEffort]) -> bool:
        """Whether the controller lives on; one that fails is left, and after a Confirm the rest of them."""
        for each in best_effort:
            write = each.write
            try:
                if isinstance(write, Patch) and write.resource == PODS:
                    # Labels: they are counted apart.
                    self.store_write(write)
                    self.labels.append(write)
                else:
                    self._send(write)
                if each.event is not None:
                    self.events.append(each.event)
            except Stopped:
                self.running = False
                self._announce()
                return False
            except ApiError:
                if isinstance(write, Confirm):
                    break
        return True

    def _failed(self, error: ApiError) -> None:
        """Tried again with back-off; a refusal that no story asked for is a bug."""
        failure = classify(error, self.sent) if self.sent is not None else None
        if failure is not None:
            if failure.next is Next.REFUSED and error is not self._asked_for:
                self.errors.append(error)
            self.failing.note(self.name, failure, self.now)
        self._back_off = min(max(0.005, self._back_off * 2), 30.0)
        asyncio.get_running_loop().call_later(self._back_off, self._wake)

    def _carry_out(self, write: Write) -> None:
        """A note may be written otherwise than it was meant to be, or not at all."""
        try:
            self._send(write)
        except ApiError as error:
            failure = classify(error, write)
            instead = in_its_stead(failure) if failure is not None else None
            if instead is None:
                raise
            if not self.misspelt:
                self.errors.append(error)
            try:
                self._send(instead)
            except ApiError as other_error:
                if other_error is not self._asked_for:
                    self.errors.append(other_error)

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
        if isinstance(write, Create) and write.resource == CONTROLLER_REVISIONS:
            write = as_sent(write)
        assert_within(self.server.store, write, self.name, NAMESPACE)
        self.store_write(write)
        self.writes.append(write)

    def store_write(self, write: Write) -> None:
        """What the server does with a write of the controller, its answer lost or not: it knows who has written."""
        # Who wrote matters only where others write as well, and is costly to keep.
        carry_out(self.server, write, OURS if write.resource in ROUTING else "")
        if self.judges_words and write.resource == ROLLOUTS and isinstance(write, Patch) and write.subresource:
            says_since_when(self.server.get(ROLLOUTS, write.namespace, write.name))

    def _told(self) -> list[ReleaseEvent]:
        return self.events

    async def undo(self) -> None:
        """Back to the version before the stable one, while no release is on, as the command has it."""
        live = self.server.get(self.kind.resource, NAMESPACE, NAME)
        records = self.server.list(CONTROLLER_REVISIONS, NAMESPACE, label_selector=KEYS.history)
        stable = self.status_of(NAME)["stable"]["templateHash"]
        back = to_undo(stored(records, KEYS.group), stable, stable, None)
        self.server.patch(self.kind.resource, NAMESPACE, NAME, putting_back(live, back.members), JSON_PATCH)

    def close(self) -> None:
        self.stop_controller()
        self.cluster.stop()
