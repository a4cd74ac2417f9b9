"""history, undo, restart, set image and release-hold over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.api.resources import keys
from rollout_lws.cli.actions import edit_client
from rollout_lws.cli.demo import manifests
from rollout_lws.cli.releases import version_hash
from rollout_lws.cli.versions import containers
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS
from rollout_lws.sandbox.store import Event
from rollout_lws.targets.table import stored_version
from rollout_lws.workload.revisions import history_body
from tests.cli.conftest import World
from tests.cli.states import HASH, HEALTHY, LOADING
from tests.reader import reading
from tests.terminal import Program

KEYS = keys()


def store(world: World, number: int, tag: str) -> str:
    """A version with images of this tag in the history; the answer is its hash."""
    lws = manifests.workload()
    for _, each in containers(lws["spec"]):
        each["image"] = f"vllm:{tag}"
    version = stored_version({"leaderWorkerTemplate": lws["spec"]["leaderWorkerTemplate"]})
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
    look = edit_client.look

    def then_somebody_scales(*given: Any) -> Any:
        seen = look(*given)
        world.do(lambda: world.server.patch(LEADER_WORKER_SETS, "default", "llama", {"spec": {"replicas": 9}}))
        return seen

    monkeypatch.setattr(edit_client, "look", then_somebody_scales)
    result = world.run("restart", "llama")
    assert result.exit_code == 1
    assert "was changed by another client meanwhile" in str(result.exception)
    assert version_hash(lws(world)) == HASH


def test_a_version_that_is_not_stable_is_not_restarted(world: World) -> None:
    world.release(phase="Aborted", observedTemplateHash=HASH, stable={"templateHash": store(world, 1, "v1")})
    result = world.run("restart", "llama")
    assert result.exit_code == 1
    assert "there is nothing to restart before it is promoted, or taken back with `rollout-lws undo llama`" in str(
        result.exception
    )
    assert version_hash(lws(world)) == HASH


def test_undo_to_the_aborted_version_says_what_it_waits_for(world: World) -> None:
    bad = store(world, 1, "bad")
    world.release(**HEALTHY | {"aborted": {"templateHash": bad}})
    assert world.run("undo", "llama", "--to-revision", "1").stdout.endswith(
        "it was aborted, so it waits for `rollout-lws retry llama`\n"
    )


def at_abort(world: World, *steps: Callable[[], object]) -> None:
    """Have an abort carried out, and then these things happen, one after the other."""

    def act(event: Event) -> None:
        asked = ((event.object or {}).get("status") or {}).get("requestedAction")
        if asked and asked["type"] == "Abort":
            for place, each in enumerate([lambda: world.file("Done"), *steps]):
                world.later(0.1 * place, each)

    world.do(lambda: world.server.store.subscribe(act))


def becoming(world: World, **status: Any) -> Callable[[], object]:
    """Gives the Rollout this status; to be called on the server's own thread."""
    change = {"status": status}
    return lambda: world.server.patch(world.rollouts, "default", "llama", change, subresource="status")


def applying(world: World, tag: str) -> Callable[[], object]:
    """Applies another version; to be called on the server's own thread."""
    template = {"spec": {"containers": [{"name": "vllm-worker", "image": f"vllm:{tag}"}]}}
    change = {"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}}
    return lambda: world.server.patch(LEADER_WORKER_SETS, "default", "llama", change)


SURGE = LOADING | {"capacity": "Surge"}
GOING_BACK = {"reason": "Aborted", "task": "CleanUp"}


def test_undo_of_a_surge_aborts_first_so_that_requests_go_before_the_groups_do(world: World) -> None:
    old = store(world, 1, "v1")
    world.release(**SURGE | {"stable": {"templateHash": old}})
    left: list[str] = []
    at_abort(
        world,
        lambda: left.append(version_hash(world.server.get(LEADER_WORKER_SETS, "default", "llama"))),
        becoming(world, finalising=GOING_BACK),
        becoming(world, phase="Aborted", finalising=None),
    )
    first, last = world.run("undo", "llama").stdout.splitlines()
    assert left == [HASH]
    assert first == "rollout/llama aborted at step 2/3; going back to stable"
    assert last.startswith("leaderworkerset/llama has revision 1 again")
    assert world.status()["phase"] == "Aborted"
    assert version_hash(lws(world)) == old


@pytest.mark.parametrize("phase", ["Aborted", "Progressing"])
def test_a_version_that_comes_while_an_undo_aborts_is_not_taken_back_with_it(world: World, phase: str) -> None:
    """Whether its release begins at once or not, which may take long."""
    old = store(world, 1, "v1")
    world.release(**SURGE | {"stable": {"templateHash": old}})
    at_abort(world, applying(world, "v3"), becoming(world, phase=phase, observedTemplateHash="that of v3"))
    result = world.run("undo", "llama")
    assert (result.exit_code, result.stdout) == (1, "rollout/llama aborted at step 2/3; going back to stable\n")
    assert str(result.exception) == (
        "leaderworkerset/llama was given another version in its template meanwhile, so no version was put back: look"
        " with `rollout-lws get llama`; `rollout-lws undo llama` undoes what there is now"
    )
    assert "vllm:v3" in images(world)


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ([{"finalising": GOING_BACK}, {"finalising": None}], "rollout/llama releases its version again"),
        ([{"phase": "Healthy", "stable": {"templateHash": HASH}}], "has another stable version than before"),
    ],
    ids=["retried", "promoted"],
)
def test_a_release_that_goes_on_while_an_undo_aborts_is_left_alone(
    world: World, then: list[dict[str, Any]], words: str
) -> None:
    world.release(**SURGE | {"stable": {"templateHash": store(world, 1, "v1")}})
    at_abort(world, *(becoming(world, **each) for each in then))
    result = world.run("undo", "llama")
    assert (result.exit_code, words in str(result.exception)) == (1, True), result.exception
    assert version_hash(lws(world)) == HASH


def test_an_undo_aborts_no_other_release_than_that_which_it_has_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.release(**SURGE | {"stable": {"templateHash": store(world, 1, "v1")}})
    look = edit_client.look

    def then_another_release_begins(*given: Any) -> Any:
        seen = look(*given)
        world.do(becoming(world, observedTemplateHash="another", observedRolloutID="r8"))
        return seen

    monkeypatch.setattr(edit_client, "look", then_another_release_begins)
    result = world.run("undo", "llama")
    assert (result.exit_code, "is about another release now, nothing was changed" in str(result.exception)) == (1, True)
    assert "requestedAction" not in world.status()
    assert version_hash(lws(world)) == HASH


def test_the_hold_is_let_go_of_only_by_whoever_says_that_it_is_meant(world: World) -> None:
    world.release(**HEALTHY | {"stable": {"templateHash": "another"}})
    told = world.run("release-hold", "llama")
    assert told.exit_code == 1
    assert "the version that waits rolls at once, in every group. If that is meant, say so with --yes" in str(
        told.exception
    )
    assert KEYS.release_hold not in lws(world)["metadata"].get("annotations", {})
    assert "to have it held again: kubectl annotate lws llama" in world.run("release-hold", "llama", "-y").stdout
    assert lws(world)["metadata"]["annotations"][KEYS.release_hold] == "true"
    assert world.run("release-hold", "llama").stdout == "leaderworkerset/llama is let go of already\n"


@pytest.mark.kubectl
async def test_an_undo_of_a_surge_takes_requests_away_first_and_then_the_version(tmp_path: Path) -> None:
    async with reading(tmp_path) as reader:
        said = await reader.run(
            """
            kubectl apply -f examples/surge/
            kubectl wait rollout/guide --for=condition=Ready --timeout=20s
            rollout-lws set image guide '*=nginxinc/nginx-unprivileged:1.28'
            rollout-lws status guide --for paused
            rollout-lws undo guide
            rollout-lws status guide
            """
        )
        told = [
            line
            for line in said.splitlines()
            if line.startswith(("rollout/guide aborted", "leaderworkerset/guide has"))
        ]
        assert [line.split()[1] for line in told] == ["aborted", "has"]
        assert set(reader.tags("guide")) == {"1.27"}
        assert len(reader.tags("guide")) == 4


@pytest.mark.kubectl
async def test_a_version_that_is_applied_while_an_undo_aborts_is_released(tmp_path: Path) -> None:
    async with reading(tmp_path) as reader:
        await reader.run(
            """
            kubectl apply -f examples/surge/
            kubectl wait rollout/guide --for=condition=Ready --timeout=20s
            rollout-lws set image guide '*=nginxinc/nginx-unprivileged:1.28'
            rollout-lws status guide --for paused
            """
        )
        applied = list[Event]()
        server, loop = reader.server, asyncio.get_running_loop()

        def apply(event: Event) -> None:
            ending = ((event.object or {}).get("status") or {}).get("finalising") or {}
            if ending.get("reason") == "Aborted" and not applied:
                applied.append(event)
                body = server.get(LEADER_WORKER_SETS, "default", "guide")
                for _, each in containers(body["spec"]):
                    each["image"] = each["image"].replace("1.28", "1.29")
                change = {"spec": {"leaderWorkerTemplate": body["spec"]["leaderWorkerTemplate"]}}
                loop.call_soon(lambda: server.patch(LEADER_WORKER_SETS, "default", "guide", change))

        server.store.subscribe(apply)
        said = await reader.run("! rollout-lws undo guide\nrollout-lws status guide --for paused")
        assert applied
        assert (
            "leaderworkerset/guide was given another version in its template meanwhile, so no version was put" in said
        )
        assert sorted(reader.tags("guide")) == ["1.27"] * 4 + ["1.29"]


def test_a_hold_is_let_go_of_only_as_it_was_when_somebody_was_asked(world: World) -> None:
    world.release(**HEALTHY)
    main = [sys.executable, "-c", "from rollout_lws.cli.main import main; main()"]
    command = [*main, "--kubeconfig", str(world.kubeconfig), "release-hold", "llama"]
    with Program(command, os.environ, columns=200) as program:
        program.shows(lambda text: "Go on? [y/N]" in text)
        world.do(lambda: world.server.patch(LEADER_WORKER_SETS, "default", "llama", {"spec": {"replicas": 9}}))
        program.type("y\n")
        program.shows(lambda text: "was changed by another client meanwhile" in text)
        assert program.process.wait(30) == 1
    assert KEYS.release_hold not in lws(world)["metadata"].get("annotations", {})
