"""A Rollout whose release has left the requests with the workload that it has made is taken off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rollout_lws.cli.releases import typed
from rollout_lws.cli.uninstall.detach_plan import Detachment, detachments, left_standing_in
from rollout_lws.cli.uninstall.opening import restoring_patch
from rollout_lws.cli.uninstall.plan import Controller, Plan, keeping, lines, refusal
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.targets.target import Target
from tests.cli.uninstall.commands import carry_out, printed
from tests.cli.uninstall.held import GROUP, KEYS, NEW, RUNS, by_place, lws, rollout
from tests.cli.uninstall.place import Place, place
from tests.cli.uninstall.test_detach_plan import PROGRESSING, PROMOTING, WAITING

pytestmark = pytest.mark.rare(3)

Object = dict[str, Any]
RUNNING = Controller("rollout-lws-system", "rollout-lws-controller", available=1)


def stand_in(**given: Any) -> Object:
    made = lws("llama-canary", by="uid-llama", side="active", **given)
    made["metadata"]["labels"][KEYS.stands_for] = "llama"
    return made


def parked() -> Object:
    made = lws(side="parked")
    made["spec"]["replicas"] = 0
    return made


def swap(*, as_is: bool = False, **status: Any) -> Object:
    made = rollout(**{"active": "llama-canary", **status})
    made["spec"]["strategy"] = {"blueGreen": {"promotion": "Swap", "steps": [{"replicas": 1}]}}
    made["spec"]["replicas"] = 4
    if as_is:
        made["metadata"]["annotations"] = {KEYS.leave_as_is: "true"}
    return made


def foretold(workloads: dict[tuple[str, str, str], Target], *rollouts: Object) -> tuple[Detachment, ...]:
    return detachments(GROUP, rollouts, workloads, lambda _: ("", ()))


BOTH = "leaderworkerset/llama-canary serves in its place, and leaderworkerset/llama"


@pytest.mark.parametrize("status", [{}, PROGRESSING, {"active": None}], ids=["at rest", "a release is on", "forged"])
def test_while_another_workload_serves_nothing_is_taken_off(status: Object) -> None:
    (each,) = foretold(by_place(stand_in(), parked()), swap(**status))
    assert (each.workload, each.stood_for, each.stays) == ("llama-canary", "llama", True)
    assert each.outlook == f"{BOTH} has 0 groups; nothing rolls"
    assert refusal(Plan((each,), RUNNING)) == (
        "rollout/llama in namespace default stays while leaderworkerset/llama-canary serves in place of"
        " leaderworkerset/llama: to have the requests brought there first, which loads its groups: rollout-lws home"
        " llama -n default; to leave both as they are: kubectl annotate rollouts.rollouts.kruise.io llama -n default"
        " rollouts.kruise.io/leave-as-is=true"
    )


def test_what_a_person_leaves_as_it_is_stays() -> None:
    (each,) = foretold(by_place(stand_in(), parked()), swap(as_is=True))
    stays = "both stay as they are, and the manifest of that one starts nothing"
    assert each.outlook == f"{BOTH} has 0 groups; {stays}; nothing rolls"
    assert refusal(Plan((each,), RUNNING)) == ""
    assert [held.workload for held in each.held] == ["llama-canary"]
    (each,) = foretold(by_place(stand_in()), swap(as_is=True))
    assert each.outlook == f"{BOTH} does not exist; {stays}; nothing rolls"


def test_a_version_in_the_template_of_what_serves_is_foretold() -> None:
    (each,) = foretold(by_place(stand_in(image=NEW), parked()), swap(as_is=True, stable={"templateHash": RUNS}))
    assert [roll.images for roll in each.rolls] == [(NEW,)]
    assert keeping(each) == "put the template of what runs back into leaderworkerset/llama-canary"


def test_a_release_from_home_goes_back_until_the_roles_have_changed() -> None:
    made = swap(**PROMOTING, active=None)
    (each,) = foretold(by_place(WAITING), made)
    assert each.outlook.startswith("its release (AwaitingApproval) goes back to revision rev-1 first")
    assert not each.stays


def test_what_a_deleted_rollout_has_left_serving_is_told_and_stays() -> None:
    left = by_place(stand_in(), parked())
    free = lws("llama-canary", side="active")
    free["metadata"]["labels"][KEYS.stands_for] = "llama"
    # What is still held is opened, and nothing else is changed.
    (each,) = foretold(left)
    assert (each.rollout, each.workload) == ("", "llama-canary")
    assert not foretold(by_place(free, parked()))
    notes = left_standing_in(GROUP, (), by_place(free, parked()))
    assert list(lines(Plan((), RUNNING, notes=notes))) == [
        "leaderworkerset/llama-canary in namespace default serves in place of leaderworkerset/llama, as a deleted"
        " Rollout has left them: both stay as they are"
    ]
    assert not left_standing_in(GROUP, (swap(),), left)
    assert restoring_patch(typed(free, LeaderWorkerSet), KEYS) is None
    body = restoring_patch(typed(stand_in(), LeaderWorkerSet), KEYS)
    assert body is not None and "labels" not in body["metadata"]


# On a cluster with a controller

NAME, CANARY = "scribe", "scribe-canary"


async def away(there: Place) -> None:
    """A release is over, and what it has made serves."""
    for each in there.manifests:
        if each["kind"] == "Rollout":
            plan = each["spec"]["strategy"]["blueGreen"]
            plan["trafficRoutings"][0] |= {"gracePeriodSeconds": 0, "drainSeconds": 0}
            plan["steps"] = [{"replicas": 1, "traffic": "10%", "pause": {}}]
    await there.install()
    await there.apply()
    await there.until(lambda: there.lws["spec"]["replicas"] == 4 and there.all_ready())
    await there.release("1.28")
    await promoted(there)
    assert replicas(there) == {NAME: 0, CANARY: 4}


async def promoted(there: Place) -> None:
    await there.does(f"rollout-lws promote {NAME}")
    await there.until(lambda: there.state() == "Healthy")


def replicas(there: Place) -> dict[str, int]:
    found = there.server.list(LEADER_WORKER_SETS, "default")
    return {each["metadata"]["name"]: each["spec"]["replicas"] for each in found}


async def test_it_is_refused_until_the_requests_are_home(tmp_path: Path) -> None:
    async with place(tmp_path, "swap") as there:
        await away(there)
        result = await there.run("rollout-lws uninstall --yes")
        assert isinstance(result.exception, UsageError)
        assert f"rollout-lws home {NAME} -n default" in str(result.exception)
        assert there.state() == "Healthy" and "deletionTimestamp" not in there.rollout()["metadata"]
        await there.does(f"rollout-lws home {NAME}")
        await there.until(lambda: there.state() == "AwaitingApproval")
        await promoted(there)
        assert replicas(there) == {NAME: 4}
        await there.leaves()
        assert replicas(there) == {NAME: 4} and there.traces() == []


async def test_what_is_to_stay_as_it_is_serves_on_and_is_told(tmp_path: Path) -> None:
    async with place(tmp_path, "swap") as there:
        await away(there)
        before = there.reader.leaders(CANARY)
        mark = {"metadata": {"annotations": {KEYS.leave_as_is: "true"}}}
        there.server.patch(there.resource("Rollout"), "default", NAME, mark)
        told = await there.uninstall()
        assert "both stay as they are" in "".join(told)
        carry_out(there.server, printed(told))
        assert replicas(there) == {NAME: 0, CANARY: 4} and there.reader.leaders(CANARY) == before
        made = there.server.get(LEADER_WORKER_SETS, "default", CANARY)
        assert made["metadata"]["labels"][KEYS.stands_for] == NAME and not made["metadata"].get("finalizers")
        assert made["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] == 0
        # A person who asks again is told what serves.
        assert f"leaderworkerset/{CANARY} in namespace default serves in place of" in (await there.uninstall())[0]
