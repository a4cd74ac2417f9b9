"""Who may act, and who comes too late."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from rollout_lws.cli.demo.manifests import NAME, NAMESPACE
from tests.browser import releases
from tests.browser.stage import ROLLOUTS, Stage
from tests.browser.tabs import NOT_ANSWERED, Tab, Visitors

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
#: What the page itself sends, as any script in its console can.
_FORGE = """async ([path, action]) => {
    const answer = await fetch(`/-/actions/${path}`, {
        method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(action),
    });
    return [answer.status, await answer.json()];
}"""


async def _forge(tab: Tab, stage: Stage) -> tuple[int, dict[str, str]]:
    status = stage.status()
    action = {"action": "approve", "release": status["observedRolloutID"], "step": status["currentStepIndex"]}
    code, said = await tab.page.evaluate(_FORGE, [f"{NAMESPACE}/{NAME}", action])
    return code, said


async def _opened(visitors: Visitors, url: str, **how: Any) -> Tab:
    tab = await visitors.tab(url, **how)
    await tab.reads_state("AwaitingApproval")
    return tab


async def test_actions_of_a_user_without_rights_are_greyed_with_the_reason(standing: Stage, visitors: Visitors) -> None:
    standing.forbid("patch", ROLLOUTS)
    tab = await _opened(visitors, (await standing.dashboard(NAME)).url)
    version = standing.rollout()["metadata"]["resourceVersion"]
    for action in ("Approve", "Abort", "Pause"):
        await tab.greys(tab.button(action), f"you may not patch .*rollouts.* in namespace {NAMESPACE}")
    await tab.picture("release-without-rights")
    await tab.button("Approve").click(force=True)
    assert not await tab.dialog.is_visible()

    code, said = await _forge(tab, standing)

    assert (code, list(said)) == (403, ["refused"])
    assert standing.rollout()["metadata"]["resourceVersion"] == version
    assert [each.method for each in tab.requests if each.method != "GET"] == ["POST"]
    tab.calm(but=NOT_ANSWERED)


async def test_a_page_that_was_started_for_reading_acts_on_nothing(standing: Stage, visitors: Visitors) -> None:
    tab = await _opened(visitors, (await standing.dashboard(NAME, "--read-only")).url)
    version = standing.rollout()["metadata"]["resourceVersion"]
    for action in ("Approve", "Abort", "Pause"):
        await tab.greys(tab.button(action), "read-only")
    code, said = await _forge(tab, standing)
    assert (code, said) == (403, {"refused": "this page is read-only: it was started with --read-only"})
    assert standing.rollout()["metadata"]["resourceVersion"] == version
    tab.calm(but=NOT_ANSWERED)


async def test_of_two_tabs_that_approve_the_same_step_one_does_and_the_other_is_told(
    released: Stage, visitors: Visitors
) -> None:
    await releases.until_approval(released, releases.quick())
    first = await _opened(visitors, (await released.dashboard(NAME)).url)
    second = await _opened(visitors, first.page.url, beside=first)
    for tab in (first, second):
        await tab.button("Approve").click()
        await tab.dialog.wait_for()

    async def approve(tab: Tab) -> tuple[int, dict[str, str]]:
        async with tab.page.expect_response(re.compile("/-/actions/")) as answered:
            await tab.button("Approve", within=tab.dialog).click()
        answer = await answered.value
        return answer.status, await answer.json()

    answers = await asyncio.gather(approve(first), approve(second))

    await released.until("it goes on", lambda: released.status()["currentStepIndex"] == 2)
    await released.until_state("AwaitingApproval")
    for tab, (code, said) in zip((first, second), answers, strict=True):
        (told,) = said.values()
        assert code == (200 if "told" in said else 409)
        await tab.sees(told)
        await tab.sees("40%", within=tab.main)
    approvals = [said["told"] for _, said in answers if "told" in said and "already" not in said["told"]]
    assert len(approvals) == 1, answers
    # The second step, which waits for an approval as well, has got none of them.
    await released.until("nothing goes on", lambda: released.state() == "AwaitingApproval")
    assert released.status()["currentStepIndex"] == 2
    assert len([each for each in (*first.requests, *second.requests) if each.method == "POST"]) == 2


async def test_a_step_that_has_passed_meanwhile_is_not_the_one_that_is_approved(
    released: Stage, visitors: Visitors
) -> None:
    await releases.until_approval(released, releases.quick())
    late = await _opened(visitors, (await released.dashboard(NAME)).url)
    await late.button("Approve").click()
    await late.dialog.wait_for()
    early = await _opened(visitors, late.page.url, beside=late)
    await early.act("Approve")
    await released.until("it goes on", lambda: released.status()["currentStepIndex"] == 2)
    await released.until_state("AwaitingApproval")
    await late.sees("40%", within=late.main)

    # The question is about the step that was shown when it was asked.
    await late.button("Approve", within=late.dialog).click()

    await late.sees("step 1")
    assert released.status()["currentStepIndex"] == 2
    assert released.state() == "AwaitingApproval"
    late.calm(but=NOT_ANSWERED)
    early.calm()
