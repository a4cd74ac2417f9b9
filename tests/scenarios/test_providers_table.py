"""Each traffic story is told with every provider, or says why not."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.scenarios.providers_table import NAMES, Line, Told, every_line, line, lines_of, summary, table, told_by
from tests.scenarios.routed import BY_GRPC, BY_POOLS, BY_ROUTE, EACH, WEIGHTS, each_router, told_only_with

OTHERS = NAMES[1:]


def test_each_story_is_told_with_every_provider_or_says_why_not() -> None:
    lines = every_line()
    assert len(lines) > 350, "the modules are found"
    assert [problem for each in lines for problem in each.problems] == []


def made(*marks: pytest.MarkDecorator) -> Line:
    """The line of a story with these marks."""
    return line("test_traffic", "test_a_story", [each.mark for each in marks])


def test_a_story_that_says_nothing_is_named_with_what_it_lacks() -> None:
    [problem] = made().problems
    assert problem.startswith("test_traffic::test_a_story is not told with HTTPRoute, InferencePool, ")
    assert problem.endswith(": tell it with them, or say why not")


def test_a_story_that_names_some_providers_is_held_to_the_others() -> None:
    [problem] = made(pytest.mark.parametrize("by", [BY_ROUTE, pytest.param(BY_POOLS, id="pools")])).problems
    assert "InferencePool" not in problem and all(name in problem for name in OTHERS if name != "InferencePool")
    [problem] = made(*each_router(BY_ROUTE, BY_GRPC)).problems
    assert "GRPCRoute" not in problem and "Ingress, Traefik, VirtualService, DestinationRule, Script" in problem


def test_a_provider_is_not_told_and_left_out_at_once() -> None:
    [problem] = made(told_only_with(BY_ROUTE, why="alone"), *EACH).problems
    assert problem == f"test_traffic::test_a_story is told with {', '.join(OTHERS)}, and says why not"


def test_the_closest_reason_of_a_story_counts_and_marks_of_its_module_do() -> None:
    module = ModuleType("tests.scenarios.test_made")

    def test_of_the_module() -> None: ...

    def test_of_its_own() -> None: ...

    for each in (test_of_the_module, test_of_its_own):
        each.__module__ = module.__name__
        setattr(module, each.__name__, each)
    module.pytestmark = told_only_with(BY_ROUTE, why="of all")  # type: ignore[attr-defined]
    told_only_with(BY_POOLS, why="of one")(test_of_its_own)
    found = {each.test: (each.told, each.reasons) for each in lines_of(module)}
    assert found == {
        "test_of_the_module": (("HTTPRoute",), "of all"),
        "test_of_its_own": (("InferencePool",), "of one"),
    }


def test_the_table_has_a_line_for_each_story_and_its_reasons() -> None:
    head, columns, module, *rows = table([made(*WEIGHTS), Line("test_traffic", "test_all", NAMES)])
    assert head == "providers: 2 stories, told 14 times, left out 2 times"
    assert columns.split() == [*NAMES, "left", "out", "because"] and module == "test_traffic"
    assert [each.split(maxsplit=9) for each in rows] == [
        ["test_a_story", *"xx--xxxx", "an Ingress has no rules with weights"],
        ["test_all", *"xxxxxxxx"],
    ]


def test_a_run_says_with_what_its_stories_were_told_and_how_they_ended() -> None:
    notes = [Told("test_a", "HTTPRoute").note(), ("other", 1), Told("test_b", "Script").note()]
    told = [*told_by(notes, passed=True), *told_by(notes[:1], passed=False)]
    head, *rows = summary(told)
    assert head == "providers: 3 traffic stories"
    assert [each.split("  ") for each in (" ".join(row.split()) for row in rows)] == [
        ["HTTPRoute Script"],
        ["test_a FAILED 1 of 2 -"],
        ["test_b - ok 1"],
    ]
    assert summary([]) == []
