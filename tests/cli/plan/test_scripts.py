"""What scripts will write is shown by running them, or one line says why not; what they cannot do is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.main import program
from rollout_lws.cli.plan import scripted
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.cli import custom
from tests.cli.conftest import World
from tests.cli.states import HEALTHY

Object = dict[str, Any]
REF = {"apiVersion": "mesh.example.com/v1", "kind": "MeshRoute", "name": "llama"}
#: What the script writes for a share of 20%.
WRITTEN = [
    {
        **REF,
        "share": "20%",
        "writes": [
            {"path": "spec.destinations[0].weight", "value": 80},
            {"path": "spec.destinations[1]", "value": {"service": "llama-api-canary", "weight": 20}},
        ],
    }
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def plan(world: World, *arguments: str) -> Object:
    result = world.run("plan", *arguments, "-o", "json")
    told: Object = json.loads(result.stdout)
    assert result.exit_code == (0 if told["possible"] else 1)
    return told


def offline(*objects: Object, output: str = "json") -> str:
    text = yaml.safe_dump_all(objects)
    return CliRunner().invoke(program, ["plan", "-f", "-", "--offline", "-o", output], input=text).stdout


def files(world: World) -> list[Object]:
    """All that a plan without a cluster takes."""
    return [manifests.workload(), custom.service(), custom.rollout(world), custom.ROUTE, custom.config_map()]


def cautions(told: Object) -> list[str]:
    return [each for each in told["cautions"] if each.startswith("what scripts write")]


def test_of_what_the_cluster_has_the_plan_shows_each_value(world: World) -> None:
    custom.given(world)
    world.tell(**HEALTHY)
    told = plan(world, "llama")
    assert (told["scripts"], told["refusals"], cautions(told)) == (WRITTEN, [], [])
    assert "MeshRoute" in [each["kind"] for each in told["writes"]]


def test_files_are_laid_over_what_the_cluster_has(world: World, tmp_path: Path) -> None:
    """With the ConfigMap that the controller reads, the object, and the definition of its kind."""
    custom.given(world, "definition", "route", "scripts")
    world.tell(**HEALTHY)
    assert not plan(world, "llama")["possible"]
    given = tmp_path / "given.yaml"
    given.write_text(yaml.safe_dump_all([custom.definition(), custom.ROUTE, custom.config_map()]))
    assert plan(world, "llama", "-f", str(given))["scripts"] == WRITTEN


def test_a_config_map_of_another_name_is_none_of_the_controllers(world: World, tmp_path: Path) -> None:
    custom.given(world, "scripts")
    world.tell(**HEALTHY)
    other = custom.config_map()
    given = tmp_path / "given.yaml"
    given.write_text(yaml.safe_dump({**other, "metadata": {**other["metadata"], "name": "other"}}))
    (refusal,) = {*plan(world, "llama", "-f", str(given))["refusals"]}
    assert refusal.startswith("no script says how MeshRoute llama shares requests: add one as")


@pytest.mark.parametrize(
    ("without", "told"),
    [
        (("definition", "route"), "this cluster does not serve mesh.example.com/v1 MeshRoute"),
        (("route",), "MeshRoute llama does not exist in namespace default"),
        (("scripts",), "no script says how MeshRoute llama shares requests"),
    ],
)
def test_what_the_controller_would_refuse_is_refused(world: World, without: tuple[str, ...], told: str) -> None:
    custom.given(world, *without)
    world.tell(**HEALTHY)
    refusals = plan(world, "llama")["refusals"]
    assert refusals and all(each.startswith(told) for each in refusals)


def test_a_script_that_fails_is_refused_with_its_line(world: World) -> None:
    custom.given(world, scripts=custom.config_map(**{custom.KEY: "\nreturn obj.nothing.there"}))
    world.tell(**HEALTHY)
    (refusal,) = {*plan(world, "llama")["refusals"]}
    assert refusal.startswith(
        "script lua.traffic.routing.MeshRoute.mesh.example.com of ConfigMap rollout-lws-system/rollout-lws-scripts,"
        " run for MeshRoute llama: line 2: "
    )


def test_scripts_that_may_not_be_read_are_one_line(world: World) -> None:
    custom.given(world)
    world.tell(**HEALTHY)
    custom.refuse(world, "get", "configmaps", told="no")
    told = plan(world, "llama")
    assert told["possible"] and told["scripts"] == []
    (caution,) = cautions(told)
    assert caution.startswith(
        "what scripts write is not shown: ConfigMap rollout-lws-system/rollout-lws-scripts may not be read: no"
    )


def test_without_the_library_nothing_is_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripted, "find_spec", lambda name: None if name == "lupa" else util.find_spec(name))
    custom.given(world)
    world.tell(**HEALTHY)
    told = plan(world, "llama")
    assert told["possible"] and told["scripts"] == []
    assert cautions(told) == [
        "what scripts write is not shown: the library that runs Lua is not installed here: pip install"
        " 'rollout-lws[lua]'"
    ]


def test_other_rollouts_ask_for_no_controller(world: World) -> None:
    """Most users may not list Deployments of other namespaces, and need not."""
    world.do(lambda: world.server.create(LEADER_WORKER_SETS, manifests.workload()))
    world.do(
        lambda: world.server.create(world.rollouts, manifests.rollout(world.rollouts.api_version, {"name": "llama"}))
    )
    asked: list[bool] = []
    world.on_request("list", "deployments", lambda: asked.append(True))
    assert plan(world, "llama")["scripts"] == []
    assert asked == []


def test_files_alone_show_each_value(world: World) -> None:
    told = json.loads(offline(*files(world)))
    assert (told["namespace"], told["scripts"], cautions(told)) == ("default", WRITTEN, [])
    lines = offline(*files(world), output="text").splitlines()
    at = lines.index("By scripts")
    assert lines[at + 1 : at + 3] == [
        "  MeshRoute llama   20%   spec.destinations[0].weight   80",
        '                          spec.destinations[1]          {"service": "llama-api-canary", "weight": 20}',
    ]


def test_what_a_script_takes_out_is_told(world: World) -> None:
    text = "obj.data.spec.timeout = nil\nreturn obj.data"
    spec = {**custom.ROUTE["spec"], "timeout": "5s"}
    given = [*files(world)[:3], {**custom.ROUTE, "spec": spec}, custom.config_map(**{custom.KEY: text})]
    assert json.loads(offline(*given))["scripts"] == [{**REF, "share": "20%", "writes": [{"path": "spec.timeout"}]}]
    assert "spec.timeout   taken out" in offline(*given, output="text")


@pytest.mark.parametrize(
    ("left_out", "told"),
    [
        ("ConfigMap", "what scripts write is not shown: no file has the ConfigMap with them"),
        ("MeshRoute", "what scripts write in MeshRoute llama is not shown: no file has it"),
    ],
)
def test_what_files_lack_is_one_line(world: World, left_out: str, told: str) -> None:
    said = json.loads(offline(*(each for each in files(world) if each["kind"] != left_out)))
    assert said["possible"] and said["scripts"] == []
    assert cautions(said) == [told]


def test_other_objects_are_judged_beside_those_that_scripts_change(world: World) -> None:
    """A Service that selects nothing is no less a refusal."""
    broken = custom.service()
    broken["spec"]["selector"] = {"app": "other"}
    given = [each if each["kind"] != "Service" else broken for each in files(world)]
    assert any("Service llama-api selects no leader" in each for each in json.loads(offline(*given))["refusals"])
