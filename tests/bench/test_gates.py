"""The measurement of gates itself: what its servers answer is read, and what it finds is not far off its goals."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout_lws.analysis.exposition import parse
from rollout_lws.analysis.readings import Nothing, Trouble
from rollout_lws.analysis.signals import families, read
from tests.bench.gates import ANSWER, RELEASES, answer, criteria, of_gates


def test_servers_answer_at_length_and_with_all_that_gates_read() -> None:
    text = "12345".join(answer())
    assert ANSWER <= len(text) <= 1.02 * ANSWER
    for criterion in criteria():
        found = read(criterion.signal, parse(text, families(criterion.signal)))
        assert not isinstance(found, Nothing | Trouble), criterion.signal


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_gates_cost_little(tmp_path: Path) -> None:
    """Three times of what they may is what fails, as the machine may be busy with other tests."""
    figures, gates = await of_gates(tmp_path, lambda _: None, rounds=1, window=100)
    assert gates == RELEASES * len(criteria()) == 200
    assert [(each.name, each.value) for each in figures if each.failed] == []
