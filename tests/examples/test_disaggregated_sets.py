"""The example of two DisaggregatedSets: its manifests are as their comments say, its commands do what is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rollout_lws.objects.resources import DISAGGREGATED_SETS, HTTP_ROUTES, LEADER_WORKER_SETS
from tests.examples.examples import objects
from tests.examples.test_pair import of_kind, weights
from tests.examples.test_readmes import sections
from tests.reader import Reader, reading

EXAMPLE = "disaggregated-sets"


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with reading(tmp_path) as someone:
        yield someone


def test_both_sides_are_alike_and_the_first_one_has_all_weight() -> None:
    blue, green = of_kind(EXAMPLE, DISAGGREGATED_SETS.kind).values()
    assert blue["spec"] == green["spec"]
    (rule,) = of_kind(EXAMPLE, HTTP_ROUTES.kind)["helper"]["spec"]["rules"]
    assert [(each["name"], each["weight"]) for each in rule["backendRefs"]] == [
        ("helper-blue-api", 100),
        ("helper-green-api", 0),
    ]


def test_no_manifest_names_a_leader_worker_set_whose_name_a_version_changes() -> None:
    assert {each["kind"] for each in objects(EXAMPLE)} == {"DisaggregatedSet", "Gateway", "HTTPRoute", "Service"}
    selectors = [each["spec"]["selector"] for each in of_kind(EXAMPLE, "Service").values()]
    assert all("leaderworkerset.sigs.k8s.io/name" not in each for each in selectors)


def _sets(reader: Reader) -> dict[str, int]:
    return {each["metadata"]["name"]: each["spec"]["replicas"] for each in reader.server.list(LEADER_WORKER_SETS)}


@pytest.mark.long
@pytest.mark.kubectl
async def test_the_commands_of_the_readme_do_what_it_says(reader: Reader) -> None:
    scripts = sections(EXAMPLE)
    assert list(scripts) == ["Start", "Release a new version", "Abort", "Approve", "Go back", "Clean up"]
    shell = scripts["Start"].splitlines()[0] + "\n"
    await reader.run(scripts["Start"])
    blue = {name for name in _sets(reader) if "blue" in name}
    assert (len(_sets(reader)), len(blue), weights(reader)) == (4, 2, [100, 0])
    before = {name: reader.leaders(name) for name in blue}
    await reader.run(shell + scripts["Release a new version"])
    assert weights(reader) == [90, 10]
    (decode,) = (name for name in _sets(reader) if name.startswith("helper-green") and name.endswith("decode"))
    assert reader.tags(decode) == ["1.28"] * 2
    await reader.run(scripts["Abort"])
    assert weights(reader) == [100, 0] and reader.tags(decode) == ["1.28"] * 2
    await reader.run(scripts["Approve"])
    assert weights(reader) == [0, 100]
    await reader.run(scripts["Go back"])
    assert weights(reader) == [100, 0]
    assert {name: reader.leaders(name) for name in blue} == before
    await reader.run(scripts["Clean up"])
    await reader.nothing_left()
