"""Rollouts whose workloads serve in turn: what ``init --strategy swap`` and ``shift`` print, warn of and refuse."""

from __future__ import annotations

import copy

import pytest
import yaml
from click.testing import Result

from rollout_lws.api import Rollout
from rollout_lws.api.validation import problems
from rollout_lws.cli.demo import manifests
from rollout_lws.errors import UsageError
from tests.cli.conftest import World
from tests.cli.init.test_command import ROUTED, Object, autoscaler, created, run, service, workload
from tests.cli.lint.manifests import edited, found

SWAP = edited(
    ROUTED,
    "New groups come in a second LeaderWorkerSet; the old ones stay until the promotion.",
    "A full second set of groups comes and stays; the first one goes, so that a release loads each group once.",
    "--strategy blue-green, swap, shift,",
    "--strategy canary, blue-green, shift,",
    "  strategy:\n    canary:\n",
    "  replicas: 4 # scale the Rollout from now on; leave replicas out of the LeaderWorkerSet's manifest\n"
    "  strategy:\n    blueGreen:\n      promotion: Swap\n",
    ROUTED[ROUTED.index("        # One group") :],
    """\
        # All green groups, without requests: try them, then approve.
        - replicas: 100%
          traffic: 0%
          pause: {} # no duration: wait for an approval
        # All requests at green; blue stands by until you approve, and goes then.
        - replicas: 100%
          traffic: 100%
          pause: {} # no duration: wait for an approval
""",
)


def swap(*given: Object) -> Result:
    return run("lws/llama", "--strategy", "swap", given=given)


def unnumbered() -> Object:
    """The workload as it has to be written: without a number of groups."""
    lws = manifests.workload()
    del lws["spec"]["replicas"]
    return lws


def test_a_rollout_is_written_with_a_full_second_set_and_the_number_of_groups(world: World) -> None:
    lws, *traffic = copy.deepcopy((manifests.workload(), *manifests.traffic()))
    created(world, lws, *traffic)
    result = world.run("init", "lws/llama", "--strategy", "swap")
    assert result.stdout == SWAP
    assert "would refuse" not in "".join(line for line in result.stderr.splitlines() if "no Gateway" not in line)


def test_what_is_written_has_nothing_that_lint_refuses() -> None:
    given = (unnumbered(), *manifests.traffic())
    text = "---\n".join((swap(*given).stdout, *(yaml.safe_dump(each) for each in given)))
    assert {each.code for each in found(text)} <= {"LWS302", "LWS312"}


def test_the_number_is_left_to_an_autoscaler_and_to_a_workload_without_groups() -> None:
    scaled, none = swap(unnumbered(), *manifests.traffic(), autoscaler("llama")), swap(workload(replicas=0))
    for each in (scaled, none):
        assert "  # No replicas: the controller writes the LeaderWorkerSet's number here." in each.stdout
        assert all(
            "replicas" not in made["spec"] for made in yaml.safe_load_all(each.stdout) if made["kind"] != "Service"
        )
    assert "without a route promotion Swap takes no requests off the old groups before they go" in none.stderr


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param(
            (manifests.workload(), *manifests.traffic()),
            "LeaderWorkerSet llama gets spec.replicas from a manifest (kubectl apply), which would undo what a release",
            id="replicas in the manifest",
        ),
        pytest.param(
            (unnumbered(), *manifests.traffic(), autoscaler("llama")),
            "have it scale the Rollout, with scaleTargetRef rollouts.kruise.io/v1beta1, Rollout, llama",
            id="an autoscaler",
        ),
        pytest.param(
            (
                unnumbered(),
                service("llama-api", **{"leaderworkerset.sigs.k8s.io/name": "llama"}),
                *(each for each in manifests.traffic() if each["kind"] != "Service"),
            ),
            "Service llama-api selects groups of llama only",
            id="a Service by name",
        ),
        pytest.param(
            (
                unnumbered(),
                *manifests.traffic(),
                {
                    "apiVersion": "policy/v1",
                    "kind": "PodDisruptionBudget",
                    "metadata": {"name": "llama"},
                    "spec": {"selector": {"matchLabels": {"leaderworkerset.sigs.k8s.io/name": "llama"}}},
                },
            ),
            "PodDisruptionBudget llama selects groups of llama only",
            id="a budget by name",
        ),
    ],
)
def test_what_would_be_refused_is_warned_of(given: tuple[Object, ...], told: str) -> None:
    result = swap(*given)
    assert told in result.stderr and "a release holds it" not in result.stderr
    assert yaml.safe_load(result.stdout)["spec"]["strategy"]["blueGreen"]["promotion"] == "Swap"


def test_a_template_without_labels_is_told_to_get_one() -> None:
    lws = unnumbered()
    for role in ("leaderTemplate", "workerTemplate"):
        del lws["spec"]["leaderWorkerTemplate"][role]["metadata"]
    result = swap(lws)
    assert isinstance(result.exception, UsageError)
    assert "has to select groups of two LeaderWorkerSets by some: give it one, such as app: llama" in str(
        result.exception
    )


@pytest.mark.parametrize("strategy", ["swap", "canary"])
def test_the_one_that_a_release_has_made_is_none_to_release(strategy: str) -> None:
    made = workload(metadata={"name": "llama-canary", "labels": {"rollouts.kruise.io/stands-for": "llama"}})
    result = run("lws/llama-canary", "--strategy", strategy, given=(made,))
    assert str(result.exception) == (
        "LeaderWorkerSet llama-canary was made by a release and serves in place of llama, whose manifest is yours: name"
        " that one, lws/llama"
    )


# Shift


def test_a_rollout_of_one_workload_exchanges_its_groups(world: World) -> None:
    created(world, *copy.deepcopy((manifests.workload(), *manifests.traffic())))
    text = world.run("init", "lws/llama", "--strategy", "shift").stdout
    (made,) = [each for each in yaml.safe_load_all(text) if each["kind"] == "Rollout"]
    canary = made["spec"]["strategy"]["canary"]
    assert (made["spec"]["replicas"], canary["capacity"], canary["shift"]) == (4, "Shift", {})
    assert [(each["replicas"], each["traffic"]) for each in canary["steps"]] == [(1, "auto"), ("50%", "auto")]
    assert "# llama gives up groups as the other one gets some" in text
    assert problems(Rollout.model_validate(made).spec) == ()


def test_groups_are_not_exchanged_without_something_that_shares_requests() -> None:
    result = run("lws/llama", "--strategy", "shift", given=(workload(),))
    assert isinstance(result.exception, UsageError)
    told = "--strategy shift takes requests off single groups before they go, and nothing shares them"
    assert str(result.exception).startswith(told)
    assert str(result.exception).endswith("make a route to the Service, or take --strategy canary")
