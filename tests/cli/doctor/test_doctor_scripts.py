"""Objects that scripts change: doctor says whether kind, object and script are there, and what it cannot know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.doctor import command
from rollout_lws.errors import ApiError
from tests.cli import custom
from tests.cli.conftest import World
from tests.cli.states import HEALTHY

Object = dict[str, Any]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(command, "SECOND_LOOK", 0.0)
    made = World(tmp_path)
    yield made
    made.close()


def given(world: World, *without: str, **parts: Object) -> None:
    custom.given(world, *without, **parts)
    world.tell(**HEALTHY)


def link(world: World, name: str = "route") -> Object:
    """The link with this name, of which there has to be one."""
    links: list[Object] = json.loads(world.run("doctor", "llama", "-o", "json").stdout)["links"]
    (found,) = [each for each in links if each["name"] == name]
    return found


def test_one_that_is_there_with_its_script_is_ok(world: World) -> None:
    given(world)
    found = link(world)
    assert (found["state"], found["object"]) == ("ok", "MeshRoute/llama")
    assert found["found"] == (
        "exists, with 0% of requests to the new version; its script is in ConfigMap"
        " rollout-lws-system/rollout-lws-scripts"
    )


@pytest.mark.parametrize(
    ("without", "told"),
    [
        (("definition", "route"), "this cluster does not serve mesh.example.com/v1 MeshRoute: install its"),
        (("route",), "MeshRoute llama does not exist in namespace default: create it"),
        (
            ("scripts",),
            "no script says how MeshRoute llama shares requests: add one as"
            " lua.traffic.routing.MeshRoute.mesh.example.com to ConfigMap rollout-lws-system/rollout-lws-scripts",
        ),
    ],
)
def test_what_is_missing_breaks_the_route_before_any_release(world: World, without: tuple[str, ...], told: str) -> None:
    given(world, *without)
    found = link(world)
    assert (found["state"], found["object"]) == ("broken", "MeshRoute/llama")
    assert found["found"].startswith(told)


def test_a_controller_that_runs_no_scripts_refuses_the_rollout(world: World) -> None:
    given(world, controller=custom.deployment(""))
    found = link(world, "rollout")
    assert found["state"] == "broken"
    assert "this controller runs no scripts: start it with --custom-network-scripts" in found["found"]


def test_a_script_for_another_kind_is_none_for_this_one(world: World) -> None:
    given(world, scripts=custom.config_map(**{"lua.traffic.routing.MeshRoute.example.com": custom.SCRIPT}))
    assert link(world)["found"].startswith("no script says how MeshRoute llama shares requests")


def test_without_a_deployment_the_scripts_are_those_of_the_documented_place(world: World) -> None:
    given(world, "controller")
    assert link(world)["found"].endswith("its script is in ConfigMap rollout-lws-system/rollout-lws-scripts")


def test_a_config_map_that_may_not_be_read_is_told(world: World) -> None:
    given(world)
    custom.refuse(world, "get", "configmaps", told='configmaps is forbidden: User "ann"')
    found = link(world)
    assert found["state"] == "unknown"
    assert found["found"].startswith(
        "exists, with 0% of requests to the new version; whether the controller has a script for it is not known here:"
        ' ConfigMap rollout-lws-system/rollout-lws-scripts may not be read: configmaps is forbidden: User "ann"'
    )


def test_a_deployment_that_may_not_be_seen_leaves_the_scripts_unknown(world: World) -> None:
    given(world, "scripts")
    custom.refuse(world, "list", "deployments", told='deployments is forbidden: User "ann"')
    found = link(world)
    assert found["state"] == "unknown"
    assert 'is said by the controller\'s Deployment: deployments is forbidden: User "ann"' in found["found"]


def test_what_the_controller_says_of_scripts_is_told_where_they_cannot_be_read(world: World) -> None:
    given(world)
    custom.refuse(world, "get", "configmaps")
    message = (
        "script lua.traffic.routing.MeshRoute.mesh.example.com of ConfigMap a/b, run for MeshRoute llama: line 1: no"
    )
    world.tell(
        **HEALTHY,
        message=message,
        verdict={"condition": "Stalled", "reason": "RouteNotUsable", "summary": "Stalled", "goesOn": False},
    )
    found = link(world)
    assert (found["state"], found["found"]) == ("broken", message)


def test_objects_that_may_not_be_listed_are_not_judged(world: World) -> None:
    given(world)
    custom.refuse(world, "list", "meshroutes", told='meshroutes.mesh.example.com is forbidden: User "ann"')
    found = link(world)
    assert found["state"] == "unknown"
    assert found["found"].startswith("meshroutes.mesh.example.com may not be read: ")


def test_a_kind_whose_objects_are_in_no_namespace_is_told(world: World) -> None:
    given(world, "route", definition=custom.definition(namespaced=False))
    found = link(world)
    assert found["state"] == "unknown"
    assert found["found"].startswith("objects of mesh.example.com/v1 MeshRoute are in no namespace")


def test_a_rollout_that_names_no_such_object_asks_for_no_controller(world: World) -> None:
    """Most users may not list Deployments of other namespaces, and need not."""
    world.release(**HEALTHY)
    asked: list[bool] = []
    world.on_request("list", "deployments", lambda: asked.append(True))
    world.run("doctor", "llama")
    assert asked == []


def reviewed(monkeypatch: pytest.MonkeyPatch, *refused: tuple[str, str]) -> list[Object]:
    """Answers questions for rights: all are given but these verbs on these resources. Returns what is asked."""
    asked: list[Object] = []

    def create(_: Transport, path: str, obj: Object) -> Object:
        assert (path, obj["kind"]) == ("/apis/authorization.k8s.io/v1/subjectaccessreviews", "SubjectAccessReview")
        asked.append(obj["spec"])
        of = obj["spec"]["resourceAttributes"]
        return {"status": {"allowed": (of["verb"], of["resource"]) not in refused}}

    monkeypatch.setattr(Transport, "create", create)
    return asked


def test_rights_that_the_controller_lacks_break_the_route(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = reviewed(monkeypatch, ("patch", "meshroutes"), ("watch", "configmaps"))
    given(world)
    found = link(world)
    account = "system:serviceaccount:rollout-lws-system:rollout-lws-controller"
    assert (found["state"], found["found"]) == (
        "broken",
        f"the controller ({account}) may not patch meshroutes.mesh.example.com in namespace default or watch"
        " configmaps rollout-lws-scripts in namespace rollout-lws-system",
    )
    assert found["next"] == [f"kubectl auth can-i --list --as {account}"]
    assert {each["user"] for each in asked} == {account}
    assert {each["resourceAttributes"]["name"] for each in asked} == {"", "rollout-lws-scripts"}


def test_a_controller_with_all_rights_is_fine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = reviewed(monkeypatch)
    given(world)
    assert link(world)["state"] == "ok"
    verbs = [(each["resourceAttributes"]["verb"], each["resourceAttributes"]["resource"]) for each in asked]
    kinds = [(verb, "meshroutes") for verb in ("list", "watch", "patch")]
    assert verbs[:5] == [*kinds, ("list", "configmaps"), ("watch", "configmaps")]


def test_rights_that_the_user_may_not_ask_for_are_not_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def create(*_: object) -> Object:
        raise ApiError(403, "Forbidden", "subjectaccessreviews is forbidden")

    monkeypatch.setattr(Transport, "create", create)
    given(world)
    assert link(world)["state"] == "ok"
