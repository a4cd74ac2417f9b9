"""The demo on the page: a person approves there, or goes another way, and looks at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from click.testing import CliRunner

from rollout_lws.cli.demo.command import plan_of
from rollout_lws.cli.demo.page import Showing
from rollout_lws.cli.demo.play import play
from rollout_lws.cli.demo.teller import Teller
from rollout_lws.cli.main import program
from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.settings import Settings
from tests.cli.dashboard.pages import Browser, browser


class Lines(Teller):
    """What is told, with a bell for each line."""

    def __init__(self) -> None:
        super().__init__(None)
        self.lines: list[str] = []
        self._new = asyncio.Event()

    def _print(self, line: str) -> None:
        self.lines.append(line)
        self._new.set()

    async def until(self, text: str) -> str:
        async with asyncio.timeout(90):
            while True:
                found = [each for each in self.lines if text in each]
                if found:
                    return found[-1]
                await self._new.wait()
                self._new.clear()


@asynccontextmanager
async def attended(what: str) -> AsyncIterator[tuple[Lines, Browser, asyncio.Task[bool]]]:
    """A demo that a person attends, with the browser in which its page was opened."""
    told = Lines()
    plan = plan_of(what, [], True, rollouts_of(DEFAULT_API_GROUP).api_version)
    settings = Settings(api_group=DEFAULT_API_GROUP, scrape_through="api-server", scrape_every=1.0)
    task = asyncio.create_task(play(plan, settings, told, Showing(opens=False, attended=True)))
    try:
        url = (await told.until("?token=")).split()[-1]
        async with browser(url) as page:
            yield told, page, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_person_who_aborts_on_the_page_goes_another_way() -> None:
    async with attended("surge") as (told, page, task), page.release() as stream:
        await told.until("step 2/3 waits for you, 10 minutes at most")
        seen = await stream.until("release", lambda release: bool(release["state"] == "AwaitingApproval"))
        code, answer = await page.act("abort", release=seen["release"], step=seen["at"])
        assert (code, "aborted at step 2/3" in answer["told"]) == (200, True)
        await told.until("you went another way than the demo")
        await told.until("it stays until Ctrl-C")
        await stream.until("release", lambda release: bool(release["state"] == "Aborted"))
        assert not task.done()
        task.cancel()
        assert await task


@pytest.mark.long
async def test_a_person_who_approves_each_step_on_the_page_sees_the_release_to_its_end() -> None:
    async with attended("canary") as (told, page, task), page.release() as stream:
        seen = await stream.until("release", lambda release: bool(release["state"] == "AwaitingApproval"))
        code, answer = await page.act("approve", release=seen["release"], step=seen["at"])
        assert (code, answer["told"]) == (200, "rollout/llama step 2/3 approved")
        await told.until("it stays until Ctrl-C")
        assert not [each for each in told.lines if "FAIL" in each or (" you " in each and "approve" in each)]
        assert [each for each in told.lines if "no request was lost" in each]
        task.cancel()
        assert await task


def test_a_browser_needs_a_page() -> None:
    result = CliRunner().invoke(program, ["demo", "--no-browser"])
    assert (result.exit_code, "without --page none is opened" in result.output) == (2, True)
