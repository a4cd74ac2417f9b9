"""Doctor's look at a world in memory: the store instead of HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.doctor.chain import chain, seen
from rollout_lws.cli.doctor.cluster import Cluster
from rollout_lws.cli.doctor.command import SECOND_LOOK
from rollout_lws.cli.doctor.facts import Facts, gather
from rollout_lws.cli.doctor.links import Link, State, first
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import Resource
from tests.scenarios.world import KEYS, NAME, NAMESPACE, World

Refuses = Callable[[Resource], bool]


@dataclass(frozen=True, eq=False, kw_only=True)
class StoreCluster(Cluster):
    """The world's store; kinds that ``refuses`` names may not be read."""

    world: World
    refuses: Refuses

    @classmethod
    def of(cls, world: World, refuses: Refuses = lambda _: False) -> Self:
        return cls(KEYS, cast(Transport, None), NAMESPACE, world=world, refuses=refuses)

    def get_object(self, resource: Resource, name: str) -> dict[str, Any]:
        self._check(resource)
        return self.world.server.get(resource, self._namespace(resource), name)

    def list_objects(self, resource: Resource, labels: str, fields: str) -> Sequence[dict[str, Any]]:
        self._check(resource)
        if self.world.view.unserved(resource):
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        namespace = self._namespace(resource)
        return list(self.world.server.list(resource, namespace, label_selector=labels, field_selector=fields))

    def serves(self, resource: Resource) -> bool:
        try:
            self.world.server.list(resource, self._namespace(resource))
        except ApiError:
            return False
        return True

    def _check(self, resource: Resource) -> None:
        if self.refuses(resource):
            raise ApiError(403, "Forbidden", f'{resource} is forbidden: User "ann" cannot list resource "{resource}"')


def look(world: World, refuses: Refuses = lambda _: False, before: Facts | None = None) -> Facts:
    found = gather(StoreCluster.of(world, refuses), NAME, world.now, None if before is None else seen(before))
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
