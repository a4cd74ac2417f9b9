"""The pictures that `make pictures` takes: small, and shown where the dashboard is told of."""

from __future__ import annotations

import pytest

from tests.docs.pages import ROOT

_LARGEST = 150_000


@pytest.mark.parametrize("name", ["dashboard-list.png", "dashboard-release.png"])
def test_a_picture_of_the_dashboard_is_small_and_shown(name: str) -> None:
    assert (ROOT / "docs/pictures" / name).stat().st_size <= _LARGEST
    assert f"](pictures/{name})" in (ROOT / "docs/dashboard.md").read_text()
