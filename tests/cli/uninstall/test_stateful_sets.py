"""A StatefulSet is taken off as a LeaderWorkerSet is, and no StatefulSet that a LeaderWorkerSet has made is touched."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.cli.releases import typed, version_hash
from rollout_lws.cli.uninstall.detach_plan import Detachment, detachments, left_standing_in
from rollout_lws.cli.uninstall.opening import restoring_patch
from rollout_lws.cli.uninstall.plan import keeping, rolling
from rollout_lws.errors import ApiError
from rollout_lws.objects.released import POD_INDEX, POD_NAME, POD_REVISION
from rollout_lws.objects.resources import LWS_NAME, PODS, STATEFUL_SETS
from rollout_lws.sandbox.faults import Effect
from rollout_lws.targets.stateful_set import StatefulSetTarget
from rollout_lws.workload.draining import Draining, taken_out
from rollout_lws.workload.hold import HOLD
from tests.cli.conftest import World
from tests.cli.uninstall.held import GROUP, KEYS, by_place, lws, rollout, stateful_set
from tests.cli.uninstall.place import Place, place
from tests.cli.uninstall.test_installations import uninstall

Object = dict[str, Any]
NEW = "vllm:v2"
WAITS = "the version that waits (vllm:v2)"


RUNS = version_hash(stateful_set(), StatefulSetTarget)
ON_DELETE = {"type": "OnDelete"}


def released(name: str = "llama", **status: Any) -> Object:
    runs = {"observedTemplateHash": RUNS, "stable": {"templateHash": RUNS, "revision": "llama-1"}}
    made = rollout(name, **(runs | status))
    made["spec"]["workloadRef"] |= {"apiVersion": "apps/v1", "kind": "StatefulSet"}
    return made


def foretold(*workloads: Object, rollouts: tuple[Object, ...] = (), running: tuple[str, ...] = ()) -> Detachment:
    (found,) = detachments(GROUP, rollouts, by_place(*workloads), lambda _: ("llama-2", running))
    return found


def words(each: Detachment) -> list[str]:
    return [rolling(each, roll) for roll in each.rolls]


def restored(workload: Object) -> Object | None:
    return restoring_patch(typed(workload, StatefulSetTarget), KEYS)


@pytest.mark.parametrize(
    ("workload", "rolls"),
    [
        pytest.param(stateful_set(by="uid-llama"), [], id="at rest"),
        pytest.param(
            stateful_set(by="uid-llama", image=NEW), [f"{WAITS} ROLLS in 4 groups, 1 at a time"], id="a version waits"
        ),
        pytest.param(
            stateful_set(
                by="uid-llama",
                image=NEW,
                users={"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": "10%"}},
            ),
            [f"{WAITS} ROLLS in 3 groups, 1 at a time"],
            id="of less than a group unavailable one is",
        ),
        pytest.param(
            stateful_set(by="uid-llama", image=NEW, users=ON_DELETE),
            [f"{WAITS} gets into 4 groups, each when its pod is deleted, as the strategy is OnDelete"],
            id="on delete",
        ),
    ],
)
def test_what_would_roll_is_foretold(workload: Object, rolls: list[str]) -> None:
    each = foretold(workload, rollouts=(released(),))
    assert (each.workload, words(each)) == ("llama", rolls)
    end = "" if rolls else "; nothing rolls"
    assert each.outlook == f"statefulset/llama runs revision llama-1 in 4 groups{end}"
    assert keeping(each) == "rollout-lws undo llama -n default"


def test_it_gets_its_own_strategy_back_whatever_its_type() -> None:
    assert restored(stateful_set(by="u")) == {
        "metadata": {"annotations": {KEYS.original: None}},
        "spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}},
    }
    assert restored(stateful_set(by="u", users=ON_DELETE, held="text")) == {
        "metadata": {"annotations": {KEYS.original: None, KEYS.held: None}},
        "spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}},
    }
    assert restored(stateful_set()) is None


def test_workloads_of_two_kinds_with_one_name_are_told_apart() -> None:
    known = by_place(lws(by="uid-chat"), stateful_set(by="uid-llama", image=NEW))
    first, second = detachments(GROUP, [released(), rollout("chat")], known, lambda _: ("", ()))
    assert (first.rollout, words(first)) == ("chat", [])
    assert first.outlook.startswith("leaderworkerset/llama runs revision rev-1")
    assert (second.rollout, words(second)) == ("llama", [f"{WAITS} ROLLS in 4 groups, 1 at a time"])


def test_one_that_a_deleted_rollout_has_left_held_is_opened_and_a_canary_is_left_to_its_controller() -> None:
    canary = stateful_set("llama-canary", by="u", labels={KEYS.canary_leader_worker_set: "llama"})
    each = foretold(stateful_set(by="u", image=NEW), canary, running=("llama-1", "llama-1"))
    assert (each.rollout, each.workload) == ("", "llama")
    assert each.outlook == "statefulset/llama runs revision llama-1 in 4 groups; a deleted Rollout has left it held"
    assert words(each) == [f"{WAITS} ROLLS in 4 groups, 1 at a time"]


def test_one_that_serves_in_place_of_another_keeps_its_rollout() -> None:
    stands = stateful_set("llama-canary", by="uid-llama", labels={KEYS.stands_for: "llama", KEYS.side: "active"})
    parked = stateful_set(labels={KEYS.side: "parked"})
    parked["spec"]["replicas"] = 0
    each = foretold(stands, parked, rollouts=(released(active="llama-canary"),))
    assert (each.workload, each.stood_for, each.stays) == ("llama-canary", "llama", True)
    told = "statefulset/llama-canary serves in its place, and statefulset/llama has 0 groups; nothing rolls"
    assert each.outlook == told
    assert left_standing_in(GROUP, (), by_place(stands, parked)) == (
        "statefulset/llama-canary in namespace default serves in place of statefulset/llama, as a deleted Rollout has"
        " left them: both stay as they are",
    )
    # A LeaderWorkerSet of the name has nothing to do with it.
    assert left_standing_in(GROUP, (rollout(),), by_place(stands, parked))
    assert left_standing_in(GROUP, (released(),), by_place(stands, parked)) == ()


# On a server where no controller runs


def create(world: World, workload: Object, *revisions: str, wanted: str = "llama-2", **labels: str) -> None:
    """The StatefulSet with its pods, as its controller has left them."""
    meta = {key: value for key, value in workload["metadata"].items() if key != "uid"}
    name = meta["name"]
    world.do(partial(world.server.create, STATEFUL_SETS, {**workload, "metadata": meta}))
    status = {"status": {"updateRevision": wanted, "replicas": len(revisions)}}
    world.do(partial(world.server.patch, STATEFUL_SETS, "default", name, status, subresource="status"))
    for index, revision in enumerate(revisions):
        own = {POD_NAME: f"{name}-{index}", POD_INDEX: str(index), POD_REVISION: revision, **labels}
        pod = {
            "metadata": {"name": f"{name}-{index}", "namespace": "default", "labels": own},
            "spec": workload["spec"]["template"]["spec"],
        }
        world.do(partial(world.server.create, PODS, pod))


def live(world: World, name: str = "llama") -> Object:
    found: Object = world.do(lambda: world.server.get(STATEFUL_SETS, "default", name))
    return found


def test_what_is_left_held_is_opened_by_the_strategy_that_it_had(world: World) -> None:
    create(world, stateful_set(by="u", users=ON_DELETE, image=NEW), "llama-1", "llama-1")
    conflict = Effect(refusal=ApiError(409, "Conflict", "statefulsets"))
    world.do(partial(world.http.gate.faults.add, conflict, "patch", "statefulsets"))
    told = uninstall(world)
    assert (
        f"statefulset/llama in namespace default has its own strategy back: {WAITS} gets into 4 groups, each when its"
        " pod is deleted, as the strategy is OnDelete"
    ) in told
    assert live(world)["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert KEYS.original not in (live(world)["metadata"].get("annotations") or {})


def test_nothing_rolls_where_all_pods_have_the_version(world: World) -> None:
    create(world, stateful_set(by="u"), "llama-2", "llama-2")
    create(world, stateful_set("llama-of-others"), "llama-of-others-1")
    told = "\n".join(uninstall(world))
    assert "statefulset/llama in namespace default has its own strategy back: nothing rolls" in told
    assert "of-others" not in told


def test_what_a_leader_worker_set_has_made_is_never_touched(world: World) -> None:
    """It carries the annotations of its LeaderWorkerSet, and a Rollout may name it."""
    made = stateful_set(by="u", image=NEW, labels={LWS_NAME: "llama"})
    create(world, made, "llama-1", **{LWS_NAME: "llama"})
    before = live(world)
    named = released(finalizer=False)
    named.pop("status")
    world.do(partial(world.server.create, world.rollouts, named))
    told = uninstall(world)
    assert "  rollout/llama in namespace default: statefulset/llama does not exist; nothing rolls" in told
    assert live(world) == before


def test_pods_that_were_about_to_go_get_requests_again(world: World) -> None:
    create(world, stateful_set(by="u"), "llama-2")
    create(world, stateful_set("llama-next"), "llama-next-1")
    now = datetime.fromtimestamp(world.do(lambda: world.server.clock()), UTC)
    for name in ("llama-0", "llama-next-0"):
        record = Draining({"role": "leader"}, now)
        world.do(partial(world.server.patch, PODS, "default", name, taken_out(record, KEYS)))
    uninstall(world)
    pod, other = (world.do(partial(world.server.get, PODS, "default", name)) for name in ("llama-0", "llama-next-0"))
    assert pod["metadata"]["labels"]["role"] == "leader"
    assert KEYS.draining not in (pod["metadata"].get("annotations") or {})
    assert KEYS.draining in other["metadata"]["annotations"]


# On a cluster with a controller


class Sets(Place):
    """The words of a story of a StatefulSet."""

    users: Object

    @property
    def lws(self) -> Object:
        return self.server.get(STATEFUL_SETS, "default", self.name)

    def leaders(self) -> dict[str, tuple[str, str]]:
        pods = (each for each in self.server.list(PODS, "default") if "deletionTimestamp" not in each["metadata"])
        return {
            each["metadata"]["name"]: (each["metadata"]["uid"], each["spec"]["containers"][0]["image"])
            for each in pods
            if each["metadata"]["name"].rpartition("-")[0] == self.name
        }

    def tags(self) -> set[str]:
        return {image.rpartition(":")[2] for _, image in self.leaders().values()}

    def strategy(self) -> Object:
        found: Object = self.lws["spec"]["updateStrategy"]
        return found

    def apply_image(self, image: str) -> None:
        body = {"spec": {"template": {"spec": {"containers": [{"name": "vllm", "image": image}]}}}}
        self.server.patch(STATEFUL_SETS, "default", self.name, body)

    async def begin(self, users: Object) -> None:
        """With the quickstart's steps."""
        workload = stateful_set(self.name, users=users)
        (plan,) = [each for each in self.manifests if each["kind"] == "Rollout"]
        plan["spec"]["workloadRef"] |= {"apiVersion": "apps/v1", "kind": "StatefulSet"}
        for each in (workload, plan):
            each["metadata"] = {"name": self.name}
        self.manifests = [workload, plan]
        await self.install()
        await self.apply()


@pytest.mark.parametrize("type_of_strategy", ["RollingUpdate", "OnDelete"])
async def test_a_release_goes_back_and_its_version_comes_as_the_strategy_has_it(
    type_of_strategy: str, tmp_path: Path
) -> None:
    async with place(tmp_path, "quickstart") as plain:
        there = Sets(plain.reader, "quickstart")
        await there.begin({"type": type_of_strategy})
        assert there.strategy()["rollingUpdate"]["partition"] == HOLD
        before = there.leaders()
        there.apply_image(NEW)
        await there.until(lambda: there.state() == "AwaitingApproval")
        planned = "".join(await there.uninstall("--dry-run"))
        assert "its release (AwaitingApproval) goes back to revision quickstart-" in planned
        rolls = type_of_strategy == "RollingUpdate"
        assert (f"{WAITS} ROLLS in 4 groups, 1 at a time" in planned) == rolls
        await there.leaves()
        assert there.traces() == []
        assert there.strategy().get("type") == type_of_strategy
        if rolls:
            await there.until(lambda: there.tags() == {"v2"} and there.all_ready())
        else:
            assert there.leaders() == before
            there.server.delete(PODS, "default", f"{there.name}-3")
            await there.until(lambda: there.tags() == {"v1", "v2"} and there.all_ready())
