"""history, undo, restart, set image and release-hold over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollout_lws.api.resources import keys
from rollout_lws.cli.demo import manifests
from rollout_lws.cli.releases import version_hash
from rollout_lws.cli.versions import containers
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS
from rollout_lws.workload.revisions import history_body
from rollout_lws.workload.template import version_of_members
from tests.cli.conftest import World
from tests.cli.states import HASH, HEALTHY, LOADING

KEYS = keys()


def store(world: World, number: int, tag: str) -> str:
    """A version with images of this tag in the history; the answer is its hash."""
    lws = manifests.workload()
    for _, each in containers(lws["spec"]):
        each["image"] = f"vllm:{tag}"
    version = version_of_members({"leaderWorkerTemplate": lws["spec"]["leaderWorkerTemplate"]})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}
    body = history_body(
        version, KEYS, rollout="llama", namespace="default", owner=owner, number=number, revision=f"lws-{tag}"
    )
    world.do(lambda: world.server.create(CONTROLLER_REVISIONS, body))
    return version.template_hash


def lws(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.do(lambda: world.server.get(LEADER_WORKER_SETS, "default", "llama"))
    return found


def images(world: World) -> set[str]:
    return {each["image"] for _, each in containers(lws(world)["spec"])}


def keep(world: World) -> None:
    mark = {"metadata": {"labels": {"argocd.argoproj.io/instance": "chat"}}}
    world.do(lambda: world.server.patch(LEADER_WORKER_SETS, "default", "llama", mark))


def test_the_history_is_listed_newest_first_with_its_roles(world: World) -> None:
    old, new = store(world, 1, "v1"), store(world, 2, "v2")
    world.release(**LOADING | {"stable": {"templateHash": old}, "observedTemplateHash": new})
    header, *lines = world.run("history", "llama").stdout.splitlines()
    assert header.split()[:3] == ["REVISION", "ROLE", "LWS"]
    assert [line.split()[:4] for line in lines] == [["2", "new", "lws-v2", new], ["1", "stable", "lws-v1", old]]
    assert lines[0].endswith("vllm:v2")
    first = json.loads(world.run("history", "llama", "-o", "json").stdout)[0]
    assert (first["revision"], first["role"], first["images"]) == (2, "new", ["vllm:v2"])


def test_one_revision_is_printed_whole(world: World) -> None:
    store(world, 1, "v1")
    world.release(**HEALTHY)
    told = json.loads(world.run("history", "llama", "--revision", "1", "-o", "json").stdout)
    assert told["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] == "vllm:v1"
    assert "has stored no revision 5" in str(world.run("history", "llama", "--revision", "5").exception)


def test_undo_in_a_release_puts_the_stable_version_back(world: World) -> None:
    old = store(world, 1, "v1")
    world.release(**LOADING | {"stable": {"templateHash": old}})
    result = world.run("undo", "llama")
    assert result.stdout == "leaderworkerset/llama has revision 1 again (vllm:v1): the release goes back to it\n"
    assert version_hash(lws(world)) == old


def test_undo_at_rest_releases_the_version_before(world: World) -> None:
    store(world, 1, "v1")
    world.release(**HEALTHY)
    assert world.run("undo", "llama").stdout.endswith("(vllm:v1): it is released in steps\n")
    assert images(world) == {"vllm:v1"}


def test_set_image_tells_what_it_changes_and_changes_nothing_twice(world: World) -> None:
    world.release(**HEALTHY)
    (before,) = images(world)
    result = world.run("set", "image", "llama", "*=vllm:v9")
    assert f" {before} -> vllm:v9" in result.stdout
    generation = lws(world)["metadata"]["generation"]
    assert world.run("set", "image", "llama", "*=vllm:v9").stdout.endswith("has these images already\n")
    assert (images(world), lws(world)["metadata"]["generation"]) == ({"vllm:v9"}, generation)
    assert world.run("set", "image", "llama", "vllm").exit_code == 2


def test_restart_makes_another_version(world: World) -> None:
    world.release(**HEALTHY)
    assert world.run("restart", "llama").exit_code == 0
    assert version_hash(lws(world)) != HASH


@pytest.mark.parametrize("command", [["undo", "llama"], ["restart", "llama"], ["set", "image", "llama", "*=vllm:v9"]])
def test_what_git_keeps_is_edited_with_force_only(world: World, command: list[str]) -> None:
    store(world, 1, "v1")
    world.release(**HEALTHY)
    keep(world)
    result = world.run(*command)
    assert result.exit_code == 1
    assert "is kept by Argo CD Application chat, which may take this back: change it in Git" in str(result.exception)
    assert version_hash(lws(world)) == HASH
    assert world.run(*command, "--force").exit_code == 0
    assert version_hash(lws(world)) != HASH


def test_an_edit_of_somebody_else_meanwhile_is_not_overwritten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.release(**HEALTHY)

    def scaled_meanwhile(*_: Any) -> Any:
        world.do(lambda: world.server.patch(LEADER_WORKER_SETS, "default", "llama", {"spec": {"replicas": 9}}))
        return []

    monkeypatch.setattr("rollout_lws.cli.edits.stored_versions", scaled_meanwhile)
    result = world.run("restart", "llama")
    assert result.exit_code == 1
    assert "was changed by somebody else meanwhile" in str(result.exception)
    assert version_hash(lws(world)) == HASH


def test_the_hold_is_let_go_of_only_by_whoever_knows_what_rolls_then(world: World) -> None:
    world.release(**HEALTHY | {"stable": {"templateHash": "another"}})
    told = world.run("release-hold", "llama")
    assert told.exit_code == 1
    assert "the version that waits rolls at once, in every group. Go on?" in told.stderr
    assert KEYS.release_hold not in lws(world)["metadata"].get("annotations", {})
    assert "to have it held again: kubectl annotate lws llama" in world.run("release-hold", "llama", "-y").stdout
    assert lws(world)["metadata"]["annotations"][KEYS.release_hold] == "true"
    assert world.run("release-hold", "llama").stdout == "leaderworkerset/llama is let go of already\n"
