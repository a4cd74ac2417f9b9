"""The example of capacity Shift: its manifests are as their comments say, its README's commands do what is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rollout_lws.api import Rollout
from rollout_lws.api.validation import problems
from rollout_lws.capacity import known
from rollout_lws.capacity.table import strategy_of_plan
from tests.examples.test_pair import of_kind, replicas
from tests.examples.test_readmes import sections
from tests.reader import Reader, reading

NAME, CANARY = "tutor", "tutor-canary"


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with reading(tmp_path) as someone:
        yield someone


def test_the_rollout_shifts_and_has_the_number_that_the_workload_does_not_state() -> None:
    spec = Rollout.model_validate(of_kind("shift", "Rollout")[NAME]).spec
    assert problems(spec) == () and spec.swaps and spec.replicas == 4
    assert spec.strategy.style is not None and strategy_of_plan(spec.strategy.style) is known.SHIFT
    assert "replicas" not in of_kind("shift", "LeaderWorkerSet")[NAME]["spec"]


def test_the_service_selects_both_by_a_label_of_the_template() -> None:
    (service,) = of_kind("shift", "Service").values()
    template = of_kind("shift", "LeaderWorkerSet")[NAME]["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    own = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
    assert service["spec"]["selector"] == {**template["metadata"]["labels"], **own}


@pytest.mark.long
@pytest.mark.kubectl
async def test_the_commands_do_what_the_readme_says(reader: Reader) -> None:
    scripts = sections("shift")
    assert [*scripts] == [
        "Start",
        "Release a new version",
        "Approve",
        "Release the next one",
        "Abort",
        "Clean up",
    ]
    await reader.run(scripts["Start"])
    before = reader.leaders(NAME)
    assert (len(before), set(reader.tags(NAME))) == (4, {"1.27"})
    await reader.run(scripts["Release a new version"])
    # The last one has lost its requests, and may be gone by now.
    assert before.items() - reader.leaders(NAME).items() <= {("tutor-3", before["tutor-3"])}
    assert reader.tags(CANARY) == ["1.28"]
    await reader.run(scripts["Approve"])
    assert (reader.tags(NAME), reader.tags(CANARY)) == ([], ["1.28"] * 4)
    assert replicas(reader) == {NAME: 0, CANARY: 4}
    await reader.run(scripts["Release the next one"])
    assert (reader.tags(NAME), replicas(reader)) == (["1.29"] * 4, {NAME: 4})
    before = reader.leaders(NAME)
    await reader.run(scripts["Abort"])
    assert (reader.leaders(NAME), replicas(reader)) == (before, {NAME: 4})
    await reader.run(scripts["Clean up"])
    await reader.nothing_left()
