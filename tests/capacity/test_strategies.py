"""What each capacity answers, one table a question; a row has one column a strategy."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import rollout_lws
from rollout_lws.api import Capacity, Strategy
from rollout_lws.capacity.base import CapacityStrategy, Scaling
from rollout_lws.capacity.known import BLUE_GREEN, BY_NAME, EXTRA_WORKLOAD, IN_PLACE, STRATEGIES, SURGE
from rollout_lws.capacity.table import strategy_of, strategy_of_plan, strategy_on_record
from rollout_lws.objects.writes import Create, Patch
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups
from tests.capacity.test_partition_update import leaders, partition_update
from tests.workload.build import NEW, NOW, OLD, facts, lws

COLUMNS = (EXTRA_WORKLOAD, BLUE_GREEN, IN_PLACE, SURGE)
R = 4


def row(*columns: Any) -> list[tuple[CapacityStrategy, Any]]:
    """One expectation a strategy; the first is blue-green's, too, where three are given."""
    made = (columns[0], *columns) if len(columns) == 3 else columns
    return list(zip(COLUMNS, made, strict=True))


def of(picture: str, revision: str = NEW) -> tuple[Group, ...]:
    """Groups of one revision, in a picture of an LWS."""
    return tuple(group for group in groups(facts(lws(R), *leaders(picture))) if group.revision == revision)


def canary(replicas: int, *, deleted: bool = False) -> Facts:
    return facts(lws(replicas, name="llama-canary", **({"deletion_timestamp": NOW} if deleted else {})))


def names(found: Any) -> list[int]:
    return [group.ordinal for group in found]


@pytest.mark.parametrize("capacity", list(Capacity))
def test_each_word_has_the_strategy_of_its_name(capacity: Capacity) -> None:
    assert strategy_of(capacity).name == capacity.value
    assert strategy_of(capacity) in STRATEGIES
    strategy = strategy_of(capacity)
    assert capacity.makes_workload is not (strategy.one_workload or strategy.paired)


def test_names_and_flags_tell_strategies_apart() -> None:
    assert len(BY_NAME) == len({each.flag for each in STRATEGIES}) == len({each.help for each in STRATEGIES}) == 7


def test_only_the_api_and_the_table_compare_capacities() -> None:
    compared = re.compile(r"\bCapacity\.[A-Z]|\bis (not )?known\.[A-Z]")
    product = Path(rollout_lws.__file__).parent
    found = {
        each.relative_to(product).as_posix() for each in product.rglob("*.py") if compared.search(each.read_text())
    }
    assert found == {"api/rollout_spec.py", "api/words.py", "capacity/table.py"}


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda each: each.name)
def test_a_manifest_asks_for_its_strategy(strategy: CapacityStrategy) -> None:
    steps = ["  steps:", "    - replicas: 1"]
    plan = Strategy.model_validate(yaml.safe_load("\n".join([*strategy.manifest, *steps]))).style
    assert plan is not None
    assert strategy_of_plan(plan) is strategy
    assert strategy_on_record(plan.made_by, plan) is strategy


def test_a_release_without_a_record_has_a_second_lws() -> None:
    assert strategy_on_record(None, None) is EXTRA_WORKLOAD


@pytest.mark.parametrize(("strategy", "home"), row("canary", "stable", "stable"))
def test_where_new_groups_stand(strategy: CapacityStrategy, home: str) -> None:
    assert strategy.of_new("stable", "canary") == home


@pytest.mark.parametrize(("strategy", "extra"), row(3, 0, 3))
def test_groups_beyond_r(strategy: CapacityStrategy, extra: int) -> None:
    assert strategy.extra(3) == extra


@pytest.mark.parametrize(("strategy", "groups"), row(R + 1, R, R))
def test_groups_that_requests_are_shared_among_beside_one_new(strategy: CapacityStrategy, groups: int) -> None:
    assert strategy.sharing(1, R) == groups
    assert strategy.sharing(0, 0) == 1


@pytest.mark.parametrize(
    ("allowed", "beside", "columns"),
    [(1, 0, (1, 1, 0)), (2, 1, (1, 2, 1)), (3, 4, (3, 3, 4)), (9, 9, (3, 3, 9))],
)
def test_groups_that_go_down_at_once(allowed: int, beside: int, columns: tuple[int, ...]) -> None:
    assert [each.batch_size(allowed, beside, R) for each, _ in row(*columns)] == [each for _, each in row(*columns)]


def test_under_kueue_a_promotion_makes_no_surge_groups() -> None:
    assert [each.in_promotion(queued=True).name for each in COLUMNS] == [
        "ExtraWorkload",
        "BlueGreen",
        "InPlace",
        "InPlace",
    ]
    assert [each.in_promotion(queued=False) for each in COLUMNS] == list(COLUMNS)


@pytest.mark.parametrize(
    ("ordinal", "in_canary", "columns"),
    [(0, True, (0, 3, None)), (3, True, (3, 0, None)), (3, False, (None, 0, None)), (5, False, (None, -2, 1))],
)
def test_the_place_of_a_group_among_those_of_steps(
    ordinal: int, in_canary: bool, columns: tuple[int | None, ...]
) -> None:
    for strategy, place in row(*columns):
        assert strategy.place(ordinal, R, in_canary=in_canary) == place


@pytest.mark.parametrize(
    ("picture", "wanted", "one_lws"),
    [
        ("OOON", 1, []),
        ("OONN", 1, [2]),
        ("OOOONN", 2, []),
        ("OOOONN", 1, [5]),
        ("OOONNN", 2, [5]),
        ("OONN", 0, [2, 3]),
    ],
)
def test_groups_that_leave_one_lws(picture: str, wanted: int, one_lws: list[int]) -> None:
    for strategy in (IN_PLACE, SURGE):
        assert names(strategy.leaving(of(picture), wanted, R, None)) == one_lws


@pytest.mark.parametrize(
    ("standing", "wanted", "left"),
    [
        (None, 0, []),
        (canary(2), 2, []),
        (canary(2), 3, []),
        (canary(3), 1, [1, 2]),
        (canary(3, deleted=True), 3, [0, 1, 2]),
    ],
)
def test_groups_that_leave_a_canary(standing: Facts | None, wanted: int, left: list[int]) -> None:
    for strategy in (EXTRA_WORKLOAD, BLUE_GREEN):
        assert names(strategy.leaving(of("NNN"), wanted, R, standing)) == left


def test_groups_that_stand_and_serve_besides() -> None:
    seen = of("OOyNNn")
    for strategy, (standing, beside) in row((7, [2, 3, 4, 5]), (3, [4, 5]), (3, [4, 5])):
        assert strategy.standing(seen, canary(7)) == standing
        assert names(strategy.beside(seen, R)) == beside
    assert [each.standing((), None) for each in COLUMNS] == [1, 1, 1, 1]


def asked(picture: str, wanted: int, strategy: CapacityStrategy, **more: Any) -> Scaling:
    own = replace(partition_update(picture, replicas=R, window_at=more.pop("window_at", None)), strategy=strategy)
    made = Scaling(
        wanted=wanted,
        own=own,
        new=of(picture),
        stable_revision=OLD,
        new_revision=NEW,
        may_open=True,
        waits="",
        canary=None,
        remains=(),
        owner={"uid": "uid-record"},
        metadata_patch=None,
    )
    return replace(made, **more)


@pytest.mark.parametrize("strategy", [EXTRA_WORKLOAD, BLUE_GREEN], ids=lambda each: each.name)
def test_the_first_groups_of_a_second_lws(strategy: CapacityStrategy) -> None:
    (write,) = strategy.scale(asked("OOOO", 2, strategy)).writes
    assert isinstance(write, Create)
    assert write.body["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("strategy", "opened", "message"),
    [(IN_PLACE, (3,), "renewing group 3"), (SURGE, (4, 5), "making surge group 4, 5")],
)
def test_the_first_groups_in_one_lws(strategy: CapacityStrategy, opened: tuple[int, ...], message: str) -> None:
    result = strategy.scale(asked("OOOO", 2, strategy))
    (write,) = result.writes
    assert isinstance(write, Patch)
    assert (result.opened, result.message, result.done) == (opened, message, False)


@pytest.mark.parametrize("strategy", [IN_PLACE, SURGE], ids=lambda each: each.name)
def test_what_no_window_may_open_for_is_told(strategy: CapacityStrategy) -> None:
    result = strategy.scale(asked("OOOO", 2, strategy, may_open=False, waits="Kueue is asked"))
    assert (result.writes, result.message) == ((), "Kueue is asked")
    assert strategy.scale(asked("OOOO", 2, strategy, may_open=False)).message.startswith("paused: no further group")


@pytest.mark.parametrize("strategy", [IN_PLACE, SURGE], ids=lambda each: each.name)
def test_an_open_window_is_seen_to_its_end_before_anything_else(strategy: CapacityStrategy) -> None:
    result = strategy.scale(asked("OOOn", 2, strategy, window_at=3, waits="Kueue is asked"))
    assert result.message == "renewing group 3"
    assert result.writes


@pytest.mark.parametrize("strategy", [IN_PLACE, SURGE], ids=lambda each: each.name)
def test_more_new_groups_than_asked_for_go_back_first(strategy: CapacityStrategy) -> None:
    result = strategy.scale(asked("OONN", 1, strategy))
    assert result.message == f"group 2 goes back to revision {OLD}"
