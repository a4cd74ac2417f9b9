"""A borrowed label selector, wherever its object keeps it: a few keys set or removed, the user's own remembered.

Services and InferencePools are pinned to one version by the same means; only the path of the selector differs. Keys
are compared and restored one by one, so whatever else people do to the selector meanwhile is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rollout_lws.api.resources import Keys
from rollout_lws.objects import owners
from rollout_lws.objects.meta import Struct
from rollout_lws.objects.resources import INFERENCE_POOLS, LWS_NAME, LWS_WORKER_INDEX, Resource
from rollout_lws.objects.workloads import Pod
from rollout_lws.traffic import marks
from rollout_lws.traffic.names import Names
from rollout_lws.traffic.route.status import Parent
from rollout_lws.traffic.split import Object

#: Members that lead from the object to its selector.
Path: TypeAlias = tuple[str, ...]
#: Key of a selector → its value; None: the key is not there.
Changes: TypeAlias = Mapping[str, str | None]


class Pin(Struct, frozen=True):
    """The mark: each key that was set, before and after; ``parents`` accepted the object before the first write,
    ``names`` is all that the release shares requests by.
    """

    original: dict[str, str | None]
    written: dict[str, str | None]
    parents: tuple[Parent, ...] = ()
    names: Names | None = None


def selector_changes(labels: Mapping[str, str], target: str) -> dict[str, str | None]:
    """What pins a selector to the pods with these labels besides those that it asks for already.

    ``target``: ``AsSelected`` leaves it to the user which pods of a group receive requests, ``Leaders`` are just the
    leaders, ``AllPods`` all of them.
    """
    changes: dict[str, str | None] = dict(labels)
    if target == "Leaders":
        changes[LWS_WORKER_INDEX] = "0"
    elif target == "AllPods":
        changes[LWS_WORKER_INDEX] = None
    return changes


def selector(live: Object, path: Path) -> Mapping[str, str]:
    """The selector as it stands; {} without one."""
    value: Any = live
    for member in path:
        value = (value or {}).get(member)
    return value or {}


def matched(selected: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a pod with ``labels`` is selected; an empty selector selects nothing."""
    return bool(selected) and all(labels.get(key) == value for key, value in selected.items())


@dataclass(frozen=True, slots=True)
class Selecting:
    """A kind of objects that select pods; ``path`` leads to the selector."""

    resource: Resource
    path: Path

    def selector(self, live: Object) -> Mapping[str, str]:
        """The selector as it stands; {} without one."""
        return selector(live, self.path)

    def selects(self, live: Object, labels: Mapping[str, str]) -> bool:
        """Whether it selects a pod with these labels."""
        return matched(self.selector(live), labels)

    def sends_to(self, live: Object, pod: Pod) -> bool:
        """Whether a pod that it selects can get requests by it: of a Service until it terminates, of a pool while it is
        ready.
        """
        going = pod.metadata.terminating or pod.has_ended
        if going and not (self.resource == INFERENCE_POOLS and pod.is_ready):
            return False
        return self.selects(live, pod.metadata.labels)

    def pin(
        self,
        live: Object,
        by: str,
        keys: Keys,
        changes: Changes,
        parents: tuple[Parent, ...] = (),
        names: Names | None = None,
    ) -> Object:
        """The object with these changes to the user's own selector (None: the key is removed), which is remembered
        under our mark. Repeated, also with other changes, it forgets none of the user's values; ``parents`` are
        kept from the first time, ``names`` from the first time that they were told.
        """
        mark = marks.read_as(Pin, live, by, keys)
        own = self.unpinned(live, by, keys)
        users = self.selector(own)
        new = Pin(
            original={key: users.get(key) for key in changes},
            written=dict(changes),
            parents=mark.parents if mark else parents,
            names=(mark.names if mark else None) or names,
        )
        return marks.put(_changed(own, self.path, changes), by, keys, new)

    def unpinned(self, live: Object, by: str, keys: Keys) -> Object:
        """The user's own object: each key that this Rollout wrote goes back where it still is as written, and nobody
        has stated the same since; without our mark.
        """
        mark = marks.read_as(Pin, live, by, keys)
        if mark is None:
            return marks.without(live, by, keys)
        foreign = self.drifted(live, by, keys)
        records = owners.records(live)
        back = {
            key: mark.original.get(key)
            for key, written in mark.written.items()
            if key not in foreign
            and (written is None or not owners.is_claimed(records, (*self.path, key), keys.original))
        }
        return marks.without(_changed(live, self.path, back), by, keys)

    def written(self, live: Object, by: str, keys: Keys) -> Changes:
        """What this Rollout has pinned it by; {} without its mark."""
        mark = marks.read_as(Pin, live, by, keys)
        return mark.written if mark else {}

    def drifted(self, live: Object, by: str, keys: Keys) -> tuple[str, ...]:
        """Keys that somebody changed after this Rollout had written them, sorted."""
        mark = marks.read_as(Pin, live, by, keys)
        now = self.selector(live)
        return tuple(sorted(key for key, written in mark.written.items() if now.get(key) != written)) if mark else ()


def selector_problem(
    selected: Mapping[str, str],
    *,
    what: str,
    workload: str,
    canary: str,
    leaders: Mapping[str, Sequence[Mapping[str, str]]],
    borrowers: Sequence[str],
) -> str:
    """Why ``what`` (its kind and name) with this selector of the user's own cannot serve a release of ``workload``, as
    a sentence that says what to do; "" when it can.

    ``leaders`` are the label sets of leader pods by the name of their LeaderWorkerSet; without one of ``workload``
    nothing is said about it. ``borrowers`` are UIDs of other Rollouts whose marks it carries.
    """
    if not selected:
        return f"{what} has no selector, so it cannot be pinned to a version; give it one that selects {workload}"
    if borrowers:
        return (
            f"{what} is borrowed by another Rollout (UID {', '.join(borrowers)}); name another one in"
            " trafficRoutings, or delete that Rollout"
        )
    own = leaders.get(workload, ())
    if own and not any(matched(selected, labels) for labels in own):
        wanted = ",".join(f"{key}={value}" for key, value in sorted(selected.items()))
        return f"{what} selects no leader of LeaderWorkerSet {workload} ({wanted}); correct its selector"
    others = sorted(
        name
        for name, sets in leaders.items()
        if name not in (workload, canary) and any(matched(selected, labels) for labels in sets)
    )
    if others:
        return (
            f"{what} selects leaders of LeaderWorkerSet {', '.join(others)} besides {workload} and would lose them when"
            f' pinned; add "{LWS_NAME}: {workload}" to its selector, or use one for each LeaderWorkerSet. Where'
            " requests need both, as with prefill and decode, leave trafficRoutings out: they follow the groups then"
        )
    return ""


def _changed(live: Object, path: Path, changes: Changes) -> Object:
    if not path:
        kept = {key: value for key, value in live.items() if key not in changes}
        return kept | {key: value for key, value in changes.items() if value is not None}
    inner = _changed(live.get(path[0]) or {}, path[1:], changes)
    rest = {member: value for member, value in live.items() if member != path[0]}
    # The API server keeps no empty selector: one that was made for the pins goes with the last of them.
    return rest if len(path) == 1 and not inner else {**rest, path[0]: inner}
