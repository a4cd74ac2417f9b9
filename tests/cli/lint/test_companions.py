"""Pairs with companions: what is told of each of their workloads, and what is not."""

from __future__ import annotations

import pytest

from rollout_lws.cli.lint.findings import Finding
from tests.cli.lint.manifests import (
    HPA,
    PLAIN_ROLLOUT,
    POOLED_SET_PAIR,
    PREFILL,
    SET_PAIR,
    WHOLE_SET_PAIR,
    edited,
    found,
    joined,
)


def codes(*texts: str) -> dict[str, Finding]:
    """What is found, but for the note on the route of every pair."""
    return {each.code: each for each in found(joined(*texts)) if each.code != "LWS407"}


@pytest.mark.parametrize("texts", [WHOLE_SET_PAIR, POOLED_SET_PAIR], ids=["services", "pools"])
def test_nothing_is_told_of_a_pair_that_is_right(texts: tuple[str, ...]) -> None:
    assert codes(*texts) == {}


@pytest.mark.parametrize("name", ["prefill", "prefill-green"])
def test_a_companion_that_is_not_among_the_files_is_named(name: str) -> None:
    texts = [each for each in WHOLE_SET_PAIR if f"  name: {name}\n" not in each]
    assert len(texts) == len(WHOLE_SET_PAIR) - 1
    told = codes(*texts)["LWS401"]
    member = "name" if name == "prefill" else "counterpart"
    assert (
        told.path == f"spec.companions[0].{member}" and f"LeaderWorkerSet {name} is not among the files" in told.message
    )


def test_replicas_in_the_manifest_of_a_companion_are_refused() -> None:
    told = codes(
        *WHOLE_SET_PAIR[:-2], edited(PREFILL, "spec:\n  lead", "spec:\n  replicas: 2\n  lead"), WHOLE_SET_PAIR[-1]
    )
    assert set(told) == {"LWS216"} and told["LWS216"].about == "LeaderWorkerSet/prefill"


def test_an_autoscaler_of_a_companion_is_refused() -> None:
    told = codes(*WHOLE_SET_PAIR, HPA.replace("    name: chat\n", "    name: prefill\n"))
    assert set(told) == {"LWS213"} and "have it scale the Rollout" in told["LWS213"].message


def test_a_name_twice_is_refused_where_it_stands() -> None:
    told = codes(edited(SET_PAIR, "counterpart: prefill-green", "counterpart: chat-green"), *WHOLE_SET_PAIR[1:])
    assert told["LWS201"].path == "spec.companions[0].counterpart" and "is named already" in told["LWS201"].message


def test_another_rollout_of_a_companion_is_told() -> None:
    second = PLAIN_ROLLOUT.replace("  name: chat\n", "  name: prefill\n")
    told = [each for each in found(joined(second, *WHOLE_SET_PAIR)) if each.code == "LWS204"]
    assert any(
        each.path == "spec.companions[0].name" and "LeaderWorkerSet prefill is released" in each.message
        for each in told
    )


def test_companions_are_released_so_that_what_is_a_trap_then_is_told() -> None:
    bare = edited(
        PREFILL,
        """            readinessProbe:
              httpGet:
                path: /health
                port: 8000
""",
        "",
    )
    assert "LWS302" in codes(*WHOLE_SET_PAIR[:-2], bare, WHOLE_SET_PAIR[-1])


def test_the_address_of_the_same_companion_on_the_other_side_is_told() -> None:
    text = edited(PREFILL, "args: [serve]", 'args: ["prefill-green-0.prefill-green"]')
    told = codes(*WHOLE_SET_PAIR[:-2], text, WHOLE_SET_PAIR[-1])
    assert "prefill-green, the other side of the pair" in told["LWS304"].message


def test_a_service_of_the_other_side_is_told_of_the_workload_itself() -> None:
    label = "app: chat-green\n    leaderworkerset"
    service = edited(WHOLE_SET_PAIR[4], label, "app: chat\n    leaderworkerset")
    told = codes(*WHOLE_SET_PAIR[:4], service, *WHOLE_SET_PAIR[5:])
    assert told["LWS210"].about == "Service/green-api"


def test_a_pool_that_no_file_has_says_nothing() -> None:
    assert codes(*POOLED_SET_PAIR[:7], *POOLED_SET_PAIR[8:]).keys() <= {"LWS401"}
