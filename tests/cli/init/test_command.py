"""The command from files and over HTTP: what it finds, makes, warns of and refuses."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from rollout_lws.capacity import known
from rollout_lws.capacity.base import CapacityStrategy
from rollout_lws.cli.demo import manifests
from rollout_lws.cli.init.steps import steps
from rollout_lws.cli.main import program
from rollout_lws.errors import RolloutLwsError, UsageError
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from tests.cli.conftest import World
from tests.cli.states import HEALTHY
from tests.docs.pages import blocks
from tests.docs.test_gitops import ignored

Object = dict[str, Any]
ROUTED = """\
# How new versions of LeaderWorkerSet llama are released: 4 groups of 2 pods, 8 nvidia.com/gpu each.
# New groups come in a second LeaderWorkerSet; the old ones stay until the promotion.
# Other ways: rollout-lws init --strategy blue-green, swap, shift, in-place, surge
# What this one takes: rollout-lws plan -f FILE
apiVersion: rollouts.kruise.io/v1beta1
kind: Rollout
metadata:
  name: llama
  namespace: default
spec:
  workloadRef:
    apiVersion: leaderworkerset.x-k8s.io/v1
    kind: LeaderWorkerSet
    name: llama
  strategy:
    canary:
      trafficRoutings:
        - service: llama-api # selects the leaders today
          gateway:
            httpRouteName: llama # refers to the Service
          gracePeriodSeconds: 3 # for routers to act on a change
          drainSeconds: 30 # for requests that run on a group that goes: your longest answer
      steps:
        # One group, until it is approved.
        - replicas: 1
          traffic: 10%
          pause: {} # no duration: wait for an approval
        # 2 of 4 groups for 10 minutes.
        - replicas: 50%
          traffic: auto
          pause:
            duration: 600 # seconds
        # As the last step: renew the old groups.
        - replicas: 100%
"""


def run(*arguments: str, given: tuple[Object, ...] = ()) -> Result:
    stdin = yaml.safe_dump_all(given)
    result = CliRunner().invoke(program, ["init", *arguments, *(("-f", "-") if given else ())], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit | RolloutLwsError):
        raise result.exception
    return result


def workload(*, metadata: Mapping[str, Any] | None = None, **spec: Any) -> Object:
    lws = manifests.workload()
    lws["metadata"].update(metadata or {})
    lws["spec"].update(spec)
    return lws


def leader(**container: Any) -> Object:
    """The LWS with more in its leader's container."""
    lws = manifests.workload()
    lws["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]["containers"][0].update(container)
    return lws


def service(name: str, **selector: str) -> Object:
    spec = {"selector": selector, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def autoscaler(workload: str) -> Object:
    target = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind, "name": workload}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": workload, "namespace": "default"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 8},
    }


def test_a_rollout_is_written_with_the_route_that_leads_to_the_leaders() -> None:
    result = run("lws/llama", given=(manifests.workload(), *manifests.traffic()))
    assert result.stdout == ROUTED
    assert result.exit_code == 0


def test_without_a_service_one_is_made_for_the_leaders_of_both_versions() -> None:
    ports = [{"name": "http", "containerPort": 8000}]
    made, rollout = yaml.safe_load_all(run("llama", given=(leader(ports=ports),)).stdout)
    assert made["metadata"] == {"name": "llama-api", "namespace": "default"}
    assert made["spec"] == {
        "selector": {"app": "llama", "role": "leader", "leaderworkerset.sigs.k8s.io/worker-index": "0"},
        "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
    }
    assert "trafficRoutings" not in rollout["spec"]["strategy"]["canary"]


def test_a_made_service_takes_no_name_that_is_taken() -> None:
    others = [service(f"llama-{each}", app="other") for each in ("api", "http", "leaders", "leaders-2")]
    for number, name in ((1, "llama-http"), (4, "llama-leaders-3")):
        made, _ = yaml.safe_load_all(run("llama", given=(manifests.workload(), *others[:number])).stdout)
        assert made["metadata"]["name"] == name


def test_an_lws_without_groups_has_the_route_of_its_next_group() -> None:
    result = run("lws/llama", given=(workload(replicas=0), *manifests.traffic()))
    assert "LeaderWorkerSet llama has 0 groups: the steps are for one; run init again when it has more" in result.stderr
    (made,) = yaml.safe_load_all(result.stdout)
    assert made["spec"]["strategy"]["canary"]["trafficRoutings"][0]["gateway"] == {"httpRouteName": "llama"}


def test_what_else_selects_the_new_version_is_allowed_and_named() -> None:
    given = (manifests.workload(), *manifests.traffic(), service("batch", app="llama"))
    shown = run("lws/llama", given=given).stdout
    assert "# Service batch would select groups of the new version, too" in shown
    assert yaml.safe_load(shown)["spec"]["strategy"]["canary"]["trafficRoutings"][0]["allowUnmanagedBackends"] is True


@pytest.mark.parametrize(
    ("keeper", "told"),
    [
        ({"annotations": {"argocd.argoproj.io/tracking-id": "chat:apps/x"}}, "Argo CD Application chat"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}, "Flux Kustomization default/apps"),
        ({"labels": {"helm.toolkit.fluxcd.io/name": "chat"}}, "Flux HelmRelease default/chat"),
    ],
)
def test_gitops_tools_get_rules_in_comments(keeper: Object, told: str) -> None:
    scaled = autoscaler("llama")
    shown = run("lws/llama", given=(workload(metadata=keeper), *manifests.traffic(), scaled)).stdout
    lines = shown.splitlines()
    begin = lines.index(f"# {told} would revert what a release writes. Add to its manifest:")
    rules = yaml.safe_load("\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[begin + 2 :]))["spec"]
    listed = rules.get("ignoreDifferences") or rules.get("ignore") or rules["driftDetection"]["ignore"]
    assert [((rule.get("target") or rule)["kind"], rule.get("jsonPointers") or rule["paths"]) for rule in listed] == [
        ("LeaderWorkerSet", ["/spec/rolloutStrategy/rollingUpdateConfiguration/partition"]),
        ("Service", ["/spec/selector"]),
        ("HTTPRoute", ["/spec/rules"]),
        ("HorizontalPodAutoscaler", ["/spec/minReplicas", "/spec/maxReplicas"]),
    ]
    assert list(yaml.safe_load_all(shown)) == list(yaml.safe_load_all(ROUTED))


def test_the_rules_are_those_that_the_page_on_traffic_has() -> None:
    argo = {"annotations": {"argocd.argoproj.io/tracking-id": "chat:apps/x"}}
    shown = run("lws/llama", given=(workload(metadata=argo), *manifests.traffic())).stdout
    made = yaml.safe_load(shown[shown.index("# spec:") :].replace("# ", "", 1).replace("\n# ", "\n"))
    page = ignored()[0]
    for rule in made["spec"]["ignoreDifferences"]:
        assert tuple(f"{each}/" for each in rule["jsonPointers"]) == page[rule["kind"]]


@pytest.mark.parametrize(
    ("given", "arguments", "warning"),
    [
        ((manifests.workload(),), (), "leaders have no readinessProbe"),
        (
            (leader(readinessProbe={"tcpSocket": {"port": 8000}}),),
            (),
            "leaders are ready as soon as their port",
        ),
        (
            (manifests.workload(),),
            (),
            "no HTTPRoute, GRPCRoute, VirtualService or Ingress leads to the leaders' Service",
        ),
        ((manifests.workload(),), (), "create a route to the Service and run init again"),
        ((manifests.workload(),), ("--strategy", "blue-green"), "without a route blue-green takes no requests off"),
        ((manifests.workload(), autoscaler("llama")), (), "so that it removes no group"),
        ((manifests.workload(), autoscaler("llama")), ("--strategy", "surge"), "a release holds it at 4 groups"),
        ((manifests.workload(), *manifests.traffic()), (), "leaders have no preStop"),
        (
            (workload(rolloutStrategy={"rollingUpdateConfiguration": {"partition": 2}}),),
            (),
            "remove partition from the manifest",
        ),
    ],
)
def test_what_may_go_wrong_is_warned_of(given: tuple[Object, ...], arguments: tuple[str, ...], warning: str) -> None:
    result = run("lws/llama", *arguments, given=given)
    assert f"warning: {warning}" in result.stderr or warning in result.stderr
    assert result.exit_code == 0


BY_NAME = {"leaderworkerset.sigs.k8s.io/name": "llama", "role": "leader"}


def unlabelled() -> Object:
    """As in LWS's own samples: nothing but LWS's labels tells the leaders."""
    lws = manifests.workload()
    del lws["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["metadata"]
    return lws


@pytest.mark.parametrize(
    "given", [(manifests.workload(), service("llama-api", **BY_NAME)), (unlabelled(),)], ids=["found", "made"]
)
@pytest.mark.parametrize("strategy", known.OF_ONE, ids=lambda each: each.flag)
def test_a_service_by_the_name_of_the_lws_leads_to_no_canary(
    strategy: CapacityStrategy, given: tuple[Object, ...]
) -> None:
    told = run("lws/llama", "--strategy", strategy.flag, given=given).stderr
    unreached = "Service llama-api selects groups of LeaderWorkerSet llama alone, and no route is named"
    assert (unreached in told) is (strategy.flag in ("canary", "blue-green"))


def test_a_probe_and_a_pre_stop_end_their_warnings() -> None:
    good = leader(
        readinessProbe={"httpGet": {"port": 8000}}, lifecycle={"preStop": {"exec": {"command": ["sleep", "9"]}}}
    )
    assert run("lws/llama", given=(good, *manifests.traffic())).stderr == ""


def test_a_pool_without_a_second_one_gets_no_shares() -> None:
    route = copy.deepcopy(manifests.traffic()[2])
    route["spec"]["rules"][0]["backendRefs"] = [
        {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "llama"}
    ]
    pool = {
        "apiVersion": "inference.networking.k8s.io/v1",
        "kind": "InferencePool",
        "metadata": {"name": "llama"},
        "spec": {"selector": {"matchLabels": {"app": "llama", "role": "leader"}}, "targetPorts": [{"number": 80}]},
    }
    result = run("lws/llama", given=(manifests.workload(), manifests.traffic()[0], route, pool))
    assert "needs a second pool with an endpoint picker of its own" in result.stderr
    assert "trafficRoutings" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "given", "told"),
    [
        (("lws/other",), (manifests.workload(),), "there is no LeaderWorkerSet 'other'"),
        (("lws/llama", "--strategy", "in-place"), (workload(replicas=1),), "take --strategy surge or blue-green"),
        (
            ("lws/llama",),
            (manifests.workload(), manifests.rollout("rollouts.kruise.io/v1beta1", {"name": "llama"})),
            "released by rollout/llama already",
        ),
        (
            ("lws/llama",),
            (workload(metadata={"labels": {"rollouts.kruise.io/canary-leaderworkerset": "chat"}}),),
            "name the one it belongs to, lws/chat",
        ),
    ],
)
def test_what_cannot_be_proposed_is_said_in_a_line(
    arguments: tuple[str, ...], given: tuple[Object, ...], told: str
) -> None:
    result = run(*arguments, given=given)
    assert isinstance(result.exception, UsageError)
    assert told in str(result.exception)


def test_what_only_a_manifest_can_state_is_asked_of_manifests() -> None:
    stated, unstated = workload(), workload()
    del unstated["spec"]["replicas"]
    unstated["spec"]["rolloutStrategy"] = {"rollingUpdateConfiguration": {"maxUnavailable": 1}}
    told = "HorizontalPodAutoscaler llama sets the number of groups, and every apply of this manifest"
    for lws, expected in ((stated, True), (unstated, False)):
        result = run("lws/llama", given=(lws, *manifests.traffic(), autoscaler("llama")))
        assert (told in result.stderr) is expected
        assert "partition" not in result.stderr


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"replicas": "many"}, 'LeaderWorkerSet/llama is not valid: spec.replicas: must be of type integer: "string"'),
        ({"leaderWorkerTemplate": {}}, "workerTemplate is missing in spec.leaderWorkerTemplate"),
    ],
)
@pytest.mark.parametrize("command", [("init", "llama"), ("plan", "--offline")])
def test_what_an_api_server_would_refuse_is_said_in_a_line(command: tuple[str, ...], spec: Object, told: str) -> None:
    result = CliRunner().invoke(program, [*command, "-f", "-"], input=yaml.safe_dump(workload(**spec)))
    assert isinstance(result.exception, UsageError)
    assert told in str(result.exception)


def test_characters_beyond_16_bits_hide_no_mistake() -> None:
    result = run("lws/llama", given=(leader(args=["--greeting", "\N{GRINNING FACE}"]), *manifests.traffic()))
    assert "leaders have no readinessProbe" in result.stderr


@pytest.mark.parametrize("arguments", [("pod/llama",), ("lws/",), ("llama", "--strategy", "fast")])
def test_usage_that_makes_no_sense_ends_with_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("style", "replicas", "routed", "expected"),
    [
        (known.EXTRA_WORKLOAD, 1, True, [(1, "10%"), ("100%", None)]),
        (known.EXTRA_WORKLOAD, 3, True, [(1, "10%"), ("100%", None)]),
        (known.EXTRA_WORKLOAD, 5, True, [(1, "10%"), (2, "auto"), ("100%", None)]),
        (known.EXTRA_WORKLOAD, 16, True, [(1, "auto"), ("25%", "auto"), ("50%", "auto"), ("100%", None)]),
        (known.SURGE, 8, False, [(1, None), ("25%", None), ("50%", None), ("100%", None)]),
        (known.IN_PLACE, 2, True, [(1, "auto"), ("100%", None)]),
        (known.IN_PLACE, 4, True, [(1, "auto"), ("50%", "auto"), ("100%", None)]),
        (known.BLUE_GREEN, 4, True, [("100%", "0%"), ("100%", "100%")]),
        (known.BLUE_GREEN, 1, False, [("100%", None)]),
    ],
)
def test_steps_fit_the_groups(style: CapacityStrategy, replicas: int, routed: bool, expected: list[Any]) -> None:
    assert [(each.replicas, each.traffic) for each in steps(style, replicas, routed=routed)] == expected


# With a cluster


def test_an_lws_of_the_cluster_is_looked_at_and_nothing_is_written(world: World) -> None:
    created(world, manifests.workload(), *manifests.traffic())
    result = world.run("init", "lws/llama")
    assert list(yaml.safe_load_all(result.stdout)) == list(yaml.safe_load_all(ROUTED))
    # In this world no Gateway speaks of the route.
    assert "as things are the controller would refuse a release: no Gateway accepts HTTPRoute llama" in result.stderr
    assert world.do(lambda: world.server.list(world.rollouts, "default")) == []


def created(world: World, *objects: Object) -> None:
    kinds = {(each.resource.api_version, each.resource.kind): each for each in world.server.served}
    for each in objects:
        kind = kinds[each["apiVersion"], each["kind"]]
        world.do(lambda kind=kind, each=each: world.server.create(kind.resource, each))  # type: ignore[misc]


@pytest.mark.parametrize("partition", [0, 2])
def test_what_an_api_server_fills_in_is_no_mistake_of_a_manifest(world: World, partition: int) -> None:
    lws = workload(rolloutStrategy={"rollingUpdateConfiguration": {"partition": partition}})
    created(world, lws, *manifests.traffic(), autoscaler("llama"))
    told = world.run("init", "lws/llama").stderr
    assert "a release holds it, so that it removes no group" in told
    assert "every apply of this manifest sets it back" not in told
    assert ("remove partition from the manifest" in told) is (partition > 0)
    assert "(:" not in told


def test_what_lint_does_not_know_of_a_cluster_is_told(world: World) -> None:
    strange = service("strange", app="other")
    strange["metadata"]["namespace"], strange["spec"]["publishNotReadyAddresses"] = "default", "later"
    created(world, manifests.workload(), *manifests.traffic(), strange)
    told = world.run("init", "lws/llama").stderr
    assert "lint does not know Service/strange as it is, and looks for no mistakes in it: spec.publish" in told
    assert "leaders have no readinessProbe" in told


def test_an_lws_that_is_released_already_is_not_given_a_second_rollout(world: World) -> None:
    world.release(**HEALTHY)
    result = world.run("init", "lws/llama")
    assert "released by rollout/llama already" in str(result.exception)
    assert world.do(lambda: world.server.get(LEADER_WORKER_SETS, "default", "llama"))["metadata"]["generation"] == 1


def test_the_page_shows_what_is_printed() -> None:
    examples = Path(__file__).parents[3] / "examples/gateway"
    given = [word for name in ("lws", "service", "route") for word in ("-f", str(examples / f"{name}.yaml"))]
    assert run("lws/chat", *given).stdout == next(blocks(Path("docs/init.md"), "yaml"))
