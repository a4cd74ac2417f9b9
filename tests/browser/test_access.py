"""The page for all: a screen reader's names, contrast, the keyboard alone, and any width."""

from __future__ import annotations

import json

import pytest

from rollout_lws.cli.demo.manifests import NAME, NAMESPACE
from tests.browser import releases
from tests.browser.stage import ROLLOUTS, Dashboard, Stage
from tests.browser.tabs import Tab, Visitors

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
_RELEASE = f"{NAMESPACE}/{NAME}"
#: Presses of Tab after which something is not within reach.
_TABS = 60
_VIEWS = ["list", "release", "question", "group"]
_WIDTH = "() => ({page: document.documentElement.scrollWidth, window: innerWidth})"


async def _view(tab: Tab, view: str) -> None:
    """The tab shows this part of the page."""
    if view == "list":
        await tab.row(NAME).wait_for()
        return
    await tab.row(NAME).get_by_role("link").first.click()
    await tab.reads_state("AwaitingApproval")
    if view == "question":
        await tab.button("Approve").click()
        await tab.dialog.wait_for()
    if view == "group":
        await tab.cell(0).first.click()
        await tab.reads_group(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_an_audit_finds_nothing_serious(shown: Dashboard, visitors: Visitors, scheme: str) -> None:
    from axe_playwright_python.async_playwright import Axe

    found = {}
    for view in _VIEWS:
        tab = await visitors.tab(shown.url, scheme=scheme)
        await _view(tab, view)
        await tab.picture(f"{view}-{scheme}")
        # What has been drawn just now may still fade in.
        await tab.page.evaluate("Promise.all(document.getAnimations().map((each) => each.finished))")
        violations = (await Axe().run(tab.page)).response["violations"]
        found[view] = [
            (each["id"], each["impact"], node["html"][:200], node.get("failureSummary"))
            for each in violations
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]
        tab.calm()
    assert not any(found.values()), json.dumps(found, indent=1)


@pytest.mark.parametrize("width", [360, 768, 1280, 3840])
@pytest.mark.parametrize("view", _VIEWS)
async def test_no_width_needs_scrolling_sideways(shown: Dashboard, visitors: Visitors, view: str, width: int) -> None:
    tab = await visitors.tab(shown.url, width=width, height=800)
    await _view(tab, view)
    await tab.picture(f"{view}-{width}")
    measured = await tab.page.evaluate(_WIDTH)
    assert measured["page"] <= measured["window"] == width
    # Nor is anything that can be used outside of what is seen.
    outside = await tab.page.evaluate("""() => [...document.querySelectorAll("a, button, input, select")]
        .filter((each) => each.checkVisibility() && !each.closest(".skip, .unseen"))
        .map((each) => [each.outerHTML.slice(0, 120), each.getBoundingClientRect()])
        .filter(([, box]) => box.width && (box.left < -1 || box.right > innerWidth + 1))
        .map(([html]) => html)""")
    assert outside == []
    tab.calm()


async def _focused(tab: Tab) -> str:
    """Role and name of what has the focus, as an assistive technology is told."""
    return str(
        await tab.page.evaluate("""() => {
        const it = document.activeElement;
        if (!it || it === document.body) return "";
        const style = getComputedStyle(it);
        const seen = style.outlineStyle !== "none" || style.boxShadow !== "none";
        const name = it.getAttribute("aria-label") ?? (it.textContent || it.getAttribute("id") || "");
        const told = `${it.tagName.toLowerCase()} ${name.replace(/\\s+/g, " ").trim()}`;
        return seen ? told : `${told} (nothing shows the focus)`;
    }""")
    )


async def _tab_to(tab: Tab, beginning: str, key: str = "Tab") -> None:
    """Press Tab until what has the focus begins so."""
    passed = []
    for _ in range(_TABS):
        await tab.page.keyboard.press(key)
        passed.append(await _focused(tab))
        if passed[-1].startswith(beginning):
            assert "nothing shows" not in passed[-1], passed[-1]
            return
    raise AssertionError(f"{beginning!r} is not reached: {passed}")


async def test_the_keyboard_alone_filters_opens_looks_and_approves(released: Stage, visitors: Visitors) -> None:
    await releases.until_approval(released, releases.quick())
    tab = await visitors.tab((await released.dashboard()).url)
    await tab.row(NAME).wait_for()
    press = tab.page.keyboard.press

    await _tab_to(tab, "input Filter")
    await tab.page.keyboard.type("llama awaiting")
    await tab.page.wait_for_url("**/?q=*")
    await _tab_to(tab, f"a {_RELEASE}")
    await press("Enter")
    await tab.reads_state("AwaitingApproval")
    await _tab_to(tab, "a group 0")
    await press("Enter")
    await tab.reads_group(0)
    assert "group=" in tab.page.url
    assert "group 0" in await _focused(tab), "the focus is in the group's panel"
    await press("Escape")
    await tab.until("() => !location.search.includes('group=')")
    assert (await _focused(tab)).startswith("a group 0"), "the focus is where it was"

    await _tab_to(tab, "button Approve", "Shift+Tab")
    await press("Enter")
    await tab.dialog.wait_for()
    await _tab_to(tab, "button Approve")
    await press("Enter")
    await released.until("it goes on", lambda: released.status()["currentStepIndex"] == 2)
    tab.calm()


async def test_the_focus_stays_where_it_is_when_the_page_is_drawn_again(standing: Stage, visitors: Visitors) -> None:
    tab = await visitors.tab((await standing.dashboard(NAME)).url)
    await tab.reads_state("AwaitingApproval")
    for target in (tab.button("Pause"), tab.cell(1).first):
        await target.focus()
        before = await _focused(tab)
        for state in ("Loading", "AwaitingApproval"):
            standing.patch_status(ROLLOUTS, NAME, {"message": f"now {state}", "summary": {"state": state}})
            await tab.sees(f"now {state}", within=tab.main)
            assert await _focused(tab) == before
    # Nor is what one types taken away.
    await tab.button("Abort").click()
    await tab.dialog.get_by_role("textbox").fill("it answers")
    standing.patch_status(ROLLOUTS, NAME, {"message": "told meanwhile"})
    await tab.sees("told meanwhile", within=tab.main)
    assert await tab.dialog.get_by_role("textbox").input_value() == "it answers"
    tab.calm()


@pytest.mark.parametrize("width", [360, 1024, 1280])
async def test_the_focus_is_never_behind_the_panel_of_a_group(shown: Dashboard, visitors: Visitors, width: int) -> None:
    tab = await visitors.tab(shown.url, width=width, height=800)
    await _view(tab, "group")
    hidden, inside = [], 0
    for _ in range(_TABS):
        await tab.page.keyboard.press("Tab")
        is_hidden, is_inside = await tab.page.evaluate("""() => {
            const it = document.activeElement;
            if (it === document.body) return [false, false];
            const [box, panel] = [it, document.getElementById("panel")].map((each) => each.getBoundingClientRect());
            const within = Boolean(it.closest("#panel"));
            return [!within && box.left >= panel.left && box.width > 0, within];
        }""")
        inside += is_inside
        if is_hidden:
            hidden.append(await _focused(tab))
    assert inside and not hidden, hidden

    beside = await tab.page.evaluate("document.getElementById('panel').getBoundingClientRect().left")
    if width == 1280:
        # There is room beside it, where another group can be opened.
        await tab.cell(1).first.click()
        await tab.reads_group(1)
    elif beside > 0:
        await tab.page.mouse.click(beside / 2, 400)
        await tab.gone(tab.panel)
    await tab.page.keyboard.press("Escape")
    await tab.gone(tab.panel)
    # What was behind it can be used again.
    await tab.button("Pause").click()
    await tab.dialog.wait_for()
    tab.calm()
