"""The versions that a Rollout has stored, as a decision reads them: thousands of them, and some on their way out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace as change

from rollout_lws.api import StableRecord
from rollout_lws.objects.workloads import ControllerRevision
from rollout_lws.objects.writes import Create, Delete, Write
from rollout_lws.rollout.decide import decide
from rollout_lws.rollout.decision import BestEffort
from rollout_lws.rollout.history import drop_doubles, drop_surplus, stable_version, store_version
from rollout_lws.rollout.observation import Observation
from rollout_lws.targets.version import Version
from rollout_lws.workload import revisions
from rollout_lws.workload.revisions import HISTORY_LIMIT, RECORDS_AT_ONCE, recorded_version
from tests.rollout.build import HASH, OTHER_HASH, at_rest, draft, held, in_step, rollout
from tests.workload.build import KEYS, NOW, OLD, UID, revision_record

MANY = 1500


def stored(
    name: str, number: int = 1, *, annotated: str = "", image: str = "model:1", terminating: bool = False
) -> ControllerRevision:
    """A version that differs by its image alone; that of ``model:1`` is the one that the LWS asks for."""
    containers = [{"name": "server", "image": image}]
    data = {"spec": {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": containers}}}}}
    marks = {KEYS.template_hash: annotated} if annotated else {}
    return revision_record(name, "", number, data, terminating=terminating, **marks)


def deletions(writes: Iterable[Write], best_effort: Iterable[BestEffort]) -> list[str]:
    return [each.name for each in (*writes, *(best.write for best in best_effort)) if isinstance(each, Delete)]


def many(annotated: str = "", *, numbered: bool = True) -> tuple[ControllerRevision, ...]:
    return tuple(
        stored(f"x-{at:04}", 1000 + at if numbered else 7, annotated=annotated.format(at), image=f"v{at}")
        for at in range(MANY)
    )


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """How many Python functions are called meanwhile."""
    calls = [0]

    def count(_: Any, event: str, __: Any) -> None:
        calls[0] += event == "call"

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.mark.one_in(3)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("status", [at_rest(), in_step(1, paused=False), in_step(1)], ids=["rest", "step", "pause"])
@pytest.mark.parametrize(
    "history",
    [many("same"), many("other-{}", numbered=False), many(), many(OTHER_HASH), many(HASH), many("{}" + OTHER_HASH)],
    ids=["one name", "one number", "no name", "stable's name", "the new one's name", "a name each"],
)
def test_thousands_of_stored_versions_are_no_work_for_a_decision(
    history: tuple[ControllerRevision, ...], status: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may create ControllerRevisions can name any Rollout as their owner."""
    read, reading = [], revisions.stored_version

    def noted(members: dict[str, Any]) -> Version:
        read.append(members)
        return reading(members)

    monkeypatch.setattr(revisions, "stored_version", noted)
    seen = Observation(NOW, KEYS, rollout(status=status), stable=held(), history=history)
    revisions._recorded.cache_clear()
    with counted_calls() as calls:
        decision = decide(seen)
    assert len(read) <= 3 * HISTORY_LIMIT
    assert calls[0] <= 100 * MANY
    assert len(deletions(decision.writes, decision.best_effort)) <= 2 * RECORDS_AT_ONCE


#: What ``stored`` holds by default.
VERSION = recorded_version(stored("any"))
assert VERSION is not None
ITSELF = VERSION.template_hash
STABLE = StableRecord(template_hash=ITSELF, revision="gone", workload_uid=UID)


def written(*history: ControllerRevision) -> tuple[Write, ...]:
    """What it takes to have the version stored as the newest."""
    assert VERSION is not None
    d = draft(rollout(status=at_rest()), history=history)
    d = store_version(d, VERSION, OLD)
    return d.writes


def test_a_version_whose_only_record_is_on_its_way_out_is_stored_beside_it() -> None:
    name = f"llama-{ITSELF}"
    for taken, free in (((), name), ((name,), f"{name}-2"), ((name, f"{name}-2"), f"{name}-3")):
        going = (stored(each, 4, annotated=ITSELF, terminating=True) for each in taken)
        (write,) = written(*going, stored("llama-other", 6, annotated="other", image="model:2"))
        assert isinstance(write, Create)
        assert (write.body["metadata"]["name"], write.body["revision"]) == (free, 7)
    assert written(stored(f"{name}-2", 6, annotated=ITSELF), stored(name, 6, annotated=ITSELF, terminating=True)) == ()


def test_a_number_that_no_further_one_follows_is_given_again() -> None:
    (write,) = written(stored("llama-other", 2**63 - 1, annotated="other", image="model:2"))
    assert isinstance(write, Create) and write.body["revision"] == 2**63 - 1


def test_a_stable_version_is_known_for_as_long_as_a_record_of_it_is_there() -> None:
    """It says whether a change would damage groups that restart."""
    going = stored("v1", annotated=ITSELF, terminating=True)
    for history, known in (((), None), ((going,), VERSION)):
        assert stable_version(draft(rollout(status=at_rest(stable=STABLE)), history=history)) == known


def dropped(*history: ControllerRevision) -> list[str]:
    d = draft(rollout(status=at_rest(stable=STABLE)), history=history)
    d = drop_doubles(d)
    d = drop_surplus(d)
    return deletions(d.writes, d.best_effort)


def test_of_two_records_the_one_that_stays_is_kept() -> None:
    former, latter = stored("a", annotated=ITSELF), stored("b", annotated=ITSELF)
    assert dropped(former, latter) == ["a"]
    for one, other in ((former, latter), (latter, former)):
        going = change(one, metadata=change(one.metadata, deletion_timestamp=NOW))
        assert dropped(going, other) == []


def test_records_on_their_way_out_are_none_of_the_ten() -> None:
    kept = [stored(f"v{at}", at, annotated=f"h{at}", image=f"v{at}") for at in range(HISTORY_LIMIT)]
    going = [stored(f"g{at}", 99 + at, annotated=f"g{at}", image=f"g{at}", terminating=True) for at in range(5)]
    assert dropped(*kept, *going) == []
    assert dropped(*kept, stored("next", 98, annotated="next", image="next"), *going) == ["v0"]
