"""The demo of each example, as its README offers it, but for loads of a moment and no pauses.

Data planes hear of changes at once here, so that no grace is needed; the demo of our own manifests has both.
"""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from rollout_lws.cli.demo import command, manifests, requests
from rollout_lws.cli.main import program
from tests.examples.examples import FOLDER, ROUTED, mostly_long


@pytest.mark.parametrize("name", mostly_long())
def test_the_demo_of_an_example_proves_its_end_state(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "SHORT_WAIT", 0)
    monkeypatch.setattr(command, "_FAST", (0.05, 0.05, 0.3))
    monkeypatch.setattr(manifests, "SHORT_GRACE", 0)
    monkeypatch.setattr(requests, "LAG", 0.0)
    assert f"`rollout-lws demo -f examples/{name}`" in (FOLDER / name / "README.md").read_text()
    result = CliRunner().invoke(program, ["demo", "--fast", "-f", str(FOLDER / name)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "ok    all groups are new" in result.stdout
    assert "FAIL" not in result.stdout
    assert ("ok    no request was lost" in result.stdout) is (name in ROUTED)
    assert ("ok    what was changed is as before" in result.stdout) is (name in ROUTED)
