"""Pairs of which one side gives up groups as the other one gets some: what ``init --shift`` prints and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rollout_lws.api import CanaryStrategy
from rollout_lws.capacity import known
from rollout_lws.capacity.batches import wanted_groups
from rollout_lws.capacity.weights import overload
from rollout_lws.cli.init.steps import steps
from rollout_lws.cli.main import program
from rollout_lws.errors import UsageError
from tests.cli.conftest import World
from tests.cli.init.test_command import created
from tests.cli.init.test_pair import GIVEN, OWNED, PARKED, POOL, PRINTED, TO_POOLS, UNNUMBERED, live, run, spec
from tests.cli.lint.manifests import GREEN_SERVICE, LWS, PAIR_ROUTE, SERVICE, edited, found, joined, unnumbered

SHIFTED = edited(
    PRINTED,
    "      capacity: Pair\n",
    """\
      capacity: Pair
      # The active side gives up groups as the other one gets some: both together have at most one more
      # than at rest (maxExtraGroups: 1), and as many ready ones (maxUnavailableGroups: 0). An abort
      # loads again what was given up.
      shift: {}
""",
    "on the side that has lost its share",
    "on a group that goes",
    "        # One group, until it is approved.\n",
    "        # One group, in proportion to groups, until it is approved.\n",
    "          traffic: 10%\n",
    "          traffic: auto\n",
    """\
        # All groups, and half of the requests for 10 minutes; then all.
        - replicas: 100%
          traffic: 50%
          pause:
            duration: 600 # seconds
""",
    "",
)


def test_one_side_may_give_up_groups_as_the_other_one_gets_some(world: World) -> None:
    created(world, *live(LWS, PARKED, *GIVEN[2:]))
    result = world.run("init", "lws/chat", "--counterpart", "lws/chat-green", "--shift")
    assert result.stdout == SHIFTED
    assert result.stderr.count("\n") == 1 and "no Gateway accepts HTTPRoute chat" in result.stderr


def test_what_is_written_of_a_shift_has_nothing_that_lint_finds() -> None:
    result = run("--shift", given=UNNUMBERED)
    assert spec(result)["strategy"]["canary"]["shift"] == {}
    assert [each.code for each in found(joined(result.stdout, *UNNUMBERED))] == ["LWS407"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--counterpart", "chat-green", "--shift", "--touch", "RouteOnly"),
            "--shift scales both workloads, and with --touch RouteOnly none is scaled: leave out one",
        ),
        (("--shift",), "--shift is of a pair: name its other workload with --counterpart NAME"),
    ],
)
def test_a_shift_is_of_a_pair_that_its_releases_scale(words: tuple[str, ...], told: str) -> None:
    result = CliRunner().invoke(program, ("init", "chat", *words, "-f", "-"), input=joined(*GIVEN))
    assert result.exit_code == 2 and told in result.output


#: Services and pools that select groups by the labels of LWS alone, and templates without labels of their own.
_BY_NAME = edited(SERVICE, "    app: chat\n", "    leaderworkerset.sigs.k8s.io/name: chat\n")
_GREEN_BY_NAME = edited(GREEN_SERVICE, "    app: chat-green\n", "    leaderworkerset.sigs.k8s.io/name: chat-green\n")
_BARE = "      metadata:\n        labels:\n          app: chat-green\n"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param(
            (*UNNUMBERED[:2], _BY_NAME, GREEN_SERVICE, PAIR_ROUTE),
            "Service chat-api selects groups only by labels that the LeaderWorkerSet gives them, and with --shift a"
            " group loses a label of it before it goes: add a label of the template to its selector, such as app: chat",
            id="the first Service",
        ),
        pytest.param(
            (*UNNUMBERED[:2], SERVICE, _GREEN_BY_NAME, PAIR_ROUTE),
            "add a label of the template to its selector, such as app: chat-green",
            id="the second Service",
        ),
        pytest.param(
            (UNNUMBERED[0], edited(UNNUMBERED[1], _BARE, ""), SERVICE, _GREEN_BY_NAME, PAIR_ROUTE),
            "give the templates of LeaderWorkerSet chat-green a label, such as app: chat-green, and add it to its",
            id="templates without labels",
        ),
        pytest.param(
            (*UNNUMBERED[:2], SERVICE, POOL.format("chat"), POOL.format("chat-green"), TO_POOLS),
            "InferencePool chat selects groups only by labels that the LeaderWorkerSet gives them",
            id="a pool",
        ),
        pytest.param(
            (unnumbered(OWNED), *UNNUMBERED[1:]),
            "LeaderWorkerSet chat is controlled by KServe d, which would undo what a shift scales: leave out --shift",
            id="another controller's",
        ),
    ],
)
def test_where_no_group_can_be_taken_out_it_is_said_what_to_add(given: tuple[str, ...], told: str) -> None:
    result = run("--shift", given=given)
    assert isinstance(result.exception, UsageError)
    assert told in str(result.exception) and result.stdout == ""


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 8, 9, 40])
def test_the_steps_of_a_shift_leave_no_group_more_than_it_can_carry(replicas: int) -> None:
    made = steps(known.SHIFTED_PAIR, replicas, routed=True)
    plan = CanaryStrategy.model_validate(
        {
            "capacity": "Pair",
            "shift": {},
            "trafficRoutings": [{"service": "a", "gateway": {"httpRouteName": "a"}}],
            "steps": [{"replicas": each.replicas, "traffic": each.traffic} for each in made],
        }
    )
    assert overload(plan, replicas) is None
    assert {each.traffic for each in made} == ({"auto"} if replicas > 1 else {"10%"})
    assert all(each.replicas != "100%" for each in made)
    numbers = [wanted_groups(plan, index, replicas) for index in range(1, len(made) + 1)]
    assert numbers[0] == 1 and numbers == sorted({*numbers}) and numbers[-1] <= max(1, replicas // 2)


def test_the_example_of_a_pair_is_told_what_a_shift_needs() -> None:
    folder = Path(__file__).parents[3] / "examples/pair"
    given = [word for each in sorted(folder.glob("*.yaml")) if each.stem != "rollout" for word in ("-f", str(each))]
    result = CliRunner().invoke(program, ("init", "helper-blue", "--counterpart", "helper-green", "--shift", *given))
    assert "add a label of the template to its selector, such as app: helper" in str(result.exception)
