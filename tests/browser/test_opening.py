"""A browser that is opened by the file which leads to the page, as the command opens it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rollout_lws.cli.dashboard.opening import leading_to
from rollout_lws.cli.demo.manifests import NAME
from tests.browser.stage import Dashboard
from tests.browser.tabs import Visitors

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_the_file_leads_to_the_page_which_goes_on_with_its_cookie_alone(
    shown: Dashboard, visitors: Visitors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    parts = urlsplit(shown.url)
    tab = await visitors.tab("about:blank")
    tab.origin = f"{parts.scheme}://{parts.netloc}"
    with leading_to(shown.url) as file:
        await tab.page.goto(file)
        await tab.row(NAME).wait_for()
    assert "token" not in tab.page.url
    await tab.page.reload()
    await tab.row(NAME).wait_for()
    assert not any("token" in each.headers.get("referer", "") for each in tab.requests)
    tab.calm(but=re.compile("^asks another server: file:"))
