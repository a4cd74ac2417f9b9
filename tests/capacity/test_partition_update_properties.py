"""Promotion under any order of events: what holds in every state, and that it ends.

The world here is as small as it can be: leaders that come up, fail and are recreated, an LWS whose strategy reaches the
leader StatefulSet late, and a StatefulSet that renews one leader at a time from the top and gives recreated ones the
version that its partition says.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from rollout_lws.capacity import known
from rollout_lws.capacity.partition_update import PartitionUpdate
from rollout_lws.capacity.result import CapacityResult
from rollout_lws.objects.workloads import Pod
from rollout_lws.objects.writes import Delete, Patch
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.workload.hold import HOLD, hold, is_held, resolved_unavailable
from tests.workload.build import KEYS, NEW, NOW, OLD, UID, facts, leader_set, lws, patched, pod, revision_record


@dataclass
class Leader:
    revision: str = OLD
    ready: bool = True
    uid: int = 0


@dataclass
class World:
    """A stable LWS of ``replicas`` groups of one pod, held, with ``canary`` ready groups beside it."""

    replicas: int
    unavailable: int | str
    canary: int
    leaders: list[Leader] = field(default_factory=list)
    set_partition: int = HOLD
    current: str = OLD
    made: int = 0

    def __post_init__(self) -> None:
        self.leaders = [Leader(uid=self._uid()) for _ in range(self.replicas)]
        users = lws(self.replicas, unavailable=self.unavailable)
        self.allowed = resolved_unavailable(users.strategy, self.replicas)
        self.workload: LeaderWorkerSet = patched(users, hold(users, KEYS, UID))

    def _uid(self) -> int:
        self.made += 1
        return self.made

    @property
    def partition(self) -> int:
        return self.workload.strategy.partition

    @property
    def ready(self) -> int:
        return sum(leader.ready for leader in self.leaders)

    def partition_update(self) -> PartitionUpdate:
        pods: tuple[Pod, ...] = tuple(
            pod(at, size=1, revision=leader.revision, since=NOW if leader.ready else None, uid=f"uid-{leader.uid}")
            for at, leader in enumerate(self.leaders)
        )
        name = {OLD: "set-old", NEW: "set-new"}[self.current]
        sets = leader_set(NEW, partition=self.set_partition, current=name, update="set-new")
        records = (revision_record("lws-old", OLD),)
        seen = facts(self.workload, *pods, leader_set=sets, revisions=records)
        return PartitionUpdate(seen, KEYS, UID, NOW, self.canary, known.EXTRA_WORKLOAD)

    # What others do

    def lws_acts(self) -> None:
        self.set_partition = self.partition

    def set_acts(self) -> None:
        """One leader at a time, from the top; currentRevision moves when all are new and ready, also under the hold."""
        for at in reversed(range(self.replicas)):
            if at < self.set_partition:
                break
            if self.leaders[at].revision != NEW:
                self.recreate(at)
                break
            if not self.leaders[at].ready:
                break
        if all(leader.ready and leader.revision == NEW for leader in self.leaders):
            self.current = NEW

    def recreate(self, at: int) -> None:
        revision = NEW if at >= self.set_partition else self.current
        self.leaders[at] = Leader(revision, ready=False, uid=self._uid())

    # What we do

    def carry_out(self, result: CapacityResult) -> None:
        for write in result.writes:
            if isinstance(write, Patch):
                self.workload = patched(self.workload, write.body)
            elif isinstance(write, Delete):
                at = int(write.name.rpartition("-")[2])
                if write.uid == f"uid-{self.leaders[at].uid}":
                    self.recreate(at)

    def promote(self) -> CapacityResult:
        result = self.partition_update().promote(NEW)
        before, serving = self.partition, self.ready + self.canary
        if result.opened:
            going = [self.leaders[ordinal] for ordinal in result.opened]
            assert all(leader.revision == OLD for leader in going)
            cost = sum(leader.ready for leader in going)
            assert cost <= max(1, min(self.allowed, self.canary, self.replicas - 1))
            assert cost == 0 or serving - cost >= max(1, self.replicas - max(1, self.allowed))
            assert all(leader.revision == NEW for leader in self.leaders[min(result.opened) :] if leader not in going)
            assert all(leader.ready for leader in self.leaders if leader.revision == NEW)
        deleted = [write for write in result.writes if isinstance(write, Delete)]
        self.carry_out(result)
        assert not deleted or before == self.set_partition < HOLD, "no leader is deleted outside of a window"
        if self.partition < before:
            assert before == HOLD, "a window opens from the hold"
            assert self.partition == min(result.opened)
        elif self.partition > before:
            assert self.partition == HOLD, "a window closes to the hold"
        return result

    def go_back(self) -> CapacityResult:
        result = self.partition_update().go_back(OLD)
        serving = self.ready + self.canary
        victims = [write for write in result.writes if isinstance(write, Delete)]
        if victims:
            assert is_held(self.workload) and self.set_partition >= HOLD and self.current == OLD
            going = [self.leaders[int(write.name.rpartition("-")[2])] for write in victims]
            assert all(leader.revision == NEW for leader in going)
            cost = sum(leader.ready for leader in going)
            assert cost == 0 or (cost <= max(1, self.allowed) - (self.replicas - self.ready) and serving - cost >= 1)
        self.carry_out(result)
        assert self.partition == HOLD, "on the way back nothing is opened"
        return result

    def settle(self) -> None:
        """Everything that can get better does."""
        self.lws_acts()
        self.set_acts()
        for leader in self.leaders:
            leader.ready = True
        self.set_acts()


_WORLDS = st.builds(
    World,
    st.integers(1, 5),
    st.sampled_from([1, 2, 3, "25%", "50%", "100%"]),
    st.integers(0, 5),
)
#: (what happens, to which group)
_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["promote", "promote", "lws", "set", "ready", "ready", "fail", "recreate"]), st.integers(0, 4)
    ),
    max_size=60,
)


def run(world: World, events: list[tuple[str, int]]) -> None:
    for event, at in events:
        at %= world.replicas
        match event:
            case "promote":
                world.promote()
            case "back":
                world.go_back()
            case "lws":
                world.lws_acts()
            case "set":
                world.set_acts()
            case "recreate":
                world.recreate(at)
            case _:
                world.leaders[at].ready = event == "ready"


@settings(max_examples=300, deadline=None)
@given(_WORLDS, _EVENTS)
def test_no_window_opens_for_more_than_may_be_down_and_the_promotion_ends(
    world: World, events: list[tuple[str, int]]
) -> None:
    run(world, events)
    for _ in range(6 * world.replicas + 6):
        world.settle()
        result = world.promote()
        if result.done:
            break
    # An LWS of one group that nothing serves beside cannot be renewed without an outage.
    if world.replicas + world.canary > 1:
        assert result.done, (world, result)
        assert [leader.revision for leader in world.leaders] == [NEW] * world.replicas
        assert is_held(world.workload)
        assert world.current == NEW
    else:
        assert result.done == (world.leaders[0].revision == NEW)


@settings(max_examples=300, deadline=None)
@given(
    _WORLDS, _EVENTS, _EVENTS.map(lambda events: [("back" if what == "promote" else what, at) for what, at in events])
)
def test_the_way_back_deletes_no_more_than_may_be_down_and_ends(
    world: World, forth: list[tuple[str, int]], back: list[tuple[str, int]]
) -> None:
    run(world, forth)
    run(world, back)
    for _ in range(6 * world.replicas + 6):
        result = world.go_back()
        if result.done or result.blocked:
            break
        world.settle()
    revisions = {leader.revision for leader in world.leaders}
    if result.blocked:
        assert world.current == NEW or (NEW in revisions and world.ready + world.canary == 1)
    else:
        assert result.done, (world, result)
        assert revisions == {OLD}


@settings(max_examples=200, deadline=None)
@given(_WORLDS.filter(lambda world: world.replicas + world.canary > 1))
def test_without_accidents_each_group_gets_one_window_from_the_top_down(world: World) -> None:
    partitions, opened = [], []
    for _ in range(6 * world.replicas + 6):
        result = world.promote()
        if result.opened:
            partitions.append(world.partition)
            opened += result.opened
        if result.done:
            break
        world.settle()
    assert result.done
    assert partitions == sorted(set(partitions), reverse=True)
    assert sorted(opened) == list(range(world.replicas))
