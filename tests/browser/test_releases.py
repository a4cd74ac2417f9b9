"""Whole releases, watched and decided on the page alone; what came of them is looked up in the cluster."""

from __future__ import annotations

import pytest

from rollout_lws.cli.demo import checks
from rollout_lws.cli.demo.manifests import NAME, NEW
from rollout_lws.cli.rollouts import summary
from rollout_lws.sandbox.store import Event
from tests.browser import releases
from tests.browser.stage import ROLLOUTS, Stage
from tests.browser.tabs import Tab, Visitors, spaced

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(180)]

#: Seconds that a state lasts which a page must have told; a busy machine shows what is shorter too late.
_LONG_ENOUGH = 1.0
_NOTE_TITLES = """() => {
    window.titles = [];
    const note = () => {
        if (window.titles.at(-1) !== document.title) window.titles.push(document.title);
    };
    new MutationObserver(note).observe(document.head, {subtree: true, childList: true, characterData: true});
    note();
}"""


#: Weights that routers have accepted, in percent, as the line of the course goes through them.
_SHARES = """() => {
    const [none, , all] = [...document.querySelectorAll(".chart line.grid")].map((each) => each.getAttribute("y1"));
    const line = document.querySelector(".chart path.accepted").getAttribute("d");
    return [...line.matchAll(/V([\\d.]+)/g)].map((each) => Math.round(100 * (each[1] - none) / (all - none)));
}"""


class States:
    """The states that a release goes through, and how long it is in each."""

    def __init__(self, stage: Stage) -> None:
        self._server = stage.server
        self.states: list[tuple[str, float]] = []
        stage.server.store.subscribe(self._take)

    def _take(self, event: Event) -> None:
        if event.resource == ROLLOUTS:
            state = summary(event.object)["state"]
            if not self.states or self.states[-1][0] != state:
                self.states.append((state, self._server.clock()))

    def long(self) -> list[str]:
        """Those that lasted long enough to be read, each once."""
        ends = [at for _, at in self.states[1:]] + [self._server.clock()]
        found = [state for (state, at), end in zip(self.states, ends, strict=True) if end - at > _LONG_ENOUGH]
        return list(dict.fromkeys(found))


async def _opened(visitors: Visitors, url: str) -> Tab:
    """The release, by a click in the list."""
    tab = await visitors.tab(url)
    await tab.row(NAME).get_by_role("link").first.click()
    await tab.reads_state("Healthy")
    await tab.page.evaluate(_NOTE_TITLES)
    return tab


async def test_a_release_is_watched_and_approved_by_clicks(released: Stage, visitors: Visitors) -> None:
    plan = releases.gated()
    before = await releases.begin(released, plan)
    tab = await _opened(visitors, (await released.dashboard()).url)
    states = States(released)

    releases.change(released, plan)
    await tab.reads_state("Loading")
    await tab.reads_state("Analyzing")
    assert released.status()["traffic"]["applied"]["weight"] == 10
    await tab.sees("first-token", within=tab.main)
    await tab.picture("release-analyzing")
    await tab.reads_state("AwaitingApproval", seconds=60)
    await tab.picture("release-awaiting-approval")
    assert (released.status()["currentStepIndex"], released.state()) == (2, "AwaitingApproval")
    await tab.act("Approve", reason="p95 is as before")
    await released.until_state("Healthy")
    await tab.reads_state("Healthy")
    await tab.picture("release-healthy")
    # The focus is on the button still, whose effect is another one now.
    await tab.sees("nothing waits for approval", within=tab.page.locator(".hint"))
    shares = await tab.page.evaluate(_SHARES)
    assert shares == sorted(shares) and shares[-1] == 40, shares

    after = released.listing()
    found = [
        *checks.updated(before, after, releases.expected(plan)),
        checks.all_ready(after, plan.workload_name),
        checks.images(after, releases.expected(plan)),
    ]
    assert all(each.passed for each in found), found
    told = await tab.page.evaluate("window.titles")
    untold = [each for each in states.long() if not any(spaced(each).search(title) for title in told)]
    assert not untold, f"{untold} of {states.states} are not among {told}"
    tab.calm()


async def test_a_release_is_aborted_by_a_click_that_says_why(released: Stage, visitors: Visitors) -> None:
    plan = releases.quick()
    before = await releases.begin(released, plan)
    tab = await _opened(visitors, (await released.dashboard()).url)
    releases.change(released, plan)
    await tab.reads_state("AwaitingApproval")
    assert NEW in str(released.listing()["Pod"].values())

    await tab.act("Abort", reason="answers <b>differ</b>")

    await tab.reads_state("Aborted")
    assert released.state() == "Aborted"
    await released.until(
        "the pods are those from before",
        lambda: _uids(released.listing()) == _uids(before) and set(released.listing()["LeaderWorkerSet"]) == {NAME},
    )
    assert "answers <b>differ</b>" in released.status()["aborted"]["message"]
    await tab.sees("answers <b>differ</b>", within=tab.main)
    await tab.sees("Step 1, stopped here", within=tab.page.get_by_role("region", name="Steps"))
    await tab.counts(tab.page.get_by_role("region", name="History").get_by_text("aborted", exact=True), 1)
    assert NEW not in str(released.listing()["Pod"].values())
    tab.calm()


async def test_a_question_that_is_answered_with_no_changes_nothing(released: Stage, visitors: Visitors) -> None:
    await releases.until_approval(released, releases.quick())
    tab = await visitors.tab((await released.dashboard(NAME)).url)
    await tab.reads_state("AwaitingApproval")
    version = released.rollout()["metadata"]["resourceVersion"]

    await tab.button("Abort").click()
    await tab.page.keyboard.press("Escape")
    await tab.gone(tab.dialog)
    await tab.button("Approve").click()
    await tab.dialog.get_by_role("button").filter(has_not_text="Approve").first.click()
    await tab.gone(tab.dialog)

    assert [each.method for each in tab.requests if each.method != "GET"] == []
    assert released.rollout()["metadata"]["resourceVersion"] == version
    tab.calm()


def _uids(listing: checks.Listing) -> set[str]:
    return {pod["metadata"]["uid"] for pod in listing["Pod"].values()}
