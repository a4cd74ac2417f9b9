"""Edits that the guard is asked about, judged by the caches: whose they are, and when nobody can tell."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
import pytest

from rollout_lws.admission.judge import judge
from rollout_lws.admission.review import ALLOWED, Outcome, Request, Response, Rule, User
from rollout_lws.controller.controller import Controller
from rollout_lws.kube.client import Client
from rollout_lws.metrics import Metrics
from rollout_lws.objects.resources import LEADER_WORKER_SETS
from rollout_lws.observe.cache_types import StoredRollout, stored_rollout
from rollout_lws.observe.snapshot import Snapshot
from rollout_lws.sandbox.transport import DirectTransport
from rollout_lws.settings import Settings
from rollout_lws.targets.leader_worker_set import LeaderWorkerSet
from rollout_lws.workload.hold import hold
from tests.controller.test_controller import ORIGIN, cluster
from tests.observe.test_observer import namespace
from tests.rollout.build import at_rest, rollout
from tests.virtual_time import LoopClock
from tests.workload.build import KEYS, NAME, NAMESPACE, lws, patched

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ME = "system:serviceaccount:tools:rollout-lws-controller"
UID = "uid-rollout"
USERS = lws()
_REF = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind}
HELD = patched(USERS, hold(USERS, KEYS, UID))
OPENED = patched(HELD, {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}}})


def raw(value: Any) -> msgspec.Raw:
    if isinstance(value, LeaderWorkerSet):
        value = LEADER_WORKER_SETS.manifest(NAME) | json.loads(msgspec.json.encode(value))
    return msgspec.Raw(value if isinstance(value, bytes) else msgspec.json.encode(value))


def stored(**given: Any) -> StoredRollout:
    metadata = {"creationTimestamp": NOW, **given.pop("metadata", {})}
    return stored_rollout(_json(rollout(status=at_rest(), metadata=metadata, **given)))


def _json(made: Any) -> bytes:
    body: bytes = made.model_dump_json(by_alias=True, exclude_none=True).encode()
    return body


def world() -> Snapshot:
    return namespace(rollouts=[stored()], workloads=[HELD])


def asked(
    rule: Rule = Rule.HOLD,
    before: LeaderWorkerSet | bytes | None = HELD,
    after: LeaderWorkerSet | bytes | None = OPENED,
    *,
    by: str = "ann",
    known: Snapshot | None = None,
    me: str = ME,
    ready: bool = True,
    sub_resource: str = "",
) -> Response:
    request = Request(
        uid="1",
        operation="UPDATE",
        namespace=NAMESPACE,
        name=NAME,
        sub_resource=sub_resource,
        user_info=User(username=by),
        object=raw(after),
        old_object=raw(before),
    )
    there = (known or world()) if ready else None
    return partial(judge, lambda _: there, lambda: NOW, lambda: me)(rule, request)()()


def test_an_edit_is_judged_by_the_rollout_that_holds() -> None:
    assert asked().outcome is Outcome.REPAIRED
    assert asked(Rule.PENDING) == ALLOWED


@pytest.mark.parametrize("member", ["name", "counterpart"])
def test_the_rollout_of_a_pair_is_found_by_a_companions_name(member: str) -> None:
    names = {"name": "beside", "counterpart": "beside-green", member: NAME}
    spec = json.loads(_json(rollout()))["spec"] | {
        "workloadRef": {**_REF, "name": "decode"},
        "counterpartRef": {**_REF, "name": "decode-green"},
        "companions": [{**names, "replicas": 2}],
        "strategy": {"canary": {"capacity": "Pair", "steps": [{"replicas": 1}]}},
    }
    made = json.loads(_json(rollout(status=at_rest(), metadata={"creationTimestamp": NOW}))) | {"spec": spec}
    there = namespace(rollouts=[stored_rollout(msgspec.json.encode(made))], workloads=[HELD])
    assert asked(known=there).outcome is Outcome.REPAIRED
    assert asked(Rule.PENDING, known=there) == ALLOWED


def test_what_the_controller_writes_itself_is_its_own_affair() -> None:
    assert asked(by=ME) == ALLOWED


@pytest.mark.parametrize(
    ("unable", "why"),
    [
        ({"me": ""}, "it has just started; try again if this was not meant"),
        ({"ready": False}, "it does not know now what is in this namespace, or does not watch it"),
    ],
)
def test_who_cannot_judge_lets_pass_and_says_so(unable: Any, why: str) -> None:
    response = asked(**unable)
    assert response.outcome is Outcome.FAILED
    assert response.warnings == (f"the guard of rollout-lws has not judged this: {why}",)


def test_what_a_rollout_that_is_gone_has_left_is_nobodys() -> None:
    assert asked(known=namespace(rollouts=[], workloads=[HELD])) == ALLOWED
    another = stored(metadata={"uid": "uid-made-anew"})
    assert asked(known=namespace(rollouts=[another], workloads=[HELD])) == ALLOWED


@pytest.mark.parametrize("other", [{"sub_resource": "scale"}, {"before": None}, {"after": None}])
def test_neither_scaling_nor_coming_nor_going_is_an_edit(other: Any) -> None:
    assert asked(**other) == ALLOWED


def plan(before: Any, after: Any, known: Snapshot) -> Response:
    bodies = [None if each is None else _json(each) for each in (before, after)]
    return asked(Rule.PLAN, bodies[0], bodies[1], known=known)


def test_a_rollout_is_judged_as_it_would_be_and_among_those_that_are_there() -> None:
    second = rollout(metadata={"name": "second", "uid": "uid-second"})
    response = plan(None, second, world())
    assert response.warnings == (
        f"LeaderWorkerSet {NAME} is already released by Rollout {NAME}: this one waits until that is gone",
    )
    assert plan(None, second, namespace(rollouts=[], workloads=[HELD])) == ALLOWED
    mine = rollout(status=at_rest())
    assert plan(mine, mine, world()) == ALLOWED


def test_a_rollout_that_nobody_can_read_is_not_judged() -> None:
    broken = json.loads(_json(rollout()))
    broken["spec"]["strategy"]["canary"]["steps"] = "many"
    response = asked(Rule.PLAN, None, json.dumps(broken).encode())
    assert response.outcome is Outcome.FAILED
    assert "cannot be read: spec.strategy.canary.steps" in response.warnings[0]


@pytest.mark.parametrize("rule", Rule)
def test_what_has_not_even_the_form_of_an_object_is_not_judged(rule: Rule) -> None:
    body = msgspec.json.encode(LEADER_WORKER_SETS.manifest(NAME) | {"metadata": 1})
    response = asked(rule, body, body)
    assert response.outcome is Outcome.FAILED
    assert "Expected `object`, got `int`" in response.warnings[0]


@pytest.mark.parametrize("rule", [Rule.HOLD, Rule.PENDING])
def test_an_object_of_a_kind_that_no_rollout_can_release_is_not_judged(rule: Rule) -> None:
    response = asked(rule, b'{"apiVersion": "v1", "kind": "Pod"}', b'{"apiVersion": "v1", "kind": "Pod"}')
    assert response.outcome is Outcome.FAILED
    assert "v1 Pod cannot be released" in response.warnings[0]


@pytest.mark.looptime
async def test_every_replica_knows_what_it_watches_and_nothing_before_that_or_else() -> None:
    async with cluster() as server:
        settings = Settings(namespaces=("default",))
        controller = Controller(Client(DirectTransport(server)), settings, LoopClock(ORIGIN), Metrics())
        assert controller.look("default") is None
        async with controller.watching():
            seen = controller.look("default")
            assert seen is not None and seen.namespace == "default"
            assert controller.look("prod") is None


def test_what_a_release_has_made_and_that_serves_since_is_held_like_what_it_stands_for() -> None:
    labels = {KEYS.stands_for: NAME, KEYS.side: "active"}
    users = lws(name=f"{NAME}-canary", labels=labels)
    made = patched(users, hold(users, KEYS, UID))
    opened = patched(made, {"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}}})
    there = namespace(rollouts=[stored()], workloads=[lws(0), made])
    assert asked(before=made, after=opened, known=there).outcome is Outcome.REPAIRED
    assert asked(Rule.PENDING, before=made, after=made, known=there) == ALLOWED
    # Without the label it is in the care of no Rollout.
    users = lws(name=f"{NAME}-canary")
    bare = patched(users, hold(users, KEYS, UID))
    assert asked(before=bare, after=opened, known=there) == ALLOWED


def test_a_rollout_for_what_another_one_has_made_is_warned_of() -> None:
    made = lws(name="second", labels={KEYS.stands_for: NAME})
    spec = json.loads(_json(rollout()))["spec"] | {"workloadRef": {**_REF, "name": "second"}}
    body = json.loads(_json(rollout(metadata={"name": "second", "uid": "uid-second"}))) | {"spec": spec}
    response = asked(
        Rule.PLAN, None, msgspec.json.encode(body), known=namespace(rollouts=[stored()], workloads=[HELD, made])
    )
    (warning,) = response.warnings
    assert warning.startswith(f"LeaderWorkerSet second serves in place of {NAME}, for whose Rollout it was made: name")
