"""The example of a pair: its manifests say what its comments do, and the commands of its README do what that says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.api import Rollout
from rollout_lws.api.validation import problems
from rollout_lws.objects.resources import HTTP_ROUTES, LWS_NAME
from tests.examples.examples import objects
from tests.examples.test_readmes import sections
from tests.reader import Reader, reading

BLUE, GREEN = "helper-blue", "helper-green"


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with reading(tmp_path) as someone:
        yield someone


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in objects("pair") if each["kind"] == kind}


def weights(reader: Reader) -> list[int]:
    (route,) = reader.server.list(HTTP_ROUTES, "default")
    return [each["weight"] for each in route["spec"]["rules"][0]["backendRefs"]]


def test_the_rollout_names_both_workloads_and_a_service_of_each() -> None:
    spec = Rollout.model_validate(of_kind("Rollout")["helper"]).spec
    assert problems(spec) == ()
    assert spec.counterpart_ref is not None
    assert [spec.workload_ref.name, spec.counterpart_ref.name] == [*of_kind("LeaderWorkerSet")] == [BLUE, GREEN]
    (routing,) = spec.strategy.canary.traffic_routings  # type: ignore[union-attr]
    selected = {name: each["spec"]["selector"][LWS_NAME] for name, each in of_kind("Service").items()}
    assert selected == {routing.service: BLUE, routing.counterpart_service: GREEN}


def test_both_sides_are_alike_and_the_first_one_has_all_weight() -> None:
    blue, green = of_kind("LeaderWorkerSet").values()
    assert blue["spec"] == green["spec"]
    (rule,) = of_kind("HTTPRoute")["helper"]["spec"]["rules"]
    assert [(each["name"], each["weight"]) for each in rule["backendRefs"]] == [
        (f"{BLUE}-api", 100),
        (f"{GREEN}-api", 0),
    ]


@pytest.mark.long
@pytest.mark.kubectl
async def test_the_commands_of_the_readme_do_what_it_says(reader: Reader) -> None:
    scripts = sections("pair")
    assert list(scripts) == ["Start", "Release a new version", "Approve", "Go back", "Abort", "Clean up"]
    await reader.run(scripts["Start"])
    blue = reader.leaders(BLUE)
    assert {*reader.tags(BLUE), *reader.tags(GREEN)} == {"1.27"}
    assert weights(reader) == [100, 0]
    await reader.run(scripts["Release a new version"])
    assert weights(reader) == [90, 10]
    assert set(reader.tags(GREEN)) == {"1.28"}
    await reader.run(scripts["Approve"])
    green = reader.leaders(GREEN)
    assert weights(reader) == [0, 100]
    await reader.run(scripts["Go back"])
    assert weights(reader) == [100, 0]
    assert (reader.leaders(BLUE), reader.leaders(GREEN)) == (blue, green)
    await reader.run(scripts["Abort"])
    assert weights(reader) == [100, 0]
    assert reader.leaders(BLUE) == blue
    await reader.run(scripts["Clean up"])
    await reader.nothing_left()
