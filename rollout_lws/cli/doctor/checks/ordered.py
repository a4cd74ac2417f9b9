"""What waits for a single pod, where a workload's controller makes, replaces and deletes one pod after another.

It goes on to the next one when those before are ready, so a pod that never is keeps even its own version from being
replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.links import Link, State
from rollout_lws.objects.workloads import Pod
from rollout_lws.workload.facts import Facts as Workload
from rollout_lws.workload.groups import Group, groups
from rollout_lws.workload.revisions import comes_back_at, target_revision


@dataclass(frozen=True, slots=True)
class Blocked:
    """The pod that is not ready, and the names of those that wait for it: missing ones, those of another version than
    they are to have, and those that are too many.
    """

    group: Group
    unmade: tuple[str, ...]
    unreplaced: tuple[str, ...]
    undeleted: tuple[str, ...]

    @property
    def pod(self) -> Pod:
        return self.group.leader

    @property
    def text(self) -> str:
        """What waits, and for what."""
        waiting = ((self.unmade, "made"), (self.unreplaced, "replaced"), (self.undeleted, "deleted"))
        told = ", ".join(_not(names, verb) for names, verb in waiting if names)
        name = self.pod.metadata.name
        alone = {name} == {*self.unmade, *self.unreplaced, *self.undeleted}
        return f"{told} until {'it' if alone else f'pod {name}'} is ready, as podManagementPolicy is OrderedReady"


def blocked(case: Case, side: Workload) -> Blocked | None:
    """What the first pod that is not ready keeps waiting; None if nothing waits for it."""
    workload, known = side.workload, groups(side)
    if not workload.ordered:
        return None
    at = {each.ordinal: each for each in known}
    first = next((place for place in range(workload.replicas) if not _is_available(case, side, at.get(place))), None)
    if first is None or first not in at:
        return None
    open_from = side.leader_set.spec.update_strategy.rolling_update.partition if side.leader_set is not None else first
    target = target_revision(side)
    found = Blocked(
        at[first],
        tuple(name_at(side, place) for place in range(first, workload.replicas) if place not in at),
        tuple(
            each.leader.metadata.name
            for each in known
            if open_from <= each.ordinal < workload.replicas and each.revision != target and not each.terminating
        ),
        tuple(each.leader.metadata.name for each in known if each.ordinal >= workload.replicas),
    )
    return found if found.unmade or found.unreplaced or found.undeleted else None


def name_at(side: Workload, place: int) -> str:
    """The name of the pod that takes requests of the group at this place."""
    return f"{side.name}-{side.workload.first_ordinal + place}"


def told_of(case: Case, side: Workload, links: Sequence[Link]) -> tuple[Link, ...]:
    """The links of the groups; the first broken one says what waits for the pod, and how to have it recreated."""
    found = blocked(case, side)
    broken = next((each for each in links if each.state is State.BROKEN), None)
    if found is None or broken is None:
        return tuple(links)
    back = comes_back_at(side, found.group.ordinal)
    another = back not in ("", found.group.revision)
    name = found.pod.metadata.name
    steps = broken.next
    # A version that is being released is to be fixed or aborted: it would come again.
    if not found.pod.metadata.terminating and (another or not case.is_on):
        remark = f"   # it is recreated{f', at revision {back}' if another else ''}"
        steps = (*steps, case.kubectl(f"delete pod {name}") + remark)
    told = replace(broken, found=f"{broken.found}; {found.text}", next=steps)
    return tuple(told if each is broken else each for each in links)


def _is_available(case: Case, side: Workload, group: Group | None) -> bool:
    return group is not None and group.ready(case.now, side.workload.min_ready_seconds)


def _not(names: Sequence[str], verb: str) -> str:
    others = len(names) - 1
    return f"pod {names[0]}" + (f" and {others} more are" if others else " is") + f" not {verb}"
