"""Runs a demo: a cluster, a model server, a new version, the user's decision, and the checks at the end.

The user's actions go through the same API and code as `rollout-lws promote` and `rollout-lws abort`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rollout_lws.api import Rollout
from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.actions import action_rules
from rollout_lws.cli.actions.action_client import ask
from rollout_lws.cli.demo import checks, manifests
from rollout_lws.cli.demo.checks import Check, Object
from rollout_lws.cli.demo.requests import Requests, answered, client_of, given_back, requests_checks, routing_of
from rollout_lws.cli.demo.tellers import Teller
from rollout_lws.cli.demo.witness import Witness
from rollout_lws.cli.rollouts import rollouts_of, summary
from rollout_lws.cli.sandbox.local_cluster import Playground, playground
from rollout_lws.controller import process
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, LWS_REVISION
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import Timing
from rollout_lws.settings import Settings

_Answer = TypeVar("_Answer")
#: Seconds that a demo waits for one event, in addition to its groups' startup.
_PATIENCE = 45.0
#: A leader's extra startup as a multiple of ``ending``: its workers start only after its predecessor's have ended.
_LEADER_LONGER = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """One demo. ``load``, ``hesitation`` and ``ending`` are seconds: a pod's startup, the user's hesitation, and a
    deleted pod's termination, as of servers that finish their requests. Data planes lag by less.
    """

    workload: Object
    rollout: Object
    others: tuple[Object, ...]
    """The user's other manifests, such as Services, claims and secrets; applied first."""
    template: Object
    """The new leaderWorkerTemplate."""
    change: str
    """The user's change of the template, in words."""
    aborts: bool
    load: float
    hesitation: float
    ending: float

    @property
    def namespace(self) -> str:
        return str(self.workload["metadata"].get("namespace") or manifests.NAMESPACE)

    @property
    def name(self) -> str:
        return str(self.rollout["metadata"]["name"])

    @property
    def workload_name(self) -> str:
        return str(self.workload["metadata"]["name"])


async def play(plan: Plan, settings: Settings, teller: Teller) -> bool:
    """Run the demo; True when every check of the end state passed."""
    async with AsyncExitStack() as stack:
        timing = Timing(plan.load, terminate_after=plan.ending, leader_longer=_LEADER_LONGER * plan.ending)
        options = Options(timing=timing)
        cluster = await stack.enter_async_context(playground(options, settings.api_group))
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="rollout-lws-"))
        kubeconfig = Path(directory) / "kubeconfig"
        cluster.write_kubeconfig(kubeconfig)
        await stack.enter_async_context(process.running(_with(settings, kubeconfig)))
        teller.say("cluster", f"API server at {cluster.url}, 8 nodes with 8 GPUs each; controller connected over HTTP")
        return await _Story(plan, settings, teller, cluster, kubeconfig).tell()


def _with(settings: Settings, kubeconfig: Path) -> Settings:
    return Settings(api_group=settings.api_group, kubeconfig=str(kubeconfig))


class _Story:
    def __init__(self, plan: Plan, settings: Settings, teller: Teller, cluster: Playground, kubeconfig: Path) -> None:
        self._plan = plan
        self._teller = teller
        self._cluster = cluster
        self._group = settings.api_group
        self._rollouts = rollouts_of(settings.api_group)
        self._routing = routing_of(plan.rollout)
        self._person = Transport.to(Target(namespace=plan.namespace, kubeconfig=str(kubeconfig)))

    async def tell(self) -> bool:
        plan = self._plan
        for manifest in (*plan.others, plan.workload, plan.rollout):
            self._cluster.apply(manifest)
        witness = Witness(self._cluster, self._rollouts, plan.namespace, plan.name, plan.workload_name)
        showing = asyncio.create_task(self._show(witness))
        try:
            before = await self._settle(witness)
            requests = await self._measure(witness, before)
            await self._act(plan.change, self._patch_template)
            if plan.aborts:
                await self._abort(witness, before)
            else:
                await self._promote(witness)
            judged = await self._judge(witness, before, requests)
        finally:
            showing.cancel()
            with suppress(asyncio.CancelledError):
                await showing
            witness.close()
            self._person.close()
        for check in judged:
            self._teller.check(check)
        return all(check.passed for check in judged)

    async def _show(self, witness: Witness) -> None:
        while True:
            await witness.changed.wait()
            witness.changed.clear()
            self._teller.show(witness.release())

    async def _settle(self, witness: Witness) -> checks.Listing:
        """Wait until all groups of the first version are ready and the LWS is held."""
        workload = self._plan.workload_name
        await witness.until(
            f"LeaderWorkerSet {workload} is ready and the Rollout is Healthy",
            lambda: witness.status().get("phase") == "Healthy" and _all_ready(witness, workload),
            _PATIENCE + self._plan.load,
        )
        if self._routing is not None and self._routing.route:
            route = self._routing.route
            what = f"a Gateway accepts HTTPRoute {route}"
            await witness.until(what, lambda: _accepted(witness.listing().routes, route), _PATIENCE)
        witness.watch_stable()
        return witness.listing()

    async def _measure(self, witness: Witness, before: checks.Listing) -> Requests | None:
        """Start to measure requests, if the Rollout routes any and its route implies an example request."""
        routing, plan = self._routing, self._plan
        if routing is None:
            return None
        client = client_of(before, routing)
        if client is None:
            self._teller.say("traffic", f"not measured: no plain match of {routing.what} leads to the old version")
            return None
        server = self._cluster.server
        # EndpointSlices list a pod shortly after it becomes ready.
        await witness.until("requests reach the first version", lambda: answered(server, client), _PATIENCE)
        return Requests(server, client, routing.drain, before, plan.workload_name)

    def _patch_template(self) -> str:
        path = LEADER_WORKER_SETS.path(self._plan.namespace, self._plan.workload_name)
        self._person.merge_patch(path, {"spec": {"leaderWorkerTemplate": self._plan.template}})
        return f"leaderworkerset/{self._plan.workload_name} patched"

    async def _promote(self, witness: Witness) -> None:
        """Approve each step that awaits approval, until the release is over."""
        before = witness.lws()["metadata"]["generation"]
        while True:
            await witness.until(
                "a step waits for approval, or the release is over",
                lambda: _awaits(witness) or _over(witness, before),
                _PATIENCE + 10 * self._plan.load,
            )
            if _over(witness, before):
                return
            await asyncio.sleep(self._plan.hesitation)
            step = summary(witness.rollout())["step"] or witness.status().get("currentStepIndex")
            await self._act(f"approve step {step}", lambda: self._ask(action_rules.approve))
            await witness.until("the approval is acted on", lambda: not _awaits(witness), _PATIENCE)

    def _ask(self, judge: action_rules.Judge, reason: str | None = None) -> str:
        return ask(self._person, self._rollouts, self._plan.name, judge, reason=reason, patience=0)

    async def _abort(self, witness: Witness, before: checks.Listing) -> None:
        """Give the bad version some time, then abort, as an operator would."""
        revisions = _revisions(before)
        what = "a group of the new version exists"
        await witness.until(what, lambda: bool(_revisions(witness.listing()) - revisions), _PATIENCE)
        await asyncio.sleep(self._plan.hesitation)
        reason = "the new version does not become ready"
        await self._act("abort", lambda: self._ask(action_rules.abort(), reason))
        await witness.until("the release is aborted", lambda: witness.status().get("phase") == "Aborted", _PATIENCE)

    async def _judge(self, witness: Witness, before: checks.Listing, requests: Requests | None) -> list[Check]:
        """Wait until deleted objects are gone, then check the API server's objects."""
        known = {checks.name_of(pod) for pod in before.pods}
        await witness.until(
            "the last pod that came on top is gone",
            lambda: not any(checks.name_of(pod) not in known for pod in witness.listing().pods),
            _PATIENCE,
        )
        after, plan = witness.listing(), self._plan
        verdict = checks.after_abort if plan.aborts else checks.after_promotion
        template = plan.workload["spec"]["leaderWorkerTemplate"] if plan.aborts else plan.template
        renewed = _in_steps(after.rollout, witness.lws(), first=plan.aborts)
        judged = verdict(before, after, witness.record, plan.workload_name, template, self._group, renewed)
        if self._routing is not None:
            judged.append(given_back(before, after, self._routing))
        if requests is not None:
            judged += requests_checks(requests.stop(), expected="old" if plan.aborts else "new")
        return judged

    async def _act(self, what: str, act: Callable[[], _Answer]) -> None:
        """A user's action, over HTTP and in a thread, so that the cluster keeps running meanwhile."""
        answer = await asyncio.to_thread(act)
        self._teller.say("you", f"{what}: {answer}")


def _all_ready(witness: Witness, workload: str) -> bool:
    listing = witness.listing()
    template = witness.lws()["spec"]
    pods = [pod for pod in listing.pods if checks.label(pod, LWS_NAME) == workload]
    wanted = int(template.get("replicas", 1)) * int(template["leaderWorkerTemplate"].get("size", 1))
    return len(pods) == wanted and all(checks.is_ready(pod) for pod in pods)


def _revisions(listing: checks.Listing) -> set[str]:
    return {checks.label(pod, LWS_REVISION) for pod in listing.pods}


def _in_steps(rollout: Object, lws: Object, *, first: bool) -> int | None:
    """Number of the LWS's own groups that the steps, or only the ``first``, update; None with a second LWS."""
    plan = Rollout.model_validate(rollout).spec.strategy.style
    if plan is None or not strategy_of_plan(plan).one_workload:
        return None
    if not strategy_of_plan(plan).updates_regular:
        return 0
    return wanted_groups(plan, 1 if first else len(plan.steps), int(lws["spec"].get("replicas", 1)))


def _awaits(witness: Witness) -> bool:
    return summary(witness.rollout())["state"] == "AwaitingApproval"


def _over(witness: Witness, generation: int) -> bool:
    status = witness.status()
    seen = int(status.get("observedWorkloadGeneration") or 0) >= generation
    return seen and status.get("phase") in ("Healthy", "Aborted")


def _accepted(routes: Iterable[Object], name: str) -> bool:
    parents = [parent for each in routes if checks.name_of(each) == name for parent in _parents(each)]
    conditions = [each for parent in parents for each in parent.get("conditions") or ()]
    return any(each["type"] == "Accepted" and each["status"] == "True" for each in conditions)


def _parents(route: Object) -> Iterable[Object]:
    return (route.get("status") or {}).get("parents") or ()
