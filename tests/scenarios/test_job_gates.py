"""Stories of releases whose steps ask a Job: how it ends decides, and what the cluster did to it never does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import deepcopy
from typing import Any, cast

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.jobs import JOB_NAME
from rollout_lws.objects.kueue import QUEUE_NAME
from rollout_lws.objects.resources import CRON_JOBS, JOBS, PODS, Resource
from rollout_lws.objects.writes import Create, Write
from rollout_lws.sandbox.behaviours.base import Object
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.evals import EVALS, cron_job
from tests.scenarios.names import KEYS, NAMESPACE, ROLLOUTS
from tests.scenarios.routed import SERVICE, routed_at_rest, share
from tests.scenarios.stories import CANARY, assert_clean
from tests.scenarios.world import World

pytestmark = pytest.mark.looptime

WAYS_ON = (
    "to measure it again: kubectl rollout-lws retry llama; to pass it by hand: kubectl rollout-lws skip llama evals"
)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    made.close()


async def at_rest(world: World, *gates: dict[str, Any], pause: Any = None, **strategy: Any) -> None:
    """A Rollout whose first step has gates, Healthy."""
    world.create_workload()
    first = {"replicas": 1, "gates": deepcopy(list(gates or [EVALS])), "pause": pause or {"duration": 0}}
    world.create_rollout(first, {"replicas": "100%", "pause": {"duration": 0}}, **strategy)
    await world.rest()
    world.start_controller()
    await world.until_state("Healthy")
    await world.rest()


async def released(world: World, *gates: dict[str, Any], pause: Any = None, **strategy: Any) -> None:
    await at_rest(world, *gates, pause=pause, **strategy)
    world.set_image("v2")
    await world.until(lambda: world.status["phase"] == "Progressing")


def jobs(world: World) -> list[Object]:
    return world.server.list(JOBS, NAMESPACE)


def the_job(world: World) -> Object:
    (only,) = jobs(world)
    return only


def pods(world: World) -> list[Object]:
    return world.server.list(PODS, NAMESPACE, label_selector=JOB_NAME)


def gate(world: World) -> dict[str, Any]:
    return next((each for each in world.status.get("gates", ()) if each["name"] == "evals"), {})


def made(world: World) -> list[Write]:
    return [each for each in world.writes if isinstance(each, Create) and each.resource == JOBS]


async def test_a_job_that_is_complete_passes(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job())
    await released(world)
    await world.until_state("Analyzing")
    assert world.status["message"] == "step 1 is measured: gate evals"
    await world.until_state("Healthy", 3600)
    await world.rest()
    assert_clean(world, "v2")
    told = next(event for event in world.events if event.reason == "GatePassed")
    assert told.note == f"gate evals: Job {the_job(world)['metadata']['name']} is complete"
    assert len(made(world)) == 1


async def test_the_job_is_made_as_kubectl_makes_one_from_a_cron_job(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job())
    await released(world)
    await world.until(lambda: bool(pods(world)))
    job, rollout = the_job(world), world.rollout
    meta, spec = job["metadata"], job["spec"]
    assert meta["labels"] == {"team": "evals", KEYS.gate_of: "llama", KEYS.gate: "evals"}
    assert meta["annotations"] == {"cronjob.kubernetes.io/instantiate": "manual"}
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Rollout", rollout["metadata"]["uid"], True)
    assert "ttlSecondsAfterFinished" not in spec
    (container,) = spec["template"]["spec"]["containers"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    told = {each["name"]: each["value"] for each in container["env"]}
    leader = world.server.get(PODS, NAMESPACE, f"{CANARY}-0")
    assert told["ROLLOUT_STEP"] == "mine"
    assert told["ROLLOUT_NEW_ADDRESSES"] == leader["status"]["podIP"]
    assert len(told["ROLLOUT_STABLE_ADDRESSES"].split(",")) == 4
    assert (told["ROLLOUT_NAME"], told["ROLLOUT_NAMESPACE"], told["ROLLOUT_GATE"]) == ("llama", NAMESPACE, "evals")
    assert told["ROLLOUT_NEW_REVISION"] != told["ROLLOUT_STABLE_REVISION"]


async def test_a_job_that_fails_takes_the_version_back_with_its_last_words(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job(exit_code="3", last_words="accuracy 0.61 is below 0.80"))
    await released(world, onFailure="Abort")
    await world.until_state("Aborted", 3600)
    await world.rest()
    assert world.groups() == dict.fromkeys(range(4), "v1")
    assert "container evals ended with exit code 3: accuracy 0.61 is below 0.80" in world.status["aborted"]["message"]
    assert len(jobs(world)) == 1, "its logs can be read"


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ({"fail": "ImagePullBackOff"}, "container evals: ImagePullBackOff"),
        ({"fail": "Unschedulable"}, "is not scheduled: 0/8 nodes are available"),
        ({"fail": "FailedCreate"}, "it gets no pod: Error creating"),
    ],
    ids=lambda each: each["fail"] if isinstance(each, dict) else "",
)
async def test_a_job_that_never_begins_says_why_and_is_no_verdict(
    world: World, ends: dict[str, str], told: str
) -> None:
    world.server.create(CRON_JOBS, cron_job(**ends))
    await released(world, onFailure="Abort")
    await world.until(lambda: told in world.status.get("message", ""))
    assert world.state == "Analyzing"
    await world.until_state("Stalled", 3600)
    assert gate(world)["result"] == "Error"
    assert "has not ended within 300 s" in gate(world)["message"]
    assert told in gate(world)["message"]
    assert world.groups(CANARY) == {0: "v2"}
    await world.rest()
    assert the_job(world)["spec"]["suspend"]
    assert pods(world) == []


async def test_a_job_that_was_evicted_is_no_verdict(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job(fail="Evicted"))
    await released(world, onFailure="Abort")
    await world.until_state("Stalled", 3600)
    assert gate(world)["result"] == "Error"
    assert "Evicted: The node was low on resource" in gate(world)["message"]
    assert gate(world)["message"] in world.status["message"]
    assert WAYS_ON in world.status["message"]


async def test_a_job_that_is_deleted_by_hand_is_not_made_again_until_it_is_asked_for(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job())
    await released(world, onFailure="Abort")
    await world.until(lambda: "job" in gate(world))
    name = the_job(world)["metadata"]["name"]
    world.server.delete(JOBS, NAMESPACE, name, propagation="Background")
    await world.until_state("Stalled")
    assert gate(world)["message"] == f"Job {name} was deleted before it had ended"
    await world.sleep(600)
    assert jobs(world) == []
    world.request("Retry")
    await world.until_state("Healthy", 3600)
    assert the_job(world)["metadata"]["name"] != name


async def test_a_job_of_its_name_that_another_owner_has_is_left_alone(world: World) -> None:
    await released(world)
    await world.until(lambda: bool(world.status.get("gateJobs")))
    name = world.status["gateJobs"][0]["name"]
    other = JOBS.manifest(name, NAMESPACE, spec=cron_job()["spec"]["jobTemplate"]["spec"])
    before = world.server.create(JOBS, other)
    await world.until_state("Stalled")
    assert gate(world)["result"] == "Error"
    assert "not this Rollout's" in gate(world)["message"]
    assert the_job(world)["metadata"]["uid"] == before["metadata"]["uid"]
    assert not the_job(world)["spec"]["suspend"]


async def test_a_job_that_takes_too_long_is_stopped_and_stays(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job(ends_after="1h"))
    await released(world, onFailure="Abort")
    await world.until_state("Stalled", 3600)
    assert gate(world)["message"].endswith("has not ended within 300 s")
    await world.rest()
    assert the_job(world)["spec"]["suspend"]
    assert pods(world) == []
    assert world.status["gateJobs"][0]["ended"]


async def test_a_cron_job_that_is_missing_is_waited_for(world: World) -> None:
    await released(world)
    await world.until(lambda: "CronJob evals does not exist" in world.status.get("message", ""))
    assert world.state == "Analyzing"
    world.server.create(CRON_JOBS, cron_job())
    await world.until_state("Healthy", 3600)


async def test_a_cron_job_that_never_comes_is_no_verdict(world: World) -> None:
    await released(world, onFailure="Abort")
    await world.until_state("Stalled", 3600)
    assert gate(world)["result"] == "Error"
    assert gate(world)["message"] == (
        "no Job was made within 300 s: CronJob evals does not exist: create it, or name another one"
    )


async def test_a_gate_that_is_skipped_stops_its_job(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job(ends_after="1h"))
    await released(world, pause={"duration": 600})
    await world.until(lambda: bool(pods(world)))
    world.request("SkipGate", gate="evals", by="ann")
    await world.until(lambda: not pods(world))
    assert the_job(world)["spec"]["suspend"]
    assert gate(world)["result"] == "Skipped"
    await world.until_state("Healthy", 3600)


async def test_a_retry_asks_another_job(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job(exit_code="1"))
    await released(world)
    await world.until_state("Stalled", 3600)
    first = the_job(world)["metadata"]["name"]
    world.server.patch(CRON_JOBS, NAMESPACE, "evals", {"spec": cron_job()["spec"]})
    good = {"metadata": {"annotations": {PREFIX + "exit-code": "0"}}}
    world.server.patch(CRON_JOBS, NAMESPACE, "evals", {"spec": {"jobTemplate": {"spec": {"template": good}}}})
    world.request("Retry")
    await world.until_state("Healthy", 3600)
    names = [each["metadata"]["name"] for each in jobs(world)]
    assert len(names) == 2
    assert first in names


async def test_a_job_that_a_wiped_status_has_lost_goes_as_one_of_an_earlier_release(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job(ends_after="1h"))
    await released(world)
    await world.until(lambda: bool(pods(world)))
    lost = the_job(world)["metadata"]["name"]
    world.patch(ROLLOUTS, world.name, {"status": dict.fromkeys(world.status)}, "status")
    await world.until(lambda: gate(world).get("job") not in (None, lost))
    await world.rest()
    assert the_job(world)["metadata"]["name"] == gate(world)["job"]
    assert len(pods(world)) == 1


async def test_an_abort_stops_the_job(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job(ends_after="1h"))
    await released(world)
    await world.until(lambda: bool(pods(world)))
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert the_job(world)["spec"]["suspend"]
    assert pods(world) == []


async def test_a_job_goes_on_while_the_release_is_paused(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job())
    await released(world)
    await world.until(lambda: bool(pods(world)))
    world.request("Pause")
    await world.until_state("Paused")
    await world.sleep(120)
    assert any(each["type"] == "Complete" for each in the_job(world)["status"]["conditions"])
    world.request("Resume")
    await world.until_state("Healthy", 3600)


async def test_the_next_release_deletes_the_jobs_of_the_one_before(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job())
    await released(world)
    await world.until_state("Healthy", 3600)
    first = the_job(world)["metadata"]["name"]
    world.set_image("v3")
    await world.until(lambda: bool(jobs(world)) and first not in {each["metadata"]["name"] for each in jobs(world)})
    await world.until_state("Healthy", 3600)
    await world.rest()
    assert [each["name"] for each in world.status["gateJobs"]] == [the_job(world)["metadata"]["name"]]
    assert len(pods(world)) == 1


async def test_nothing_remains_of_a_rollout_that_is_deleted(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job(ends_after="1h"))
    await released(world)
    await world.until(lambda: bool(pods(world)))
    world.delete(ROLLOUTS, world.name)
    await world.until(lambda: not world.server.list(ROLLOUTS, NAMESPACE))
    await world.rest()
    assert (jobs(world), pods(world)) == ([], [])


async def test_nothing_is_written_while_the_job_runs(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job(ends_after="200s"))
    await released(world)
    await world.until(lambda: bool(pods(world)))
    await world.sleep(10)
    before = len(world.writes)
    await world.sleep(150)
    assert len(world.writes) == before
    await world.until_state("Healthy", 3600)


async def test_a_kind_is_watched_only_while_a_gate_needs_it(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job())
    await at_rest(world)
    assert not {JOBS, CRON_JOBS} & {*world.view.watched}
    world.set_image("v2")
    await world.until_state("Analyzing")
    await world.until_state("Healthy", 3600)
    await world.rest()
    assert not {JOBS, CRON_JOBS} & {*world.view.watched}


async def test_without_the_rights_a_gate_says_which_is_missing_and_is_no_verdict(world: World) -> None:
    denied = "jobs.batch is forbidden: allow the controller's account to list and watch jobs.batch in namespace default"
    cast(dict[Resource, str], world.view.refused)[JOBS] = denied
    world.server.create(CRON_JOBS, cron_job())
    await released(world, onFailure="Abort")
    await world.until(lambda: denied in world.status.get("message", ""))
    await world.until_state("Stalled", 3600)
    assert gate(world)["result"] == "Error"
    assert gate(world)["message"] == f"no Job was made within 300 s: {denied}"
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()


async def test_a_job_that_may_not_be_made_is_told_as_any_refused_write(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job())
    forbidden = ApiError(403, "Forbidden", 'jobs.batch is forbidden: User "x" cannot create resource "jobs"')
    world.refuse = lambda write: forbidden if write.resource == JOBS else None
    await released(world)
    await world.until(lambda: world.condition("Stalled")["reason"] == "WriteRefused")
    assert "install --with gate-jobs gives it" in world.status["message"]
    world.refuse = lambda _: None
    await world.until_state("Healthy", 3600)


async def test_a_job_that_kueue_queues_is_deleted_to_stop_it(world: World) -> None:
    """Kueue would start a suspended one again."""
    queued = cron_job(ends_after="1h")
    queued["spec"]["jobTemplate"]["metadata"]["labels"][QUEUE_NAME] = "evals"
    world.server.create(CRON_JOBS, queued)
    await released(world)
    await world.until(lambda: bool(pods(world)))
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert (jobs(world), pods(world)) == ([], [])
    assert "gateJobs" not in world.status


@pytest.mark.parametrize(("code", "ends"), [("0", "Healthy"), ("1", "Aborted")], ids=["good", "bad"])
async def test_a_job_before_traffic_holds_requests_back(world: World, code: str, ends: str) -> None:
    world.server.create(CRON_JOBS, cron_job(exit_code=code))
    steps = (
        {"replicas": 1, "traffic": "10%", "gates": [{**EVALS, "when": "BeforeTraffic"}], "pause": {"duration": 30}},
        {"replicas": "100%", "pause": {"duration": 0}},
    )
    await routed_at_rest(world, *steps)
    world.patch_rollout({"strategy": {"onFailure": "Abort"}})
    world.set_image("v2")
    await world.until(lambda: bool(pods(world)))
    assert world.state == "Analyzing"
    (container,) = the_job(world)["spec"]["template"]["spec"]["containers"]
    assert {"name": "ROLLOUT_SERVICE", "value": SERVICE} in container["env"]
    shares: set[float] = set()
    world.checks.append(lambda seen: shares.add(share(seen)) if not has_ended(seen) else None)
    await world.until(lambda: has_ended(world))
    assert shares <= {0}
    await world.until_state(ends, 3600)
    await world.rest()
    assert set(world.groups().values()) == {"v2" if ends == "Healthy" else "v1"}


def has_ended(world: World) -> bool:
    """Whether the Job has ended."""
    conditions = the_job(world).get("status", {}).get("conditions") or ()
    return any(each["type"] in ("Complete", "Failed") for each in conditions)


async def begin(world: World) -> None:
    world.server.create(CRON_JOBS, cron_job())
    await at_rest(world)


async def two_releases(world: World, _: None) -> None:
    for tag in ("v2", "v3"):
        world.set_image(tag)
        await world.until(lambda tag=tag: world.state == "Healthy" and set(world.groups().values()) == {tag})  # type: ignore[misc]
        assert len(jobs(world)) == 1
    await world.rest()
    assert_clean(world, "v3")
    assert len(made(world)) == 2


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_controller_killed_after_any_write_asks_one_job_an_attempt(part: int) -> None:
    kill_after_every_write(begin, two_releases, part)
