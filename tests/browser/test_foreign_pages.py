"""Pages of others in the same browser: they read nothing, and they change nothing."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from rollout_lws.cli.demo.manifests import NAME, NAMESPACE
from tests.browser import releases
from tests.browser.foreign import ATTACK, foreign_pages
from tests.browser.stage import Dashboard, Stage
from tests.browser.tabs import NOT_ANSWERED, REBOUND, Visitors

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
_PATH = f"{NAMESPACE}/{NAME}"


def _approval(stage: Stage) -> dict[str, Any]:
    """What the page itself would send."""
    status = stage.status()
    return {"action": "approve", "release": status["observedRolloutID"], "step": status["currentStepIndex"]}


# By its address it is another origin of the same site, for which cookies are sent; by its name it is another site.
@pytest.mark.parametrize("host", ["127.0.0.1", REBOUND])
async def test_a_page_of_another_origin_gets_nothing_and_changes_nothing(
    released: Stage, visitors: Visitors, host: str
) -> None:
    await releases.until_approval(released, releases.quick())
    dashboard = await released.dashboard()
    own = await visitors.tab(dashboard.at(f"{_PATH}?{urlsplit(dashboard.url).query}"))
    await own.reads_state("AwaitingApproval")
    version = released.rollout()["metadata"]["resourceVersion"]

    async with foreign_pages() as port:
        other = await visitors.tab(f"http://{host}:{port}/", beside=own)
        answers: list[tuple[str, int]] = []
        other.page.on("response", lambda answer: answers.append((answer.url, answer.status)))
        attack = {"place": dashboard.origin, "path": _PATH, "action": _approval(released)}
        read = await other.page.evaluate(ATTACK, attack)

    assert read == []
    assert released.rollout()["metadata"]["resourceVersion"] == version
    assert released.state() == "AwaitingApproval"
    let_in = [each for each in answers if each[0].startswith(dashboard.origin) and each[1] < 400]
    # A person may follow a link from anywhere; that a frame does not show the page is the browser's doing.
    assert {urlsplit(url).path for url, _ in let_in} <= {f"/{_PATH}"}
    assert any(status == 403 for url, status in answers if url.startswith(dashboard.origin)), answers

    # What was tried is what approves when the page itself sends it.
    said = await own.page.evaluate(
        """async ([path, action]) => (await fetch(`/-/actions/${path}`, {
            method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(action),
        })).json()""",
        [_PATH, _approval(released) if released.state() == "AwaitingApproval" else None],
    )
    assert "told" in said, said
    await released.until("it is approved", lambda: released.state() != "AwaitingApproval")
    own.calm()


async def test_a_window_that_another_page_opens_is_out_of_its_reach(shown: Dashboard, visitors: Visitors) -> None:
    own = await visitors.tab(shown.url)
    await own.row(NAME).wait_for()
    async with foreign_pages() as port:
        other = await visitors.tab(f"http://127.0.0.1:{port}/", beside=own)
        async with other.page.context.expect_page() as opening:
            await other.page.evaluate("url => { window.opened = open(url); }", shown.at(_PATH))
        opened = await opening.value
        await opened.get_by_role("heading", level=1).wait_for()
        assert await opened.evaluate("window.opener === null")
        assert await other.page.evaluate("window.opened.closed")


async def test_the_dashboard_under_another_name_is_refused(shown: Dashboard, visitors: Visitors) -> None:
    own = await visitors.tab(shown.url)
    await own.row(NAME).wait_for()
    token = urlsplit(shown.url).query
    for address in ("", _PATH, "-/stream/list", f"-/rights/{_PATH}", f"?{token}", f"{_PATH}?{token}"):
        rebound = await visitors.tab(f"http://{REBOUND}:{shown.port}/{address}", beside=own)
        said = await rebound.page.inner_text("body")
        assert "not known by that name" in json.loads(said)["refused"]
        assert [each["domain"] for each in await rebound.page.context.cookies()] == ["127.0.0.1"]
    # As after the name has got another address: the page of before asks, and is of the same origin now.
    said = await rebound.page.evaluate(
        "async (path) => (await fetch(path, {method: 'POST', body: '{}'})).text()", f"/-/actions/{_PATH}"
    )
    assert "not known by that name" in said


async def test_only_a_browser_with_the_token_is_let_in(shown: Dashboard, visitors: Visitors) -> None:
    tab = await visitors.tab(shown.at(""))
    for address in ("", _PATH, "?token=", "?token=wrong", "-/files/app.js", "-/stream/list"):
        await tab.page.goto(shown.at(address))
        assert "has not been let in" in json.loads(await tab.page.inner_text("body"))["refused"]
    await tab.page.goto(shown.url)
    await tab.row(NAME).wait_for()
    assert "token" not in tab.page.url
    assert await tab.page.evaluate("document.cookie") == ""
    tab.calm(but=NOT_ANSWERED)


async def test_the_tests_browser_reaches_nothing_but_loopback(visitors: Visitors) -> None:
    async with foreign_pages() as port:
        tab = await visitors.tab(f"http://127.0.0.1:{port}/")
        failures: dict[str, str | None] = {}
        tab.page.on("requestfailed", lambda request: failures.update({request.url: request.failure}))
        addresses = ["http://example.com/", "http://192.0.2.1/", "http://[2001:db8::1]/"]
        for each in addresses:
            await tab.page.evaluate("url => fetch(url, {mode: 'no-cors'}).catch(() => {})", each)
    assert failures == dict.fromkeys(addresses, "net::ERR_NAME_NOT_RESOLVED")
    with pytest.raises(AssertionError, match="asks another server: http://example"):
        tab.calm()
