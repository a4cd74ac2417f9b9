"""LWS stores each version that it sees, and while it is held it deletes none: we delete what no group can need."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LWS_NAME, LWS_REVISION, PODS
from rollout_lws.objects.writes import Delete, Write
from rollout_lws.workload.revisions import RECORDS_AT_ONCE, SPARE_RECORDS
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.invariants import always_serving, kept_by_lws
from tests.scenarios.judge import Judge
from tests.scenarios.one_workload import Windows
from tests.scenarios.stories import assert_clean, at_rest
from tests.scenarios.styles import STYLES, Style
from tests.scenarios.world import NAME, NAMESPACE, World

GOES_ON = {"pause": {"duration": 0}}
STEPS: tuple[dict[str, Any], ...] = ({"replicas": 1, **GOES_ON}, {"replicas": "100%", **GOES_ON})


async def begin(world: World, style: Style = STYLES[0]) -> Judge:
    """At rest; every write comes before the judge, who knows which records groups need."""
    judge = Judge(world, 1, style)
    world.refuse = judge.judge  # type: ignore[assignment]
    await at_rest(world, *STEPS, replicas=2, **{style.key: dict(style.words)})
    world.checks.append(always_serving)
    return judge


def left_by_lws(world: World, names: list[str]) -> None:
    """Records of versions that were released before the one that runs."""
    [own] = [each for each in world.server.list(CONTROLLER_REVISIONS, NAMESPACE) if _is_of_lws(world, each)]
    for number, name in enumerate(names, start=-len(names)):
        meta = {
            "name": f"{NAME}-{name}",
            "namespace": NAMESPACE,
            "labels": {LWS_NAME: NAME, LWS_REVISION: name},
            "ownerReferences": own["metadata"]["ownerReferences"],
        }
        kind = {"apiVersion": "apps/v1", "kind": "ControllerRevision"}
        world.server.create(CONTROLLER_REVISIONS, {**kind, "metadata": meta, "revision": number, "data": own["data"]})


def _is_of_lws(world: World, record: dict[str, Any]) -> bool:
    uid = world.lws["metadata"]["uid"]
    return any(owner["uid"] == uid for owner in record["metadata"].get("ownerReferences", ()))


def _is_record(write: Delete) -> bool:
    return write.resource == CONTROLLER_REVISIONS


def carried(world: World) -> str:
    """The one revision that all pods carry."""
    [revision] = {
        each["metadata"]["labels"][LWS_REVISION]
        for each in world.server.list(PODS, NAMESPACE, label_selector=f"{LWS_NAME}={NAME}")
    }
    return revision


async def release(world: World, judge: Judge, tag: str) -> None:
    with judge.user():
        world.set_image(tag)
    await world.until(lambda: world.state == "Healthy" and set(world.groups().values()) == {tag}, f"{tag} everywhere")
    await world.rest()


def told() -> list[Any]:
    """All styles; the default run tells of the one in which another LWS has records too."""
    return [pytest.param(each, marks=[] if each is STYLES[0] else [pytest.mark.long], id=str(each)) for each in STYLES]


@pytest.mark.looptime
@pytest.mark.parametrize("style", told())
async def test_releases_leave_no_more_than_a_few_records(world: World, style: Style) -> None:
    judge = await begin(world, style)
    windows = Windows(world)
    world.checks.append(windows)
    counts, opened = [], []
    for number in range(2, 8):
        await release(world, judge, f"v{number}")
        counts.append(len(kept_by_lws(world)))
        opened.append(len(windows.lengths))
    assert counts == [2, 3, 4, 5, 6, 6]
    assert kept_by_lws(world)[-1] == carried(world)
    # Nothing was opened for that: each release has as many windows as the first.
    assert {after - before for before, after in itertools.pairwise(opened)} == {opened[0]}
    assert_clean(world, "v7", 2)


@pytest.mark.looptime
async def test_releases_that_are_aborted_leave_no_more_either(world: World) -> None:
    judge = await begin(world)
    stable = carried(world)
    for number in range(2, 12):
        with judge.user():
            world.set_image(f"v{number}")
        await world.until(lambda: world.status["phase"] == "Progressing")
        world.request("Abort")
        await world.until_state("Aborted")
        await world.rest()
    # The version that runs, which is the oldest, the one that waits, and those to spare.
    assert len(kept_by_lws(world)) == 2 + SPARE_RECORDS
    assert kept_by_lws(world)[0] == stable
    # Somebody restarts a group.
    world.checks.clear()
    world.delete(PODS, f"{NAME}-1")
    await world.rest()
    assert world.groups() == dict.fromkeys(range(2), "v1"), "it came back, with its workers"
    assert carried(world) == stable


@pytest.mark.looptime
async def test_going_to_and_fro_leaves_one_record_of_each_version(world: World) -> None:
    judge = await begin(world)
    first = carried(world)
    for tag in ("v2", "v1") * 2:
        await release(world, judge, tag)
        assert len(kept_by_lws(world)) == 2
        assert kept_by_lws(world)[-1] == carried(world)
    assert carried(world) == first


@pytest.mark.looptime
async def test_what_gathered_before_us_goes_a_few_at_a_time(world: World) -> None:
    await begin(world)
    world.stop_controller()
    left_by_lws(world, [f"before-{number}" for number in range(1, 31)])
    world.writes.clear()
    world.decisions = 0
    world.start_controller()
    await world.rest()
    assert kept_by_lws(world) == [f"before-{number}" for number in range(26, 31)] + [carried(world)]
    assert [each.name.removeprefix(f"{NAME}-before-") for each in world.writes] == [str(each) for each in range(1, 26)]
    assert world.decisions > 25 / RECORDS_AT_ONCE
    assert world.state == "Healthy"


@pytest.mark.long
@pytest.mark.looptime
async def test_a_version_that_is_applied_again_as_its_record_goes_is_released(world: World) -> None:
    """Whoever goes back to it at that very moment gets it whole: LWS makes a record of its own of each change."""
    judge = await begin(world)
    for number in range(2, 7):
        await release(world, judge, f"v{number}")
    raced: list[Write] = []

    def race(write: Write) -> ApiError | None:
        if isinstance(write, Delete) and _is_record(write) and not raced:
            raced.append(write)
            world.set_image("v1")
        judge.judge(write)
        return None

    world.refuse = race
    await release(world, judge, "v7")
    await world.until(lambda: set(world.groups().values()) == {"v1"}, "v1 everywhere")
    await world.rest()
    assert raced
    assert_clean(world, "v1", 2)


@pytest.mark.looptime
async def test_a_policy_that_keeps_them_keeps_no_release_from_its_end(world: World) -> None:
    judge = await begin(world)
    kept = ApiError(403, "Forbidden", "admission webhook denied the request: revisions are kept")

    def refuse(write: Write) -> ApiError | None:
        judge.judge(write)
        return kept if isinstance(write, Delete) and write.reason == "no group needs it" else None

    world.refuse = refuse
    for number in range(2, 8):
        await release(world, judge, f"v{number}")
    assert len(kept_by_lws(world)) == 7
    assert world.state == "Healthy"
    assert_clean(world, "v7", 2)


async def full(world: World) -> Judge:
    judge = await begin(world)
    world.stop_controller()
    left_by_lws(world, [f"before-{number}" for number in range(1, 9)])
    world.start_controller()
    return judge


async def released(world: World, judge: Judge) -> None:
    await release(world, judge, "v2")
    assert len(kept_by_lws(world)) == 1 + SPARE_RECORDS
    assert_clean(world, "v2", 2)


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.long] if part else []) for part in range(PARTS)]
)
def test_a_controller_killed_between_any_two_of_them_keeps_what_is_needed(part: int) -> None:
    kill_after_every_write(full, released, part)
