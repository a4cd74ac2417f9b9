"""The command over HTTP and from files: what it prints, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.main import program
from rollout_lws.errors import ApiError, RolloutLwsError, UsageError
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.sandbox.faults import Effect
from tests.cli.conftest import World
from tests.cli.states import AWAITING, HASH, HEALTHY
from tests.docs.pages import blocks
from tests.drawing.reading import Picture

Object = dict[str, Any]
EXAMPLES = Path(__file__).parents[3] / "examples"
PLAN = """\
llama  LeaderWorkerSet/llama  ns default   4 groups of 2 pods, capacity ExtraWorkload
Change        none yet: this is how the next version would be released
GPU           32 now   48 at peak (step 2)   32 after
Model loads   6, 6 one after the other, at most 2 groups more than today
Takes         about 1h, and the time until step 2 is approved; a group loads for about 10m, as given
Disrupts      4 groups that get requests, up to 1.00 times the requests that run at one moment

STEP        NEW   OLD   LOADS    GPU   SHARE   LOAD NEW   LOAD OLD   BUSIEST   TAKES   THEN        WAY BACK
1           1     4     1        40    10%     0.40       0.90       1.00      10m3s   pause 2s    at once
2           2     4     1        48    40%     0.80       0.60       0.90      10m     approval    at once
3           2     4     0        48    40%     0.80       0.60       0.80      0s      promotion   at once
promotion   4     0     4 in 4   48    40%     0.80       0.80       1.00      40m3s               up to 4 loads, 40m
after       4     0     0        32            1.00                  1.00

Will be written
  Rollout llama                         changed                  its status, and a finalizer until all is restored
  BatchRelease llama                    made, changed, deleted   the record of the release; gone at its end
  ControllerRevision llama-f769654dfe   made                     the version that runs, to be able to go back to it
  ControllerRevision llama-<hash>       made                     the new version, to be able to go back to it later
"""


def run(*arguments: str, stdin: str = "") -> Result:
    result = CliRunner().invoke(program, ["plan", *arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit | RolloutLwsError):
        raise result.exception
    return result


def text(*objects: Object) -> str:
    return yaml.safe_dump_all(objects)


def rollout(**more: Any) -> Object:
    return manifests.rollout("rollouts.kruise.io/v1beta1", {"name": "llama"}, **more)


def offline(*objects: Object, **more: str) -> Object:
    """The plan of these manifests alone, as JSON."""
    options = [word for name, value in more.items() for word in (f"--{name.replace('_', '-')}", value)]
    result = run("-f", "-", "--offline", "-o", "json", *options, stdin=text(*objects))
    told: Object = json.loads(result.stdout)
    assert result.exit_code == (0 if told["possible"] else 1)
    return told


def with_image(image: str) -> Object:
    lws = manifests.workload()
    return {**lws, "spec": {**lws["spec"], "leaderWorkerTemplate": manifests.with_image(lws, image)}}


# From files alone


def test_a_plan_from_files_is_a_table_with_what_is_written_and_what_to_mind() -> None:
    given = text(manifests.workload(), rollout(routed=True), *manifests.traffic())
    result = run("-f", "-", "--offline", "--load-time", "10m", stdin=given)
    assert result.stdout.startswith(PLAN)
    assert "\nMind that\n  - whether the cluster has room for 16 more nvidia.com/gpu" in result.stdout
    assert "Will not be possible" not in result.stdout
    assert result.exit_code == 0


def test_without_a_known_load_time_rounds_are_told_instead() -> None:
    result = run("-f", "-", "--offline", stdin=text(manifests.workload(), rollout(routed=True)))
    assert "6 loads one after the other and " in result.stdout
    assert "(--load-time says it)" in result.stdout
    told = offline(manifests.workload(), rollout(routed=True))
    assert (told["loadSeconds"], told["totals"]["seconds"], told["steps"][0]["seconds"]) == (None, None, None)
    assert told["steps"][0]["waitSeconds"] == 3.0


@pytest.mark.parametrize(
    ("style", "capacity", "groups", "load", "told"),
    [
        (
            "canary",
            "",
            4,
            1.0,
            "4 groups that are deleted while they get requests lose what runs there, up to 1.00 times",
        ),
        # Surge groups end as well.
        ("canary", "Surge", 6, 1.5, "6 groups that are deleted"),
        ("canary", "InPlace", 4, 1.335, "until routers know (1 s, as gracePeriodSeconds says): give the container a"),
        ("blueGreen", "", 0, 0.0, ""),
    ],
)
def test_requests_that_end_with_their_group_are_told(
    style: str, capacity: str, groups: int, load: float, told: str
) -> None:
    said = offline(manifests.workload(), rollout(routed=True, style=style, capacity=capacity), *manifests.traffic())
    assert (said["totals"]["disruptedGroups"], said["totals"]["disruptedLoad"]) == (groups, load)
    assert sum(each["disruptedGroups"] for each in said["steps"]) == groups
    found = [each for each in said["cautions"] if "deleted while they get requests lose" in each]
    assert bool(found) is bool(groups)
    assert all(told in each for each in found)
    cuts = said["totals"]["connectionCuts"]
    assert cuts >= 2
    assert any(
        "keeps to Service llama-api, past the route" in each and f"up to {cuts} times" in each
        for each in said["cautions"]
    )


@pytest.mark.parametrize("capacity", ["", "Surge", "InPlace"])
def test_leaders_with_a_pre_stop_lose_nothing_that_is_told(capacity: str) -> None:
    lws = manifests.workload()
    for template in lws["spec"]["leaderWorkerTemplate"].values():
        if isinstance(template, dict) and "spec" in template:
            template["spec"]["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 15}}}
    said = offline(lws, rollout(routed=True, capacity=capacity), *manifests.traffic())
    assert said["totals"]["disruptedGroups"] >= 4
    assert not any("have no preStop" in each for each in said["cautions"])


def test_what_is_not_in_the_files_is_assumed_and_told() -> None:
    told = offline(manifests.workload(), rollout(routed=True))
    assert "not in the files, and assumed to be there and fit: Service llama-api, HTTPRoute llama" in told["cautions"]
    complete = offline(manifests.workload(), rollout(routed=True), *manifests.traffic())
    assert not any("assumed" in each for each in complete["cautions"])
    assert complete["steps"] == told["steps"]


@pytest.mark.parametrize("example", sorted(each.parent.name for each in EXAMPLES.glob("*/rollout.yaml")))
def test_every_example_can_be_planned(example: str) -> None:
    result = run("-f", str(EXAMPLES / example), "--offline", "-o", "json")
    assert json.loads(result.stdout)["refusals"] == []
    assert result.exit_code == 0


# As a picture


def test_a_picture_of_the_release_is_written_beside_the_plan(tmp_path: Path) -> None:
    given = text(manifests.workload(), rollout(routed=True), *manifests.traffic())
    file = tmp_path / "plan.svg"
    result = run("-f", "-", "--offline", "--load-time", "10m", "--svg", str(file), stdin=given)
    assert result.stdout.startswith(PLAN)
    drawn = Picture(file.read_text())
    assert drawn.told("title") == "llama: capacity ExtraWorkload"
    assert drawn.texts[1] == "4 groups; 6 model loads; about 1h and 1 approval; 32 to 48 GPU"
    alone = run("-f", "-", "--offline", "--load-time", "10m", "--svg", "-", stdin=given)
    assert alone.stdout == file.read_text()


def test_gates_and_pauses_of_a_plan_are_in_its_picture() -> None:
    made = rollout(routed=True)
    gates = [{"name": "first-token", "metric": {"signal": "TimeToFirstToken", "max": "1s"}, "window": 1200}]
    first_step(gates=gates, pause={"duration": 1500})(made)
    asked = ("--load-time", "10m", "--svg", "-")
    told = run("-f", "-", "--offline", *asked, stdin=text(manifests.workload(), made, *manifests.traffic()))
    drawn = Picture(told.stdout)
    assert {"first-token", "pause", "gate"} <= {*drawn.texts}
    ((begun, paused), _), ((since, judged), _) = drawn.boxes("pause"), drawn.boxes("gate")
    assert begun == since
    assert (judged - since) / (paused - begun) == pytest.approx(1200 / 1500, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "objects", "told"),
    [
        # Nothing says how long a group loads.
        ((), [manifests.workload(), rollout(routed=True)], "a picture is to scale: --load-time"),
        (
            ("--load-time", "5m"),
            [{**manifests.workload(), "spec": {**manifests.workload()["spec"], "replicas": 0}}, rollout()],
            "without --svg the plan says why",
        ),
        (
            ("--load-time", "5m"),
            [manifests.workload(), rollout(), {**rollout(), "metadata": {"name": "other"}}],
            "these are 2 (llama, other): give the NAME of one",
        ),
    ],
)
def test_what_cannot_be_drawn_is_told_and_no_file_is_written(
    arguments: tuple[str, ...], objects: list[Object], told: str, tmp_path: Path
) -> None:
    file = tmp_path / "plan.svg"
    result = run("-f", "-", "--offline", *arguments, "--svg", str(file), stdin=text(*objects))
    assert isinstance(result.exception, UsageError)
    assert told in str(result.exception)
    assert not file.exists()


def of_deployment() -> Object:
    made = rollout()
    made["spec"]["workloadRef"] |= {"apiVersion": "apps/v1", "kind": "Deployment"}
    return made


def strategy(**members: Any) -> Callable[[Object], None]:
    def edit(made: Object) -> None:
        made["spec"]["strategy"]["canary"].update(members)

    return edit


def first_step(**members: Any) -> Callable[[Object], None]:
    def edit(made: Object) -> None:
        made["spec"]["strategy"]["canary"]["steps"][0].update(members)

    return edit


@pytest.mark.parametrize(
    ("edit", "groups", "refused"),
    [
        (lambda made: made["spec"].update(strategy={}), 4, "exactly one of canary and blueGreen must be set"),
        (strategy(capacity="InPlace"), 1, "has 1 group, and capacity InPlace renews groups while others serve"),
        (first_step(traffic="100%"), 4, "step 1 sends all requests to 1 of 4 groups, which cannot carry them"),
        (strategy(capacity="Surge", enableExtraWorkloadForCanary=True), 4, "enableExtraWorkloadForCanary"),
        (first_step(replicas=3), 4, "spec.strategy.canary.steps[1].replicas"),
        (strategy(capacity="InPlace", steps=[{"replicas": 1, "traffic": "60%"}]), 4, "more than the 2 times"),
    ],
)
def test_what_the_controller_would_refuse_ends_with_1(
    edit: Callable[[Object], None], groups: int, refused: str
) -> None:
    lws, made = manifests.workload(), rollout(routed=True)
    lws["spec"]["replicas"] = groups
    edit(made)
    told = offline(lws, made)
    assert any(refused in each for each in told["refusals"]), told["refusals"]
    shown = run("-f", "-", "--offline", stdin=text(lws, made))
    assert "\nWill not be possible\n" in shown.stdout
    assert "Will be written" not in shown.stdout


@pytest.mark.parametrize(
    ("edit", "lws", "caution"),
    [
        (first_step(replicas="60%", traffic="5%"), {"replicas": 3}, "step 1 takes 2 groups beside"),
        (
            strategy(steps=[{"replicas": 1}, {"replicas": "10%"}]),
            {"replicas": 4},
            "step 2 (10%) makes no further",
        ),
        (strategy(steps=[{"replicas": 1, "traffic": "auto"}]), {"replicas": 6}, "auto is 14%, the nearest"),
        (
            strategy(capacity="InPlace", steps=[{"replicas": "100%", "traffic": "auto"}]),
            {"replicas": 4},
            "step 1 renews 3 of 4 groups: the last one belongs to the promotion",
        ),
        (strategy(capacity="InPlace"), {"replicas": 4}, "a group carries up to 1.34 times what it has at rest"),
        (lambda made: made["spec"].update(disabled=True), {}, "rollout/llama is disabled"),
        (lambda made: made["spec"]["strategy"].update(paused=True), {}, "rollout/llama is paused"),
        (
            lambda made: made["spec"]["strategy"].update(progressDeadlineSeconds=60),
            {},
            "a group loads for 10m, longer than progressDeadlineSeconds (60 s)",
        ),
        (lambda _: None, {"replicas": 0}, "has 0 groups, and a version takes effect there by itself"),
        (
            lambda _: None,
            {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}},
            "states rollingUpdateConfiguration.partition",
        ),
        (
            lambda _: None,
            {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 1}}},
            "maxUnavailable is 0 groups",
        ),
    ],
)
def test_what_to_mind_is_told(edit: Callable[[Object], None], lws: Object, caution: str) -> None:
    workload, made = manifests.workload(), rollout(routed=True)
    workload["spec"].update(lws)
    edit(made)
    told = offline(workload, made, load_time="10m")
    assert told["possible"]
    assert any(caution in each for each in told["cautions"]), told["cautions"]


def test_a_queue_of_kueue_is_named() -> None:
    lws = manifests.workload()
    lws["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "inference"}
    told = offline(lws, rollout())
    assert any(each.startswith("Kueue admits groups by queue inference: whether it has") for each in told["cautions"])
    assert any("keep the release shorter than Kueue's waitForPodsReady (30 min" in each for each in told["cautions"])
    assert any("before the deadline of a step (3600 s)" in each for each in told["cautions"])


@pytest.mark.parametrize(
    ("capacity", "caution"),
    [
        (
            "ExtraWorkload",
            "4 PersistentVolumeClaims of groups that go at the end stay, such as cache-llama-canary-0, and groups",
        ),
        ("Surge", "4 PersistentVolumeClaims of groups that go at the end stay, such as cache-llama-4, and groups"),
        ("InPlace", ""),
    ],
)
def test_volumes_that_stay_after_a_release_are_named(capacity: str, caution: str) -> None:
    lws, made = manifests.workload(), rollout()
    lws["spec"]["leaderWorkerTemplate"]["volumeClaimTemplates"] = [
        {"metadata": {"name": "cache"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    ]
    made["spec"]["strategy"]["canary"]["capacity"] = capacity
    told = [each for each in offline(lws, made)["cautions"] if "PersistentVolumeClaims" in each]
    assert len(told) == bool(caution)
    assert all(caution in each for each in told)


def test_leaders_that_get_requests_before_their_workers_exist_are_told() -> None:
    lws = manifests.workload()
    lws["spec"]["startupPolicy"] = "LeaderReady"
    told = "startupPolicy is LeaderReady: each renewed leader is ready, and gets requests, before LWS makes its workers"
    assert any(each.startswith(told) for each in offline(lws, rollout(routed=True))["cautions"])
    assert not any(each.startswith(told) for each in offline(lws, rollout())["cautions"])


@pytest.mark.parametrize(
    ("selector", "caution"),
    [
        ({"app": "llama"}, "Service chat shares requests evenly among leaders of both versions"),
        ({"leaderworkerset.sigs.k8s.io/name": "llama"}, "Service chat selects no group of the new version"),
    ],
)
def test_without_routing_it_is_told_whom_services_reach(selector: dict[str, str], caution: str) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "chat"}, "spec": {"selector": selector}}
    told = offline(manifests.workload(), rollout(), service)
    assert any(caution in each for each in told["cautions"])


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        ((rollout(),), "rollout/llama refers to LeaderWorkerSet 'llama', which is not in the files"),
        ((manifests.workload(),), "no Rollout releases LeaderWorkerSet llama"),
        (
            (rollout() | {"spec": {"strategy": {"canary": {"steps": 3}}}}, manifests.workload()),
            "would be refused",
        ),
        ((of_deployment(), manifests.workload()), "spec.workloadRef names apps/v1 Deployment; only leaderworkerset"),
    ],
)
def test_what_cannot_be_planned_is_said_in_a_line(objects: tuple[Object, ...], told: str) -> None:
    result = run("-f", "-", "--offline", stdin=text(*objects))
    assert isinstance(result.exception, UsageError)
    assert told in str(result.exception)


@pytest.mark.parametrize("arguments", [(), ("--offline",), ("llama", "--offline"), ("lws/llama",)])
def test_usage_that_makes_no_sense_ends_with_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


def placed(obj: Object, namespace: str | None) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def test_a_null_namespace_is_none() -> None:
    told = offline(placed(manifests.workload(), None), placed(rollout(), None))
    assert (told["namespace"], told["replicas"]) == ("default", 4)


@pytest.mark.parametrize(
    ("objects", "arguments", "told"),
    [
        (
            [placed(manifests.workload(), "prod"), placed(rollout(), "prod")],
            ["-n", "staging"],
            "rollout/llama is of namespace prod, staging was asked for: give -n prod",
        ),
        (
            [placed(manifests.workload(), "prod")],
            ["-n", "staging"],
            "leaderworkerset/llama is of namespace prod, staging was asked for: give -n prod",
        ),
        (
            [placed(rollout(), "prod"), placed(rollout(), "staging")],
            [],
            "rollout/llama of prod and rollout/llama of staging: give -n prod",
        ),
    ],
)
def test_what_is_of_another_namespace_than_is_planned_is_an_error(
    objects: list[Object], arguments: list[str], told: str
) -> None:
    result = run("-f", "-", "--offline", *arguments, stdin=text(*objects))
    assert isinstance(result.exception, UsageError)
    assert told in str(result.exception)


def test_of_two_namespaces_the_one_that_is_asked_for_is_planned() -> None:
    both = [placed(each, there) for there in ("prod", "staging") for each in (manifests.workload(), rollout())]
    assert offline(*both, namespace="staging")["namespace"] == "staging"


def test_nulls_in_metadata_are_what_was_not_said() -> None:
    made = rollout()
    made["metadata"] |= {"annotations": None, "labels": None}
    assert offline(manifests.workload(), made)["refusals"] == []


def test_without_a_cluster_the_way_to_plan_files_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    result = run("-f", "-", stdin=text(manifests.workload(), rollout()))
    assert isinstance(result.exception, UsageError)
    assert "; with --offline files are planned by themselves" in str(result.exception)


@pytest.mark.parametrize(
    ("hard", "used", "told"),
    [("40", "32", "leaves 8 nvidia.com/gpu"), ("48", "32", ""), ("9k", "0", "")],
)
def test_a_quota_that_leaves_too_little_is_told_with_the_step_that_waits(hard: str, used: str, told: str) -> None:
    key = "requests.nvidia.com/gpu"
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus"},
        "status": {"hard": {key: hard, "pods": "9"}, "used": {key: used}},
    }
    cautions = offline(manifests.workload(), rollout(), quota)["cautions"]
    found = [each for each in cautions if each.startswith("ResourceQuota")]
    assert bool(found) is bool(told)
    assert all(told in each and "it waits in step 2 for quota" in each for each in found)


def test_a_quota_that_is_used_up_says_nothing_of_a_release_that_cannot_be() -> None:
    made = rollout()
    first_step(replicas=3)(made)
    key = "requests.nvidia.com/gpu"
    status = {"hard": {key: "16"}, "used": {key: "32"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus"}, "status": status}
    told = offline(manifests.workload(), made, quota)
    assert told["refusals"]
    assert not any("ResourceQuota" in each for each in told["cautions"])


# With a cluster


def planned(world: World, *arguments: str) -> Object:
    result = world.run("plan", *arguments, "-o", "json")
    told: Object = json.loads(result.stdout)
    assert result.exit_code == (0 if told["possible"] else 1)
    return told


def test_a_plan_by_name_is_of_what_the_cluster_has(world: World) -> None:
    world.release(**HEALTHY)
    told = planned(world, "rollout/llama")
    assert (told["change"], told["at"], told["replicas"], told["style"]) == (None, None, 4, "ExtraWorkload")
    assert [each["groups"]["new"] for each in told["steps"]] == [1, 2, 2, 4]
    assert told["totals"]["modelLoads"] == 6


def test_a_release_that_is_on_is_told_where_it_is(world: World) -> None:
    world.release()
    lws = world.do(lambda: world.server.get(LEADER_WORKER_SETS, "default", "llama"))
    stable = {"templateHash": HASH, "revision": "", "workloadUID": lws["metadata"]["uid"]}
    world.tell(**AWAITING, stable=stable)
    assert planned(world, "llama")["at"] == "step 2"
    shown = world.run("plan", "llama", "--load-time", "10m").stdout
    assert "\nNow at        step 2; after it 4 loads, about 40m\n" in shown
    assert "\n> 2 " in shown


def test_a_file_is_laid_over_what_the_cluster_has(world: World, tmp_path: Path) -> None:
    world.release(**HEALTHY)
    file = tmp_path / "new.yaml"
    file.write_text(text(with_image(manifests.NEW)))
    told = planned(world, "-f", str(file))
    assert told["change"] == "vllm-openai v0.18.1 -> v0.19.0 (leader, worker)"
    before = world.do(lambda: world.server.get(LEADER_WORKER_SETS, "default", "llama"))
    assert before["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] == manifests.OLD


def test_a_service_that_is_missing_in_the_cluster_is_a_refusal(world: World, tmp_path: Path) -> None:
    world.release(**HEALTHY)
    file = tmp_path / "rollout.yaml"
    file.write_text(text(rollout(routed=True)))
    refusals = planned(world, "-f", str(file))["refusals"]
    assert any(each.startswith("Service llama-api does not exist in namespace default") for each in refusals)


@pytest.fixture
def current(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The world that nobody has to name."""
    monkeypatch.setenv("KUBECONFIG", str(world.kubeconfig))
    return world


@pytest.mark.parametrize("code", [403, 500])
def test_a_cluster_that_refuses_is_not_one_that_does_not_answer(current: World, code: int) -> None:
    refusal = ApiError(code, "Forbidden", "statefulsets.apps is forbidden")
    current.do(lambda: current.http.gate.faults.add(Effect(refusal=refusal), "list", "statefulsets", count=None))
    result = run("-f", "-", stdin=text(manifests.workload(), rollout()))
    assert isinstance(result.exception, ApiError)


@pytest.mark.usefixtures("current")
def test_a_rollout_that_is_not_there_is_told_though_files_are_given() -> None:
    result = run("other", "-f", "-", stdin=text(*manifests.traffic()))
    assert isinstance(result.exception, UsageError)
    assert "there is no Rollout 'other' in namespace 'default'" in str(result.exception)


def test_a_rollout_that_is_not_there_is_a_line_that_says_where_to_look(world: World) -> None:
    result = world.run("plan", "other")
    assert isinstance(result.exception, UsageError)
    assert "there is no Rollout 'other' in namespace 'default'" in str(result.exception)


def test_another_group_is_found(elsewhere: World) -> None:
    elsewhere.release(**HEALTHY)
    told = planned(elsewhere, "llama")
    assert told["writes"][0]["apiVersion"] == "rollouts.example.org/v1beta1"


def test_the_page_shows_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    shown = next(blocks(Path("docs/plan.md"), "text"))
    result = run("-f", "examples/vllm/", "--offline", "--load-time", "12m")
    # The page is narrower than a pipe.
    assert result.stdout.split() == shown.replace("\n    ", " ").split()
