"""The benchmark's own arithmetic: a wrong count or a kind verdict would make every figure of it worthless."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from rollout_lws.api.resources import keys
from rollout_lws.targets.table import stored_version
from tests.bench import account, fleet
from tests.bench.figures import Figure, percentile, table
from tests.bench.journal import Accepted, Entry, Ready, Write
from tests.bench.manifests import IMAGE
from tests.bench.measures import memory_goal, of_releases

PAUSED_AT = "1970-01-01T00:00:10.500000Z"


def write(at: float, what: str = "patch rollouts/status", code: int = 200, **body: Any) -> Write:
    verb, _, target = what.partition(" ")
    resource, _, subresource = target.partition("/")
    return Write(at, verb, resource, "default", "llama", subresource, code, body)


def window(at: float, code: int = 200) -> Write:
    return write(at, "patch leaderworkersets", code, spec={"rolloutStrategy": {}})


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_a_percentile_is_the_smallest_sample_that_covers_its_share(share: float, expected: float) -> None:
    assert percentile([float(each) for each in range(100, 0, -1)], share) == expected


def test_a_percentile_of_nothing_is_no_number() -> None:
    with pytest.raises(ValueError, match="no samples"):
        percentile([], 0.5)


@pytest.mark.parametrize(
    ("value", "goal", "better", "ratio", "failed"),
    [
        (15, 15, "less", 1.0, False),
        (45, 15, "less", 3.0, False),
        (45.1, 15, "less", 3.007, True),
        (10_000, 20_000, "more", 2.0, False),
        (6_000, 20_000, "more", 3.333, True),
        (0, 20_000, "more", math.inf, True),
        (0, 0, "less", 0.0, False),
        (1, 0, "less", math.inf, True),
    ],
)
def test_a_figure_fails_only_when_it_is_three_times_worse_than_its_goal(
    value: float, goal: float, better: Any, ratio: float, failed: bool
) -> None:
    figure = Figure("", value, goal, better=better)
    assert figure.ratio == pytest.approx(ratio, abs=0.001)
    assert figure.failed is failed


def test_the_table_names_value_goal_and_their_ratio() -> None:
    rows = table(
        [Figure("wait", 7.5, 15, "ms"), Figure("events", 40_000, 20_000, "/s", "more"), Figure("writes", 0, 0)]
    )
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows.splitlines()]
    assert cells[2:] == [
        ["wait", "7.5 ms", "≤ 15 ms", "0.50"],
        ["events", "40,000 /s", "≥ 20,000 /s", "2.00"],
        ["writes", "0", "≤ 0", "met"],
    ]


def test_a_figure_without_a_goal_is_told_and_fails_nothing() -> None:
    figure = Figure("away", 4.2, None, "s")
    assert not figure.failed
    assert [cell.strip() for cell in table([figure]).splitlines()[-1].strip("|").split("|")] == [
        "away",
        "4.2 s",
        "",
        "",
    ]


def test_a_wait_ends_with_the_first_accepted_write_that_takes_the_release_further() -> None:
    entries: list[Entry] = [
        write(1.0),
        Ready(2.0, "default", "llama"),
        Ready(2.5, "default", "llama"),
        write(2.6, "create events"),
        write(2.7, "patch pods", metadata={"labels": {}}),
        window(2.75, code=409),
        window(2.8),
        write(2.9),
    ]
    assert account.waits(entries) == [pytest.approx(0.3)]


def test_a_route_that_is_accepted_is_waited_for_apart_from_groups() -> None:
    entries: list[Entry] = [
        Ready(1.0, "default", "llama"),
        write(1.1, "patch httproutes"),
        Accepted(1.3, "default", "llama"),
        write(1.4, code=409),
        write(1.5),
    ]
    assert account.waits(entries) == [pytest.approx(0.1)]
    assert account.waits(entries, Accepted) == [pytest.approx(0.2)]


def test_writes_are_counted_by_verb_and_object_and_the_rest_apart() -> None:
    entries: list[Entry] = [
        Ready(0, "default", "llama"),
        write(1),
        write(2),
        write(3, "patch leaderworkersets", spec={"replicas": 2}),
        window(4),
        window(5, code=409),
        write(6, "create events"),
        write(7, "patch pods"),
        write(8, "delete pods"),
    ]
    assert account.writes(entries) == {
        "patch rollouts/status llama": 2,
        "patch leaderworkersets llama": 1,
        "delete pods llama": 1,
    }
    assert account.purposes(entries) == {"release": 4, "window": 1, "label": 1, "event": 1}
    assert account.refused(entries) == {"409 patch leaderworkersets": 1}


@pytest.mark.parametrize(
    "after",
    [
        write(12.52, "patch leaderworkersets", spec={"replicas": 2}),
        write(12.52, status={"currentStepIndex": 5, "currentStepState": "Completed"}),
    ],
)
def test_a_pause_lasts_from_its_record_until_the_next_steps_first_write(after: Write) -> None:
    entries = [
        write(10.51, status={"currentStepState": "StepPaused", "step": {"pausedAt": PAUSED_AT}}),
        write(10.6, "patch batchreleases/status", status={"canaryStatus": {}}),
        after,
        write(12.53, "patch leaderworkersets", spec={"replicas": 3}),
    ]
    assert account.pauses(entries, 2) == [pytest.approx(0.02)]


def found(**changes: Any) -> dict[str, Any]:
    releases = [{"steps": steps, "replicas": 4, "purposes": {"release": 20}} for steps in (3, 5)]
    routed = {"steps": 5, "replicas": 5, "purposes": {"release": 60}, "accepted": [0.01, 0.02]}
    quiet = {
        "routed": routed,
        "silence": 10.0,
        "writes while waiting": 0,
        "pauses": [0.004, 0.02],
        "waits": [0.005] * 100,
    }
    return {**quiet, "releases": releases, **changes}


def test_what_the_server_saw_becomes_figures_in_the_units_of_their_goals() -> None:
    values = [figure.value for figure in of_releases(found())]
    assert values == [pytest.approx(5), pytest.approx(5), 20, 20, 60, pytest.approx(20), 0, pytest.approx(20), 0]


def test_a_pause_that_ends_early_and_a_write_while_waiting_fail_the_run() -> None:
    assert [figure.failed for figure in of_releases(found())] == [False] * 9
    late = of_releases(found(**{"pauses": [0.004, -0.8], "writes while waiting": 1}))
    assert [figure.failed for figure in late] == [False, False, False, False, False, False, True, False, True]


def test_the_memory_goal_is_the_straight_line_to_400_mb_for_5000_rollouts() -> None:
    assert (memory_goal(0), memory_goal(1000), memory_goal(5000)) == (100, 160, 400)


def test_a_fleet_has_namespaces_and_uids_of_its_own_in_each_copy_and_keeps_what_belongs_together() -> None:
    uid = "9c42d21c-1e7b-4b37-ab55-20bf58ed2ffb"
    owner = {"metadata": {"name": "llama", "namespace": "one", "uid": uid, "resourceVersion": "7"}}
    meta = {"name": "llama-0", "namespace": "one", "labels": {"index": "0"}, "ownerReferences": [{"uid": uid}]}
    pod = {"metadata": {**meta, "uid": uid.replace("9", "8"), "resourceVersion": "8"}}
    made = fleet.copied([{"resource": "pods", "object": pod}, {"resource": "sets", "object": owner}], 3)
    bodies = [each.body.decode() for each in made.select("sets", "")]
    uids = [body.partition('"uid":"')[2][:36] for body in bodies]
    assert len(set(uids)) == 3
    for number, each in enumerate(made.select("pods", "index=0")):
        assert f'"team-{number:05}"' in each.body.decode()
        assert f'[{{"uid":"{uids[number]}"}}]' in each.body.decode()
    assert made.version == 9
    assert made.select("pods", "index=1") == [] == made.select("pods", "another")


def test_a_fleets_templates_differ_and_are_recorded_by_hashes_of_their_own() -> None:
    template = {"workerTemplate": {"spec": {"containers": [{"name": "vllm", "image": f"{IMAGE}:v1"}]}}}
    before = stored_version({"leaderWorkerTemplate": template}).template_hash
    marks = {keys().template_hash: before}
    meta = {"name": f"llama-{before}", "namespace": "one", "annotations": marks, "resourceVersion": "7"}
    record = {"metadata": meta, "data": {"spec": {"leaderWorkerTemplate": template}}}
    rollout = {"metadata": {"name": "llama", "namespace": "one", "resourceVersion": "8"}, "status": {"hash": before}}
    made = fleet.copied([{"resource": "records", "object": record}, {"resource": "rollouts", "object": rollout}], 2)
    for stored, known in zip(made.select("records", ""), made.select("rollouts", ""), strict=True):
        kept = msgspec.json.decode(stored.body)
        after = stored_version(kept["data"]["spec"]).template_hash
        assert after != before
        assert kept["metadata"]["annotations"] == {keys().template_hash: after}
        assert kept["metadata"]["name"] == f"llama-{after}"
        assert msgspec.json.decode(known.body)["status"] == {"hash": after}
    assert len({each.body for each in made.select("records", "")}) == 2
