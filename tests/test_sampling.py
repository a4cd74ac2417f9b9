"""What a run leaves out of the longer lanes: never a whole test, and over the seeds nothing for ever."""

from __future__ import annotations

import pytest

from tests.sampling import ONE_IN_SEES_EACH_CHANGE, drawn, left_out, undrawn, undrawn_of_modules, unrouted

STORIES = [f"a.py::test_kills[{part}]" for part in range(7)] + ["b.py::test_day", "c.py::test_style[x]"]


@pytest.mark.parametrize(("one_in", "told"), [(1, 9), (2, 6), (3, 5), (100, 3)])
def test_of_each_test_one_variant_in_so_many_is_told(one_in: int, told: int) -> None:
    assert len(STORIES) - len(left_out(STORIES, one_in, "abc")) == told


def test_each_seed_draws_others_and_the_same_seed_the_same() -> None:
    assert left_out(STORIES, 3, "abc") == left_out(reversed(STORIES), 3, "abc")
    ever = {node for seed in range(20) for node in set(STORIES) - left_out(STORIES, 3, str(seed))}
    assert ever == set(STORIES)


def test_of_rare_stories_one_in_so_many_is_drawn_and_over_the_seeds_each() -> None:
    for one_in, left in ((1, 0), (3, 6), (100, 8)):
        assert len(undrawn(STORIES, one_in, "abc")) == left
    ever = {node for seed in range(40) for node in set(STORIES) - {*undrawn(STORIES, 3, str(seed))}}
    assert ever == set(STORIES) and not undrawn([], 3, "abc")


def test_of_each_module_one_story_in_so_many_is_drawn_and_one_at_least() -> None:
    told = {*STORIES} - undrawn_of_modules(STORIES, 3, "abc")
    assert [sum(node.startswith(module) for node in told) for module in ("a.py", "b.py", "c.py")] == [3, 1, 1]


def test_a_test_without_variants_is_always_told() -> None:
    assert not any("b.py::test_day" in left_out(STORIES, 3, str(seed)) for seed in range(20))


def test_each_story_has_a_controller_that_sees_each_change_with_one_seed_in_so_many() -> None:
    for node in STORIES:
        told = sum(drawn(node, str(seed)) for seed in range(400))
        assert told == pytest.approx(400 / ONE_IN_SEES_EACH_CHANGE, rel=0.4)


def test_by_other_routers_each_test_is_told_once_and_over_the_seeds_with_each_variant() -> None:
    variants = [
        (f"{test}[{router}-{part}]", router) for test in "ab" for router in ("grpc", "mesh") for part in range(3)
    ]
    every = {node for node, _ in variants}
    told = every - unrouted(variants, "abc")
    assert {node.rpartition("-")[0] for node in told} == {
        f"{test}[{router}" for test in "ab" for router in ("grpc", "mesh")
    }
    assert len(told) == 4
    assert {node for seed in range(20) for node in every - unrouted(variants, str(seed))} == every
