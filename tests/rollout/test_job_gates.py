"""What a Job's end says of a version, and what a Job is made of."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from rollout_lws.api import GateRecord, GateResult, StepGate
from rollout_lws.objects.jobs import Job
from rollout_lws.objects.workloads import CoreEvent, Pod
from rollout_lws.rollout.gates.kinds.jobs.manifest import NAME_BUDGET, job_name, manifest
from rollout_lws.rollout.gates.kinds.jobs.verdict import (
    SETTLED_SECONDS,
    WORDS_LIMIT,
    Unsettled,
    ending,
    last_words,
    trouble,
)
from rollout_lws.rollout.gates.kinds.kind import Ended
from tests.rollout.build import canary, draft, in_step, rollout
from tests.workload.build import NEW, NOW
from tests.workload.build import pod as leader

#: Long enough ago that all is known that will be.
LATELY = NOW - timedelta(seconds=SETTLED_SECONDS)


def job(*conditions: str, reason: str = "BackoffLimitExceeded", since: datetime = LATELY, **spec: Any) -> Job:
    told = [
        {"type": each, "status": "True", "reason": reason, "lastTransitionTime": since.isoformat()}
        for each in conditions
    ]
    return msgspec.convert({"metadata": {"name": "evals"}, "spec": spec, "status": {"conditions": told}}, Job)


def pod(name: str = "evals-a", age: int = 60, deleted: bool = False, **status: Any) -> Pod:
    made = {"name": name, "creationTimestamp": (NOW - timedelta(seconds=age)).isoformat()}
    gone = {"deletionTimestamp": NOW.isoformat()} if deleted else {}
    return msgspec.convert({"metadata": {**made, **gone}, "status": {"phase": "Failed", **status}}, Pod)


def ended(code: int, message: str = "", reason: str = "Error", **more: Any) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    return {"containerStatuses": [{"name": "evals", "state": state, **more}]}


def before(code: int, message: str = "", reason: str = "Error") -> dict[str, Any]:
    """A container that runs again after it has ended."""
    last = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    return {"phase": "Running", "containerStatuses": [{"name": "evals", "lastState": last}]}


DRAINED = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]}
EVICTED = {"reason": "Evicted", "message": "The node was low on resource: memory."}
FAILED, COMPLETE = job("Failed"), job("Complete")
OWN = "Job evals failed: pod evals-a, container evals ended with exit code"
NOT_BY_ITSELF = "Job evals failed, and not by itself: pod evals-a"


@pytest.mark.parametrize(
    ("of", "pods", "result", "message"),
    [
        (COMPLETE, [], GateResult.PASSED, "Job evals is complete"),
        (COMPLETE, [pod(**ended(1))], GateResult.PASSED, "Job evals is complete"),
        (FAILED, [pod(**ended(3, "too bad\n"))], GateResult.FAILED, f"{OWN} 3: too bad"),
        (FAILED, [pod(**ended(3))], GateResult.FAILED, f"{OWN} 3"),
        (FAILED, [pod("b", 90, **ended(1, "old")), pod(**ended(2, "new"))], GateResult.FAILED, f"{OWN} 2: new"),
        (FAILED, [pod("b", 30, **EVICTED), pod(**ended(2, "bad"))], GateResult.FAILED, f"{OWN} 2: bad"),
        (job("FailureTarget"), [pod(**ended(2, "bad"))], GateResult.FAILED, f"{OWN} 2: bad"),
        (job("FailureTarget"), [pod(deleted=True, **before(2, "bad"))], GateResult.FAILED, f"{OWN} 2: bad"),
        (
            FAILED,
            [pod(**EVICTED)],
            GateResult.ERROR,
            f"{NOT_BY_ITSELF}: Evicted: The node was low on resource: memory.",
        ),
        (FAILED, [pod(**ended(137), **EVICTED)], GateResult.ERROR, f"{NOT_BY_ITSELF}: Evicted"),
        (
            FAILED,
            [pod(**ended(1), **DRAINED)],
            GateResult.ERROR,
            f"{NOT_BY_ITSELF} was disrupted: EvictionByEvictionAPI",
        ),
        (FAILED, [pod(**ended(137, reason="OOMKilled"))], GateResult.ERROR, ", container evals: OOMKilled"),
        (FAILED, [pod(**ended(128, "no such file", "StartError"))], GateResult.ERROR, "StartError: no such file"),
        (FAILED, [pod(reason="OutOfcpu")], GateResult.ERROR, f"{NOT_BY_ITSELF}: OutOfcpu"),
        (FAILED, [pod(deleted=True, **ended(143))], GateResult.ERROR, "no pod is left to say why"),
        (FAILED, [], GateResult.ERROR, "Job evals failed (BackoffLimitExceeded), and no pod is left to say why"),
        (
            job("Failed", reason="DeadlineExceeded"),
            [pod(**ended(1))],
            GateResult.ERROR,
            "Job evals was cut short by its own activeDeadlineSeconds",
        ),
    ],
)
def test_only_a_container_that_failed_by_itself_is_the_versions_fault(
    of: Job, pods: list[Pod], result: GateResult, message: str
) -> None:
    told = ending(of, pods, NOW)
    assert isinstance(told, Ended)
    assert told.result is result
    assert message in told.message


@pytest.mark.parametrize(
    ("of", "pods"),
    [(job(), []), (job(), [pod(**ended(1))]), (job("Suspended"), []), (job("FailureTarget"), [pod(**EVICTED)])],
    ids=["new", "tried again", "suspended", "its pods end"],
)
def test_a_job_that_has_not_ended_says_nothing(of: Job, pods: list[Pod]) -> None:
    assert ending(of, pods, NOW) is None


def test_why_a_job_has_just_failed_is_waited_for() -> None:
    assert ending(job("Failed", since=NOW), [], NOW) == Unsettled(NOW + timedelta(seconds=SETTLED_SECONDS))


def test_last_words_are_the_end_of_a_text_in_one_line() -> None:
    assert last_words("a\x1b[31m b\n\tc\x00") == "a [31m b c"
    long = last_words("x" * 5000 + "end")
    assert len(long) == WORDS_LIMIT
    assert long.startswith("…") and long.endswith("end")


NO_IMAGE = {
    "phase": "Pending",
    "containerStatuses": [{"name": "evals", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}],
}
NO_NODE = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}],
}
QUOTA = CoreEvent(metadata=job().metadata, message="Error creating: exceeded quota")


@pytest.mark.parametrize(
    ("of", "pods", "refusals", "told"),
    [
        (job(), [pod(phase="Running")], [], ""),
        (job(), [], [], ""),
        (job(suspend=True), [], [], "it is suspended"),
        (job(), [pod(**NO_IMAGE)], [], "pod evals-a container evals: ErrImagePull: not found"),
        (job(), [pod(**NO_NODE)], [], "pod evals-a is not scheduled: 0/3 nodes"),
        (job(), [], [QUOTA], "it gets no pod: Error creating: exceeded quota"),
        (job(), [pod(phase="Running")], [QUOTA], ""),
    ],
)
def test_what_keeps_a_job_from_its_end(of: Job, pods: list[Pod], refusals: list[CoreEvent], told: str) -> None:
    assert trouble(of, pods, refusals) == told


GATE = StepGate.model_validate({"name": "evals", "job": {"fromCronJob": "evals"}})


def record(**fields: Any) -> GateRecord:
    return GateRecord(name="evals", **{"hash": "h", "since": NOW, **fields})


def test_the_name_of_a_job_is_that_of_one_attempt() -> None:
    d = draft(rollout(status=in_step()), canary=canary())
    name = job_name(d, GATE, record())
    others = {
        job_name(d, GATE, record(hash="i")),
        job_name(d, GATE, record(since=NOW + timedelta(seconds=1))),
        job_name(d.set_sub(current_step_index=2), GATE, record()),
    }
    assert name.startswith("llama-evals-")
    assert job_name(d, GATE, record()) == name
    assert len({name, *others}) == 4


def test_the_name_of_a_job_fits_into_a_label() -> None:
    d = draft(rollout(status=in_step()), canary=canary())
    long = StepGate.model_validate({"name": "g" * 63, "job": {"fromCronJob": "evals"}})
    assert len(job_name(d, long, record())) == NAME_BUDGET


def test_a_job_has_what_its_template_says_and_is_told_of_the_release() -> None:
    group = leader(0, revision=NEW, since=LATELY, workload="llama-canary")
    d = draft(rollout(status=in_step()), canary=canary(group))
    containers = [{"name": "a", "image": "i", "terminationMessagePolicy": "File", "env": [{"name": "ROLLOUT_GATE"}]}]
    pod_spec = {"containers": containers, "initContainers": [{"name": "b", "image": "i"}], "restartPolicy": "Never"}
    spec = {"template": {"spec": pod_spec}, "activeDeadlineSeconds": 5, "ttlSecondsAfterFinished": 1}
    made = manifest(d, GATE, "evals-1", {"spec": {"jobTemplate": {"spec": spec}}})
    assert made["spec"]["activeDeadlineSeconds"] == 5
    assert "ttlSecondsAfterFinished" not in made["spec"]
    (main,), (first,) = (made["spec"]["template"]["spec"][each] for each in ("containers", "initContainers"))
    # The API server fills in File where nothing is said.
    assert {each["terminationMessagePolicy"] for each in (main, first)} == {"FallbackToLogsOnError"}
    assert [each for each in main["env"] if each["name"] == "ROLLOUT_GATE"] == [{"name": "ROLLOUT_GATE"}]
    assert {"name": "ROLLOUT_GATE", "value": "evals"} in first["env"]
    assert containers[0]["env"] == [{"name": "ROLLOUT_GATE"}], "the CronJob's own template stays as it is"
