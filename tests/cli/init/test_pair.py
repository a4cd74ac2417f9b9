"""Pairs from files and over HTTP: what the command finds, prints, warns of and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from rollout_lws.capacity import known
from rollout_lws.cli.main import program
from rollout_lws.errors import RolloutLwsError, UsageError
from tests.cli.conftest import World
from tests.cli.init.test_command import created
from tests.cli.lint.manifests import (
    GREEN,
    GREEN_SERVICE,
    LWS,
    PAIR_ROUTE,
    PLAIN_ROLLOUT,
    SERVICE,
    edited,
    found,
    joined,
)

GIVEN = (LWS, GREEN, SERVICE, GREEN_SERVICE, PAIR_ROUTE)
PRINTED = f"""\
# How requests move between LeaderWorkerSets chat (4 groups) and chat-green (4 groups).
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
  touch: RouteOnly # releases write the route alone: you change and scale both workloads
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


def run(*arguments: str, given: tuple[str, ...] = GIVEN) -> Result:
    words = ("init", "lws/chat", "--counterpart", "lws/chat-green", *arguments, "-f", "-")
    result = CliRunner().invoke(program, words, input=joined(*given))
    if result.exception is not None and not isinstance(result.exception, SystemExit | RolloutLwsError):
        raise result.exception
    return result


def test_a_rollout_is_written_with_the_services_and_the_route_that_names_both() -> None:
    result = run()
    assert (result.stdout, result.stderr, result.exit_code) == (PRINTED, "", 0)
    assert [each.code for each in found(joined(result.stdout, *GIVEN))] == ["LWS407"]


def test_the_sides_may_be_named_in_any_order() -> None:
    words = ("init", "chat-green", "--counterpart", "chat", "--name", "ours", "-f", "-")
    made = yaml.safe_load(CliRunner().invoke(program, words, input=joined(*GIVEN)).stdout)
    routing = made["spec"]["strategy"]["canary"]["trafficRoutings"][0]
    assert (routing["service"], routing["counterpartService"]) == ("green-api", "chat-api")
    assert (made["metadata"]["name"], made["spec"]["counterpartRef"]["name"]) == ("ours", "chat")


def test_a_rollout_names_the_pools_of_both_sides() -> None:
    given = (LWS, GREEN, SERVICE, POOL.format("chat"), POOL.format("chat-green"), TO_POOLS)
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


def test_gitops_tools_get_a_rule_for_the_route_alone() -> None:
    kept = "  name: chat\n  annotations: {argocd.argoproj.io/tracking-id: 'chat:apps/x'}\n"
    shown = run(given=(*GIVEN[:-1], edited(PAIR_ROUTE, "  name: chat\n", kept))).stdout
    lines = shown.splitlines()
    begin = lines.index("# Argo CD Application chat would revert what a release writes. Add to its manifest:")
    rules = yaml.safe_load("\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[begin + 2 :]))["spec"]
    assert rules["ignoreDifferences"] == [
        {
            "group": "gateway.networking.k8s.io",
            "kind": "HTTPRoute",
            "name": "chat",
            "jsonPointers": ["/spec/rules"],
        }
    ]
    assert yaml.safe_load(shown) == yaml.safe_load(PRINTED)


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
            GIVEN[:-1], "no HTTPRoute refers to Service chat-api or Service green-api: create one", id="no route"
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


def test_sides_of_the_cluster_are_looked_at(world: World) -> None:
    objects = (yaml.safe_load(each) for each in GIVEN)
    created(world, *({**each, "metadata": {**each["metadata"], "namespace": "default"}} for each in objects))
    result = world.run("init", "lws/chat", "--counterpart", "lws/chat-green")
    assert yaml.safe_load(result.stdout) == yaml.safe_load(PRINTED)
    # In this world no Gateway speaks of the route.
    assert "as things are the controller would refuse a release: no Gateway accepts HTTPRoute chat" in result.stderr


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
