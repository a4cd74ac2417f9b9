"""The example of a script: its README's commands, and what the script makes of routes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from rollout_lws.api import Rollout
from rollout_lws.api.validation import problems
from rollout_lws.cli.main import program
from rollout_lws.cli.manifests import read_manifests
from rollout_lws.objects.resources import Resource
from rollout_lws.scripting.runner import Runner
from rollout_lws.traffic.custom.scripts import Failure, Output, key_of
from rollout_lws.traffic.registry import named_in
from tests.examples.examples import BY_SCRIPT, FOLDER, manifests
from tests.examples.test_readmes import sections
from tests.reader import Reader, reading

pytestmark = pytest.mark.rare(3)

Object = dict[str, Any]
HTTP_PROXIES = Resource("projectcontour.io", "v1", "HTTPProxy", "httpproxies")
NAME = BY_SCRIPT
FOLDERS = [str(FOLDER / NAME), str(FOLDER / NAME / "controller")]
_STABLE = {"name": "summarizer-api", "port": 80}


def text() -> str:
    """The script, by the key that the Rollout's kind has."""
    rollout = manifests(NAME)["Rollout"]
    (ref,) = named_in(rollout["spec"]["strategy"]["canary"]["trafficRoutings"][0]).custom
    (scripts,) = read_manifests([str(FOLDER / NAME / "controller")])
    found: str = scripts["data"][key_of(ref)]
    return found


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with reading(tmp_path) as someone:
        yield someone


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.close()


def routes(reader: Reader) -> list[Object]:
    found: list[Object] = reader.server.get(HTTP_PROXIES, "default", "summarizer")["spec"]["routes"]
    return found


def shared(runner: Runner, services: list[Object], weight: int, **more: Any) -> list[Object] | str:
    """The services of a route for this weight of the new version, or why there are none."""
    data = {"spec": {"routes": [{"services": services}]}}
    said = {"canaryWeight": weight, "stableWeight": 100 - weight, **more}
    said |= {"stableService": "summarizer-api", "canaryService": "summarizer-api-canary"}
    outcome = runner.run(text(), {"data": data, **said})
    if isinstance(outcome, Failure):
        return outcome.message
    assert isinstance(outcome, Output)
    made: list[Object] = msgspec.json.decode(outcome.body)["spec"]["routes"][0]["services"]
    return made


def test_its_rollout_can_be_released_as_it_is() -> None:
    assert problems(Rollout.model_validate(manifests(NAME)["Rollout"]).spec) == ()


def test_nothing_is_found_wrong_with_its_files() -> None:
    result = CliRunner().invoke(program, ["lint", *FOLDERS, "--strict"])
    assert (result.exit_code, result.stdout) == (0, ""), result.output


def test_files_alone_show_the_weights_that_the_readme_tells() -> None:
    result = CliRunner().invoke(program, ["plan", "-f", FOLDERS[0], "-f", FOLDERS[1], "--offline", "-o", "json"])
    told = json.loads(result.stdout)
    assert told["possible"]
    at = "spec.routes[0].services[0].weight"
    weights = {each["share"]: {one["path"]: one.get("value") for one in each["writes"]}[at] for each in told["scripts"]}
    assert weights == {"10%": 90, "30%": 70}


@pytest.mark.kubectl
async def test_the_commands_of_its_readme_do_what_it_says(reader: Reader) -> None:
    scripts = sections(NAME)
    assert list(scripts) == ["Start", "Release a new version", "Approve", "Abort", "Clean up"]
    assert "Nothing is broken." in await reader.run(scripts["Start"])
    before = routes(reader)
    await reader.run(scripts["Release a new version"])
    canary = {**_STABLE, "name": "summarizer-api-canary"}
    for route in routes(reader):
        assert route["services"] == [{**_STABLE, "weight": 90}, {**canary, "weight": 10}]
    assert reader.tags("summarizer-canary") == ["1.28"]
    await reader.run(scripts["Approve"])
    assert routes(reader) == before
    assert reader.tags("summarizer") == ["1.28"] * 4
    await reader.run(scripts["Abort"])
    assert routes(reader) == before
    assert reader.tags("summarizer") == ["1.28"] * 4
    await reader.run(scripts["Clean up"])
    await reader.nothing_left()


@pytest.mark.parametrize(
    ("services", "weights"),
    [
        ([_STABLE], {"summarizer-api": 75, "summarizer-api-canary": 25}),
        ([{"name": "other", "port": 80}], {"other": None}),
        (
            [{**_STABLE, "weight": 199}, {"name": "trial", "port": 80, "weight": 1}],
            {"summarizer-api": 199 * 75, "summarizer-api-canary": 199 * 25, "trial": 100},
        ),
        ([{**_STABLE, "weight": 0}], {"summarizer-api": 0, "summarizer-api-canary": 0}),
    ],
    ids=["alone", "another one", "beside another one", "without requests"],
)
def test_its_script_gives_exact_shares_and_changes_no_others(
    runner: Runner, services: list[Object], weights: dict[str, int | None]
) -> None:
    made = shared(runner, services, 25)
    assert isinstance(made, list), made
    assert {each["name"]: each.get("weight") for each in made} == weights
    assert {each["port"] for each in made} == {80}


def test_its_script_says_what_it_cannot_do(runner: Runner) -> None:
    beside = shared(runner, [_STABLE, {"name": "trial", "port": 80}], 25)
    assert isinstance(beside, str)
    assert "service summarizer-api has no weight beside other services: give each of them one" in beside
    matches = shared(runner, [_STABLE], -1, matches=[{"headers": [{"name": "x-canary", "value": "yes"}]}])
    assert isinstance(matches, str)
    assert "this script shares requests by weights alone: leave matches out of the step" in matches
