"""Who may act, and who comes too late."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from rollout_lws.cli.demo.manifests import NAME, NAMESPACE
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.browser import releases
from tests.browser.stage import ROLLOUTS, Stage
from tests.browser.tabs import NOT_ANSWERED, Tab, Visitors

if TYPE_CHECKING:
    from playwright.async_api import Route

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
    await tab.sees("ask an administrator", within=tab.page.locator(".hint"))
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


async def test_an_action_that_takes_long_holds_up_no_other(standing: Stage, visitors: Visitors) -> None:
    tab = await _opened(visitors, (await standing.dashboard(NAME)).url)
    answered, held = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        if (route.request.post_data_json or {})["action"] == "promote":
            held.set()
            await answered.wait()
            await route.fulfill(json={"told": "promoted by hand"})
        else:
            await route.continue_()

    await tab.page.route("**/-/actions/**", hold)
    await tab.act("Promote all")
    await held.wait()

    await tab.button("Promote all").click(force=True)
    await tab.sees("Promote all is being done: there is no answer yet", within=tab.main)
    assert not await tab.dialog.is_visible()
    await tab.act("Abort", reason="it answers wrongly")
    await standing.until("it is asked for", lambda: "requestedAction" in standing.status())

    asked = standing.status()["requestedAction"]
    assert (asked["type"], asked["reason"]) == ("Abort", "it answers wrongly")
    answered.set()
    await tab.sees("promoted by hand", within=tab.main)
    await tab.sees_no("there is no answer yet", within=tab.main)
    tab.calm(but=NOT_ANSWERED)


def _stored(number: int, **undo: Any) -> dict[str, Any]:
    known = {"role": "", "revision": f"r{number}", "version": "", "created": "", "images": [], "left": "", "change": ""}
    return {**known, "number": number, "undo": undo}


async def test_the_question_before_an_undo_to_a_version_is_about_that_one(standing: Stage, visitors: Visitors) -> None:
    versions = [
        _stored(9, effect="version 9 is released in steps", aborts=False),
        _stored(7, effect="the release is aborted; version 7 is released then", aborts=True),
    ]
    asked: list[Any] = []

    async def answer(route: Route) -> None:
        asked.append(route.request.post_data_json)
        await route.fulfill(json={"told": f"undone to {asked[-1]['revision']}"})

    url = (await standing.dashboard()).url
    tab = await visitors.tab(url)
    await tab.page.route("**/-/history/**", lambda route: route.fulfill(json={"versions": versions}))
    await tab.page.route("**/-/actions/**", answer)
    await tab.row(NAME).get_by_role("link").first.click()
    stored = tab.main.get_by_role("listitem").filter(has=tab.button("Undo to this"))
    release = standing.status()["observedRolloutID"]

    for version in versions:
        number, undo = version["number"], version["undo"]
        await tab.button("Undo to this", within=stored.filter(has_text=f"r{number}")).click()
        await tab.sees(f"Put version {number} back", undo["effect"], within=tab.dialog)
        await tab.sees_no("stable version is in the template", within=tab.dialog)
        reason = tab.dialog.get_by_role("textbox")
        # Events of the Rollout have a reason for what is asked of it alone.
        assert await reason.count() == (1 if undo["aborts"] else 0)
        if undo["aborts"]:
            await reason.fill("the answers are wrong")
        await tab.button("Undo to this", within=tab.dialog).click()
        await tab.sees(f"undone to {number}", within=tab.main)

    pin = {"action": "undo", "release": release, "step": 1}
    assert asked == [
        {**pin, "revision": 9, "reason": ""},
        {**pin, "revision": 7, "reason": "the answers are wrong"},
    ]
    tab.calm()


async def test_rights_that_are_taken_and_given_while_a_page_is_open_are_seen(
    standing: Stage, visitors: Visitors
) -> None:
    tab = await visitors.tab((await standing.dashboard()).url)
    await tab.row(NAME).wait_for()
    # What is not answered is asked for again.
    standing.forbid("patch", ROLLOUTS)
    await tab.cut_off("rights/")
    await tab.row(NAME).get_by_role("link").first.click()
    await tab.greys(tab.button("Approve"), "you may not patch")

    standing.faults.restore()
    await tab.page.evaluate("dispatchEvent(new Event('focus'))")
    await tab.until("() => !document.querySelector('button.approve[aria-disabled]')")

    standing.forbid("patch", ROLLOUTS)
    await tab.act("Pause")
    await tab.sees('User "reader" cannot patch', within=tab.main)
    await tab.greys(tab.button("Approve"), "you may not patch")

    # A press of a button that is greyed out asks as well.
    standing.faults.restore()
    await tab.button("Approve").click(force=True)
    await tab.until("() => !document.querySelector('button.approve[aria-disabled]')")
    tab.calm(but=NOT_ANSWERED)


async def test_rights_are_about_the_workload_that_the_rollout_names_now(standing: Stage, visitors: Visitors) -> None:
    tab = await _opened(visitors, (await standing.dashboard(NAME)).url)
    standing.forbid("patch", LEADER_WORKER_SETS)
    made = standing.rollout()
    standing.patch(ROLLOUTS, NAME, {"metadata": {"finalizers": None}})
    standing.server.delete(ROLLOUTS, NAMESPACE, NAME)
    made["metadata"] = {"name": NAME, "namespace": NAMESPACE}
    made["spec"]["workloadRef"]["name"] = "another"
    standing.create(ROLLOUTS, made)
    await tab.greys(tab.button("Undo").first, "you may not patch leaderworkersets.* another in namespace")
    tab.calm()


async def test_a_question_about_a_release_that_goes_says_so(standing: Stage, visitors: Visitors) -> None:
    tab = await _opened(visitors, (await standing.dashboard(NAME)).url)
    await tab.button("Abort").click()
    await tab.dialog.get_by_role("textbox").fill("too late")
    standing.patch(ROLLOUTS, NAME, {"metadata": {"finalizers": None}})
    standing.server.delete(ROLLOUTS, NAMESPACE, NAME)

    await tab.sees("There is nothing left to do: ", "was deleted", within=tab.dialog)

    await tab.button("Abort", within=tab.dialog).click()
    await tab.gone(tab.dialog)
    tab.calm(but=NOT_ANSWERED)
