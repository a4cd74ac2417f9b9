"""The demo's release, as stories on the page need it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rollout_lws.cli.demo import checks, manifests
from rollout_lws.cli.demo.checks import Expected
from rollout_lws.cli.demo.command import plan_of
from rollout_lws.cli.demo.plan import Plan
from rollout_lws.cli.rollouts import style
from rollout_lws.objects.resources import DEFAULT_API_GROUP, LEADER_WORKER_SETS
from rollout_lws.sandbox.model_servers import PREFIX
from tests.browser.stage import ROLLOUTS, Stage

Object = dict[str, Any]
#: Of a server in its annotation, so that a gate's shortest window has enough of them.
_PER_SECOND = f"{PREFIX}requests-per-second"


def gated() -> Plan:
    """`demo canary`: a step with a gate, one with an approval, and the promotion."""
    plan = plan_of("canary", [], True, ROLLOUTS.api_version)
    for template in (plan.workload["spec"]["leaderWorkerTemplate"], plan.template):
        template["leaderTemplate"]["metadata"]["annotations"][_PER_SECOND] = "50"
    return plan


def quick() -> Plan:
    """The same without the gate: the first step waits for an approval as soon as its group is ready."""
    plan = plan_of("canary", [], True, ROLLOUTS.api_version)
    rollout = manifests.without_gates(plan.rollout)
    style(rollout)["steps"][0]["pause"] = {}
    return replace(plan, rollout=rollout)


async def begin(stage: Stage, plan: Plan) -> dict[str, dict[str, Object]]:
    """Everything is there and ready; what there is then."""
    stage.apply(*plan.others, plan.workload, plan.rollout)
    await stage.until(
        "all is ready",
        lambda: stage.state() == "Healthy" and checks.all_ready(stage.listing(), plan.workload_name).passed,
    )
    return stage.listing()


def change(stage: Stage, plan: Plan) -> None:
    """The user gives the workload its new version."""
    stage.patch(LEADER_WORKER_SETS, plan.edited, {"spec": {"leaderWorkerTemplate": plan.template}})


async def until_approval(stage: Stage, plan: Plan) -> dict[str, dict[str, Object]]:
    """A release that waits for the approval of its first step; what there was before."""
    before = await begin(stage, plan)
    change(stage, plan)
    await stage.until_state("AwaitingApproval")
    return before


async def stand(stage: Stage) -> None:
    """A release waits for its approval, and no controller goes on with it."""
    await stage.start_controller()
    await until_approval(stage, quick())
    await stage.stop_controller()


def expected(plan: Plan, *, aborted: bool = False) -> Expected:
    template = plan.workload["spec"]["leaderWorkerTemplate"] if aborted else plan.template
    return Expected(plan.edited, template, aborted, None, DEFAULT_API_GROUP)
