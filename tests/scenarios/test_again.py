"""Versions that a Rollout remembers stay useful whatever their templates say and however they were stored."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rollout_lws.cli.versions import stored
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CONTROLLER_REVISIONS
from rollout_lws.objects.writes import Create, Delete, Write
from rollout_lws.sandbox.patching import verbatim
from tests.scenarios.again import every_way
from tests.scenarios.crashes import PARTS, kill_after_every_write
from tests.scenarios.matrix import Moment, Release, release
from tests.scenarios.stories import at_rest, waiting_for_approval
from tests.scenarios.styles import CANARY_STYLE, STYLES, SURGE, Style
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World


def history(world: World) -> list[dict[str, Any]]:
    return world.server.list(CONTROLLER_REVISIONS, NAMESPACE, label_selector=KEYS.history)


def marks(world: World) -> dict[int, str]:
    """Number of the stored versions and why their last release did not end with them."""
    return {each.number: each.rollback_reason for each in stored(history(world), KEYS.group)}


def version(record: dict[str, Any]) -> str:
    return str(record["metadata"]["annotations"][KEYS.template_hash])


def misspell(world: World) -> None:
    """Store what is remembered as it was sent before: data that no patch leaves as it is."""
    world.misspelt = True
    for record in history(world):
        again = {key: value for key, value in record.items() if key != "metadata"}
        again["metadata"] = {
            key: record["metadata"][key] for key in ("name", "namespace", "labels", "annotations", "ownerReferences")
        }
        document = msgspec.json.encode(again)
        world.server.delete(CONTROLLER_REVISIONS, NAMESPACE, record["metadata"]["name"])
        world.server.create(CONTROLLER_REVISIONS, verbatim.sent(again, document))


#: Told by default; every story of all styles has such characters in its template.
TOLD = (CANARY_STYLE, SURGE)


@pytest.mark.one_in(2)
@pytest.mark.looptime
@pytest.mark.parametrize(
    "style", [pytest.param(each, marks=() if each in TOLD else pytest.mark.long, id=str(each)) for each in STYLES]
)
async def test_a_version_with_any_characters_is_released_gone_back_from_and_released_again(
    world: World, style: Style
) -> None:
    it = release(world, style, "none", 1)
    await it.begin()
    await it.come_to(Moment.FIRST)
    await every_way(it)


async def aborted(it: Release) -> None:
    it.do(lambda: it.ask("Abort"))
    await it.ends_at("v1", "Aborted", approve=False)


@pytest.mark.looptime
async def test_a_version_that_was_stored_in_another_spelling_is_stored_anew_to_be_marked(world: World) -> None:
    it = release(world, CANARY_STYLE, "none", 1)
    await it.begin()
    await it.come_to(Moment.FIRST)
    it.do(lambda: misspell(world))
    before = {version(each): each for each in history(world)}
    await aborted(it)
    assert marks(world) == {2: "Aborted", 1: ""}
    for each in history(world):
        known = before.pop(version(each))
        assert dict(each["data"]) == dict(known["data"])
        assert each["metadata"]["ownerReferences"] == known["metadata"]["ownerReferences"]
        assert each["metadata"]["labels"] == known["metadata"]["labels"]
    assert not before
    it.do(lambda: it.ask("Retry"))
    await it.until(lambda: it.waits_in(1), "the same version waits again")
    assert marks(world) == {2: "", 1: ""}


async def misspelt(world: World) -> None:
    """A release waits, and both versions are stored in another spelling; from now on neither is ever lost."""
    await at_rest(world, {"replicas": 1, "pause": {}}, {"replicas": "100%", "pause": {}}, replicas=1, size=1)
    await waiting_for_approval(world)
    misspell(world)
    versions = {version(each) for each in history(world)}
    assert len(versions) == 2

    def check(seen: World) -> None:
        assert {version(each) for each in history(seen)} == versions

    world.checks.append(check)


async def marked_and_released_again(world: World, _: None) -> None:
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    assert marks(world) == {2: "Aborted", 1: ""}
    assert len(history(world)) == 2
    world.request("Retry")
    await world.until_state("AwaitingApproval")
    await world.rest()
    assert marks(world) == {2: "", 1: ""}
    world.set_image("v1")
    await world.until_state("Healthy")
    await world.rest()
    assert marks(world) == {2: "Rollback", 1: ""}
    assert len(history(world)) == 2


@pytest.mark.looptime
async def test_a_version_that_is_stored_anew_is_stored_at_every_moment(world: World) -> None:
    await misspelt(world)
    await marked_and_released_again(world, None)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_controller_killed_while_it_stores_a_version_anew_comes_to_the_same_end(part: int) -> None:
    kill_after_every_write(misspelt, marked_and_released_again, part)


@pytest.mark.looptime
async def test_a_record_that_a_finalizer_keeps_takes_no_other_with_it(world: World) -> None:
    """Some back up what is deleted; what is on its way out is stored as if it were gone."""
    await at_rest(world, {"replicas": 1, "pause": {"duration": 0}}, replicas=1, size=1)
    (known,) = history(world)
    again = {**known, "metadata": {**known["metadata"], "name": "again", "finalizers": ["example.com/backup"]}}
    for member in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        again["metadata"].pop(member, None)
    world.stop_controller()
    await world.sleep(2)
    world.server.create(CONTROLLER_REVISIONS, again)
    world.delete(CONTROLLER_REVISIONS, "again")
    world.start_controller()
    await world.rest()
    world.patch(CONTROLLER_REVISIONS, "again", {"metadata": {"finalizers": None}})
    await world.rest()
    assert [each["metadata"]["name"] for each in history(world)] == [known["metadata"]["name"]]
    # Now it is the only one that goes, and its version is released again.
    world.patch(CONTROLLER_REVISIONS, known["metadata"]["name"], {"metadata": {"finalizers": ["example.com/backup"]}})
    world.delete(CONTROLLER_REVISIONS, known["metadata"]["name"])
    for tag in ("v2", "v1"):
        world.set_image(tag)
        await world.until(lambda: set(world.groups().values()) == {tag} and world.state == "Healthy", tag)  # noqa: B023
        await world.rest()
    world.patch(CONTROLLER_REVISIONS, known["metadata"]["name"], {"metadata": {"finalizers": None}})
    await world.rest()
    assert {version(each) for each in history(world)} >= {version(known)}
    assert len(history(world)) == 2


@pytest.mark.one_in(2)
@pytest.mark.looptime
@pytest.mark.parametrize("kind", [Delete, Create])
async def test_a_note_that_cannot_be_written_at_all_stops_nothing(world: World, kind: type[Write]) -> None:
    it = release(world, CANARY_STYLE, "none", 1)
    await it.begin()
    await it.come_to(Moment.FIRST)
    it.do(lambda: misspell(world))
    judge = world.refuse

    def refuse(write: Write) -> ApiError | None:
        if isinstance(write, kind) and write.resource == CONTROLLER_REVISIONS:
            return ApiError(403, "Forbidden", "a policy wants it so")
        return judge(write)

    world.refuse = refuse
    await aborted(it)
    it.do(lambda: it.ask("Retry"))
    await it.ends_at("v2")
    assert marks(world) == {2: "", 1: ""}
    it.do(lambda: it.delete_rollout("Background"))
    await it.until(lambda: world.get(world.ROLLOUT, NAME) is None, "gone")
