"""How versions, groups and pods look: which groups are new, how many are ready, and what is the matter with them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from rollout_lws.cli.get.tree import tree
from rollout_lws.cli.releases import Release
from rollout_lws.cli.view import table
from tests.cli.get.objects import NOW, canary, lws, pod, release, rollout, workers

HEADINGS = ("NAME", "ROLE", "REV", "READY", "TRAFFIC", "AGE", "INFO")


def rows(shown: Release, *columns: str, pods: bool = False) -> list[list[str]]:
    """The cells of these columns, as somebody reads them."""
    lines = table(tree(shown, NOW, pods=pods))
    places = [lines[0].index(heading) for heading in HEADINGS]
    cells = [[line[start:end].strip() for start, end in pairwise([*places, None])] for line in lines[1:]]
    return [[row[HEADINGS.index(each)] for each in columns] for row in cells]


def one_lws(*pods: dict[str, Any], stable: str = "old", **status: Any) -> Release:
    return release(rollout(stable={"revision": stable}, **status), [lws()], list(pods))


def test_groups_that_are_renewed_in_place_are_told_from_those_that_are_not() -> None:
    old = [pod("llama", group, "old") for group in (0, 1, 2)]
    assert rows(one_lws(*old, pod("llama", 3, "new", ready=False)), "NAME", "ROLE", "REV", "READY") == [
        ["llama", "stable", "old", "3/3"],
        ["groups 0-2", "old", "old", "3/3"],
        ["llama", "new", "new", "0/1"],
        ["group 3", "new", "new", "0/1"],
    ]


def test_surge_groups_are_not_counted_with_the_regular_ones() -> None:
    old = [pod("llama", group, "old") for group in range(4)]
    shown = one_lws(*old, pod("llama", 4, "new"), pod("llama", 5, "new"))
    assert rows(shown, "NAME", "ROLE", "READY") == [
        ["llama", "stable", "4/4"],
        ["groups 0-3", "old", "4/4"],
        ["llama", "new", "2/2"],
        ["groups 4-5", "new", "2/2"],
    ]


def test_without_a_known_stable_revision_no_group_is_called_new() -> None:
    shown = one_lws(pod("llama", 0, "old"), pod("llama", 1, "new"), stable="")
    assert "new" not in {row[0] for row in rows(shown, "ROLE")}


def test_a_missing_group_shows_in_the_count_of_its_lws() -> None:
    assert rows(one_lws(pod("llama", 0, "old"), pod("llama", 1, "old")), "READY") == [["2/4"], ["2/2"]]


def test_a_canary_has_its_share_and_stable_the_rest() -> None:
    old = [pod("llama", group, "old") for group in range(4)]
    made = rollout(summary={"state": "AwaitingApproval"}, traffic={"applied": {"weight": 20, "matches": 1}})
    shown = release(made, [lws(), canary()], [*old, pod("llama-canary", 0, "new")])
    assert rows(shown, "NAME", "ROLE", "TRAFFIC") == [
        ["llama", "stable", "80%"],
        ["groups 0-3", "old", ""],
        ["llama-canary", "canary", "20%"],
        ["group 0", "new", ""],
    ]


@pytest.mark.parametrize("traffic", [None, {}, {"desired": {"weight": 20}}])
def test_no_share_is_shown_before_routers_have_accepted_one(traffic: dict[str, Any] | None) -> None:
    made = rollout(summary={"state": "Loading"}, traffic=traffic)
    assert {row[0] for row in rows(release(made, [lws()], [pod("llama", 0, "old")]), "TRAFFIC")} == {""}


def test_the_second_set_of_a_blue_green_release_is_called_green() -> None:
    made = rollout({"blueGreen": {"steps": [{"replicas": "100%"}]}})
    assert ["llama-canary", "green"] in rows(release(made, [lws(), canary()], []), "NAME", "ROLE")


def test_one_group_counts_its_pods_and_several_count_groups() -> None:
    leaders = [pod("llama", group, "old", size=3) for group in range(4)]
    sets = [workers(leader, 2) for leader in leaders[:3]] + [workers(leaders[3], 1)]
    shown = release(rollout(), [lws(size=3)], leaders, sets)
    assert rows(shown, "NAME", "READY", "INFO") == [
        ["llama", "3/4", ""],
        ["groups 0-2", "3/3", "3 pods each"],
        ["group 3", "2/3", "not ready for 48m18s"],
    ]


def test_a_group_on_its_way_says_why_it_is_not_there_yet() -> None:
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}, "name": "vllm-leader"}
    broken = pod("llama-canary", 0, "new", ready=False, containerStatuses=[waiting])
    shown = release(rollout(), [lws(), canary(2)], [broken, pod("llama-canary", 1, "new")])
    assert rows(shown, "NAME", "INFO")[-2:] == [
        ["group 0", "loading for 1h: ImagePullBackOff"],
        ["group 1", "loaded in 11m42s"],
    ]
    told = [{"workload": "llama-canary", "group": "0", "reason": "OOMKilled", "message": "worker 1"}]
    shown = release(rollout(notReadyGroups=told), [lws(), canary(2)], [broken])
    assert rows(shown, "INFO")[-1] == ["loading for 1h: OOMKilled"]


def test_many_groups_in_many_states_are_one_line_a_state() -> None:
    found = [pod("llama", group, "old", ready=group % 3 != 0) for group in range(100)]
    shown = release(rollout(), [lws(replicas=100)], found)
    names = [row[0] for row in rows(shown, "NAME")]
    assert names[0] == "llama"
    assert len(names) == 3
    assert names[1].startswith("groups 0,3,6,")
    assert names[2].startswith("groups 1-2,4-5,")


def test_groups_without_numbers_go_by_the_beginning_of_their_keys() -> None:
    found = [pod("llama", 0, "old"), pod("llama", 1, "old")]
    for each, key in zip(found, ("3f0c", "a81d"), strict=True):
        each["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"] = key * 10
    shown = release(rollout(), [lws(replicas=2)], found)
    assert rows(shown, "NAME") == [["llama"], ["groups 3f0c3f0c,a81da81d"]]


def test_wide_shows_every_pod_and_its_own_trouble() -> None:
    killed = {"name": "vllm-worker", "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}
    leader = pod("llama-canary", 0, "new", size=11)
    members = [
        leader,
        pod("llama-canary", 0, "new", worker=10, ready=False, containerStatuses=[killed]),
        pod("llama-canary", 0, "new", worker=2),
    ]
    shown = release(rollout(), [canary(size=11)], members, [workers(leader, 1)])
    assert rows(shown, "NAME", "ROLE", "READY", "INFO", pods=True)[2:] == [
        ["llama-canary-0", "leader", "1/1", "Running"],
        ["llama-canary-0-2", "worker", "1/1", "Running"],
        ["llama-canary-0-10", "worker", "0/1", "container vllm-worker: OOMKilled (exit 137)"],
    ]
