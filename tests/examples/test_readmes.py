"""Every command of the examples' READMEs, run in order with real kubectl against a cluster and a controller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rollout_lws.capacity import known
from tests.examples.examples import FOLDER, ROUTED, manifests, mostly_long, style
from tests.reader import Reader, reading

OLD = {
    "quickstart": "1.27",
    **dict.fromkeys(ROUTED, "1.27"),
    "grpc": "2.53",
    "vllm": "v0.27.1",
    "sglang": "v0.5.17",
}
NEW = {
    "quickstart": ("1.28", "1.29"),
    **dict.fromkeys(ROUTED, ("1.28", "1.28")),
    "grpc": ("2.55", "2.55"),
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


def _but(leaders: dict[str, tuple[str, str]], names: set[str]) -> dict[str, tuple[str, str]]:
    return {name: told for name, told in leaders.items() if name not in names}


@pytest.mark.kubectl
@pytest.mark.parametrize("name", mostly_long("quickstart"))
async def test_the_commands_of_a_readme_do_what_it_says(reader: Reader, name: str) -> None:
    scripts, workload = sections(name), manifests(name)["LeaderWorkerSet"]["metadata"]["name"]
    assert list(scripts) == ["Start", "Release a new version", "Approve", "Abort", "Clean up"]
    await reader.run(scripts["Start"])
    before = reader.leaders(workload)
    assert set(reader.tags(workload)) == {OLD[name]}
    await reader.run(scripts["Release a new version"])
    first, last = NEW[name]
    # In place the last group is the first to be renewed, and by the abort it comes back.
    renewed = {f"{workload}-{len(before) - 1}"} if style(name) is known.IN_PLACE else set()
    assert _but(reader.leaders(workload), renewed).items() >= _but(before, renewed).items()
    own, beside = reader.tags(workload), reader.tags(f"{workload}-canary")
    assert [tag for tag in (*own, *beside) if tag != OLD[name]] == [first]
    assert bool(beside) is not style(name).one_workload
    await reader.run(scripts["Approve"])
    after = reader.leaders(workload)
    assert reader.tags(workload) == [last] * len(before)
    assert reader.tags(f"{workload}-canary") == []
    await reader.run(scripts["Abort"])
    assert _but(reader.leaders(workload), renewed) == _but(after, renewed)
    assert reader.tags(workload) == [last] * len(before)
    await reader.run(scripts["Clean up"])
    await reader.nothing_left()
