"""The examples of pairs: their manifests are as their comments say, the commands of their READMEs do what is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.api import Rollout
from rollout_lws.api.rollout_spec import Shift
from rollout_lws.api.validation import problems
from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.objects.resources import HTTP_ROUTES, LEADER_WORKER_SETS, LWS_NAME
from tests.examples.examples import objects
from tests.examples.test_readmes import sections
from tests.reader import Reader, reading

BLUE, GREEN = "helper-blue", "helper-green"
#: The pairs that their releases scale, the second one with hardly more groups than at rest; and that of an owner.
SCALED, SHIFTED, ROUTE_ONLY = PAIRS = ("pair", "pair-shift", "pair-route-only")


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with reading(tmp_path) as someone:
        yield someone


def of_kind(name: str, kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in objects(name) if each["kind"] == kind}


def weights(reader: Reader) -> list[int]:
    (route,) = reader.server.list(HTTP_ROUTES, "default")
    return [each["weight"] for each in route["spec"]["rules"][0]["backendRefs"]]


def replicas(reader: Reader) -> dict[str, int]:
    return {each["metadata"]["name"]: each["spec"]["replicas"] for each in reader.server.list(LEADER_WORKER_SETS)}


@pytest.mark.parametrize("name", PAIRS)
def test_the_rollout_names_both_workloads_and_a_service_of_each(name: str) -> None:
    spec = Rollout.model_validate(of_kind(name, "Rollout")["helper"]).spec
    assert problems(spec) == ()
    assert spec.counterpart_ref is not None
    assert [spec.workload_ref.name, spec.counterpart_ref.name] == [*of_kind(name, "LeaderWorkerSet")] == [BLUE, GREEN]
    assert spec.scales_sides is (name != ROUTE_ONLY)
    (routing,) = spec.strategy.canary.traffic_routings  # type: ignore[union-attr]
    selected = {service: each["spec"]["selector"][LWS_NAME] for service, each in of_kind(name, "Service").items()}
    assert selected == {routing.service: BLUE, routing.counterpart_service: GREEN}


def test_groups_that_go_can_lose_a_label_of_the_template() -> None:
    lose = {}
    for name, service in of_kind(SHIFTED, "Service").items():
        lose[name] = {key for key in service["spec"]["selector"] if not key.startswith("leaderworkerset.sigs.k8s.io/")}
    assert lose == {f"{BLUE}-api": {"app"}, f"{GREEN}-api": {"app"}}


def test_the_margin_of_a_shift_is_that_of_its_comments() -> None:
    strategy = Rollout.model_validate(of_kind(SHIFTED, "Rollout")["helper"]).spec.strategy.canary
    assert strategy is not None and strategy.shift == Shift()
    assert [wanted_groups(strategy, step, 4) for step in (1, 2)] == [1, 3]


@pytest.mark.parametrize("name", PAIRS)
def test_both_sides_are_alike_and_the_first_one_has_all_weight(name: str) -> None:
    blue, green = of_kind(name, "LeaderWorkerSet").values()
    assert blue["spec"] == green["spec"]
    # What a release scales has no number in its manifest.
    assert ("replicas" in blue["spec"]) is (name == ROUTE_ONLY)
    (rule,) = of_kind(name, "HTTPRoute")["helper"]["spec"]["rules"]
    assert [(each["name"], each["weight"]) for each in rule["backendRefs"]] == [
        (f"{BLUE}-api", 100),
        (f"{GREEN}-api", 0),
    ]


@pytest.mark.long
@pytest.mark.kubectl
async def test_the_commands_of_the_scaled_pair_do_what_its_readme_says(reader: Reader) -> None:
    scripts = sections(SCALED)
    assert list(scripts) == ["Start", "Release a new version", "Approve", "Scale", "Go back", "Abort", "Clean up"]
    await reader.run(scripts["Start"])
    blue = reader.leaders(BLUE)
    assert (len(blue), set(reader.tags(BLUE)), reader.tags(GREEN)) == (4, {"1.27"}, [])
    assert weights(reader) == [100, 0]
    await reader.run(scripts["Release a new version"])
    assert (reader.leaders(BLUE), reader.tags(GREEN)) == (blue, ["1.28"])
    assert weights(reader) == [90, 10]
    await reader.run(scripts["Approve"])
    assert (reader.tags(BLUE), reader.tags(GREEN)) == ([], ["1.28"] * 4)
    assert weights(reader) == [0, 100]
    await reader.run(scripts["Scale"])
    assert replicas(reader) == {BLUE: 0, GREEN: 5}
    await reader.run(scripts["Go back"])
    assert (reader.tags(BLUE), reader.tags(GREEN)) == (["1.27"] * 5, [])
    assert weights(reader) == [100, 0]
    blue = reader.leaders(BLUE)
    await reader.run(scripts["Abort"])
    assert (reader.leaders(BLUE), replicas(reader)) == (blue, {BLUE: 5, GREEN: 0})
    assert weights(reader) == [100, 0]
    await reader.run(scripts["Clean up"])
    await reader.nothing_left()


@pytest.mark.long
@pytest.mark.kubectl
async def test_the_commands_of_the_pair_that_shifts_do_what_its_readme_says(reader: Reader) -> None:
    scripts = sections(SHIFTED)
    assert list(scripts) == ["Start", "Release a new version", "Approve", "Abort", "Go back", "Clean up"]
    await reader.run(scripts["Start"])
    blue = reader.leaders(BLUE)
    assert (len(blue), set(reader.tags(BLUE)), reader.tags(GREEN)) == (4, {"1.27"}, [])
    await reader.run(scripts["Release a new version"])
    assert (reader.tags(GREEN), replicas(reader)) == (["1.28"], {BLUE: 3, GREEN: 1})
    assert reader.leaders(BLUE).items() < blue.items()
    assert weights(reader) == [75, 25]
    await reader.run(scripts["Approve"])
    assert (reader.tags(BLUE), reader.tags(GREEN)) == ([], ["1.28"] * 4)
    assert weights(reader) == [0, 100]
    green = reader.leaders(GREEN)
    await reader.run(scripts["Abort"])
    assert (reader.tags(BLUE), replicas(reader)) == ([], {BLUE: 0, GREEN: 4})
    assert weights(reader) == [0, 100]
    assert len(reader.leaders(GREEN).items() & green.items()) == 3
    await reader.run(scripts["Go back"])
    assert (reader.tags(BLUE), reader.tags(GREEN)) == (["1.29"] * 4, [])
    assert weights(reader) == [100, 0]
    await reader.run(scripts["Clean up"])
    await reader.nothing_left()


@pytest.mark.long
@pytest.mark.kubectl
async def test_the_commands_of_the_other_pair_do_what_its_readme_says(reader: Reader) -> None:
    scripts = sections(ROUTE_ONLY)
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


@pytest.mark.long
@pytest.mark.kubectl
async def test_the_manifests_alone_make_a_pair_too(reader: Reader) -> None:
    """Without the command that takes the group which LWS makes by default; and they may be applied again."""
    await reader.run(f"""
        kubectl apply -f examples/{SCALED}/
        kubectl wait rollout/helper --for=condition=Ready --timeout=1m
        kubectl wait lws/{GREEN} --for=jsonpath='{{.spec.replicas}}'=0 --timeout=1m
        kubectl wait lws/{BLUE} --for=jsonpath='{{.status.readyReplicas}}'=4 --timeout=1m
        kubectl apply -f examples/{SCALED}/
    """)
    assert replicas(reader) == {BLUE: 4, GREEN: 0}
