"""The examples before any cluster sees them: they can be released, and what their comments claim is so."""

from __future__ import annotations

import msgspec
import pytest

from rollout_lws.api import Rollout
from rollout_lws.api.validation import problems
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from tests.examples.examples import NAMES, ROUTED, manifests, pod_templates

SERVERS = tuple(name for name in NAMES if name not in ("quickstart", *ROUTED))


@pytest.mark.parametrize("name", NAMES)
def test_every_rollout_can_be_released_as_it_is(name: str) -> None:
    rollout = Rollout.model_validate(manifests(name)["Rollout"])
    assert problems(rollout.spec) == ()
    assert rollout.spec.workload_ref.name == manifests(name)["LeaderWorkerSet"]["metadata"]["name"]


@pytest.mark.parametrize("name", NAMES)
def test_no_workload_states_a_partition_which_would_lift_the_hold(name: str) -> None:
    assert "rolloutStrategy" not in manifests(name)["LeaderWorkerSet"]["spec"]


@pytest.mark.parametrize(("name", "hours"), [("vllm", 1.0), ("sglang", 1.5)])
def test_the_start_up_budget_is_what_the_comment_says_and_the_deadline_is_longer(name: str, hours: float) -> None:
    body = msgspec.json.encode(manifests(name)["LeaderWorkerSet"])
    version = msgspec.json.decode(body, type=LeaderWorkerSet).version
    assert version.start_up_seconds == hours * 3600
    assert version.progress_deadline_seconds >= version.start_up_seconds + 900


@pytest.mark.parametrize("name", SERVERS)
def test_leader_and_worker_are_one_version_that_meets_at_the_leaders_address(name: str) -> None:
    templates = pod_templates(manifests(name)["LeaderWorkerSet"])
    containers = {role: template["spec"]["containers"][0] for role, template in templates.items()}
    assert containers["leader"]["image"] == containers["worker"]["image"]
    for container in containers.values():
        arguments = " ".join(container["args"])
        for variable in ("LWS_GROUP_SIZE", "LWS_WORKER_INDEX", "LWS_LEADER_ADDRESS"):
            assert f"$({variable})" in arguments
        assert {mount["mountPath"] for mount in container["volumeMounts"]} >= {"/dev/shm"}


@pytest.mark.parametrize("name", SERVERS)
def test_parallelism_takes_exactly_the_accelerators_of_a_group(name: str) -> None:
    lws = manifests(name)["LeaderWorkerSet"]
    container = pod_templates(lws)["leader"]["spec"]["containers"][0]
    given = dict(argument.split("=", 1) for argument in container["args"] if "=" in argument)
    ranks = int(given.get("--tp") or int(given["--tensor-parallel-size"]) * int(given["--pipeline-parallel-size"]))
    accelerators = int(container["resources"]["limits"]["nvidia.com/gpu"])
    assert ranks == accelerators * lws["spec"]["leaderWorkerTemplate"]["size"]
