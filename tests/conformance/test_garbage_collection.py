"""What becomes of the objects that one owned which is deleted, in each of the three modes."""

from __future__ import annotations

from rollout_lws.objects.resources import CONFIG_MAPS, LEADER_WORKER_SETS
from tests.conformance.asking import Asking, Object
from tests.conformance.objects import config_map, lws

HELD = "example.com/held"
FOREGROUND = {"propagationPolicy": "Foreground"}
BACKGROUND = {"propagationPolicy": "Background"}
#: An owner that never was.
NOBODY = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "00000000-0000-0000-0000-000000000000"}


def owned_by(owner: Object, *, blocking: bool = False) -> list[Object]:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return [{**reference, "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocking}]


async def owner_of(server: Asking, name: str, *, blocking: bool = False, held: bool = False) -> Object:
    """A LeaderWorkerSet that owns the ConfigMap ``name``, as the garbage collector knows by then.

    It hears of objects of one kind in order, so that it knows that one when a later one is gone, whose owner never was.
    An owner that is deleted before has no dependants as far as it knows.
    """
    owner = (await server.create(LEADER_WORKER_SETS, lws())).ok()
    references = owned_by(owner, blocking=blocking)
    (await server.create(CONFIG_MAPS, config_map(name, ownerReferences=references, finalizers=[HELD] * held))).ok()
    (await server.create(CONFIG_MAPS, config_map("later", ownerReferences=[NOBODY]))).ok()
    await server.gone(CONFIG_MAPS, "later")
    return owner


async def test_in_the_background_the_owner_goes_at_once_and_its_dependants_after_it(server: Asking) -> None:
    await owner_of(server, "part")
    (await server.delete(LEADER_WORKER_SETS, "llama", BACKGROUND)).ok()
    assert (await server.get(LEADER_WORKER_SETS, "llama")).code == 404
    await server.gone(CONFIG_MAPS, "part")


async def test_without_a_mode_dependants_of_a_custom_resource_go_in_the_background(server: Asking) -> None:
    await owner_of(server, "part")
    assert (await server.delete(LEADER_WORKER_SETS, "llama")).ok()["status"] == "Success"
    await server.gone(CONFIG_MAPS, "part")


async def test_in_the_foreground_the_owner_waits_for_dependants_that_block_it(server: Asking) -> None:
    await owner_of(server, "part", blocking=True, held=True)
    marked = (await server.delete(LEADER_WORKER_SETS, "llama", FOREGROUND)).ok()["metadata"]
    assert marked["finalizers"] == ["foregroundDeletion"]
    assert marked["deletionTimestamp"]
    await server.until(CONFIG_MAPS, "part", lambda obj: "deletionTimestamp" in obj["metadata"])
    assert (await server.get(LEADER_WORKER_SETS, "llama")).code == 200
    (await server.patch(CONFIG_MAPS, "part", {"metadata": {"finalizers": None}})).ok()
    await server.gone(LEADER_WORKER_SETS, "llama")
    assert (await server.get(CONFIG_MAPS, "part")).code == 404


async def test_in_the_foreground_dependants_that_do_not_block_are_not_waited_for(server: Asking) -> None:
    await owner_of(server, "part", held=True)
    (await server.delete(LEADER_WORKER_SETS, "llama", FOREGROUND)).ok()
    await server.gone(LEADER_WORKER_SETS, "llama")
    part = await server.until(CONFIG_MAPS, "part", lambda obj: "deletionTimestamp" in obj["metadata"])
    assert part["metadata"]["finalizers"] == [HELD]
    (await server.patch(CONFIG_MAPS, "part", {"metadata": {"finalizers": None}})).ok()


async def test_orphans_stay_and_forget_their_owner(server: Asking) -> None:
    await owner_of(server, "part", blocking=True)
    marked = (await server.delete(LEADER_WORKER_SETS, "llama", {"propagationPolicy": "Orphan"})).ok()["metadata"]
    assert marked["finalizers"] == ["orphan"]
    await server.gone(LEADER_WORKER_SETS, "llama")
    part = (await server.get(CONFIG_MAPS, "part")).ok()
    assert "ownerReferences" not in part["metadata"]
    assert "deletionTimestamp" not in part["metadata"]


async def test_an_object_whose_owner_never_was_goes(server: Asking) -> None:
    owner = (await server.create(LEADER_WORKER_SETS, lws())).ok()
    (await server.delete(LEADER_WORKER_SETS, "llama")).ok()
    (await server.create(CONFIG_MAPS, config_map("part", ownerReferences=owned_by(owner)))).ok()
    await server.gone(CONFIG_MAPS, "part")


async def test_an_object_stays_as_long_as_one_of_its_owners_does(server: Asking) -> None:
    first = (await server.create(LEADER_WORKER_SETS, lws("first"))).ok()
    second = (await server.create(LEADER_WORKER_SETS, lws("second"))).ok()
    references = [*owned_by(first), *owned_by(second)]
    (await server.create(CONFIG_MAPS, config_map("part", ownerReferences=references))).ok()
    (await server.delete(LEADER_WORKER_SETS, "first")).ok()
    part = await server.until(CONFIG_MAPS, "part", lambda obj: len(obj["metadata"]["ownerReferences"]) == 1)
    assert part["metadata"]["ownerReferences"] == owned_by(second)
    (await server.delete(LEADER_WORKER_SETS, "second")).ok()
    await server.gone(CONFIG_MAPS, "part")


async def test_a_later_deletion_may_choose_another_mode(server: Asking) -> None:
    await owner_of(server, "part", blocking=True, held=True)
    (await server.delete(LEADER_WORKER_SETS, "llama", FOREGROUND)).ok()
    await server.until(CONFIG_MAPS, "part", lambda obj: "deletionTimestamp" in obj["metadata"])
    (await server.delete(LEADER_WORKER_SETS, "llama")).ok()
    assert (await server.get(LEADER_WORKER_SETS, "llama")).code == 200
    (await server.delete(LEADER_WORKER_SETS, "llama", BACKGROUND)).ok()
    assert (await server.get(LEADER_WORKER_SETS, "llama")).code == 404
    (await server.patch(CONFIG_MAPS, "part", {"metadata": {"finalizers": None}})).ok()


async def test_what_is_not_owned_is_left_alone(server: Asking) -> None:
    await owner_of(server, "part")
    (await server.create(CONFIG_MAPS, config_map("other"))).ok()
    (await server.delete(LEADER_WORKER_SETS, "llama", BACKGROUND)).ok()
    await server.gone(CONFIG_MAPS, "part")
    assert (await server.get(CONFIG_MAPS, "other")).code == 200
