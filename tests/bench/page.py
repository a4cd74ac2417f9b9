"""What people wait for on the page of the dashboard, and what it costs at rest: `make bench-page`."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.watch.cache import WatchCache
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import PODS
from rollout_lws.sandbox.behaviours.faults import CUT_OFF, PREFIX
from tests import browser_tool
from tests.bench import report
from tests.bench.figures import Figure, percentile
from tests.bench.manifests import NAME, ROLLOUTS
from tests.bench.processes import PROGRAM, Progress, child, usage_of
from tests.browser.tabs import Tab, Visitors, chromium
from tests.kubectl.programs import Program

if TYPE_CHECKING:
    from playwright.async_api import Browser

_NAMESPACE = "default"
_SAYS = "Releases are shown at "
#: Resolves with the time when the page shows what it should, after the frame in which it does.
_WHEN_SHOWN = """(holds) => new Promise((resolve) => {
    const look = () => {
        if (!holds()) return false;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(Date.now() / 1000)));
        return true;
    };
    const observer = new MutationObserver(look);
    observer.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
    look();
})"""
_FIRST_PICTURE = f"""window.shown = ({_WHEN_SHOWN})(
    () => document.querySelectorAll("[aria-label^='group ']").length === COUNT
).then(() => performance.now());"""


@dataclass(frozen=True, slots=True)
class Plan:
    """Groups of ``size`` pods, how many ``changes`` and ``loads`` of the page are measured, and seconds of ``rest``."""

    groups: int = 100
    size: int = 16
    changes: int = 60
    loads: int = 10
    rest: float = 15.0


async def of_page(directory: Path, plan: Plan, progress: Progress) -> list[Figure]:
    """All figures; API server, dashboard and browser are processes of their own."""
    kubeconfig = directory / "page.kubeconfig"
    arguments = ("-m", "tests.bench.big", str(kubeconfig), str(plan.groups), str(plan.size))
    async with child("big", *arguments, logs=directory) as server, chromium() as browser:
        await server.told("ready", progress, 300)
        transport = Transport.to(Target(kubeconfig=str(kubeconfig)))
        with transport:
            bench = _Bench(transport, plan, browser)
            await bench.say("about to be looked at")
            dashboard = await Program.start(
                *_command("dashboard", "--no-browser", "--port", "0", "--kubeconfig", str(kubeconfig))
            )
            try:
                url = (await dashboard.says(_SAYS)).removeprefix(_SAYS)
                return await bench.measure(url, dashboard.pid, progress)
            finally:
                await dashboard.kill()


def _command(*arguments: str) -> list[str]:
    return [sys.executable, *PROGRAM, *arguments]


class _Witness:
    """Another client of the API server, which takes down when it is told of leaders."""

    def __init__(self, transport: Transport) -> None:
        self._told: dict[tuple[str, str], float] = {}
        self._cache = WatchCache(transport, PODS.path(_NAMESPACE), {}, self._take, self)

    def _take(self, pod: dict[str, Any]) -> None:
        ready = next((each["status"] for each in pod["status"]["conditions"] if each["type"] == "Ready"), "")
        self._told[pod["metadata"]["name"], ready] = time.time()

    def set(self) -> None:
        """What has been taken down is read afterwards."""

    def told(self, name: str, ready: str) -> float:
        return self._told[name, ready]

    def close(self) -> None:
        self._cache.stop()
        self._cache.join()


class _Bench:
    def __init__(self, transport: Transport, plan: Plan, browser: Browser) -> None:
        self._transport, self._plan, self._browser = transport, plan, browser
        self._witness = _Witness(transport)
        self._began = 0.0

    async def measure(self, url: str, pid: int, progress: Progress) -> list[Figure]:
        plan, visitors = self._plan, Visitors(self._browser)
        of = f"of {plan.groups} groups of {plan.size}"
        try:
            # A browser that has just been started is slow once.
            tab = await visitors.tab(url)
            await tab.row(NAME).get_by_role("link").first.click()
            await self._shown(tab, f"document.querySelectorAll(\"[aria-label^='group ']\").length === {plan.groups}")
            progress(f"page: {plan.loads} times the first picture {of}")
            pictures = [await self._first_picture(tab) for _ in range(plan.loads)]
            progress(f"page: {plan.changes} changes {of}")
            words = [await self._message(tab, number) for number in range(plan.changes)]
            cells = [await self._cell(tab, number % plan.groups) for number in range(plan.changes)]
            progress(f"page: {plan.rest:g} s at rest, with the release and the list open")
            listed = await visitors.tab("/".join(url.split("/")[:3]), beside=tab)
            await listed.row(NAME).wait_for()
            before = usage_of(pid)
            began = time.monotonic()
            await asyncio.sleep(plan.rest)
            after = usage_of(pid)
            rest = (after.cpu - before.cpu) / (time.monotonic() - began)
            tab.calm()
        finally:
            await visitors.close()
            await asyncio.to_thread(self._witness.close)
        return [
            Figure(f"a message {of} is asked for → on the page, p95 of {plan.changes}", _p95(words), 250, "ms"),
            Figure(
                f"a pod {of} is told as lost → its group's cell tells, p95 of {plan.changes}", _p95(cells), 250, "ms"
            ),
            Figure(
                f"the page {of}: asked for → first picture, median of {plan.loads}",
                statistics.median(pictures),
                500,
                "ms",
            ),
            Figure(f"rollout-lws dashboard {of}: resident memory", after.memory, 60, "MB"),
            Figure(f"rollout-lws dashboard {of}: CPU at rest, of one core", 100 * rest, 2, "%"),
        ]

    async def say(self, message: str) -> None:
        status = {"phase": "Progressing", "message": message, "summary": {"state": "Loading"}}
        await self._patch(ROLLOUTS.path(_NAMESPACE, NAME, "status"), {"status": status})

    async def _message(self, tab: Tab, number: int) -> float:
        words = f"change {number} of {self._plan.changes}"
        shown = await self._after(tab, f"document.body.textContent.includes({words!r})", lambda: self.say(words))
        return 1000 * (shown - self._began)

    async def _cell(self, tab: Tab, index: int) -> float:
        """A group whose leader's node is lost, and comes back."""
        label = f"document.querySelector(\"[aria-label^='group {index},']\").getAttribute('aria-label')"
        ready = f"{label}.startsWith('group {index}, ready')"
        shown = await self._after(tab, f"!{ready}", lambda: self._lose(index, "true"))
        # What a cluster takes until it notices is not the page's.
        took = shown - self._witness.told(f"{NAME}-{index}", "False")
        await self._after(tab, ready, lambda: self._lose(index, None))
        return 1000 * took

    async def _lose(self, index: int, lost: str | None) -> None:
        annotations = {f"{PREFIX}{CUT_OFF}": lost}
        await self._patch(PODS.path(_NAMESPACE, f"{NAME}-{index}"), {"metadata": {"annotations": annotations}})

    async def _after(self, tab: Tab, holds: str, act: Callable[[], Any]) -> float:
        """When the page shows what comes of an act."""
        shown = asyncio.create_task(self._shown(tab, holds))
        # What is waited for is in the page before it happens.
        await tab.page.evaluate("0")
        self._began = time.time()
        await act()
        return await shown

    async def _shown(self, tab: Tab, holds: str) -> float:
        return float(await asyncio.wait_for(tab.page.evaluate(f"({_WHEN_SHOWN})(() => {holds})"), 30))

    async def _first_picture(self, tab: Tab) -> float:
        """Milliseconds from the request for the page."""
        page = await tab.page.context.new_page()
        await page.add_init_script(_FIRST_PICTURE.replace("COUNT", str(self._plan.groups)))
        await page.goto(tab.page.url)
        took = float(await page.evaluate("window.shown"))
        await page.close()
        return took

    async def _patch(self, path: str, body: dict[str, Any]) -> None:
        await asyncio.to_thread(self._transport.merge_patch, path, body)


def _p95(milliseconds: Sequence[float]) -> float:
    return percentile(milliseconds, 0.95)


@click.command()
@click.option(
    "--json", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there as JSON."
)
def page(path: Path | None) -> None:
    """Measure the dashboard's page against its goals; exit code 1 when a figure is worse than three times its goal."""
    if why := browser_tool.missing():
        raise click.ClickException(f"{why}: {browser_tool.HOW_TO_GET_IT}")

    async def measure(progress: Progress) -> tuple[Sequence[Figure], str]:
        with tempfile.TemporaryDirectory(prefix="rollout-lws-page-") as directory:
            return await of_page(Path(directory), Plan(), progress), "Chromium shares the cores with all of it."

    report.run(measure, path)


if __name__ == "__main__":
    page()
