"""What stands in a world while a release goes on, to compare it with the course that a forecast or a picture has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from rollout_lws.drawing.course import Moment
from rollout_lws.forecast.model import Point
from rollout_lws.objects.resources import PODS
from tests.scenarios.routed import routes_of
from tests.scenarios.world import NAMESPACE, World


@dataclass(frozen=True)
class Seen:
    """Groups of either version that exist, and that are ready; the new one's share of requests in percent, None where
    that cannot be seen; and accelerators by resource.
    """

    groups: tuple[int, int]
    ready: tuple[int, int]
    share: int | None
    accelerators: tuple[int, ...]


def told(moment: Moment | Point) -> Seen:
    ready = (moment.old.ready + moment.old.draining, moment.new.ready + moment.new.draining)
    held = moment.accelerators if isinstance(moment, Moment) else ()
    return Seen((moment.old.count, moment.new.count), ready, round(100 * moment.share), held)


class Observed:
    """Looks at the groups of these workloads once a second from when it is made, until it is stopped. ``tag`` is the
    new version; ``routed``: an HTTPRoute or a Service says which version gets requests.
    """

    def __init__(
        self, world: World, names: Iterable[str], tag: str, resources: Sequence[str] = (), *, routed: bool = True
    ) -> None:
        self._world, self._names, self._tag, self._resources = world, sorted(set(names)), tag, resources
        self._routed = routed
        self.seen: list[tuple[float, Seen]] = []
        self._looking = asyncio.get_running_loop().create_task(self._look())

    def stop(self) -> None:
        self._looking.cancel()

    async def _look(self) -> None:
        while True:
            self.seen.append((self._world.server.clock(), self._what()))
            await asyncio.sleep(1)

    def _leaders(self) -> Iterator[tuple[bool, bool, dict[str, Any]]]:
        """Each that does not terminate: whether it is of the new version, and ready."""
        world = self._world
        for name in self._names:
            for pod in filter(world.kind.leads, world.kind.pods(world.server.store, name)):
                if "deletionTimestamp" not in pod["metadata"]:
                    conditions = (pod.get("status") or {}).get("conditions") or ()
                    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
                    yield world.containers.version(pod) == self._tag, ready, pod

    def _what(self) -> Seen:
        leaders = [*self._leaders()]
        new = {pod["metadata"]["name"]: is_new for is_new, _, pod in leaders}
        old_ready, new_ready = ([ready for is_new, ready, _ in leaders if is_new is side] for side in (False, True))
        return Seen(
            (len(old_ready), len(new_ready)),
            (sum(old_ready), sum(new_ready)),
            self._share(new) if self._routed else None,
            tuple(self._held(name) for name in self._resources),
        )

    def _share(self, new: dict[str, bool]) -> int | None:
        weights, share = routes_of(self._world)[0], 0.0
        for service, weight in weights.items():
            led = [new[each] for each in self._world.ready_endpoints(service) if each in new] if weight else []
            if weight and not led:
                return None
            share += weight / sum(weights.values()) * sum(led) / len(led) if led else 0
        return round(100 * share)

    def _held(self, resource: str) -> int:
        """Accelerators of all groups, those of other workloads too."""
        kind, held = self._world.kind, 0
        for pod in filter(kind.leads, self._world.server.list(PODS, NAMESPACE)):
            if "deletionTimestamp" not in pod["metadata"]:
                limits = pod["spec"]["containers"][0]["resources"]["limits"]
                held += int(limits.get(resource, 0)) * kind.pods_of_group(pod)
        return held

    def assert_was(
        self, moments: Sequence[Moment | Point], begun: float, ends: float, late: float, early: float = 0.0
    ) -> int:
        """What lasts of these moments, up to the second ``ends``, was so, but for changes that came up to so many
        seconds later or earlier; ``begun`` is when the second 0 was. How many of them were seen to be so.
        """
        count = 0
        for moment, until in pairwise([*moments, replace(moments[-1], at=ends)]):
            there = [(at, each) for at, each in self.seen if begun + moment.at + late <= at <= begun + until.at - early]
            count += bool(there)
            for at, each in there:
                assert _alike(each, told(moment)), f"{at - begun:.0f} s after the begin: {moment} {each}"
        return count


def _alike(seen: Seen, wanted: Seen) -> bool:
    # Weights are whole percents, and what is not seen is not compared.
    near = seen.share is None or (wanted.share is not None and abs(seen.share - wanted.share) <= 1)
    held = wanted.accelerators or seen.accelerators
    return near and replace(wanted, share=seen.share, accelerators=held) == seen
