"""The examples of workloads that serve in turn: manifests are as their comments say, the commands of the READMEs do
what is told.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rollout_lws.api import Rollout
from rollout_lws.api.validation import problems
from rollout_lws.capacity import known
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.capacity.table import strategy_of_plan
from tests.examples.test_pair import of_kind, replicas
from tests.examples.test_readmes import sections
from tests.reader import Reader, reading

#: Each example, with the name of its workload.
EXAMPLES = pytest.mark.parametrize(("example", "name"), [("swap", "scribe"), ("shift", "tutor")])


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with reading(tmp_path) as someone:
        yield someone


@pytest.mark.parametrize(
    ("example", "name", "strategy"), [("swap", "scribe", known.SWAP), ("shift", "tutor", known.SHIFT)]
)
def test_the_rollout_has_the_number_that_the_workload_does_not_state(
    example: str, name: str, strategy: CapacityStrategy
) -> None:
    spec = Rollout.model_validate(of_kind(example, "Rollout")[name]).spec
    assert problems(spec) == () and spec.swaps and spec.replicas == 4
    assert spec.strategy.style is not None and strategy_of_plan(spec.strategy.style) is strategy
    assert "replicas" not in of_kind(example, "LeaderWorkerSet")[name]["spec"]


@EXAMPLES
def test_the_service_selects_both_by_a_label_of_the_template(example: str, name: str) -> None:
    (service,) = of_kind(example, "Service").values()
    template = of_kind(example, "LeaderWorkerSet")[name]["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    own = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
    assert service["spec"]["selector"] == {**template["metadata"]["labels"], **own}


@pytest.mark.long
@pytest.mark.kubectl
@EXAMPLES
async def test_the_commands_do_what_the_readme_says(reader: Reader, example: str, name: str) -> None:
    scripts, made = sections(example), f"{name}-canary"
    assert [*scripts] == [
        "Start",
        "Release a new version",
        "Approve",
        "Release the next one",
        "Abort",
        "Clean up",
    ]
    await reader.run(scripts["Start"])
    before = reader.leaders(name)
    assert (len(before), set(reader.tags(name))) == (4, {"1.27"})
    await reader.run(scripts["Release a new version"])
    # Where groups are exchanged the last one has lost its requests, and may be gone by now.
    gives = {(f"{name}-3", before[f"{name}-3"])} if example == "shift" else set()
    assert before.items() - reader.leaders(name).items() <= gives
    assert reader.tags(made) == ["1.28"]
    await reader.run(scripts["Approve"])
    assert (reader.tags(name), reader.tags(made)) == ([], ["1.28"] * 4)
    assert replicas(reader) == {name: 0, made: 4}
    await reader.run(scripts["Release the next one"])
    assert (reader.tags(name), replicas(reader)) == (["1.29"] * 4, {name: 4})
    before = reader.leaders(name)
    await reader.run(scripts["Abort"])
    assert (reader.leaders(name), replicas(reader)) == (before, {name: 4})
    await reader.run(scripts["Clean up"])
    await reader.nothing_left()
