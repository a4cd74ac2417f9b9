"""What stories of pairs that releases scale share: what stands on both sides, and what others do to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.objects.writes import Patch, Write
from rollout_lws.rollout.reasons import Reason
from tests.scenarios.count import partition
from tests.scenarios.paired import BLUE, GREEN, handing_over, in_step, rollout
from tests.scenarios.world import KEYS, NAME, ROLLOUTS, World

#: What a manifest says that has LWS renew all groups by itself.
OPEN: dict[str, Any] = {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}}


async def come_to(world: World, moment: str) -> None:
    if moment == "hand-over":
        await handing_over(world)
    else:
        await in_step(world, int(moment.split()[1]))


# What stands there: of sides that exist, by name


def replicas(world: World) -> dict[str, int]:
    return {name: lws["spec"]["replicas"] for name, lws in _sides(world).items()}


def roles(world: World) -> dict[str, str | None]:
    labels = {name: lws["metadata"].get("labels") or {} for name, lws in _sides(world).items()}
    return {name: each.get("rollouts.kruise.io/side") for name, each in labels.items()}


def partitions(world: World) -> dict[str, int]:
    return {name: partition(lws) for name, lws in _sides(world).items()}


def _sides(world: World) -> dict[str, dict[str, Any]]:
    found = {name: world.get(world.kind.resource, name) for name in (BLUE, GREEN)}
    return {name: lws for name, lws in found.items() if lws is not None}


def stalled(world: World, reason: Reason) -> bool:
    return world.condition("Stalled").get("reason") == reason.value


# What others do


def drop_labels(world: World) -> None:
    """Another client removes the labels that tell the roles."""
    for name in _sides(world):
        world.patch(world.kind.resource, name, {"metadata": {"labels": {KEYS.side: None}}})


def recreate_rollout(world: World, spec: dict[str, Any] | None = None, **strategy: Any) -> None:
    """Another client removes the Rollout with its finalizer, and applies its manifest again."""
    world.patch(ROLLOUTS, NAME, {"metadata": {"finalizers": None}})
    world.delete(ROLLOUTS, NAME)
    world.server.create(ROLLOUTS, rollout(spec=spec or {}, kind=world.kind, **strategy))


def refuse_patches(world: World, code: int, refused: Callable[[Mapping[str, Any]], bool]) -> None:
    """A webhook or a policy refuses these patches of the sides, until ``admit_all``."""

    def refuse(write: Write) -> ApiError | None:
        of_side = isinstance(write, Patch) and write.resource == world.kind.resource and refused(write.body)
        return ApiError(code, "Refused", "refused by a webhook or a policy") if of_side else None

    world.refuse = refuse


def admit_all(world: World) -> None:
    world.refuse = lambda _: None


def scales_to(count: int) -> Callable[[Mapping[str, Any]], bool]:
    """Patches that write this number of groups."""
    return lambda body: (body.get("spec") or {}).get("replicas") == count
