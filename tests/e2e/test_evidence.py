"""A failed test tells where its logs, its audit log and its objects are, and there they are."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.e2e import evidence
from tests.e2e.scenes import Record
from tests.kubectl.programs import Programs

ROOT = Path(__file__).parents[2]
#: A story that goes wrong in the middle of a release, beside one that does not.
STORY = """
import pytest, pytest_asyncio
from tests.e2e import tools
from tests.e2e.cluster import cluster
from tests.e2e.world import remote_world
from tests.kubectl.programs import Programs

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]

@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory):
    async with cluster(tools.directory(), tmp_path_factory.mktemp("cluster")) as running:
        yield running

@pytest.mark.parametrize("name", ["doomed", "lucky"])
async def test_story(whole, name):
    programs = Programs()
    try:
        async with remote_world(whole.plane.admin, whole.controller, name, programs) as world:
            world.create_workload(replicas=1)
            world.create_rollout({"replicas": 1, "pause": {}})
            await world.until_state("Healthy")
            assert name == "lucky", "as arranged"
    finally:
        await programs.close()
"""


@pytest.mark.e2e
@pytest.mark.timeout(300)
async def test_a_story_that_fails_leaves_logs_audit_log_and_objects(tmp_path: Path) -> None:
    story = tmp_path / "test_arranged.py"
    story.write_text(STORY)
    kept = tmp_path / "failures"
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-p", "tests.e2e.conftest", "-c", str(ROOT / "pyproject.toml")),
        *("--basetemp", str(tmp_path / "inner"), str(story)),
        cwd=ROOT,
        env={**os.environ, evidence.VARIABLE: str(kept)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        told = (await run.communicate())[0].decode()
    finally:
        if run.returncode is None:
            run.kill()
    assert re.search(r"\b1 failed, 1 passed", told), told
    (left,) = kept.iterdir()
    assert f"logs, audit log and objects: {left}" in told
    files = {str(path.relative_to(left)) for path in left.rglob("*") if path.is_file()}
    assert files >= {"plane/etcd.log", "plane/kube-apiserver.log", "plane/lws-sandbox.log", "doomed/process-0.log"}, (
        files
    )
    assert not any("lucky" in name for name in files)
    assert "controller started" in (left / "doomed" / "process-0.log").read_text()
    asked = [json.loads(line) for line in (left / "plane" / "audit-doomed.log").read_text().splitlines()]
    assert {each["objectRef"]["namespace"] for each in asked} == {"doomed"}
    (lws,) = yaml.safe_load((left / "doomed" / "leaderworkersets.leaderworkerset.x-k8s.io.yaml").read_text())
    assert (lws["metadata"]["name"], lws["metadata"]["namespace"]) == ("llama", "doomed")


def test_the_error_tells_whose_scene_it_was_among_stories_told_beside_each_other(tmp_path: Path) -> None:
    record, mine = Record(), AssertionError("mine")
    with record.scene(tmp_path, "other", Programs()):
        with pytest.raises(AssertionError), record.scene(tmp_path, "mine", Programs()):
            raise mine
        assert [each.namespace for each in record.scenes(mine, since=0)] == ["mine"]
        assert [each.namespace for each in record.scenes(TimeoutError(), since=0)] == ["other", "mine"]


def test_a_test_without_a_control_plane_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(evidence.VARIABLE, str(tmp_path))
    record = Record()
    with record.stage(tmp_path, tmp_path / "audit.log"):
        pass
    assert evidence.keep(record, "somebody's", AssertionError(), since=2**40) is None
    assert list(tmp_path.iterdir()) == []


def test_a_plane_that_has_ended_leaves_its_logs_and_says_why_there_are_no_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "etcd.log").write_text("as it was\n")
    (logs / "server.key").write_text("nobody's business\n")
    record, error = Record(), AssertionError()
    plane, story = (
        record.stage(logs, logs / "audit.log"),
        record.scene(tmp_path / "gone.kubeconfig", "story", Programs()),
    )
    with pytest.raises(AssertionError), plane, story:
        raise error
    kept = evidence.keep(record, "tests/e2e/test_x.py::test_y[a b]", error, since=0)
    assert kept == tmp_path / ".e2e-failures" / "tests-e2e-test_x.py-test_y-a-b"
    assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()) == [
        "plane/etcd.log",
        "story/objects.txt",
    ]
    assert "has ended" in (kept / "story" / "objects.txt").read_text()
