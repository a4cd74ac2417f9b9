"""The demo's own verdict: each claim about the end state fails when the world is not as claimed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.demo.checks import HOLD, Listing, Record, after_abort, after_promotion
from rollout_lws.objects.resources import LWS_NAME, LWS_WORKER_INDEX

GROUP = "rollouts.kruise.io"
Object = dict[str, Any]


def pod(name: str, uid: str, image: str, worker: str, workload: str = "llama") -> Object:
    return {
        "metadata": {"name": name, "uid": uid, "labels": {LWS_NAME: workload, LWS_WORKER_INDEX: worker}},
        "spec": {"containers": [{"image": image}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def listing(phase: str, image: str, uids: str) -> Listing:
    lws = manifests.workload()
    lws["metadata"]["annotations"] = {f"{GROUP}/original": "{}"}
    lws["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"partition": HOLD}}
    pods = []
    for group in range(manifests.GROUPS):
        pods.append(pod(f"llama-{group}", f"{uids}{group}", image, "0"))
        pods.append(pod(f"llama-{group}-1", f"{uids}{group}w", image, "1"))
    return Listing({"metadata": {}, "status": {"phase": phase}}, (lws,), (), tuple(pods), (), (), ())


BEFORE = listing("Healthy", manifests.OLD, "a")
PROMOTED = listing("Healthy", manifests.NEW, "b")
ABORTED = listing("Aborted", manifests.OLD, "a")
NEW_TEMPLATE = manifests.with_image(manifests.workload(), manifests.NEW)
OLD_TEMPLATE = manifests.with_image(manifests.workload(), manifests.OLD)
OPENED = Record(opened=100, lost_leaders={"llama-3": 101})


def promoted(after: Listing = PROMOTED, record: Record = OPENED) -> list[str]:
    checks = after_promotion(BEFORE, after, record, "llama", NEW_TEMPLATE, GROUP)
    return [check.claim for check in checks if not check.passed]


def aborted(after: Listing = ABORTED, record: Record | None = None) -> list[str]:
    checks = after_abort(BEFORE, after, record or Record(), "llama", OLD_TEMPLATE, GROUP)
    return [check.claim for check in checks if not check.passed]


def changed(source: Listing, **members: Any) -> Listing:
    values = {name: copy.deepcopy(getattr(source, name)) for name in Listing.__dataclass_fields__}
    return Listing(**(values | members))


def with_lws(source: Listing, partition: int, annotations: dict[str, str]) -> Listing:
    lws = copy.deepcopy(source.workloads[0])
    lws["metadata"]["annotations"] = annotations
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] = partition
    return changed(source, workloads=(lws,))


def of_one_workload(record: Record, in_steps: int) -> list[str]:
    checks = after_promotion(BEFORE, PROMOTED, record, "llama", NEW_TEMPLATE, GROUP, in_steps)
    return [check.claim for check in checks if not check.passed]


def test_groups_that_steps_renew_in_place_are_counted_up_to_the_promotion() -> None:
    lost = {"llama-3": 101, "llama-2": 150, "llama-1": 201, "llama-0": 230}
    assert of_one_workload(Record(opened=100, promoted=200, lost_leaders=lost), 2) == []
    for promoted, renewed in ((200, 1), (200, 3), (120, 2), (None, 2)):
        found = of_one_workload(Record(opened=100, promoted=promoted, lost_leaders=lost), renewed)
        assert found == ["before the promotion as many groups were renewed as the steps say"]


def test_a_surge_opens_the_hold_in_its_steps_and_touches_nothing_of_stable_before_the_promotion() -> None:
    assert of_one_workload(Record(opened=100, promoted=200, lost_leaders={"llama-3": 201}), 0) == []
    assert of_one_workload(Record(opened=100, promoted=200, lost_leaders={"llama-3": 199}), 0) == [
        "stable was not touched before its promotion"
    ]


def test_a_second_workload_that_has_been_there_for_a_moment_is_found() -> None:
    record = Record(opened=100, promoted=200, others={"llama-canary"})
    assert of_one_workload(record, 0) == ["no second LeaderWorkerSet ever existed"]


def test_an_abort_in_one_workload_makes_no_group_again_but_those_of_its_step() -> None:
    def failed(record: Record, in_steps: int, after: Listing = ABORTED) -> list[str]:
        checks = after_abort(BEFORE, after, record, "llama", OLD_TEMPLATE, GROUP, in_steps)
        return [check.claim for check in checks if not check.passed]

    again = changed(ABORTED, pods=(*ABORTED.pods[:-1], pod("llama-3-1", "other", manifests.OLD, "1")))
    assert failed(Record(opened=100, lost_leaders={"llama-3": 101}), 1, again) == []
    assert failed(Record(opened=100, lost_leaders={"llama-3": 101, "llama-2": 102}), 1, again) == [
        "only groups that the step had renewed were made again"
    ]
    assert failed(Record(opened=100), 0, again) == ["every pod from before still runs"]
    assert failed(Record(opened=100, others={"llama-canary"}), 0) == ["no second LeaderWorkerSet ever existed"]


def test_a_clean_promotion_and_a_clean_abort_pass_every_check() -> None:
    assert promoted() == []
    assert aborted() == []


def test_a_stable_leader_lost_before_the_promotion_is_found() -> None:
    assert promoted(record=Record(opened=100, lost_leaders={"llama-0": 99})) == [
        "stable was not touched before its promotion"
    ]
    assert promoted(record=Record(opened=None, lost_leaders={"llama-0": 99})) == [
        "stable was not touched before its promotion"
    ]


def test_groups_that_still_run_the_old_version_are_found() -> None:
    half = changed(PROMOTED, pods=PROMOTED.pods[:6] + BEFORE.pods[6:])
    assert promoted(half) == ["all groups are new", "every pod runs the right version"]


def test_a_pod_that_is_not_ready_is_found() -> None:
    pods = copy.deepcopy(PROMOTED.pods)
    pods[1]["status"]["conditions"][0]["status"] = "False"
    assert promoted(changed(PROMOTED, pods=pods)) == ["all groups are ready"]


@pytest.mark.parametrize(
    ("partition", "annotations"), [(0, {f"{GROUP}/original": "{}"}), (HOLD, {}), (HOLD, {"other.io/original": "{}"})]
)
def test_a_hold_that_is_gone_or_not_ours_is_found(partition: int, annotations: dict[str, str]) -> None:
    assert promoted(with_lws(PROMOTED, partition, annotations)) == ["the hold is in place"]


@pytest.mark.parametrize("kind", ["stateful_sets", "services", "ingresses", "batch_releases"])
def test_anything_left_over_is_found(kind: str) -> None:
    assert promoted(changed(PROMOTED, **{kind: ({"metadata": {"name": "llama-canary"}},)})) == ["nothing is left over"]


def test_a_second_leader_worker_set_is_found() -> None:
    other = {"metadata": {"name": "llama-canary"}, "spec": {}}
    assert aborted(changed(ABORTED, workloads=(*ABORTED.workloads, other))) == ["one LeaderWorkerSet"]


def test_an_abort_that_replaced_a_pod_or_lifted_the_hold_is_found() -> None:
    pods = (*ABORTED.pods[:-1], pod("llama-3-1", "other", manifests.OLD, "1"))
    assert aborted(changed(ABORTED, pods=pods)) == ["every pod from before still runs"]
    assert aborted(record=Record(opened=5)) == ["the hold was never lifted"]


def test_a_rollout_in_another_phase_is_found() -> None:
    assert promoted(changed(PROMOTED, rollout={"status": {"phase": "Progressing"}})) == ["the Rollout says Healthy"]
