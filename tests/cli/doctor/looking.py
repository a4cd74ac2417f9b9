"""Doctor's look at a world in memory: the store instead of HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rollout_lws.cli.doctor.chain import chain, seen
from rollout_lws.cli.doctor.cluster import Cluster
from rollout_lws.cli.doctor.command import SECOND_LOOK
from rollout_lws.cli.doctor.facts import Facts, gather
from rollout_lws.cli.doctor.links import Link, State, first
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import Resource
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

Refuses = Callable[[Resource], bool]


class StoreSource:
    """The world's store; kinds that ``refuses`` names may not be read."""

    def __init__(self, world: World, refuses: Refuses = lambda _: False) -> None:
        self._world, self._refuses = world, refuses

    def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        self._check(resource)
        return self._world.server.get(resource, namespace, name)

    def list(self, resource: Resource, namespace: str, labels: str = "", fields: str = "") -> Iterable[dict[str, Any]]:
        self._check(resource)
        if self._world.view.unserved(resource):
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        return self._world.server.list(resource, namespace, label_selector=labels, field_selector=fields)

    def serves(self, resource: Resource) -> bool:
        try:
            self._world.server.list(resource, NAMESPACE if resource.namespaced else "")
        except ApiError:
            return False
        return True

    def _check(self, resource: Resource) -> None:
        if self._refuses(resource):
            raise ApiError(403, "Forbidden", f'{resource} is forbidden: User "ann" cannot list resource "{resource}"')


def look(world: World, refuses: Refuses = lambda _: False, before: Facts | None = None) -> Facts:
    source = StoreSource(world, refuses)
    cluster = Cluster(KEYS, source, NAMESPACE)
    found = gather(cluster, NAME, world.now, None if before is None else seen(before))
    assert found is not None
    return found


async def links(world: World, refuses: Refuses = lambda _: False) -> tuple[Link, ...]:
    """Of a second look, a moment after the first."""
    before = look(world, refuses)
    await world.sleep(SECOND_LOOK)
    return chain(look(world, refuses, before))


async def broken(world: World) -> Link:
    """The first broken link; there has to be one."""
    found = await links(world)
    first_one = first(found, State.BROKEN)
    assert first_one is not None, told(found)
    return first_one


async def assert_whole(world: World) -> None:
    found = await links(world)
    assert first(found, State.BROKEN) is None, told(found)


def told(found: Iterable[Link]) -> str:
    return "\n".join(map(str, found))
