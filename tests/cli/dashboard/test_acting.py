"""What a page asks for is done once, for the release and the step that it shows, and refused with words otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rollout_lws.cli.actions import edit_client
from rollout_lws.cli.releases import version_hash
from rollout_lws.errors import ApiError
from rollout_lws.sandbox.faults import Effect
from rollout_lws.sandbox.store import Event
from tests.cli.conftest import World
from tests.cli.dashboard.pages import Browser, browser, dashboard
from tests.cli.states import AWAITING, HASH, HEALTHY, LOADING
from tests.cli.test_actions import NEXT_STEP, overtaken
from tests.cli.test_edits import applying, at_abort, becoming, images, keep, lws, store

Object = dict[str, Any]
SEEN: Object = AWAITING | {"observedRolloutID": "r7"}


@pytest.fixture
async def page(world: World) -> AsyncIterator[Browser]:
    async with dashboard(world) as found:
        yield found


def goes_on(world: World) -> list[str]:
    """Have each request carried out, and an approved step followed by the next one; the answer is what was asked."""
    asked: list[str] = []

    def take(event: Event) -> None:
        request = ((event.object or {}).get("status") or {}).get("requestedAction")
        if request and request["id"] not in asked:
            asked.append(request["id"])
            world._loop.call_soon(go)

    def go() -> None:
        world.file("Done")
        status = {"currentStepIndex": 3, "currentStepState": "StepUpgrade"}
        world.server.patch(world.rollouts, "default", "llama", {"status": status}, subresource="status")

    world.do(lambda: world.server.store.subscribe(take))
    return asked


async def test_two_pages_that_approve_the_same_step_are_one_approval(world: World, page: Browser) -> None:
    world.release(**SEEN)
    asked = goes_on(world)
    async with browser(page.url) as other:
        answers = await asyncio.gather(page.act("approve"), other.act("approve"))
    codes = sorted(code for code, _ in answers)
    assert codes == [200, 409]
    told = next(answer for code, answer in answers if code == 200)
    assert told == {"told": "rollout/llama step 2/3 approved"}
    refused = next(answer for code, answer in answers if code == 409)["refused"]
    assert any(words in refused for words in ("has a request by", "moved on to step", "is at step")), refused
    assert len(asked) == 1
    assert world.status()["lastAction"]["type"] == "Approve"


async def test_a_page_that_shows_an_older_step_or_release_is_refused(world: World, page: Browser) -> None:
    world.release(**SEEN)
    asked = goes_on(world)
    for given, words in (
        ({"step": 1}, "is at step 2/3 now, not 1"),
        ({"release": "r6"}, "is about release r7 now, not r6"),
        ({"release": ""}, "is about release r7 now, not"),
    ):
        code, answer = await page.act("approve", **given)
        assert (code, words in answer["refused"]) == (409, True), answer
    for given in ({"step": "2"}, {"step": True}, {"step": None}, {"release": None}, {"release": 7}):
        code, answer = await page.act("abort", **given)
        assert (code, answer["refused"]) == (409, "name the release and the step that the page shows")
    assert not asked


@pytest.mark.parametrize("action", ["promote", "abort", "pause", "retry"])
async def test_a_step_that_begins_while_an_action_is_written_is_acted_on_by_no_page_that_shows_the_one_before(
    world: World, page: Browser, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    world.release(**SEEN)
    asked = goes_on(world)
    overtaken(world, monkeypatch, NEXT_STEP)
    code, answer = await page.act(action)
    assert (code, "is at step 3/3 now, not 2" in answer["refused"]) == (409, True)
    assert not asked


async def test_a_rollout_that_had_no_release_yet_is_paused_by_what_the_page_shows(world: World, page: Browser) -> None:
    world.release(**HEALTHY)
    asked = goes_on(world)
    code, answer = await page.act("pause", release="", step=0)
    assert (code, "paused" in answer["told"], len(asked)) == (200, True, 1)


@pytest.mark.parametrize(
    ("action", "given", "kind"),
    [
        ("approve", {}, {"type": "Approve", "step": 2}),
        ("promote", {}, {"type": "PromoteFull"}),
        ("jump", {"toStep": 3}, {"type": "Jump", "toStep": 3, "step": 2}),
        ("pause", {}, {"type": "Pause"}),
        ("abort", {}, {"type": "Abort", "force": None}),
        ("abort", {"force": True}, {"type": "Abort", "force": None}),
        ("retry", {}, {"type": "Retry"}),
        ("skip", {"gate": "ttft"}, {"type": "SkipGate", "gate": "ttft"}),
    ],
)
async def test_each_action_is_asked_for_with_the_reason_that_was_given(
    world: World, page: Browser, action: str, given: Object, kind: Object
) -> None:
    world.release(**SEEN | {"gates": [{"name": "ttft"}]})
    goes_on(world)
    code, answer = await page.act(action, reason="a reason", **given)
    assert code == 200, answer
    last = world.status()["lastAction"]
    assert {key: last.get(key) for key in kind} == kind
    assert (last["reason"], last["templateHash"]) == ("a reason", HASH)


@pytest.mark.parametrize(
    ("action", "given", "words"),
    [
        ("resume", {}, "is not paused"),
        ("skip", {"gate": "nothing"}, "measures no gates"),
        ("jump", {"toStep": 9}, "has steps 1 to 3"),
        ("jump", {}, "name the step to go to"),
        ("start", {}, "is no pair"),
        ("home", {}, "serves already"),
        ("destroy", {}, "there is no action 'destroy'"),
        (None, {}, "there is no action None"),
    ],
)
async def test_what_makes_no_sense_is_refused_as_the_command_line_does(
    world: World, page: Browser, action: str, given: Object, words: str
) -> None:
    world.release(**SEEN)
    asked = goes_on(world)
    _, answer = await page.act(action, **given)
    assert words in (answer.get("refused") or answer.get("told") or "")
    assert not asked


async def test_undo_puts_the_stable_version_back_for_the_release_that_the_page_shows(
    world: World, page: Browser
) -> None:
    old = store(world, 1, "v1")
    world.release(**SEEN | {"stable": {"templateHash": old}})
    code, answer = await page.act("undo", step=1)
    assert (code, "is at step 2/3 now" in answer["refused"]) == (409, True)
    assert version_hash(lws(world)) == HASH
    code, answer = await page.act("undo")
    assert (code, answer) == (
        200,
        {"told": "leaderworkerset/llama has revision 1 again (vllm:v1): the release goes back to it"},
    )
    assert version_hash(lws(world)) == old


async def test_undo_of_what_git_keeps_is_not_forced_from_the_page(world: World, page: Browser) -> None:
    store(world, 1, "v1")
    world.release(**HEALTHY)
    keep(world)
    for given in ({}, {"force": True}):
        code, answer = await page.act("undo", release="", step=0, **given)
        assert (code, "is kept by Argo CD Application chat" in answer["refused"]) == (409, True)
        assert "change it in Git, or give the command --force" in answer["refused"]
    assert version_hash(lws(world)) == HASH


async def test_undo_goes_to_the_version_that_the_page_names(world: World, page: Browser) -> None:
    old = store(world, 1, "v1")
    store(world, 2, "v2")
    world.release(**HEALTHY)
    assert (await page.act("undo", release="", step=0, revision=1))[0] == 200
    assert version_hash(lws(world)) == old


async def test_undo_takes_no_version_back_that_the_page_does_not_show_yet(
    world: World, page: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is applied between the look at the Rollout and that at the workload, too."""
    world.release(**SEEN | {"stable": {"templateHash": store(world, 1, "v1")}})
    fetch = edit_client.fetch_workload

    def just_applied(*given: Any) -> Any:
        world.do(applying(world, "v3"))
        return fetch(*given)

    monkeypatch.setattr(edit_client, "fetch_workload", just_applied)
    code, answer = await page.act("undo")
    assert (code, "has another version in its template since, of which rollout/llama does not tell" in str(answer)) == (
        409,
        True,
    )
    assert "vllm:v3" in images(world)


async def test_undo_is_pinned_until_it_writes(world: World, page: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    world.release(**SEEN | {"stable": {"templateHash": store(world, 1, "v1")}})
    look = edit_client.look

    def then_the_next_step_begins(*given: Any) -> Any:
        seen = look(*given)
        world.do(becoming(world, **NEXT_STEP))
        return seen

    monkeypatch.setattr(edit_client, "look", then_the_next_step_begins)
    for capacity in ("InPlace", "Surge"):
        world.do(becoming(world, currentStepIndex=2, capacity=capacity))
        code, answer = await page.act("undo")
        assert (code, "is at step 3/3 now, not 2" in answer["refused"]) == (409, True)
    assert version_hash(lws(world)) == HASH
    assert "requestedAction" not in world.status()


@pytest.mark.parametrize(("given", "kept"), [({"reason": "too slow"}, "too slow"), ({}, "undo")])
async def test_the_reason_of_an_undo_is_that_of_the_abort_which_it_makes(
    world: World, page: Browser, given: Object, kept: str
) -> None:
    old = store(world, 1, "v1")
    world.release(**SEEN | {"capacity": "Surge", "stable": {"templateHash": old}})
    at_abort(world, becoming(world, phase="Aborted"))
    code, answer = await page.act("undo", **given)
    assert (code, answer["told"].startswith("rollout/llama aborted at step 2/3; going back to stable; ")) == (200, True)
    last = world.status()["lastAction"]
    assert (last["type"], last["reason"]) == ("Abort", kept)
    assert version_hash(lws(world)) == old


async def test_undo_of_a_pair_says_how_to_go_back(world: World, page: Browser) -> None:
    store(world, 1, "v1")
    world.pair(active="llama", **SEEN | {"stable": {"templateHash": HASH}})
    code, answer = await page.act("undo")
    assert (code, "is a pair whose release is on: `rollout-lws abort llama`" in answer["refused"]) == (409, True)


async def test_a_user_without_the_permission_is_refused_with_its_name(world: World, page: Browser) -> None:
    world.release(**SEEN)
    said = 'rollouts.rollouts.kruise.io "llama" is forbidden: User "jane" cannot patch resource "rollouts/status"'
    effect = Effect(refusal=ApiError(403, "Forbidden", said))
    world.http.gate.faults.add(effect, "patch", "rollouts", count=None)
    code, answer = await page.act("approve")
    assert (code, said in answer["refused"]) == (403, True)


async def test_a_rollout_that_is_not_there_is_told(page: Browser) -> None:
    code, answer = await page.act("approve")
    assert (code, "there is no Rollout 'llama'" in answer["refused"]) == (409, True)


async def test_a_request_of_another_form_is_refused_before_anything_is_asked(world: World, page: Browser) -> None:
    world.release(**LOADING)
    for body, kind, code in (
        (b"[]", "application/json", 400),
        (b"{", "application/json", 400),
        (b"\xff\xfe{", "application/json", 400),
        (b"{}", "text/plain", 415),
        (b'{"a": "' + b"x" * 20_000 + b'"}', "application/json", 413),
    ):
        headers = {"Origin": page.base, "Content-Type": kind}
        async with page.session.post(f"{page.base}/-/actions/default/llama", data=body, headers=headers) as answer:
            assert (answer.status, bool((await answer.json())["refused"])) == (code, True)
