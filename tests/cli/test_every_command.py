"""docs/commands.md is what the commands say."""

from __future__ import annotations

import pytest

from tests.cli.every_command import PAGE, STATES, State, section


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_every_command_says_what_the_page_says(state: State) -> None:
    found = section(state)
    assert found in PAGE.read_text(), f"renew it with `python -m tests.cli.every_command`:\n{found}"


def test_the_page_has_no_further_state() -> None:
    headings = [line[3:] for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert headings == [state.name for state in STATES]
