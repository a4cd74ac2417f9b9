"""Pairs from files and over HTTP: what the command finds, prints, warns of and refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from rollout_lws.api import CanaryStrategy
from rollout_lws.capacity import known
from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.capacity.weights import weight_of_step
from rollout_lws.cli.init.steps import steps
from rollout_lws.cli.main import program
from rollout_lws.errors import RolloutLwsError, UsageError
from tests.cli.conftest import World
from tests.cli.init.test_command import created
from tests.cli.lint.manifests import (
    GREEN,
    GREEN_SERVICE,
    HPA,
    LWS,
    PAIR_ROUTE,
    PLAIN_ROLLOUT,
    SERVICE,
    edited,
    found,
    joined,
    unnumbered,
)

#: The second side has no groups, as between releases.
PARKED = edited(GREEN, "  replicas: 4", "  replicas: 0")
GIVEN = (LWS, GREEN, SERVICE, GREEN_SERVICE, PAIR_ROUTE)
UNNUMBERED = (unnumbered(LWS), unnumbered(GREEN), SERVICE, GREEN_SERVICE, PAIR_ROUTE)
HEAD = f"""\
# How requests move between LeaderWorkerSets chat (4 groups) and chat-green ({{groups}} groups).
# {known.PAIR.help}
# What a release takes: rollout-lws plan -f FILE
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata:
  name: chat
  namespace: default
spec:
  workloadRef:
    apiVersion: leaderworkerset.x-k8s.io/v1
    kind: LeaderWorkerSet
    name: chat
  counterpartRef:
    apiVersion: leaderworkerset.x-k8s.io/v1
    kind: LeaderWorkerSet
    name: chat-green
"""
ROUTING = """\
  strategy:
    canary:
      capacity: Pair
      trafficRoutings:
        - service: chat-api # leads to chat
          counterpartService: green-api # leads to chat-green
          gateway:
            httpRouteName: chat # refers to both Services
          gracePeriodSeconds: 3 # for routers to act on a change
          drainSeconds: 30 # for requests that run on the side that has lost its share: your longest answer
"""
PRINTED = f"""\
{HEAD.format(groups=0)}\
  # No replicas: the controller writes the active side's number here. From then on scale the Rollout
  # instead of the workloads, and leave replicas out of their manifests.
{ROUTING}\
      steps:
        # One group, until it is approved.
        - replicas: 1
          traffic: 10%
          pause: {{}} # no duration: wait for an approval
        # 2 of 4 groups for 10 minutes.
        - replicas: 50%
          traffic: auto
          pause:
            duration: 600 # seconds
        # All groups, and half of the requests for 10 minutes; then all.
        - replicas: 100%
          traffic: 50%
          pause:
            duration: 600 # seconds
"""
ROUTE_ONLY = f"""\
{HEAD.format(groups=4)}\
  touch: RouteOnly # releases write the route alone: you change and scale both workloads
{ROUTING}\
      steps:
        # A tenth of the requests, when all groups of the inactive side are ready.
        - replicas: 100%
          traffic: 10%
          pause: {{}} # no duration: wait for an approval
        # Half of them for 10 minutes; then all.
        - replicas: 100%
          traffic: 50%
          pause:
            duration: 600 # seconds
"""
#: Another object controls the first side.
OWNED = edited(
    LWS,
    "  name: chat\nspec",
    "  name: chat\n  ownerReferences: [{apiVersion: v1, kind: KServe, name: d, uid: u, controller: true}]\nspec",
)
POOL = """\
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata:
  name: {0}
spec:
  targetPorts:
    - number: 8000
  selector:
    matchLabels:
      leaderworkerset.sigs.k8s.io/name: {0}
      leaderworkerset.sigs.k8s.io/worker-index: "0"
"""
TO_POOLS = edited(
    PAIR_ROUTE.replace("          port: 80\n", ""),
    "        - name: chat-api\n",
    "        - group: inference.networking.k8s.io\n          kind: InferencePool\n          name: chat\n",
    "        - name: green-api\n",
    "        - group: inference.networking.k8s.io\n          kind: InferencePool\n          name: chat-green\n",
)


def live(*texts: str) -> list[dict[str, Any]]:
    """The objects that a cluster has of these manifests."""
    objects = (yaml.safe_load(each) for each in texts)
    return [{**each, "metadata": {**each["metadata"], "namespace": "default"}} for each in objects]


def run(*arguments: str, given: tuple[str, ...] = GIVEN) -> Result:
    words = ("init", "lws/chat", "--counterpart", "lws/chat-green", *arguments, "-f", "-")
    result = CliRunner().invoke(program, words, input=joined(*given))
    if result.exception is not None and not isinstance(result.exception, SystemExit | RolloutLwsError):
        raise result.exception
    return result


def spec(result: Result) -> dict[str, Any]:
    """The spec of the Rollout that was written."""
    return dict(yaml.safe_load(result.stdout)["spec"])


def test_a_rollout_is_written_with_the_services_and_the_route_that_names_both(world: World) -> None:
    created(world, *live(LWS, PARKED, *GIVEN[2:]))
    result = world.run("init", "lws/chat", "--counterpart", "lws/chat-green")
    assert result.stdout == PRINTED
    # In this world no Gateway speaks of the route.
    assert result.stderr.count("\n") == 1
    assert "as things are the controller would refuse a release: no Gateway accepts HTTPRoute chat" in result.stderr


def test_a_pair_of_manifests_names_the_side_that_serves_since_both_begin_with_a_group() -> None:
    result = run(given=UNNUMBERED)
    assert result.stderr == (
        "warning: the Rollout scales LeaderWorkerSet chat-green to 0 when it is applied, as chat serves: its groups (1)"
        " go, and a release of a version there loads them again\n"
    )
    assert spec(result)["activeSide"] == "chat"
    assert [each.code for each in found(joined(result.stdout, *UNNUMBERED))] == ["LWS407"]


def test_the_side_with_the_requests_is_named_whichever_comes_first() -> None:
    turned = edited(PAIR_ROUTE, "weight: 0", "weight: 7", "weight: 100", "weight: 0")
    result = run(given=(*UNNUMBERED[:-1], turned))
    assert "scales LeaderWorkerSet chat to 0 when it is applied, as chat-green serves" in result.stderr
    assert spec(result)["activeSide"] == "chat-green"


def test_the_side_with_groups_serves_where_the_route_does_not_say_it(world: World) -> None:
    unsaid = edited(PAIR_ROUTE, "          weight: 100\n", "", "          weight: 0\n", "")
    created(world, *live(edited(LWS, "replicas: 4", "replicas: 0"), GREEN, *GIVEN[2:-1], unsaid))
    result = world.run("init", "lws/chat", "--counterpart", "lws/chat-green")
    assert "activeSide" not in result.stdout and "requests go to both" not in result.stderr


def test_replicas_that_a_manifest_states_are_warned_of() -> None:
    told = (
        "as things are the controller would refuse a release: LeaderWorkerSet chat gets spec.replicas from a manifest"
    )
    assert told in run().stderr


def test_an_autoscaler_of_a_side_is_warned_of() -> None:
    told = (
        "as things are the controller would refuse a release: HorizontalPodAutoscaler chat scales LeaderWorkerSet chat"
    )
    assert told in run(given=(*UNNUMBERED, HPA)).stderr


def test_what_releases_write_may_be_asked_for_to_be_the_route_alone() -> None:
    result = run("--touch", "RouteOnly")
    assert (result.stdout, result.stderr, result.exit_code) == (ROUTE_ONLY, "", 0)
    assert [each.code for each in found(joined(result.stdout, *GIVEN))] == ["LWS407"]


@pytest.mark.parametrize("given", [(OWNED, GREEN), (GREEN, OWNED)], ids=["first", "second"])
def test_workloads_of_another_controller_are_not_written(given: tuple[str, str]) -> None:
    result = run(given=(*given, *GIVEN[2:]))
    assert result.stderr == ""
    assert "  touch: RouteOnly # releases write the route alone: KServe d would undo more\n" in result.stdout
    assert yaml.safe_load(result.stdout) == yaml.safe_load(ROUTE_ONLY)


_OWNER = (
    "  ownerReferences: [{{apiVersion: disaggregatedset.x-k8s.io/v1, kind: DisaggregatedSet, name: {0}, uid: {0},"
    " controller: true}}]\nspec"
)
BY_TWO_SETS = (
    edited(LWS, "  name: chat\nspec", "  name: chat\n" + _OWNER.format("blue")),
    edited(GREEN, "  name: chat-green\nspec", "  name: chat-green\n" + _OWNER.format("green")),
    *GIVEN[2:],
)


def test_workloads_of_two_disaggregated_sets_are_not_written_and_their_next_names_are_told() -> None:
    result = run(given=BY_TWO_SETS)
    assert result.stderr == (
        "warning: DisaggregatedSet blue gives its LeaderWorkerSets another name for each version: disable the Rollout"
        " before a version is applied, and name those of that version then; docs/disaggregated-sets.md says how\n"
    )
    assert yaml.safe_load(result.stdout) == yaml.safe_load(ROUTE_ONLY)


def test_workloads_of_one_disaggregated_set_are_no_two_sides() -> None:
    both = (edited(BY_TWO_SETS[0], "name: blue, uid: blue", "name: green, uid: green"), *BY_TWO_SETS[1:])
    told = "chat and chat-green are both made by DisaggregatedSet green"
    assert told in run(given=both).stderr


def test_one_workload_of_a_disaggregated_set_is_told_what_to_do() -> None:
    result = CliRunner().invoke(program, ("init", "chat", "-f", "-"), input=joined(*BY_TWO_SETS))
    told = (
        "as things are the controller would refuse a release: LeaderWorkerSet chat is made by DisaggregatedSet blue,"
        " which rolls all its roles together and would undo a release: run two DisaggregatedSets"
    )
    assert told in result.stderr


def test_what_releases_write_is_asked_for_of_pairs_alone() -> None:
    result = CliRunner().invoke(program, ("init", "chat", "--touch", "RouteOnly", "-f", "-"), input=joined(*GIVEN))
    assert result.exit_code == 2
    assert "--touch is of a pair: name its other workload with --counterpart NAME" in result.output


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 8, 9, 40])
def test_the_steps_of_a_pair_only_grow_and_no_group_gets_more_than_it_can_carry(replicas: int) -> None:
    made = steps(known.SCALED_PAIR, replicas, routed=True)
    plan = CanaryStrategy.model_validate(
        {"capacity": "Pair", "steps": [{"replicas": each.replicas, "traffic": each.traffic} for each in made]}
    )
    numbers = [wanted_groups(plan, index, replicas) for index in range(1, len(made) + 1)]
    weights = [weight_of_step(plan, index, replicas) for index in range(1, len(made) + 1)]
    assert numbers == sorted(numbers) and (numbers[0], numbers[-1]) == (1, replicas)
    assert weights == sorted(weights) and weights[-1] == 50
    assert all(weight * replicas <= 100 * groups for weight, groups in zip(weights, numbers, strict=True))


def test_the_sides_may_be_named_in_any_order() -> None:
    words = ("init", "chat-green", "--counterpart", "chat", "--name", "ours", "-f", "-")
    made = yaml.safe_load(CliRunner().invoke(program, words, input=joined(*GIVEN)).stdout)
    routing = made["spec"]["strategy"]["canary"]["trafficRoutings"][0]
    assert (routing["service"], routing["counterpartService"]) == ("green-api", "chat-api")
    assert (made["metadata"]["name"], made["spec"]["counterpartRef"]["name"]) == ("ours", "chat")


def test_a_rollout_names_the_pools_of_both_sides() -> None:
    given = (*UNNUMBERED[:2], SERVICE, POOL.format("chat"), POOL.format("chat-green"), TO_POOLS)
    result = run(given=given)
    routing = yaml.safe_load(result.stdout)["spec"]["strategy"]["canary"]["trafficRoutings"][0]
    assert routing["gateway"] == {
        "httpRouteName": "chat",
        "inferencePool": {"stable": "chat", "canary": "chat-green"},
    }
    assert "counterpartService" not in routing
    assert [each.code for each in found(joined(result.stdout, *given))] == ["LWS407"]


def test_two_sides_with_requests_are_warned_of_and_one_is_named() -> None:
    result = run(given=(*GIVEN[:-1], edited(PAIR_ROUTE, "weight: 0", "weight: 7")))
    assert "warning: requests go to both chat and chat-green today, or to neither" in result.stderr
    assert yaml.safe_load(result.stdout)["spec"]["activeSide"] == "chat"


_OF_ROUTE = {
    "group": "gateway.networking.k8s.io",
    "kind": "HTTPRoute",
    "name": "chat",
    "jsonPointers": ["/spec/rules"],
}
_HELD = "/spec/rolloutStrategy/rollingUpdateConfiguration"


def _of_side(name: str, *members: str) -> dict[str, Any]:
    return {
        "group": "leaderworkerset.x-k8s.io",
        "kind": "LeaderWorkerSet",
        "name": name,
        "jsonPointers": [f"{_HELD}/{each}" for each in members],
    }


def _ignored_by_argo(*arguments: str, sides: tuple[str, str]) -> list[dict[str, Any]]:
    kept = "  name: chat\n  annotations: {argocd.argoproj.io/tracking-id: 'chat:apps/x'}\n"
    shown = run(*arguments, given=(*sides, *GIVEN[2:-1], edited(PAIR_ROUTE, "  name: chat\n", kept))).stdout
    lines = shown.splitlines()
    begin = lines.index("# Argo CD Application chat would revert what a release writes. Add to its manifest:")
    rules = yaml.safe_load("\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[begin + 2 :]))["spec"]
    return list(rules["ignoreDifferences"])


def test_gitops_tools_get_a_rule_for_the_route_alone() -> None:
    assert _ignored_by_argo("--touch", "RouteOnly", sides=(LWS, GREEN)) == [_OF_ROUTE]


def test_gitops_tools_get_a_rule_for_what_holds_the_sides_as_well() -> None:
    percentage = "  rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 100%}}\n  leaderWorkerTemplate:\n"
    sides = (unnumbered(LWS), edited(unnumbered(GREEN), "  leaderWorkerTemplate:\n", percentage))
    assert _ignored_by_argo(sides=sides) == [
        _OF_ROUTE,
        _of_side("chat", "partition"),
        _of_side("chat-green", "partition", "maxUnavailable"),
    ]


_ONE_SIDE = edited(PAIR_ROUTE, "        - name: green-api\n          port: 80\n          weight: 0\n", "")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param(
            (*GIVEN[:-1], _ONE_SIDE),
            "rule 1 of HTTPRoute chat names Service/chat-api but not Service/green-api: add a backendRef to it with"
            " weight 0, so that a release can move the rule's requests. Below backendRefs of HTTPRoute chat:\n"
            "  - {name: green-api, port: 80, weight: 0}",
            id="a rule of one side",
        ),
        pytest.param(
            GIVEN[:-1],
            "no HTTPRoute, GRPCRoute or VirtualService refers to Service chat-api or Service green-api: create one",
            id="no route",
        ),
        pytest.param(
            (LWS, GREEN, SERVICE, PAIR_ROUTE),
            "no Service selects the leaders of LeaderWorkerSet chat-green and of no other: each side of a pair needs"
            " one of its own, such as one with the selector {leaderworkerset.sigs.k8s.io/name: chat-green,"
            ' leaderworkerset.sigs.k8s.io/worker-index: "0"}',
            id="no Service",
        ),
        pytest.param(GIVEN[1:], "there is no LeaderWorkerSet 'chat': see", id="no first LWS"),
        pytest.param((LWS, *GIVEN[2:]), "there is no LeaderWorkerSet 'chat-green': see", id="no second LWS"),
        pytest.param(
            (*GIVEN, edited(PLAIN_ROLLOUT, "    name: chat\n", "    name: chat-green\n")),
            "LeaderWorkerSet chat-green is released by rollout/chat already",
            id="released already",
        ),
    ],
)
def test_what_cannot_be_proposed_is_said(given: tuple[str, ...], told: str) -> None:
    result = run(given=given)
    assert isinstance(result.exception, UsageError)
    assert told in str(result.exception)
    assert result.stdout == ""


def test_a_pair_of_one_lws_is_refused() -> None:
    result = CliRunner().invoke(program, ("init", "chat", "--counterpart", "chat", "-f", "-"), input=joined(*GIVEN))
    assert "--counterpart names LeaderWorkerSet chat itself" in str(result.exception)


def test_a_pair_has_no_other_strategy() -> None:
    assert run("--strategy", "surge").exit_code == 2


def test_a_partition_of_a_side_of_the_cluster_is_told_where_it_shows(world: World) -> None:
    partition = "  rolloutStrategy: {rollingUpdateConfiguration: {partition: 2}}\n  leaderWorkerTemplate:\n"
    created(world, *live(LWS, edited(PARKED, "  leaderWorkerTemplate:\n", partition), *GIVEN[2:]))
    result = world.run("init", "lws/chat", "--counterpart", "lws/chat-green")
    assert result.stderr.count("remove partition from the manifest") == 1


def test_the_example_is_a_pair_that_is_found() -> None:
    files = [str(each) for each in sorted((Path(__file__).parents[3] / "examples/pair").glob("*.yaml"))]
    asked = yaml.safe_load(Path(next(each for each in files if each.endswith("rollout.yaml"))).read_text())["spec"]
    names = asked["workloadRef"]["name"], asked["counterpartRef"]["name"]
    given = [word for each in files if not each.endswith("rollout.yaml") for word in ("-f", each)]
    result = CliRunner().invoke(program, ("init", names[0], "--counterpart", names[1], *given))
    routing = yaml.safe_load(result.stdout)["spec"]["strategy"]["canary"]["trafficRoutings"][0]
    stated = asked["strategy"]["canary"]["trafficRoutings"][0]
    for member in ("service", "counterpartService", "gateway"):
        assert routing[member] == stated[member]
