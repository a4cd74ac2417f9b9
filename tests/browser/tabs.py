"""A browser without a network, and its tabs, which are looked at and used as people do: by roles and names.

A tab complains of what no page may do: an error in the console, a violation of the policy, a dialog of the browser's
own, a request to another server. The test that expects some of it says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests import browser_tool
from tests.browser.png import small

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request

#: Where pictures are kept; nowhere by default.
PICTURES = "ROLLOUT_LWS_PICTURES"
#: A name that leads to loopback, as a name of an attacker does after its DNS entry has changed.
REBOUND = "evil.test"
_FLAGS = (
    # No address of a machine other than this one is ever found.
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1 , MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    *(("--no-sandbox",) if os.geteuid() == 0 else ()),
)
#: Milliseconds until something that does not appear on the page is given up.
PATIENCE = 20_000
#: What a browser says by itself of a server that is away, or refuses.
NOT_ANSWERED = re.compile(r"Failed to load resource|net::ERR_")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=browser_tool.program(), args=list(_FLAGS))
        yield browser
        await browser.close()


class Tab:
    """One page of one visitor."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page, self.origin = page, origin
        self.complaints: list[str] = []
        self.requests: list[Request] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", self._refuse)
        page.on("request", self._asked)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    async def _refuse(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _asked(self, request: Request) -> None:
        self.requests.append(request)
        parts = urlsplit(request.url)
        if f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.complaints.append(f"asks another server: {request.url}")

    def calm(self, *, but: re.Pattern[str] | None = None) -> None:
        """Nothing was complained of ``but`` what matches this."""
        found = [each for each in self.complaints if but is None or not but.search(each)]
        assert not found, "\n".join(found)

    # What people see

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    @property
    def heading(self) -> Locator:
        return self.page.get_by_role("heading", level=1)

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")

    @property
    def panel(self) -> Locator:
        """What is shown of one group."""
        return self.page.get_by_role("complementary")

    def button(self, name: str, *, within: Locator | None = None) -> Locator:
        """The button whose name begins so."""
        return (within or self.page).get_by_role("button", name=re.compile(f"^{re.escape(name)}"))

    def row(self, text: str) -> Locator:
        """The row of the list with this text."""
        return self.page.get_by_role("row").filter(has_text=text)

    def cell(self, index: int | str) -> Locator:
        """The cells of groups with this index."""
        return self.main.get_by_role("link", name=re.compile(f"^group {index}\\b"))

    async def sees(
        self, *texts: str | re.Pattern[str], within: Locator | None = None, seconds: float = PATIENCE / 1000
    ) -> None:
        """The texts are there, or come."""
        from playwright.async_api import expect

        for each in texts:
            found = (within or self.page.locator("body")).get_by_text(each)
            await expect(found.first).to_be_visible(timeout=1000 * seconds)

    async def sees_no(self, text: str, *, within: Locator | None = None) -> None:
        from playwright.async_api import expect

        await expect((within or self.page.locator("body")).get_by_text(text)).to_have_count(0, timeout=PATIENCE)

    async def counts(self, what: Locator, number: int) -> None:
        """There are so many of them, or will be."""
        from playwright.async_api import expect

        await expect(what).to_have_count(number, timeout=PATIENCE)

    async def greys(self, button: Locator, why: str) -> None:
        """The button cannot be used, and says why."""
        from playwright.async_api import expect

        await expect(button).to_be_disabled(timeout=PATIENCE)
        await expect(button).to_have_accessible_description(re.compile(why), timeout=PATIENCE)

    async def gone(self, what: Locator) -> None:
        from playwright.async_api import expect

        await expect(what).to_be_hidden(timeout=PATIENCE)

    async def until(self, holds: str, argument: Any = None, seconds: float = PATIENCE / 1000) -> None:
        """Wait until a function of the page's gives something; its policy lets Playwright evaluate none again."""
        wait = f"""([argument, milliseconds]) => new Promise((resolve) => {{
            const until = Date.now() + milliseconds;
            const holds = {holds};
            const timer = setInterval(() => {{
                const found = holds(argument);
                if (!found && Date.now() < until) return;
                clearInterval(timer);
                resolve(Boolean(found));
            }}, 20);
        }})"""
        assert await self.page.evaluate(wait, [argument, 1000 * seconds]), f"not within {seconds:g} s: {holds}"

    async def reads_group(self, index: int | str) -> None:
        """The panel tells the pods of the group with this index."""
        await self.sees(re.compile(f"group {index}"), "leader", within=self.panel)

    async def reads_state(self, state: str, seconds: float = PATIENCE / 1000) -> None:
        """Title and page tell the state of the release, in one word or in several."""
        from playwright.async_api import expect

        await expect(self.page).to_have_title(spaced(state), timeout=1000 * seconds)
        await expect(self.main.get_by_text(spaced(state)).first).to_be_visible()

    async def picture(self, name: str, *, whole: bool = True, documents: bool = False) -> None:
        """Keep a picture, where pictures are to be kept; in few bytes if it ``documents`` the page."""
        if directory := os.environ.get(PICTURES):
            path = Path(directory) / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            taken = await self.page.screenshot(full_page=whole, animations="disabled")
            path.write_bytes(small(taken) if documents else taken)

    async def cut_off(self, path: str, times: int = 1) -> None:
        """The next requests to this path of the dashboard's get no answer."""
        await self.page.route(f"**/-/{path}**", lambda route: route.abort(), times=times)

    # What people do

    async def act(self, name: str, reason: str = "") -> None:
        """Click an action's button, and say in the dialog that it is meant."""
        await self.button(name).click()
        if reason:
            await self.dialog.get_by_role("textbox").fill(reason)
        await self.button(name, within=self.dialog).click()


def spaced(word: str) -> re.Pattern[str]:
    """A state as pages write it: AwaitingApproval, or awaiting approval."""
    parts = re.findall("[A-Z][a-z]*", word)
    return re.compile(r"\s?".join(parts), re.IGNORECASE)


class Visitors:
    """Who looks at pages: a tab of a visitor of its own each, unless another tab of the same one is asked for."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.tabs: list[Tab] = []

    async def tab(
        self, url: str, *, beside: Tab | None = None, width: int = 1280, height: int = 900, scheme: Any = "light"
    ) -> Tab:
        """A tab with this address; ``beside`` another one it has the same cookies."""
        if beside is None:
            size: Any = {"width": width, "height": height}
            context = await self._browser.new_context(
                viewport=size, color_scheme=scheme, locale="en-GB", timezone_id="UTC", reduced_motion="reduce"
            )
            context.set_default_timeout(PATIENCE)
            self._contexts.append(context)
        else:
            context = beside.page.context
        parts = urlsplit(url)
        tab = Tab(await context.new_page(), f"{parts.scheme}://{parts.netloc}")
        self.tabs.append(tab)
        await tab.page.goto(url)
        return tab

    async def close(self) -> None:
        for each in self._contexts:
            await each.close()
