"""Capacity ExtraWorkload: a canary workload has the new groups. It is created, scaled and deleted while the stable one
stays untouched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from rollout_lws.capacity.base import CapacityStrategy, Scaling
from rollout_lws.capacity.replica_math import largest_batch
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.objects.resources import PODS
from rollout_lws.objects.writes import Create, Delete, Patch, Write
from rollout_lws.targets.target import Target
from rollout_lws.workload.canary import canary_body, canary_name
from rollout_lws.workload.facts import Facts, NamedObject

if TYPE_CHECKING:
    from rollout_lws.api.resources import Keys
    from rollout_lws.workload.groups import Group

_T = TypeVar("_T")


class ExtraWorkload(CapacityStrategy):
    """The stable LeaderWorkerSet stays untouched until the promotion."""

    name = "ExtraWorkload"
    title = "capacity ExtraWorkload"
    flag = "canary"
    help = "New groups come in a second {kind}; the old ones stay until the promotion."
    manifest: tuple[str, ...] = ("canary:",)
    rolling_style = "Canary"

    one_workload = False
    paired = False
    swaps = False
    steps_open_windows = False
    surges = False
    takes_places = False
    full_set = False
    shifts = False
    makes_groups = True
    least_replicas = 1
    fits_kueue = True
    pins_replicas = False

    def of_new(self, stable: _T, canary: _T) -> _T:
        return canary

    def in_promotion(self, *, queued: bool) -> CapacityStrategy:
        return self

    def extra(self, new: int) -> int:
        return new

    def sharing(self, new: int, replicas: int) -> int:
        return max(1, replicas + new)

    def batch_size(self, allowed: int, beside: int, replicas: int) -> int:
        return largest_batch(allowed, beside, replicas)

    def beside(self, new: Sequence[Group], replicas: int) -> Sequence[Group]:
        return new

    def standing(self, new: Sequence[Group], canary: Facts | None) -> int:
        return canary.workload.replicas if canary is not None else 1

    def leaving(self, new: Sequence[Group], wanted: int, replicas: int, canary: Facts | None) -> tuple[Group, ...]:
        """All of them if the user deleted the canary."""
        found = canary.workload if canary is not None else None
        if found is None or not (found.metadata.terminating or found.replicas > wanted):
            return ()
        kept = 0 if found.metadata.terminating else wanted
        return tuple(group for group in new if group.ordinal >= kept)

    def place(self, ordinal: int, replicas: int, *, in_canary: bool) -> int | None:
        return ordinal if in_canary else None

    def scale(self, asked: Scaling) -> CapacityResult:
        """Creates or scales the canary LWS."""
        stable, canary, wanted = asked.own.facts.workload, asked.canary, asked.wanted
        name = canary_name(stable)
        if canary is None:
            if asked.remains:
                listed = ", ".join(f"{each.kind} {each.name}" for each in asked.remains[:3])
                waited = f"waiting until what is left of an earlier {name} is gone: {listed}"
                return CapacityResult(preparing=True, message=waited)
            body = canary_body(
                stable, asked.own.keys, owner=asked.owner, replicas=wanted, metadata_patch=asked.metadata_patch
            )
            return CapacityResult(writes=(Create(stable.resource, body, f"first {wanted} groups of the new version"),))
        if canary.workload.metadata.terminating or not canary.workload.metadata.controlled_by(str(asked.owner["uid"])):
            # Deleted by the user, or created for a deleted BatchRelease: it goes, and is recreated once nothing is left
            # of it.
            return CapacityResult(
                writes=remove(canary, asked.own.keys).writes,
                preparing=True,
                message=f"{stable.resource.kind} {name} is going; it will be made again",
            )
        if canary.workload.replicas == wanted:
            return CapacityResult(done=True)
        patch = Patch(
            stable.resource,
            canary.workload.metadata.namespace,
            name,
            {"spec": {"replicas": wanted}},
            f"{wanted} groups of the new version instead of {canary.workload.replicas}",
            uid=canary.workload.metadata.uid,
            generation=canary.workload.metadata.generation,
        )
        return CapacityResult(writes=(patch,))


def still_ending(stable: Target, remains: Sequence[NamedObject]) -> tuple[str, ...]:
    """Groups of a deleted canary whose pods still terminate, by index; ``remains`` have its name.

    LWS deletes a group's workers only after its leader is gone, and each of them has its grace period.
    """
    if any(each.kind == stable.resource.kind for each in remains):
        # Another owner's workload.
        return ()
    prefix = f"{canary_name(stable)}-"
    members = (each.name.removeprefix(prefix) for each in remains if each.kind in ("Pod", "StatefulSet"))
    return tuple(sorted({index for member in members if (index := member.partition("-")[0]).isdigit()}, key=int))


def _in_the_way(canary: Facts) -> tuple[Write, ...]:
    """Deletions of the pods for which a controller that deletes one after the other would wait for ever."""
    workload = canary.workload
    if not workload.ordered or workload.observed_generation < workload.metadata.generation:
        return ()
    broken = (each.metadata for each in canary.leaders if not each.metadata.terminating and not each.is_ready)
    reason = "it is not ready, and its controller would wait for that before it goes"
    return tuple(Delete(PODS, each.namespace, each.name, each.uid, reason) for each in broken)


def remove(canary: Facts | None, keys: Keys) -> CapacityResult:
    """Removes the canary LWS: scales it to 0 groups, then deletes the object; done when it is gone."""
    if canary is None:
        return CapacityResult(done=True)
    resource, meta = canary.workload.resource, canary.workload.metadata
    # The finalizer keeps an LWS with groups from being deleted under them.
    kept = [each for each in meta.finalizers if each != keys.canary_finalizer]
    release = {"metadata": {"finalizers": kept or None}} if len(kept) < len(meta.finalizers) else {}
    if canary.workload.replicas > 0 and not meta.terminating:
        body, reason = {"spec": {"replicas": 0}} | release, "the canary is no longer needed"
        to_zero = Patch(resource, meta.namespace, meta.name, body, reason, meta.resource_version)
        return CapacityResult(writes=(to_zero,), message=f"canary {meta.name} is going")
    standing = [leader for leader in canary.leaders if not leader.metadata.terminating]
    if standing and not meta.terminating:
        told = f"waiting for {len(standing)} groups of canary {meta.name} to go"
        return CapacityResult(writes=_in_the_way(canary), message=told)
    writes: list[Write] = []
    if release:
        reason = "nothing of the canary serves any more"
        writes.append(Patch(resource, meta.namespace, meta.name, release, reason, meta.resource_version))
    if not meta.terminating:
        writes.append(Delete(resource, meta.namespace, meta.name, meta.uid, "the canary has no groups left"))
    return CapacityResult(writes=tuple(writes), message=f"canary {meta.name} is going")
