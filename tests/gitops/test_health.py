"""At every write of releases of every style, kstatus, Flux' expressions and Argo CD's script say the same."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.rollout.reasons import Reason
from tests.gitops import argocd, flux
from tests.scenarios.names import NAMESPACE, ROLLOUTS
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import PROMOTED_STEPS, at_rest
from tests.scenarios.styles import STYLES, Style
from tests.scenarios.world import NAME

pytestmark = pytest.mark.looptime
SCRIPT = argocd.scripts("rollouts.kruise.io_Rollout").health
SAME = {"Healthy": "Current", "Progressing": "InProgress", "Suspended": "InProgress", "Degraded": "Failed"}
ID = "rollouts.kruise.io/rollout-id"


#: What keeps any version from being released, by the reason of Stalled.
GENERAL = {
    Reason.WORKLOAD_NOT_FOUND,
    Reason.WRONG_WORKLOAD_KIND,
    Reason.WORKLOAD_OWNED,
    Reason.SECOND_ROLLOUT,
    Reason.HASH_IDENTITY,
    Reason.LWS_TOO_OLD,
    Reason.MULTIKUEUE,
    Reason.NAME_TOO_LONG,
    Reason.INVALID_SPEC,
    Reason.WORKLOAD_UNRESPONSIVE,
    Reason.HOLD_CONFLICT,
    Reason.WRITE_REFUSED,
}


@pytest.mark.parametrize("reason", Reason)
def test_what_befell_another_release_is_not_told_of_this_one_but_what_stands_in_the_way_of_all_is(
    reason: Reason,
) -> None:
    condition = {"type": "Stalled", "status": "True", "reason": reason.value, "message": "why"}
    rollout = {
        "apiVersion": ROLLOUTS.api_version,
        "kind": ROLLOUTS.kind,
        "metadata": {"name": NAME, "generation": 1, "labels": {ID: "build-2"}},
        "spec": {},
        "status": {"observedGeneration": 1, "observedRolloutID": "build-1", "conditions": [condition]},
    }
    health, message = argocd.health(SCRIPT, rollout)
    general = reason in GENERAL
    assert (health, flux.by_expressions(rollout)) == (
        ("Degraded", "Failed") if general else ("Progressing", "InProgress")
    )
    assert message == ("why" if general else "release build-2 has not begun yet")


class Judges:
    """Look on at every write of the Rollout; ``told`` is what Argo CD shows, each once in a row."""

    def __init__(self, world: ShellWorld) -> None:
        self.told: list[str] = []
        self.differences: list[str] = []
        world.server.store.subscribe(self._look)

    def _look(self, event: Any) -> None:
        if event.resource != ROLLOUTS or event.type == "DELETED":
            return
        shown, by = argocd.health(SCRIPT, event.object)[0], flux.by_expressions(event.object)
        carries = ID in (event.object["metadata"].get("labels") or {})
        if SAME[shown] != by or (event.object.get("status") and not carries and flux.kstatus(event.object) != by):
            self.differences.append(f"{shown} {by} {flux.kstatus(event.object)}: {event.object.get('status')}")
        if [shown] != self.told[-1:]:
            self.told.append(shown)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "style", [pytest.param(each, marks=() if each.apart else pytest.mark.long) for each in STYLES], ids=str
)
async def test_all_judges_agree_on_a_release_that_is_aborted_and_one_that_ends(style: Style) -> None:
    world = ShellWorld()
    await at_rest(world, *PROMOTED_STEPS, **{style.key: dict(style.words)})
    judges = Judges(world)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    world.request("Abort")
    await world.until_state("Aborted")
    world.set_image("v3")
    await world.until_state("AwaitingApproval")
    world.request("PromoteFull")
    await world.until_state("Healthy")
    assert judges.differences == []
    release = ["Progressing", "Suspended", "Progressing"]
    assert judges.told == [*release, "Degraded", *release, "Healthy"]
    await world.gone()
    world.close()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("end", ["Healthy", "Aborted"])
async def test_with_an_id_on_both_nothing_is_healthy_between_the_apply_and_the_release(end: str) -> None:
    """Argo CD and Flux apply the LWS and the Rollout one after the other, and look in between; nor is what has become
    of the release before, ``end``, told of this one.
    """
    world = ShellWorld()
    await at_rest(world, *PROMOTED_STEPS)
    if end == "Aborted":
        world.set_image("v0")
        await world.until_state("AwaitingApproval")
        world.request("Abort")
        await world.until_state("Aborted")
    body = {"metadata": {"labels": {ID: "build-2"}}}
    world.patch(ROLLOUTS, NAME, body)
    judges = Judges(world)
    assert argocd.health(SCRIPT, world.server.get(ROLLOUTS, NAMESPACE, NAME))[0] == "Progressing"
    template = {"spec": {"containers": world.containers.of("v2")}}
    spec = {"leaderWorkerTemplate": {"workerTemplate": template}}
    world.patch(LEADER_WORKER_SETS, NAME, {**body, "spec": spec})
    await world.until_state("AwaitingApproval")
    world.request("PromoteFull")
    await world.until_state("Healthy")
    assert judges.differences == []
    assert judges.told == ["Progressing", "Suspended", "Progressing", "Healthy"]
    await world.gone()
    world.close()


async def test_flux_takes_a_held_lws_for_current_and_one_that_nobody_has_seen_for_in_progress() -> None:
    world = ShellWorld()
    found: list[str] = []

    def look(event: Any) -> None:
        if event.resource == LEADER_WORKER_SETS and event.type != "DELETED":
            found.append(flux.by_expressions(event.object))

    world.server.store.subscribe(look)
    await at_rest(world, *PROMOTED_STEPS)
    world.set_image("v2")
    await world.until_state("AwaitingApproval")
    assert flux.by_expressions(world.server.get(LEADER_WORKER_SETS, NAMESPACE, NAME)) == "Current"
    assert found[0] == "InProgress"
    assert set(found) == {"InProgress", "Current"}
    await world.gone()
    world.close()
