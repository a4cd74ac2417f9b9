"""What `-f` gives the demo: files or directories, what goes with an LWS, and pauses of a bearable length."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rollout_lws.api import Rollout
from rollout_lws.api.validation import problems
from rollout_lws.cli.demo import manifests
from rollout_lws.cli.demo.command import plan_of
from rollout_lws.cli.manifests import read_manifests
from rollout_lws.errors import UsageError

API_VERSION = "rollouts.kruise.io/v1beta1"
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "llama-api"}}


def test_a_directory_stands_for_its_manifests_in_order(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(SERVICE))
    (tmp_path / "a.yml").write_text(yaml.safe_dump(manifests.workload()))
    (tmp_path / "README.md").write_text("no manifest")
    assert [each["kind"] for each in read_manifests([str(tmp_path)])] == ["LeaderWorkerSet", "Service"]


def test_a_directory_without_manifests_and_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no \.yaml"):
        read_manifests([str(tmp_path)])
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_manifests([str(tmp_path / "lws.yaml")])


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "program.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"program\.yaml is no text"):
        read_manifests([str(tmp_path)])


@pytest.mark.parametrize("spec", [None, "hello", {}, {"leaderWorkerTemplate": "hello", "workloadRef": None}])
@pytest.mark.parametrize("kind", ["LeaderWorkerSet", "Rollout"])
def test_a_manifest_without_what_the_demo_is_about_is_named(kind: str, spec: object) -> None:
    rollout = manifests.rollout(API_VERSION, manifests.workload()["metadata"])
    given = [each | {"spec": spec} if each["kind"] == kind else each for each in (manifests.workload(), rollout)]
    with pytest.raises(UsageError, match=f"{kind} llama has no spec"):
        plan_of("canary", given, True, API_VERSION)


def test_what_goes_with_a_workload_is_part_of_the_demo() -> None:
    plan = plan_of("canary", [SERVICE, manifests.workload()], True, API_VERSION)
    assert plan.others == (SERVICE,)
    assert plan.workload_name == "llama"


def test_long_pauses_are_cut_and_approvals_stay() -> None:
    given = manifests.rollout(API_VERSION, manifests.workload()["metadata"])
    odd = {"replicas": 3, "pause": {"duration": "10m"}}  # for the API server to refuse
    given["spec"]["strategy"]["canary"]["steps"] = [{"replicas": 1, "pause": {"duration": 600}}, {"replicas": 2}, odd]
    plan = plan_of("canary", [manifests.workload(), given], True, API_VERSION)
    assert plan.rollout["spec"]["strategy"]["canary"]["steps"] == [
        {"replicas": 1, "pause": {"duration": manifests.SHORT_WAIT}},
        {"replicas": 2},
        odd,
    ]
    assert given["spec"]["strategy"]["canary"]["steps"][0]["pause"] == {"duration": 600}


@pytest.mark.parametrize("given", [{}, {"drainSeconds": 600, "gracePeriodSeconds": 60}])
def test_long_drains_are_cut_and_short_ones_stay(given: dict[str, int]) -> None:
    rollout = manifests.rollout(API_VERSION, manifests.workload()["metadata"], routed=True)
    routing = rollout["spec"]["strategy"]["canary"]["trafficRoutings"][0]
    del routing["drainSeconds"], routing["gracePeriodSeconds"]
    routing.update(given)
    plan = plan_of("canary", [manifests.workload(), rollout], True, API_VERSION)
    cut = plan.rollout["spec"]["strategy"]["canary"]["trafficRoutings"][0]
    assert (cut["drainSeconds"], cut["gracePeriodSeconds"]) == (manifests.SHORT_WAIT, manifests.SHORT_GRACE)
    routing.update({"drainSeconds": 0, "gracePeriodSeconds": 0})
    plan = plan_of("canary", [manifests.workload(), rollout], True, API_VERSION)
    assert plan.rollout["spec"]["strategy"]["canary"]["trafficRoutings"][0]["drainSeconds"] == 0


def test_gates_that_nothing_here_could_pass_are_left_out() -> None:
    given = manifests.rollout(API_VERSION, manifests.workload()["metadata"], routed=True, gated=True)
    watched = [{"name": "errors", "metric": {"signal": "ErrorRate", "max": "2%"}}]
    given["spec"]["strategy"]["canary"]["gates"] = watched
    canary = plan_of("canary", [manifests.workload(), given], True, API_VERSION).rollout["spec"]["strategy"]["canary"]
    assert "gates" not in canary
    assert all("gates" not in step for step in canary["steps"])
    assert given["spec"]["strategy"]["canary"]["gates"] == watched


def test_a_bad_version_is_one_of_our_own_manifests() -> None:
    with pytest.raises(UsageError, match="bad-version plays its own manifests"):
        plan_of("bad-version", [manifests.workload()], True, API_VERSION)


def test_a_pair_is_one_of_our_own_manifests() -> None:
    with pytest.raises(UsageError, match="shift plays its own manifests"):
        plan_of("shift", [manifests.workload()], True, API_VERSION)


def test_the_pair_that_shifts_can_be_released_and_its_sides_differ_in_their_number_only() -> None:
    plan = plan_of("shift", [], True, API_VERSION)
    assert problems(Rollout.model_validate(plan.rollout).spec) == ()
    (green,) = (each for each in plan.others if each["kind"] == "LeaderWorkerSet")
    assert (plan.workload_name, plan.edited, green["metadata"]["name"]) == ("llama-blue", "llama-green", "llama-green")
    assert [each["spec"].pop("replicas") for each in (plan.workload, green)] == [manifests.GROUPS, 0]
    assert plan.workload["spec"] == green["spec"]
    assert plan.template == manifests.with_image(green, manifests.NEW)


def test_the_bad_version_differs_from_a_good_one_in_its_image_and_its_speed_only() -> None:
    good, bad = (plan_of(what, [], True, API_VERSION) for what in ("canary", "bad-version"))
    assert (good.workload, good.rollout, good.others) == (bad.workload, bad.rollout, bad.others)
    slow = {"spec": {"leaderWorkerTemplate": good.template}}
    assert bad.template == manifests.with_first_token(
        manifests.with_image(slow, manifests.SLOW), manifests.SLOW_FIRST_TOKEN
    )


@pytest.mark.parametrize("what", ["abort", "blue-green", "in-place", "surge"])
def test_other_demos_and_those_of_a_users_manifests_have_no_gate(what: str) -> None:
    for plan in (plan_of(what, [], True, API_VERSION), plan_of("canary", [manifests.workload()], True, API_VERSION)):
        assert "gates" not in str(plan.rollout)
        assert "annotations" not in str(plan.workload)


def test_only_the_demo_of_our_own_manifests_adds_a_route() -> None:
    assert {each["kind"] for each in plan_of("canary", [], True, API_VERSION).others} == {
        "Service",
        "Gateway",
        "HTTPRoute",
    }
    plan = plan_of("canary", [manifests.workload()], True, API_VERSION)
    assert plan.others == ()
    assert "trafficRoutings" not in plan.rollout["spec"]["strategy"]["canary"]
