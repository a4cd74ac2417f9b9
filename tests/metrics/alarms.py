"""A story for each alert: it brings a whole controller, in virtual time, to where somebody has to be told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.notifications.delivery import Unanswered
from rollout_lws.objects.resources import CRON_JOBS, CUSTOM_RESOURCE_DEFINITIONS, LEADER_WORKER_SETS, PODS
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.faults import Effect
from tests.metrics.tour import release
from tests.notifications.receiver import Receiver, directory, notifications
from tests.scenarios.evals import EVALS, cron_job
from tests.scenarios.failures import apply, cordon
from tests.scenarios.routed import routed_at_rest
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import CANARY, at_rest
from tests.scenarios.world import NAME, NAMESPACE, ROLLOUTS

#: The Rollout of every story.
ROLLOUT = {"namespace": NAMESPACE, "rollout": NAME}
#: And its gate, where a story has one.
EVALS_GATE = {**ROLLOUT, "gate": "evals", "kind": "job"}
HOUR = 3600
#: Seconds that a Gateway takes to accept a share, in the story where it is late.
LATE = 900.0


@dataclass(frozen=True, slots=True)
class Alarm:
    """``story`` leads to the alert, which then has these labels besides its severity; ``leaders`` are the values of the
    leader gauge, which no story of releases has.
    """

    story: Callable[[ShellWorld], Awaitable[None]]
    labels: Mapping[str, str] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    leaders: tuple[int, ...] = (1,)


@asynccontextmanager
async def told(alarm: Alarm) -> AsyncIterator[ShellWorld]:
    """The world at the end of the story."""
    world = ShellWorld(alarm.options)
    await alarm.story(world)
    # The controller hears of it a moment after the story does.
    await asyncio.sleep(5)
    yield world
    world.faults.restore()
    await world.gone()
    world.close()


async def healthy(world: ShellWorld) -> None:
    """A release that ends well, and a day of peace."""
    await at_rest(world)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    world.approve()
    await world.until_state("Healthy")
    await world.sleep(24 * HOUR)


async def refused(world: ShellWorld, seconds: float = HOUR + 60) -> None:
    await at_rest(world, replicas=1, canary={"capacity": "InPlace"})
    world.set_image("v2")
    await world.until_state("Stalled")
    await world.sleep(seconds)


async def refused_lately(world: ShellWorld) -> None:
    await refused(world, HOUR / 2)


async def forgotten(world: ShellWorld, seconds: float = 4 * HOUR + 60) -> None:
    world.create_workload()
    release(world, "v1")
    world.create_rollout({"replicas": 1, "pause": {}}, {"replicas": "100%"})
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()
    release(world, "v2")
    await world.until_state("AwaitingApproval")
    await world.sleep(seconds)


async def looked_at(world: ShellWorld) -> None:
    await forgotten(world, 3 * HOUR)


async def fails(world: ShellWorld) -> None:
    await at_rest(world, progressDeadlineSeconds=600)
    apply(world, "v2", faults={"fail": "ImagePullBackOff"})
    await world.until_state("Stalled", seconds=HOUR)


async def not_acted_upon(world: ShellWorld) -> None:
    """The deadline passes, and what the controller has to say about it does not reach the API server."""
    await at_rest(world, progressDeadlineSeconds=600)
    apply(world, "v2", faults={"ready-after": "5h"})
    await world.until_state("Loading")
    await world.sleep(60)
    world.faults.add(Effect(lost=True), "patch", count=None)
    await world.sleep(HOUR)


async def loads(world: ShellWorld) -> None:
    """A large model, well within its deadline."""
    await at_rest(world)
    apply(world, "v2", faults={"ready-after": "50m"})
    await world.until_state("Loading")
    await world.sleep(45 * 60)


async def gone(world: ShellWorld) -> None:
    await at_rest(world)
    world.delete(LEADER_WORKER_SETS, NAME)
    await world.until_state("Stalled")


async def unrouted(world: ShellWorld) -> None:
    """The Gateway takes very long to say anything."""
    await routed_at_rest(world)
    await world.sleep(LATE + 60)
    world.set_image("v2")
    await world.until_state("Routing")
    await world.sleep(60)


async def lost(world: ShellWorld) -> None:
    """The new version's only group goes and does not come back: its requests are taken from it."""
    await routed_at_rest(world)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    cordon(world)
    world.delete(PODS, f"{CANARY}-0")
    await world.until(lambda: world.status["traffic"].get("applied") == {"weight": 0})


async def aborted(world: ShellWorld) -> None:
    await at_rest(world)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    world.request("Abort")
    await world.until_state("Aborted")


async def aborted_long_ago(world: ShellWorld) -> None:
    await aborted(world)
    await world.sleep(HOUR + 60)


async def forbidden(world: ShellWorld, **plan: Any) -> None:
    await at_rest(world, **plan)
    why = 'User "rollout-lws" cannot create resource "leaderworkersets"'
    world.faults.add(Effect(refusal=ApiError(403, "Forbidden", why)), "create", "leaderworkersets", count=None)
    world.set_image("v2")
    await world.until_state("Stalled")


async def forbidden_for_long(world: ShellWorld) -> None:
    """Its deadline has passed, too; but it is the write that somebody has to allow."""
    await forbidden(world, progressDeadlineSeconds=600)
    await world.sleep(HOUR)


async def forbidden_at_rest(world: ShellWorld) -> None:
    why = 'User "rollout-lws" cannot patch resource "leaderworkersets"'
    world.faults.add(Effect(refusal=ApiError(403, "Forbidden", why)), "patch", "leaderworkersets", count=None)
    world.create_workload()
    world.create_rollout({"replicas": 1, "pause": {}}, {"replicas": "100%"})
    world.start_controller()
    await world.until_state("Stalled")


async def gated(world: ShellWorld, **ends: str) -> None:
    """A release whose first step asks a Job; without ``ends`` there is no CronJob to make it from."""
    if ends:
        world.server.create(CRON_JOBS, cron_job(**ends))
    await at_rest(world, {"replicas": 1, "gates": [EVALS], "pause": {"duration": 0}}, {"replicas": "100%"})
    world.set_image("v2")
    await world.until_state("Analyzing")


async def evals_fail(world: ShellWorld) -> None:
    await gated(world, exit_code="3", last_words="accuracy 0.61")
    await world.until_state("Stalled")


async def no_cron_job(world: ShellWorld, seconds: float = HOUR) -> None:
    await gated(world)
    await world.until_state("Stalled")
    await world.sleep(seconds)


async def no_cron_job_for_a_moment(world: ShellWorld) -> None:
    await no_cron_job(world, 600)


async def verdict_is_lost(world: ShellWorld, seconds: float = HOUR) -> None:
    """The gate's time is over, and what the controller has to say about it does not reach the API server."""
    await gated(world)
    world.faults.add(Effect(lost=True), "patch", count=None)
    await world.sleep(seconds)


async def verdict_takes_its_time(world: ShellWorld) -> None:
    await verdict_is_lost(world, 300)


async def stopped(world: ShellWorld) -> None:
    await at_rest(world)
    await world.gone()


async def unreadable(world: ShellWorld) -> None:
    """The CRD is not ours any more, and lets everything pass."""
    await at_rest(world)
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {
        "name": ROLLOUTS.version,
        "served": True,
        "storage": True,
        "schema": schema,
        "subresources": {"status": {}},
    }
    merge, name = "application/merge-patch+json", str(ROLLOUTS)
    world.server.patch(CUSTOM_RESOURCE_DEFINITIONS, "", name, {"spec": {"versions": [version]}}, merge)
    world.patch_rollout({"strategy": {"canary": {"steps": "many"}}})
    await world.sleep(10)


async def unheard(world: ShellWorld) -> None:
    await at_rest(world)
    world.faults.stopped = True
    world.faults.cut_watches()
    await asyncio.sleep(600)


async def disallowed(world: ShellWorld) -> None:
    """Somebody has taken a right away, and a release is on its way."""
    await at_rest(world)
    why = 'User "rollout-lws" cannot watch resource "pods" in API group "" at the cluster scope'
    world.faults.add(Effect(refusal=ApiError(403, "Forbidden", why)), "watch", "pods", count=None)
    world.faults.cut_watches()
    world.set_image("v2")
    await world.sleep(600)


async def unheard_of(world: ShellWorld, seconds: float = 1000.0) -> None:
    """The receiver of notifications is away."""
    with TemporaryDirectory() as path:
        away = Receiver(lambda _: Unanswered("cannot be reached"))
        world.notifications = partial(notifications, directory(Path(path, "hook")), away)
        await at_rest(world)
        await world.sleep(seconds)


async def unheard_of_for_a_moment(world: ShellWorld) -> None:
    await unheard_of(world, 600)


#: By the name of the alert, as many as there are ways to it.
ALARMS: dict[str, tuple[Alarm, ...]] = {
    "RolloutPendingUnderHold": (
        Alarm(refused, {**ROLLOUT, "phase": "Healthy", "state": "Stalled", "reason": "TooFewGroups"}),
    ),
    "RolloutPausedHoldsAccelerators": (Alarm(forgotten, ROLLOUT),),
    "RolloutStuck": (
        Alarm(fails, {**ROLLOUT, "phase": "Progressing", "state": "Stalled", "reason": "ProgressDeadlineExceeded"}),
        Alarm(not_acted_upon, ROLLOUT),
    ),
    "RolloutStalledAtRest": (
        Alarm(gone, {**ROLLOUT, "phase": "Initial", "state": "Stalled", "reason": "WorkloadNotFound"}),
    ),
    "RolloutWeightNotAccepted": (Alarm(unrouted, ROLLOUT, Options(gateway_lag=LATE)), Alarm(lost, ROLLOUT)),
    "RolloutWentBack": (Alarm(aborted, {**ROLLOUT, "outcome": "Aborted"}),),
    "RolloutGateFailed": (Alarm(evals_fail, EVALS_GATE),),
    "RolloutGateInconclusive": (Alarm(no_cron_job, {**EVALS_GATE, "result": "Error"}),),
    "RolloutGateOverdue": (Alarm(verdict_is_lost, EVALS_GATE),),
    "RolloutWritesRefused": (
        Alarm(forbidden, {**ROLLOUT, "phase": "Progressing", "state": "Stalled", "reason": "WriteRefused"}),
    ),
    "RolloutLwsControllerDown": (Alarm(stopped, leaders=()),),
    "RolloutLwsNoLeader": (Alarm(at_rest, leaders=(0, 0)),),
    "RolloutLwsWritesFail": (Alarm(forbidden),),
    "RolloutLwsReconcileFails": (Alarm(unreadable, {"kind": "unreadable"}),),
    "RolloutLwsWatchStale": (Alarm(unheard, {"resource": "pods"}),),
    "RolloutLwsPermissionMissing": (Alarm(disallowed, {"verb": "watch", "resource": "pods"}),),
    "RolloutLwsNotificationsFail": (Alarm(unheard_of, {"destination": "hook"}),),
}
#: Ways that lead nearly there: the alert stays silent.
NEARLY: dict[str, tuple[Alarm, ...]] = {
    "RolloutPendingUnderHold": (Alarm(refused_lately),),
    "RolloutPausedHoldsAccelerators": (Alarm(looked_at),),
    "RolloutStuck": (
        Alarm(loads),
        Alarm(forbidden),
        Alarm(forbidden_for_long),
        Alarm(evals_fail),
        Alarm(no_cron_job),
    ),
    "RolloutStalledAtRest": (Alarm(refused), Alarm(forbidden_at_rest), Alarm(fails)),
    "RolloutWentBack": (Alarm(aborted_long_ago),),
    "RolloutGateFailed": (Alarm(no_cron_job),),
    "RolloutGateInconclusive": (Alarm(no_cron_job_for_a_moment), Alarm(evals_fail)),
    "RolloutGateOverdue": (Alarm(verdict_takes_its_time), Alarm(no_cron_job)),
    "RolloutWritesRefused": (Alarm(fails),),
    "RolloutLwsNotificationsFail": (Alarm(unheard_of_for_a_moment),),
}
HEALTHY = Alarm(healthy)
