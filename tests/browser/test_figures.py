"""What `make bench-page` measures, by few samples and with its margin for busy machines; memory has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.figures import table
from tests.bench.page import Plan, of_page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(180)]


async def test_a_large_release_is_on_the_page_soon_and_costs_little(tmp_path: Path) -> None:
    figures = await of_page(tmp_path, Plan(changes=20, loads=5, rest=5.0), lambda _: None)
    assert not [each for each in figures if each.failed], table(figures)
    (memory,) = [each for each in figures if each.unit == "MB"]
    assert memory.ratio <= 1, table(figures)
