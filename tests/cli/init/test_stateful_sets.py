"""`init` of StatefulSets: how they are named, what is found of them, and that what is printed is released."""

from __future__ import annotations

import pytest
import yaml
from click.testing import CliRunner, Result

from rollout_lws.cli.init.kinds import kind_of, named
from rollout_lws.cli.init.proposal import propose
from rollout_lws.cli.main import program
from rollout_lws.errors import RolloutLwsError, UsageError
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, STATEFUL_SETS
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.targets.stateful_set import StatefulSetTarget
from tests.cli.init.test_releases import STRATEGIES, applied
from tests.cli.lint.manifests import GREEN_SERVICE, LWS, PAIR_ROUTE, ROUTE, edited, found, joined
from tests.cli.lint.stateful import DATABASE, HEADLESS, STATEFUL_SET, STS_SERVICE
from tests.cli.plan.snapshots import plan_of, snapshot
from tests.scenarios.kinds import ORDERED, LeaderWorkerSets
from tests.scenarios.kinds import STATEFUL_SET as KIND
from tests.scenarios.routed import PROVIDERS, Provider, create_provider
from tests.scenarios.stories import CANARY
from tests.scenarios.world import KEYS, NAME, World

pytestmark = pytest.mark.rare(3)

_CANARY = f"{{{KEYS.canary_leader_worker_set}: chat}}"
GREEN = (
    STATEFUL_SET.replace("  name: chat\n", "  name: chat-green\n")
    .replace("app: chat\n", "app: chat-green\n")
    .replace("chat-pods", "green-pods")
)


def run(*arguments: str, given: str) -> Result:
    result = CliRunner().invoke(program, ["init", *arguments, "-f", "-"], input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit | RolloutLwsError):
        raise result.exception
    return result


NAMES = ("sts/chat", "statefulset/chat", "statefulsets/chat", "statefulsets.apps/chat", "chat")


@pytest.mark.parametrize("name", NAMES)
def test_a_rollout_is_written_with_the_route_that_leads_to_its_pods(name: str) -> None:
    result = run(name, given=joined(STATEFUL_SET, DATABASE, STS_SERVICE, HEADLESS, ROUTE))
    assert result.exit_code == 1, "an API server would refuse the database"
    result = run(name, given=joined(STATEFUL_SET, STS_SERVICE, HEADLESS, ROUTE))
    (made,) = yaml.safe_load_all(result.stdout)
    assert made["spec"]["workloadRef"] == {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "chat"}
    (routing,) = made["spec"]["strategy"]["canary"]["trafficRoutings"]
    assert (routing["service"], routing["gateway"]) == ("chat-api", {"httpRouteName": "chat"})
    assert "allowUnmanagedBackends" not in routing
    lines = result.stdout.splitlines()
    assert lines[0] == "# How new versions of StatefulSet chat are released: 4 groups of 1 pod."
    assert lines[2] == "# Other ways: rollout-lws init --strategy blue-green, swap, shift, in-place"
    assert result.stderr == ""
    assert [each.code for each in found(joined(result.stdout, STATEFUL_SET, STS_SERVICE, HEADLESS, ROUTE))] == []


def test_a_name_alone_is_that_of_the_leader_worker_set() -> None:
    both = joined(LWS, STATEFUL_SET)
    assert "kind: LeaderWorkerSet" in run("chat", given=both).stdout
    assert "kind: StatefulSet" in run("sts/chat", given=both).stdout


def test_the_stateful_sets_of_leader_worker_sets_are_no_workloads() -> None:
    made = {"metadata": {"name": "chat", "labels": {LWS_NAME: "chat"}}}
    assert kind_of(Snapshot(KEYS, {STATEFUL_SETS: [made]}), "chat") is LeaderWorkerSet
    assert kind_of(Snapshot(KEYS, {STATEFUL_SETS: [{"metadata": {"name": "chat"}}]}), "chat") is StatefulSetTarget
    with pytest.raises(
        UsageError,
        match="StatefulSet chat was made by LeaderWorkerSet chat for its groups",
    ):
        propose(Snapshot(KEYS, {STATEFUL_SETS: [made]}), StatefulSetTarget, "chat", STRATEGIES["canary"])
    assert named("leaderworkersets.leaderworkerset.x-k8s.io/a") == (LeaderWorkerSet, "a")
    assert LeaderWorkerSet.resource == LEADER_WORKER_SETS


def test_a_service_is_made_where_only_the_one_is_by_which_pods_find_each_other() -> None:
    result = run("sts/chat", given=joined(STATEFUL_SET, HEADLESS))
    made, rollout = yaml.safe_load_all(result.stdout)
    assert (made["metadata"]["name"], made["spec"]["selector"]) == ("chat-api", {"app": "chat"})
    assert "trafficRoutings" not in rollout["spec"]["strategy"]["canary"]
    assert "headless" not in result.stdout
    assert "no HTTPRoute, GRPCRoute, VirtualService or Ingress leads to the pods' Service" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "given", "told"),
    [
        (
            ("sts/chat", "--strategy", "surge"),
            STATEFUL_SET,
            "has no surge groups: take --strategy canary",
        ),
        (
            ("sts/chat", "--strategy", "in-place"),
            edited(STATEFUL_SET, "replicas: 4", "replicas: 1"),
            "take --strategy canary or blue-green, or scale to 2",
        ),
        (("sts/chat", "--strategy", "shift"), STATEFUL_SET, "leads to a Service of the pods; make a route"),
        (("sts/talk",), STATEFUL_SET, "there is no StatefulSet 'talk'"),
        (("talk",), STATEFUL_SET, "there is no LeaderWorkerSet 'talk'"),
        (
            ("sts/chat", "--counterpart", "chat-green"),
            joined(STATEFUL_SET, LWS),
            "there is no StatefulSet 'chat-green'",
        ),
        (
            ("sts/chat", "--counterpart", "sts/chat-green"),
            joined(STATEFUL_SET, GREEN),
            "no Service selects the pods of StatefulSet chat and of no other: each side of a pair needs one of its own,"
            " such as one by a label that the template of chat alone has",
        ),
        (
            ("sts/chat-canary",),
            edited(STATEFUL_SET, "  name: chat\n", f"  name: chat-canary\n  labels: {_CANARY}\n"),
            "StatefulSet chat-canary is the canary of a release: name the one it belongs to, sts/chat",
        ),
    ],
)
def test_what_is_not_possible_is_told(arguments: tuple[str, ...], given: str, told: str) -> None:
    result = run(*arguments, given=given)
    assert told in str(result.exception)


def test_two_kinds_are_no_pair() -> None:
    result = run("sts/chat", "--counterpart", "lws/chat", given=joined(STATEFUL_SET, LWS))
    assert "the workloads of a pair are of one kind: sts/chat and lws/chat are not" in result.output


def test_a_pair_of_stateful_sets() -> None:
    green_service = edited(GREEN_SERVICE, '    leaderworkerset.sigs.k8s.io/worker-index: "0"\n', "")
    given = joined(STATEFUL_SET, GREEN, STS_SERVICE, green_service, PAIR_ROUTE)
    result = run("chat", "--counterpart", "chat-green", given=given)
    (made,) = yaml.safe_load_all(result.stdout)
    assert [made["spec"][each]["kind"] for each in ("workloadRef", "counterpartRef")] == ["StatefulSet"] * 2
    assert result.stdout.startswith(
        "# How requests move between StatefulSets chat (4 groups) and chat-green (4 groups)."
    )
    shifted = run("chat", "--counterpart", "chat-green", "--shift", given=given)
    assert str(shifted.exception).endswith(
        "give the template of StatefulSet chat a label that is not in the StatefulSet's own selector, such as"
        " serves: chat, and add it to its selector"
    )


@pytest.mark.parametrize("type", ["RollingUpdate", "OnDelete"])
def test_gitops_tools_get_the_fields_of_its_strategy(type: str) -> None:
    marks = "  annotations: {argocd.argoproj.io/tracking-id: 'chat:apps/x'}\n"
    strategy = f"  updateStrategy: {{type: {type}}}\n"
    marked = edited(
        STATEFUL_SET, "  name: chat\nspec", f"  name: chat\n{marks}spec", "  template:", f"{strategy}  template:"
    )
    shown = run("sts/chat", given=joined(marked, STS_SERVICE, ROUTE)).stdout
    assert "/spec/updateStrategy/rollingUpdate/partition" in shown
    assert ("/spec/updateStrategy/type" in shown) is (type == "OnDelete")


def test_what_lint_tells_of_it_is_a_warning() -> None:
    ordered = edited(STATEFUL_SET, "  podManagementPolicy: Parallel\n", "")
    told = run("sts/chat", given=joined(ordered, STS_SERVICE, ROUTE)).stderr
    assert "warning: podManagementPolicy is OrderedReady" in told


CASES = [
    *((KIND, strategy, 4, by) for strategy in STRATEGIES for by in (None, *PROVIDERS) if by or strategy != "shift"),
    *((ORDERED, strategy, 4, PROVIDERS[0]) for strategy in STRATEGIES),
    (KIND, "canary", 1, None),
    (KIND, "in-place", 2, PROVIDERS[0]),
]
POSSIBLE = [case for case in CASES if case[1] != "surge"]
SOME = [
    case if number % 5 == 0 else pytest.param(*case, marks=pytest.mark.long) for number, case in enumerate(POSSIBLE)
]


@pytest.mark.looptime
@pytest.mark.parametrize(("kind", "strategy", "replicas", "by"), SOME, ids=str)
async def test_what_is_printed_can_be_released(
    kind: LeaderWorkerSets, strategy: str, replicas: int, by: Provider | None
) -> None:
    world = World()
    world.kind = kind
    try:
        world.create_workload(replicas=replicas, size=1)
        if by is not None:
            create_provider(world, by)
        await world.until(lambda: list(world.groups().values()) == ["v1"] * replicas)
        await world.rest()
        made = propose(snapshot(world), StatefulSetTarget, NAME, STRATEGIES[strategy])
        assert made.routing.routes is (by is not None)
        applied(world, made)
        world.start_controller()
        await world.until_state("Healthy")
        plan = plan_of(world)
        assert (plan.refusals, plan.kind) == ((), "StatefulSet")
        assert plan.forecast is not None
        world.set_image("v2")
        for index in plan.forecast.approvals:
            await world.until(
                lambda: world.state == "AwaitingApproval" and world.status["currentStepIndex"] == index,  # noqa: B023
                f"step {index}",
                3600,
            )
            world.approve()
        serves = CANARY if STRATEGIES[strategy].swaps else NAME
        new = dict.fromkeys(range(replicas), "v2")
        await world.until(lambda: world.state == "Healthy" and world.groups(serves) == new, "released", 7200)
        await world.rest()
        assert world.errors == []
    finally:
        world.close()
