"""The whole demo as a user runs it, but for loads of a moment: sandbox, controller and person over real HTTP."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from rollout_lws.cli.main import program


@pytest.mark.parametrize(
    ("what", "told"), [("canary", "stable was not touched before its promotion"), ("abort", "every pod from before")]
)
def test_a_release_is_told_and_its_end_state_proven(what: str, told: str) -> None:
    result = CliRunner().invoke(program, ["demo", what, "--fast"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert f"ok    {told}" in result.stdout
    assert "FAIL" not in result.stdout
    assert "\x1b" not in result.stdout
