"""Every command of the examples' READMEs, run in order with real kubectl against a cluster and a controller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.examples.examples import FOLDER, NAMES, manifests
from tests.reader import Reader, reading

OLD = {
    "quickstart": "1.27",
    "gateway": "1.27",
    "inference-pool": "1.27",
    "ingress": "1.27",
    "vllm": "v0.27.1",
    "sglang": "v0.5.17",
}
NEW = {
    "quickstart": ("1.28", "1.29"),
    "gateway": ("1.28", "1.28"),
    "inference-pool": ("1.28", "1.28"),
    "ingress": ("1.28", "1.28"),
    "vllm": ("v0.28.0", "v0.28.0"),
    "sglang": ("v0.5.18", "v0.5.18"),
}


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with reading(tmp_path) as someone:
        yield someone


def sections(name: str) -> dict[str, str]:
    """The bash blocks of a README by the heading under which they stand."""
    found: dict[str, str] = {}
    heading, inside = "", False
    for line in (FOLDER / name / "README.md").read_text().splitlines():
        if line.startswith("## ") and not inside:
            heading = line.removeprefix("## ")
        elif line == "```bash":
            inside = True
        elif line == "```":
            inside = False
        elif inside:
            found[heading] = found.get(heading, "") + line + "\n"
    return found


@pytest.mark.kubectl
@pytest.mark.parametrize("name", NAMES)
async def test_the_commands_of_a_readme_do_what_it_says(reader: Reader, name: str) -> None:
    scripts, workload = sections(name), manifests(name)["LeaderWorkerSet"]["metadata"]["name"]
    assert list(scripts) == ["Start", "Release a new version", "Approve", "Abort", "Clean up"]
    await reader.run(scripts["Start"])
    before = reader.leaders(workload)
    assert set(reader.tags(workload)) == {OLD[name]}
    await reader.run(scripts["Release a new version"])
    first, last = NEW[name]
    assert reader.leaders(workload) == before
    assert reader.tags(f"{workload}-canary") == [first]
    await reader.run(scripts["Approve"])
    after = reader.leaders(workload)
    assert reader.tags(workload) == [last] * len(before)
    assert reader.tags(f"{workload}-canary") == []
    await reader.run(scripts["Abort"])
    assert reader.leaders(workload) == after
    await reader.run(scripts["Clean up"])
    await reader.nothing_left()
