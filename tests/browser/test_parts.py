"""Parts of a release that ask for more than its stream tells, and what they say of its age."""

from __future__ import annotations

import pytest

from rollout_lws.cli.demo.manifests import NAME, NAMESPACE
from rollout_lws.cli.rollouts import style
from rollout_lws.objects.resources import PODS
from rollout_lws.sandbox.behaviours.faults import CUT_OFF, PREFIX
from tests.browser import releases, rollouts
from tests.browser.stage import ROLLOUTS, Stage
from tests.browser.tabs import NOT_ANSWERED, Visitors

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
_WORKER = f"{NAME}-0-1"
_BEGAN, _ENDED = "2026-03-01T08:00:00Z", "2026-03-01T08:00:42Z"


async def test_a_group_says_of_when_its_pods_are_and_asks_again(standing: Stage, visitors: Visitors) -> None:
    tab = await visitors.tab((await standing.dashboard(NAME)).url)
    await tab.reads_state("AwaitingApproval")
    await tab.cell(0).first.click()
    await tab.sees(_WORKER, "As of ", within=tab.panel)
    # Its leader and the release know nothing of it.
    standing.patch(PODS, _WORKER, {"metadata": {"annotations": {f"{PREFIX}{CUT_OFF}": "true"}}})
    waiting = {
        "name": "vllm-worker",
        "image": "vllm",
        "imageID": "",
        "ready": False,
        # A worker that was restarted would have its group made anew.
        "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "back-off pulling"}},
        "lastState": {},
    }
    conditions = [{"type": "Ready", "status": "False", "lastTransitionTime": _BEGAN}]
    standing.patch_status(PODS, _WORKER, {"containerStatuses": [waiting], "conditions": conditions})

    await tab.button("Ask again", within=tab.panel).click()

    await tab.sees("ImagePullBackOff", "back-off pulling", within=tab.panel)
    tab.calm()


async def test_what_is_not_answered_is_said_and_asked_for_again(standing: Stage, visitors: Visitors) -> None:
    tab = await visitors.tab((await standing.dashboard()).url)
    await tab.row(NAME).wait_for()
    for path in ("groups/", "history/"):
        await tab.cut_off(path)
    await tab.row(NAME).get_by_role("link").first.click()
    history = tab.page.get_by_role("region", name="History")
    away = "rollout-lws dashboard does not answer"
    await tab.sees(away, within=history)
    await tab.sees("stable", within=history)
    await tab.sees_no(away, within=history)
    await tab.cell(0).first.click()
    await tab.sees(away, within=tab.panel)
    await tab.reads_group(0)
    await tab.sees_no(away, within=tab.panel)
    tab.calm(but=NOT_ANSWERED)


async def test_a_gate_without_an_end_is_not_said_to_have_taken_long(standing: Stage, visitors: Visitors) -> None:
    meta, gate = {"name": "gated", "namespace": NAMESPACE}, {"name": "first-token", "result": "Passed", "since": _BEGAN}
    made = rollouts.made(2)
    style(made)["steps"] = style(releases.gated().rollout)["steps"]
    standing.create(
        ROLLOUTS, {**made, "metadata": meta, "status": made["status"] | {"currentStepIndex": 1, "gates": [gate]}}
    )
    tab = await visitors.tab((await standing.dashboard()).url)
    await tab.row(meta["name"]).get_by_role("link").first.click()
    gates = tab.page.get_by_role("region", name="Gates")
    await tab.sees("first-token", "Passed", within=gates)
    await tab.sees_no("took", within=gates)

    standing.patch_status(ROLLOUTS, meta["name"], {"gates": [{**gate, "finishedAt": _ENDED}]})

    await tab.sees("took 42s", within=gates)
    tab.calm()
