"""What a cluster says is shown, never obeyed: no command lets control characters of others reach a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from rollout_lws.objects.resources import CORE_EVENTS, LEADER_WORKER_SETS, PODS, SERVICES
from tests.cli.conftest import World
from tests.docs.pages import ROOT

#: Clears a screen, writes a title, goes back to overwrite what was said, and mirrors a line.
HOSTILE = "lost\x1b[2J\x1b]0;title\x07\rall is well\x08\x9b31m\u202e\u2028end"
PEOPLE = [
    ("get",),
    ("get", "-A", "-o", "wide"),
    ("get", "llama"),
    ("status", "llama", "--timeout", "0"),
    ("events", "llama"),
    ("history", "llama"),
    ("doctor", "llama"),
    ("plan", "llama"),
    ("promote", "llama", "--timeout", "5s"),
    ("abort", "llama", "--timeout", "5s", "--reason", HOSTILE),
]
MACHINES = [
    ("get", "-o", "json"),
    ("get", "-o", "yaml"),
    ("get", "llama", "-o", "jsonl"),
    ("status", "llama", "--timeout", "0", "-o", "json"),
    ("events", "llama", "-o", "json"),
    ("doctor", "llama", "-o", "json"),
    ("plan", "llama", "-o", "json"),
]


@pytest.fixture
def hostile(world: World) -> World:
    """Each text that somebody else chooses and that we show somewhere."""
    condition = {"type": "Stalled", "status": "True", "reason": "WriteRefused", "message": HOSTILE}
    group = {"workload": "llama", "group": "0", "reason": "Error" + HOSTILE, "message": HOSTILE}
    group |= {"pod": "llama-0" + HOSTILE, "container": HOSTILE}
    world.release(
        phase="Progressing",
        message=HOSTILE,
        conditions=[condition],
        observedRolloutID=HOSTILE,
        stable={"templateHash": "a" + HOSTILE, "revision": HOSTILE, "workloadUID": HOSTILE},
        summary={"state": "Stalled", "step": HOSTILE, "traffic": HOSTILE, "new": HOSTILE},
        notReadyGroups=[group],
        holdConflicts=[{"manager": HOSTILE}],
        canaryStatus={
            "podTemplateHash": HOSTILE,
            "currentStepIndex": 1,
            "nextStepIndex": 2,
            "finalisingStep": "",
            "currentStepState": "StepPaused",
            "message": HOSTILE,
        },
    )
    world.do(lambda: _others(world))
    world.answer(refusal=HOSTILE)
    return world


def _others(world: World) -> None:
    regarding = world.server.get(world.rollouts, "default", "llama")["metadata"]
    event: dict[str, Any] = {
        "metadata": {"name": "llama.1", "namespace": "default"},
        "involvedObject": {"kind": "Rollout", "name": "llama", "namespace": "default", "uid": regarding["uid"]},
        "type": "Warning",
        "reason": "Stalled",
        "message": HOSTILE,
        "source": {"component": HOSTILE},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    world.server.create(CORE_EVENTS, event)
    image = {"spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [_container()]}}}}}
    world.server.patch(LEADER_WORKER_SETS, "default", "llama", image)
    labels = {"leaderworkerset.sigs.k8s.io/name": "llama", "leaderworkerset.sigs.k8s.io/worker-index": "0"}
    meta = {"name": "llama-0", "namespace": "default", "labels": labels}
    world.server.create(PODS, {"metadata": meta, "spec": {"containers": [_container()]}})
    ended = {"exitCode": 1, "reason": HOSTILE, "message": HOSTILE}
    status = {
        "name": "main",
        "ready": False,
        "restartCount": 3,
        "image": "",
        "imageID": "",
        "state": {"terminated": ended},
    }
    told = {"status": {"phase": "Failed", "message": HOSTILE, "containerStatuses": [status]}}
    world.server.patch(PODS, "default", "llama-0", told, subresource="status")
    service = {"metadata": {"name": "llama", "namespace": "default", "annotations": {"note": HOSTILE}}}
    world.server.create(SERVICES, {**service, "spec": {"selector": labels, "ports": [{"port": 80, "name": "http"}]}})


def _container() -> dict[str, Any]:
    return {"name": "main", "image": "llama:" + HOSTILE, "args": [HOSTILE], "env": [{"name": "A", "value": HOSTILE}]}


def _obeyed(text: str) -> set[str]:
    """What a terminal would act upon; colours of our own are written only to one."""
    return {each for each in text if not each.isprintable() and each != "\n"}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("command", PEOPLE, ids=" ".join)
def test_people_are_shown_words_and_nothing_that_moves_a_cursor(hostile: World, command: tuple[str, ...]) -> None:
    result = hostile.run(*command)
    assert result.output or result.exception
    assert _obeyed(result.output) == set()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("command", MACHINES, ids=" ".join)
def test_programs_are_given_it_escaped(hostile: World, command: tuple[str, ...]) -> None:
    result = hostile.run(*command)
    assert result.output
    assert _obeyed(result.stdout) == set()
    if command[-1] == "json":
        json.loads(result.stdout)


def test_an_error_is_words_too(hostile: World) -> None:
    """By the program itself, which has the one place where errors are printed."""
    arguments = ["--kubeconfig", str(hostile.kubeconfig), "promote", "llama", "--timeout", "10s"]
    start = "import sys; from rollout_lws.cli.main import main; sys.argv[0] = 'rollout-lws'; main()"
    done = subprocess.run([sys.executable, "-c", start, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "all is well" in done.stderr
    assert _obeyed(done.stderr) == set()
