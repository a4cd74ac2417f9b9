"""Bounds of a HorizontalPodAutoscaler: held so that it removes no group during a release, and restored afterwards.

While requests move away from stable its load falls, and an autoscaler that does not know the release would remove the
groups that a rollback needs. Scaling up stays possible where it does no harm. An annotation keeps the user's own
bounds; each is restored separately, so that later edits to others are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rollout_lws.api.resources import Keys, rollouts
from rollout_lws.objects import owners
from rollout_lws.objects.meta import Struct
from rollout_lws.objects.resources import Resource
from rollout_lws.targets.table import TARGETS
from rollout_lws.traffic import marks
from rollout_lws.traffic.split import Object

MINIMUM, MAXIMUM = "minReplicas", "maxReplicas"
#: Kubernetes' default of minReplicas.
DEFAULT_MINIMUM = 1


class Hold(Struct, frozen=True):
    """The annotation: each changed bound, in groups, before (None: absent) and after."""

    original: dict[str, int | None]
    written: dict[str, int]


def scaled_workload(live: Object) -> str:
    """Name of the workload that the autoscaler scales; "" if no Rollout can release that kind."""
    return _scaled(live, *(each.resource for each in TARGETS))


def scaled_rollout(live: Object, group: str) -> str:
    """Name of the Rollout, of API group ``group``, that the autoscaler scales; "" if it scales something else."""
    return _scaled(live, rollouts(group))


def _scaled(live: Object, *kinds: Resource) -> str:
    """Name of the object that the autoscaler scales, if it is of one of these kinds, in whatever version."""
    target = (live.get("spec") or {}).get("scaleTargetRef") or {}
    group = str(target.get("apiVersion", "")).partition("/")[0]
    known = any((group, target.get("kind")) == (each.group, each.kind) for each in kinds)
    return str(target.get("name", "")) if known else ""


def scaled_object(live: Object) -> str:
    """Name of KEDA's ScaledObject that owns and writes the autoscaler; "" without one."""
    for owner in live["metadata"].get("ownerReferences") or ():
        group = str(owner.get("apiVersion", "")).partition("/")[0]
        if owner.get("controller") and (group, owner.get("kind")) == ("keda.sh", "ScaledObject"):
            return str(owner["name"])
    return ""


def bounds(live: Object) -> tuple[int, int]:
    """The autoscaler's minimum and maximum number of groups."""
    spec = live.get("spec") or {}
    low = spec.get(MINIMUM)
    low = DEFAULT_MINIMUM if low is None else int(low)
    return low, int(spec.get(MAXIMUM) or low)


def is_held(live: Object, by: str, keys: Keys) -> bool:
    """True if the Rollout with UID ``by`` has written a bound, by its annotation."""
    return marks.read_as(Hold, live, by, keys) is not None


def held(live: Object, by: str, keys: Keys, replicas: int, *, pinned: bool) -> Object:
    """The autoscaler as held while the Rollout with UID ``by`` releases an LWS of ``replicas`` groups.

    ``pinned`` allows exactly that number. Otherwise it may only scale up: minReplicas follows the number of groups and
    is never lowered, maxReplicas is raised if it is less. Nothing changes with 0 groups, which no autoscaler scales.
    """
    if replicas == 0:
        return live
    mark = marks.read_as(Hold, live, by, keys)
    users = given_back(live, by, keys)
    own_low, own_high = bounds(users)
    low = high = replicas
    if not pinned:
        low = max(own_low, replicas, mark.written.get(MINIMUM, 0) if mark else 0)
        high = max(own_high, low)
    written = {
        member: value for member, value, own in ((MINIMUM, low, own_low), (MAXIMUM, high, own_high)) if value != own
    }
    if not written:
        return users
    original = {member: users["spec"].get(member) for member in written}
    return marks.put(_with(users, written), by, keys, Hold(original=original, written=written))


def given_back(live: Object, by: str, keys: Keys) -> Object:
    """The user's autoscaler, without our annotation: each bound that this Rollout wrote is restored if it is unchanged
    and no other manager has claimed it since. A bound that another manager has set counts: a restored one that
    contradicts it gives way.
    """
    mark = marks.read_as(Hold, live, by, keys)
    if mark is None:
        return marks.without(live, by, keys)
    foreign = drifted(live, by, keys)
    back = {
        member: mark.original.get(member)
        for member in mark.written
        if member not in foreign and not owners.is_claimed(owners.records(live), ("spec", member), keys.original)
    }
    users = marks.without(_with(live, back), by, keys)
    low, high = bounds(users)
    if low > high:
        users = _with(users, {MINIMUM: high} if MINIMUM in back else {MAXIMUM: low})
    return users


def all_given_back(live: Object, uids: Iterable[str], keys: Keys) -> Object:
    """The same for several Rollouts."""
    for uid in uids:
        live = given_back(live, uid, keys)
    return live


def drifted(live: Object, by: str, keys: Keys) -> tuple[str, ...]:
    """Bounds that another manager changed after this Rollout wrote them, sorted."""
    mark = marks.read_as(Hold, live, by, keys)
    spec = live.get("spec") or {}
    return tuple(sorted(each for each, value in mark.written.items() if spec.get(each) != value)) if mark else ()


def _with(live: Object, changes: Mapping[str, int | None]) -> Object:
    """The object with these members of its spec; None removes a member."""
    kept = {member: value for member, value in live["spec"].items() if member not in changes}
    return {**live, "spec": {**kept, **{member: value for member, value in changes.items() if value is not None}}}
