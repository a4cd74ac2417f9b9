"""Plays a demo: a cluster, a model server, a new version, the user's decision, and the checks at the end.

The user's actions go through the same API and code as `rollout-lws promote` and `rollout-lws abort`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, assert_never

from rollout_lws.api import Rollout
from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.actions import action_rules
from rollout_lws.cli.actions.action_client import ask
from rollout_lws.cli.demo import checks, manifests, pair, prefill_decode
from rollout_lws.cli.demo.checks import Check, Expected, Listing, Object, label
from rollout_lws.cli.demo.page import HESITATION, Showing, shown, until_interrupted
from rollout_lws.cli.demo.plan import Companion, Course, Plan
from rollout_lws.cli.demo.requests import (
    Requests,
    answered,
    bad_version_checks,
    client_of,
    requests_checks,
    routing_of,
)
from rollout_lws.cli.demo.teller import Teller
from rollout_lws.cli.get.caller import Caller
from rollout_lws.cli.releases import assemble, version_hash
from rollout_lws.cli.rollouts import rollouts_of, summary
from rollout_lws.cli.sandbox.local_cluster import Playground, playground
from rollout_lws.controller import process
from rollout_lws.errors import RolloutLwsError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import (
    CORE_EVENTS,
    LEADER_WORKER_SETS,
    LWS_NAME,
    LWS_REVISION,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.rollout.reasons import EventReason, Reason
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.sandbox.store import Event
from rollout_lws.settings import Settings
from rollout_lws.traffic.registry import ROUTING_KINDS

#: Seconds that a demo waits for one event, in addition to its groups' startup.
_PATIENCE = 45.0
#: Seconds between two lines on requests while gates are measured.
_TELL_EVERY = 5.0
#: A leader's extra startup as a multiple of ``ending``: its workers start only after its predecessor's have ended.
_LEADER_LONGER = 2
_KINDS = (LEADER_WORKER_SETS, STATEFUL_SETS, PODS, SERVICES, *ROUTING_KINDS)


#: Events that are told: what a gate has found is gone from the status when the next step begins.
_OF_GATES = frozenset({EventReason.GATE_PASSED, EventReason.GATE_FAILED, EventReason.GATE_INCONCLUSIVE})


class DemoFailed(RolloutLwsError):
    """The release did not reach an expected state; the message names that state."""


async def play(plan: Plan, settings: Settings, teller: Teller, showing: Showing | None = None) -> bool:
    """Run the demo, shown on a page if asked for; True when every check of the end state passed."""
    async with AsyncExitStack() as stack:
        timing = Timing(plan.load, terminate_after=plan.ending, leader_longer=_LEADER_LONGER * plan.ending)
        cluster = await stack.enter_async_context(playground(Options(timing=timing), settings.api_group))
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="rollout-lws-"))
        kubeconfig = Path(directory) / "kubeconfig"
        cluster.write_kubeconfig(kubeconfig)
        await stack.enter_async_context(process.running(replace(settings, kubeconfig=str(kubeconfig))))
        teller.say("cluster", f"API server at {cluster.url}, 8 nodes with 8 GPUs each; controller connected over HTTP")
        attended = showing is not None and showing.attended
        player = _Player(plan, settings, teller, cluster, kubeconfig, attended=attended)
        stack.callback(player.close)
        await player.begin()
        if showing is not None:
            rollouts = rollouts_of(settings.api_group)
            await stack.enter_async_context(shown(showing, plan, rollouts, kubeconfig, teller))
        judged = await player.play()
        for check in judged:
            teller.check(check)
        if attended:
            await until_interrupted(teller)
        return all(check.passed for check in judged)


class _Player:
    """Acts as the user of a release, and follows each change of the cluster. Where the demo is ``attended``, a person
    approves its steps on the page.
    """

    def __init__(
        self, plan: Plan, settings: Settings, teller: Teller, cluster: Playground, kubeconfig: Path, *, attended: bool
    ) -> None:
        self._plan, self._teller, self._cluster, self._attended = plan, teller, cluster, attended
        self._group = settings.api_group
        self._rollouts = rollouts_of(settings.api_group)
        self._batches = Resource(self._rollouts.group, self._rollouts.version, "BatchRelease", "batchreleases")
        self._routing = routing_of(plan.rollout)
        self._user = Transport.to(Target(namespace=plan.namespace, kubeconfig=str(kubeconfig)))
        self._caller = Caller(flags=("--kubeconfig", str(kubeconfig)))
        self._events: list[Event] = []
        self._changed = asyncio.Event()
        self._unsubscribe = cluster.server.store.subscribe(self._take)

    def close(self) -> None:
        self._unsubscribe()
        self._user.close()

    async def begin(self) -> None:
        """Apply the manifests, and wait until the first version serves."""
        plan = self._plan
        for manifest in (*plan.others, plan.workload, plan.rollout):
            self._cluster.apply(manifest)
        await self._until(
            f"LeaderWorkerSet {' and '.join(plan.serving)} is ready and the Rollout is Healthy",
            lambda: (
                self._status().get("phase") == "Healthy"
                and all(checks.all_ready(self._listing(), name).passed for name in plan.serving)
            ),
            _PATIENCE + plan.load,
        )

    async def play(self) -> list[Check]:
        """Play the release and check its end state; no check where a person went another way on the page."""
        plan, requests = self._plan, await self._measure()
        before = self._listing()
        self._events.clear()
        async with self._telling(requests):
            await self._act(plan.change, lambda: self._patch_template(plan.edited, plan.template))
            version = version_hash(self._lws(plan.edited))
            if plan.companion is not None:
                await self._complete(plan.companion)
            match plan.course:
                case Course.PROMOTED:
                    await self._promote()
                case Course.ABORTED:
                    await self._abort(before)
                case Course.GATE_FAILED:
                    await self._until_aborted()
                case unknown:
                    assert_never(unknown)
        if self._attended and self._went_another_way(version):
            self._teller.say("page", "you went another way than the demo, whose end state is not checked then")
            return []
        await self._until("the last pod that has to go is gone", lambda: self._has_ended(before))
        return self._judge(before, requests)

    def _has_ended(self, before: Listing) -> bool:
        now, plan = self._listing(), self._plan
        if plan.counterpart:
            parked = all(pair.is_parked(now, name) for name in plan.serving)
            return parked and all(checks.all_ready(now, name).passed for name in plan.renewed)
        return set(now["Pod"]) <= set(before["Pod"])

    async def _measure(self) -> Requests | None:
        """Start to measure requests, if the Rollout routes any and its route implies an example request."""
        routing, before, server = self._routing, self._listing(), self._cluster.server
        if routing is None:
            return None
        client = client_of(before, routing)
        if client is None:
            self._teller.say("traffic", f"not measured: no plain match of {routing.entry} leads to the old version")
            return None
        # Gateways accept a route, and EndpointSlices list a pod, shortly after it is there.
        await self._until("requests reach the first version", lambda: answered(server, client))
        requests = Requests(server, client, routing.drain, before, self._plan.workload_name)
        self._cluster.model_servers.count(requests.given)
        return requests

    @asynccontextmanager
    async def _telling(self, requests: Requests | None) -> AsyncIterator[None]:
        """Tell how many requests each version gets while gates are measured, when nothing else changes."""
        task = asyncio.create_task(self._tell(requests)) if requests is not None else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()

    async def _tell(self, requests: Requests) -> None:
        while True:
            await asyncio.sleep(_TELL_EVERY)
            if summary(self._rollout())["state"] == "Analyzing":
                self._teller.say("requests", requests.so_far().told)
                self._show()

    async def _complete(self, companion: Companion) -> None:
        """Show that the new version of one workload alone starts nothing, then give the other one its own."""
        waits = Reason.VERSION_INCOMPLETE
        await self._until(
            "the Rollout waits for the rest of the version",
            lambda: (self._status().get("verdict") or {}).get("reason") == waits,
        )
        await self._follow(lambda: False, self._plan.hesitation)
        await self._act(
            f"the same for {companion.counterpart}",
            lambda: self._patch_template(companion.counterpart, companion.template),
        )
        await self._until("the release begins", lambda: self._status().get("phase") == "Progressing")

    async def _promote(self) -> None:
        """Approve each step that awaits approval, until the release is over."""
        generation = self._lws(self._plan.edited)["metadata"]["generation"]

        def awaits() -> bool:
            return summary(self._rollout())["state"] == "AwaitingApproval"

        def over() -> bool:
            seen = int(self._status().get("observedWorkloadGeneration") or 0) >= generation
            return seen and self._status().get("phase") in ("Healthy", "Aborted")

        while True:
            what = "a step waits for approval, or the release is over"
            patience = HESITATION if self._attended else _PATIENCE + 10 * self._plan.load
            await self._until(what, lambda: awaits() or over(), patience)
            if over():
                return
            step = summary(self._rollout())["step"] or self._status().get("currentStepIndex")
            if self._attended:
                minutes = f"{HESITATION / 60:g} minutes at most"
                self._teller.say("page", f"step {step} waits for you, {minutes}: approve it there")
                if await self._follow(lambda: not awaits(), HESITATION):
                    continue
            await self._follow(lambda: False, self._plan.hesitation)
            await self._act(f"approve step {step}", lambda: self._ask(action_rules.approve))
            await self._until("the approval is acted on", lambda: not awaits())

    def _went_another_way(self, version: str) -> bool:
        """Whether the release of this version ended otherwise than the demo would have it."""
        aborted = self._status().get("phase") == "Aborted"
        return aborted != self._plan.aborted or version_hash(self._lws(self._plan.edited)) != version

    async def _abort(self, before: Listing) -> None:
        """Give the bad version some time, then abort, as an operator would."""
        revisions = _revisions(before)
        what = "a group of the new version exists"
        await self._until(what, lambda: bool(_revisions(self._listing()) - revisions))
        await self._follow(lambda: False, self._plan.hesitation)
        reason = "the new version does not become ready"
        await self._act("abort", lambda: self._ask(action_rules.abort(), reason))
        await self._until_aborted()

    async def _until_aborted(self) -> None:
        aborted = "the release is aborted"
        await self._until(aborted, lambda: self._status().get("phase") == "Aborted", _PATIENCE + self._plan.load)

    def _judge(self, before: Listing, requests: Requests | None) -> list[Check]:
        plan, after, by_gate = self._plan, self._listing(), self._plan.course is Course.GATE_FAILED
        template = plan.workload["spec"]["leaderWorkerTemplate"] if plan.aborted else plan.template
        in_steps = _in_steps(self._rollout(), self._lws(plan.workload_name), first=plan.aborted)
        expected = Expected(plan.edited, template, plan.aborted, in_steps, self._group, by_gate)
        if plan.counterpart:
            end_state = pair.end_state if plan.companion is None else prefill_decode.end_state
            judged = end_state(before, after, self._events, expected)
        else:
            lost = checks.lost_before_promotion(before, self._events, plan.workload_name, self._rollouts)
            every = {each.object["metadata"]["name"] for each in self._events if each.resource == LEADER_WORKER_SETS}
            judged = checks.end_state(before, after, lost, every - {plan.workload_name}, expected)
            if self._routing is not None:
                judged.append(checks.given_back(before, after, self._routing.managed))
        if requests is not None:
            measured = requests.stop()
            judged += (
                bad_version_checks(measured, manifests.FIRST_SHARE / 100)
                if by_gate
                else requests_checks(measured, expected="old" if plan.aborted else "new")
            )
        return judged

    def _patch_template(self, name: str, template: Object) -> str:
        body: Object = {"spec": {"leaderWorkerTemplate": template}}
        if self._plan.companion is not None:
            body["metadata"] = {"labels": {f"{self._group}/rollout-id": self._plan.companion.release_id}}
        self._user.merge_patch(LEADER_WORKER_SETS.path(self._plan.namespace, name), body)
        return f"leaderworkerset/{name} patched"

    def _ask(self, judge: action_rules.Judge, reason: str | None = None) -> str:
        return ask(self._user, self._rollouts, self._plan.name, judge, reason=reason, patience=0)

    async def _act(self, what: str, act: Callable[[], str]) -> None:
        """A user's action, over HTTP and in a thread, so that the cluster keeps running meanwhile."""
        answer = await asyncio.to_thread(act)
        self._teller.say("you", f"{what}: {answer}")

    async def _until(self, what: str, holds: Callable[[], bool], seconds: float = _PATIENCE) -> None:
        """Show each change until ``holds`` is true; DemoFailed after ``seconds``."""
        if not await self._follow(holds, seconds):
            said = self._status().get("message") or self._status().get("phase") or "nothing"
            raise DemoFailed(f"waited {seconds:g} s in vain until {what}; the Rollout says: {said}")

    async def _follow(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Show each change until ``holds`` is true, for at most ``seconds``; whether it is."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    await self._changed.wait()
                    self._changed.clear()
                    self._show()
        except TimeoutError:
            return False
        return True

    def _take(self, event: Event) -> None:
        if event.object["metadata"].get("namespace") == self._plan.namespace:
            self._events.append(event)
            self._changed.set()
            if event.resource == CORE_EVENTS and event.object.get("reason") in _OF_GATES and event.type == "ADDED":
                self._teller.say("event", f"{event.object['reason']}: {event.object['message']}")

    def _show(self) -> None:
        found = self._listing()
        sets, pods = (
            [each for each in found[kind].values() if label(each, LWS_NAME)] for kind in ("StatefulSet", "Pod")
        )
        self._teller.show(assemble(self._rollout(), found["LeaderWorkerSet"].values(), sets, pods), self._caller)

    def _listing(self) -> Listing:
        """All objects that the demo's release touches."""
        server, namespace = self._cluster.server, self._plan.namespace
        return {
            resource.kind: {each["metadata"]["name"]: each for each in server.list(resource, namespace)}
            for resource in (*_KINDS, self._batches, self._rollouts)
        }

    def _rollout(self) -> Object:
        return self._cluster.server.get(self._rollouts, self._plan.namespace, self._plan.name)

    def _status(self) -> dict[str, Any]:
        return self._rollout().get("status") or {}

    def _lws(self, name: str) -> Object:
        return self._cluster.server.get(LEADER_WORKER_SETS, self._plan.namespace, name)


def _revisions(listing: Listing) -> set[str]:
    return {label(pod, LWS_REVISION) for pod in listing["Pod"].values()}


def _in_steps(rollout: Object, lws: Object, *, first: bool) -> int | None:
    """Number of the LWS's own groups that the steps, or only the ``first``, update; None with a second LWS."""
    plan = Rollout.model_validate(rollout).spec.strategy.style
    if plan is None or not strategy_of_plan(plan).one_workload:
        return None
    if not strategy_of_plan(plan).takes_places:
        return 0
    return wanted_groups(plan, 1 if first else len(plan.steps), int(lws["spec"].get("replicas", 1)))
