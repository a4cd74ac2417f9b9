"""Edits of a Rollout: what the controller would refuse in the middle of a release, and who comes second."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from rollout_lws.admission.review import ALLOWED, Outcome, Response
from rollout_lws.admission.rollouts import plan
from rollout_lws.api import Rollout
from rollout_lws.objects.meta import Meta
from rollout_lws.rollout.observation import Observation
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.names import ManagedRef, Names
from tests.rollout.build import STEPS, at_rest, in_step, rollout
from tests.workload.build import KEYS, NOW

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def seen(given: Rollout, *rivals: Meta, **more: Any) -> Observation:
    return Observation(NOW, KEYS, given, rivals=rivals, **more)


def asked(before: Rollout | None, after: Rollout, *rivals: Meta, **more: Any) -> Response:
    return plan(seen(after, *rivals, **more), None if before is None else seen(before, *rivals, **more))


def styled(style: str, steps: Any = STEPS, **members: Any) -> Rollout:
    made = rollout(status=in_step())
    strategy = made.spec.strategy.model_validate({style: {"steps": steps, **members}})
    return made.model_copy(update={"spec": made.spec.model_copy(update={"strategy": strategy})})


RELEASING = rollout(status=in_step())


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (
            styled("blueGreen"),
            "the style of a release that is on cannot change: restore spec.strategy.canary until it is over, or go"
            " back",
        ),
        (
            styled("canary", capacity="Surge"),
            "the capacity of a release that is on cannot change: restore spec.strategy.canary.capacity ExtraWorkload"
            " until it is over, or go back",
        ),
    ],
)
def test_in_the_words_in_which_a_release_began_it_ends(after: Rollout, told: str) -> None:
    response = asked(RELEASING, after)
    assert (response.outcome, response.message) == (Outcome.DENIED, told)


def test_what_is_written_of_the_status_by_such_an_edit_counts_for_nothing() -> None:
    wiped = styled("blueGreen").model_copy(update={"status": None})
    assert asked(RELEASING, wiped).outcome is Outcome.DENIED


@pytest.mark.parametrize(
    "after",
    [
        styled("canary", ({"replicas": 2}, {"replicas": "100%"})),
        rollout(status=in_step(), paused=True),
        rollout(status=in_step(), spec={"disabled": True}),
    ],
    ids=["other steps", "paused", "disabled"],
)
def test_everything_else_may_change_in_the_middle(after: Rollout) -> None:
    assert asked(RELEASING, after) == ALLOWED


def test_at_rest_and_where_a_release_ends_the_style_may_change() -> None:
    after = styled("blueGreen")
    ending = in_step(finalising={"reason": "Success", "task": "Promote", "since": NOW})
    for status in (at_rest(), ending):
        assert asked(rollout(status=status), after.model_copy(update={"status": None})) == ALLOWED


def routed(service: str | None, status: dict[str, Any]) -> Rollout:
    route = {"service": service, "gateway": {"httpRouteName": "llama"}}
    made = styled("canary", trafficRoutings=[route] if service else [])
    return rollout(status=status).model_copy(update={"spec": made.spec})


BORROWED = in_step(traffic={"step": 1})
#: What the Service has noted, whatever a spec says by now.
NOTED = RoutingFacts(
    Names(service="llama", refs=(ManagedRef(kind="HTTPRoute", name="llama"),)), "prod", "uid-rollout", KEYS
)


@pytest.mark.parametrize("name", ["other", None])
def test_what_a_release_has_borrowed_it_gives_back(name: str | None) -> None:
    before, after = routed("llama", BORROWED), routed(name, BORROWED)
    response = asked(before, after, batch_release=object(), routing=NOTED)
    assert response.message == (
        "this release shares requests by Service llama, HTTPRoute llama: name the same in trafficRoutings again until"
        " it is over, or go back"
    )
    assert asked(before, after, routing=NOTED).outcome is Outcome.ALLOWED
    assert asked(after, after, batch_release=object(), routing=NOTED).outcome is Outcome.ALLOWED
    assert asked(after, before, batch_release=object(), routing=NOTED).outcome is Outcome.ALLOWED


def rival(hour: int, **more: Any) -> Meta:
    return Meta(name="first", namespace="prod", uid="uid-first", creation_timestamp=DAY.replace(hour=hour), **more)


def made_at(hour: int | None, **spec: Any) -> Rollout:
    created = {} if hour is None else {"creationTimestamp": DAY.replace(hour=hour)}
    return rollout(metadata=created, spec=spec)


SECOND = "LeaderWorkerSet llama is already released by Rollout first: this one waits until that is gone"


@pytest.mark.parametrize("hour", [None, 1, 12, 23])
def test_who_comes_second_is_told_of_the_first_whatever_clocks_say(hour: int | None) -> None:
    """And comes in: what has another name in Git is made before the one that it was is deleted."""
    response = asked(None, made_at(hour), rival(12))
    assert (response.outcome, response.warnings) == (Outcome.WARNED, (SECOND,))


def test_one_that_goes_is_in_nobodys_way() -> None:
    assert asked(None, made_at(1), rival(12, deletion_timestamp=NOW)) == ALLOWED
    assert asked(None, made_at(1)) == ALLOWED


@pytest.mark.parametrize(("hour", "outcome"), [(13, Outcome.DENIED), (11, Outcome.ALLOWED)])
def test_who_turns_to_another_lws_gives_way_to_one_that_is_older(hour: int, outcome: Outcome) -> None:
    after, before = made_at(hour), made_at(hour)
    assert plan(seen(after, rival(12)), seen(before)).outcome is outcome


def test_who_is_second_already_is_not_kept_from_anything() -> None:
    assert asked(made_at(13), made_at(13, disabled=True), rival(12)) == ALLOWED


def test_what_no_release_could_do_is_told_to_who_writes_it() -> None:
    wrong = rollout(steps=({"replicas": "50%"}, {"replicas": "20%"}))
    response = asked(None, wrong)
    assert response.outcome is Outcome.WARNED
    assert len(response.warnings) == 1
    assert response.warnings[0].startswith("spec.strategy.canary.steps[1].replicas: ")
    assert asked(wrong, wrong.model_copy(update={"status": None})) == ALLOWED
