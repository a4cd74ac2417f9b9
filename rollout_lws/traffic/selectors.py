"""Pins a label selector to one version: sets or removes a few keys and stores the user's own values.

Services and InferencePools are pinned in the same way; only the path of the selector differs. Keys are compared and
restored one by one, so other writers' changes to the selector are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rollout_lws.api.resources import Keys
from rollout_lws.objects import owners
from rollout_lws.objects.meta import Struct
from rollout_lws.objects.released import POD_REVISION, WITH_WORKERS, PodLabels, labels_among, workload_selected
from rollout_lws.objects.resources import INFERENCE_POOLS, Resource
from rollout_lws.objects.workloads import Pod
from rollout_lws.targets.target import Target, called
from rollout_lws.traffic import marks
from rollout_lws.traffic.names import Names
from rollout_lws.traffic.route.status import Parent
from rollout_lws.traffic.split import Object
from rollout_lws.workload.canary import canary_name

#: Members that lead from the object to its selector.
Path: TypeAlias = tuple[str, ...]
#: Selector key → its value; None: the key is absent.
Changes: TypeAlias = Mapping[str, str | None]


class Pin(Struct, frozen=True):
    """The annotation's entry: each key that was set, with its value before and after. ``parents`` accepted the object
    before the first write, ``names`` are all objects through which the release routes requests.
    """

    original: dict[str, str | None]
    written: dict[str, str | None]
    parents: tuple[Parent, ...] = ()
    names: Names | None = None


def selector_changes(labels: Mapping[str, str], target: str) -> dict[str, str | None]:
    """The changes that pin a selector to pods with these labels, their workload's name among them; the keys that it
    already has stay.

    ``target``: ``AsSelected`` leaves it to the user's selector which pods of a group receive requests, ``Leaders``
    selects only the leaders, ``AllPods`` all pods. Where a group is a single pod these are the same.
    """
    changes: dict[str, str | None] = dict(labels)
    names = labels_among(labels)
    if names is None or names.leader is None:
        return changes
    key, value = names.leader
    if target == "Leaders":
        changes[key] = value
    elif target == "AllPods":
        changes[key] = None
    return changes


def of_workload(labels: PodLabels, name: str, keys: Keys) -> dict[str, str]:
    """The labels that select all groups of a workload, and no others. Of a kind whose pods do not carry its name, those
    of a workload that a release has made.
    """
    return {labels.workload if labels.workload is not None else keys.made: name}


def pinned_workload(selected: Changes, keys: Keys) -> str:
    """The name of the one workload whose groups a selector with these labels selects; "" if none is told by them."""
    return selected.get(keys.made) or workload_selected(selected)


def pinning_keys(keys: Keys) -> frozenset[str]:
    """The labels by which a release selects one workload's groups, or one version's."""
    own = (WITH_WORKERS.workload, WITH_WORKERS.revision, POD_REVISION, keys.made)
    return frozenset(key for key in own if key is not None)


def own_label(workload: Target) -> str:
    """What to do so that a selector selects groups of this workload only, as the end of a sentence."""
    name = workload.metadata.name
    if workload.labels.workload is not None:
        return f'add "{workload.labels.workload}: {name}" to its selector'
    return f"give the template of {name} a label of its own and add that to its selector"


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
        """Whether a selected pod can receive requests: through a Service until it terminates, through a pool while it
        is ready.
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
        """The object with these changes to the user's own selector (None: the key is removed); the annotation stores
        the user's values. Further calls, with other changes too, lose none of them; ``parents`` are kept from the first
        call, ``names`` from the first call that has them.
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
        """The user's own object, without our annotation entry: each key that this Rollout wrote is restored if it is
        still as written and no other field manager has claimed the same value since.
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
        """The changes that this Rollout has pinned it with; {} without its annotation entry."""
        mark = marks.read_as(Pin, live, by, keys)
        return mark.written if mark else {}

    def drifted(self, live: Object, by: str, keys: Keys) -> tuple[str, ...]:
        """Keys that another writer changed after this Rollout had written them, sorted."""
        mark = marks.read_as(Pin, live, by, keys)
        now = self.selector(live)
        return tuple(sorted(key for key, written in mark.written.items() if now.get(key) != written)) if mark else ()


def selector_problem(
    selected: Mapping[str, str],
    *,
    what: str,
    workload: Target,
    leaders: Mapping[str, Sequence[Mapping[str, str]]],
    borrowers: Sequence[str],
    pinned: bool = True,
) -> str:
    """Why ``what`` (its kind and name) with this user's selector cannot serve a release of ``workload``, as a sentence
    that says what to do; "" when it can.

    ``leaders`` are the label sets of leader pods by the name of their workload; without a leader of ``workload`` the
    selector is not checked against it. ``borrowers`` are UIDs of other Rollouts that pin the object. Not ``pinned``
    is the object of one side of a pair.
    """
    name, kind = workload.metadata.name, workload.resource.kind
    if not selected:
        return f"{what} has no selector, so it cannot be pinned to a version; give it one that selects {name}"
    if borrowers:
        return (
            f"{what} is pinned by another Rollout (UID {', '.join(borrowers)}); name another one in"
            " trafficRoutings, or delete that Rollout"
        )
    own = leaders.get(name, ())
    if own and not any(matched(selected, labels) for labels in own):
        wanted = ",".join(f"{key}={value}" for key, value in sorted(selected.items()))
        return f"{what} selects no leader of {called(workload)} ({wanted}); correct its selector"
    others = sorted(
        other
        for other, sets in leaders.items()
        if other not in (name, canary_name(workload)) and any(matched(selected, labels) for labels in sets)
    )
    if others and not pinned:
        return (
            f"{what} selects leaders of {kind} {', '.join(others)} besides {name}, so that its weight is not {name}'s"
            f" alone; {own_label(workload)}"
        )
    if others:
        return (
            f"{what} selects leaders of {kind} {', '.join(others)} besides {name} and would lose them when"
            f" pinned; {own_label(workload)}, or use one for each {kind}. Where"
            " requests need both, as with prefill and decode, leave trafficRoutings out: they follow the groups then"
        )
    return ""


def _changed(live: Object, path: Path, changes: Changes) -> Object:
    if not path:
        kept = {key: value for key, value in live.items() if key not in changes}
        return kept | {key: value for key, value in changes.items() if value is not None}
    inner = _changed(live.get(path[0]) or {}, path[1:], changes)
    rest = {member: value for member, value in live.items() if member != path[0]}
    # The API server keeps no empty selector: one that was created for the pins goes with the last of them.
    return rest if len(path) == 1 and not inner else {**rest, path[0]: inner}
