"""What scripts are given for a split, what becomes of their results, and what is never written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from rollout_lws.api.resources import keys
from rollout_lws.api.rollout_spec import HttpMatch, RequestHeaderModifier
from rollout_lws.objects.resources import HTTP_ROUTES, INGRESSES, Resource
from rollout_lws.objects.writes import Patch
from rollout_lws.traffic.custom.scripts import Evaluation, Failure, Outcome, Output, Scripts
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.marked import Marked
from rollout_lws.traffic.names import ManagedRef, Names
from rollout_lws.traffic.routers.custom import CustomRouter
from rollout_lws.traffic.routers.weighted import HttpRouter
from rollout_lws.traffic.split import ALL_STABLE, Split, listed

MESH_ROUTES = Resource("mesh.example.com", "v1", "MeshRoute", "meshroutes")
REF = ManagedRef(kind="MeshRoute", name="chat", api_version="mesh.example.com/v1")
KEYS, UID, TEXT = keys(), "uid-rollout", "return obj.data"
KEY = "lua.traffic.routing.MeshRoute.mesh.example.com"
MATCH = HttpMatch.model_validate({"headers": [{"name": "x-canary", "value": "yes"}]})
MODIFIER = RequestHeaderModifier.model_validate({"remove": ["x-a"]})


def live(to: list[Any] | None = None, **metadata: Any) -> dict[str, Any]:
    destinations = to if to is not None else [{"service": "api"}]
    head = {"name": "chat", "namespace": "prod", "resourceVersion": "1"}
    return {"apiVersion": "mesh.example.com/v1", "kind": "MeshRoute", "metadata": head | metadata} | {
        "spec": {"to": destinations}
    }


def router(found: dict[str, Any], outcomes: dict[Evaluation, Outcome] | None = None, text: str = TEXT) -> CustomRouter:
    facts = RoutingFacts(
        Names(service="api", refs=(REF,)),
        "prod",
        UID,
        KEYS,
        objects={MESH_ROUTES: {"chat": found}},
        custom={REF.custom_kind: MESH_ROUTES},
        scripts=Scripts("system/scripts", {KEY: text}, outcomes=outcomes or {}),
    )
    return CustomRouter(facts, REF)


def written(found: dict[str, Any], split: Split, to: list[Any]) -> dict[str, Any]:
    """The object once the split is written, for which the script has returned these destinations."""
    asked = router(found).evaluation(split)
    assert asked is not None
    body = msgspec.json.encode({"spec": {"to": to}})
    (write,) = router(found, {asked: Output(body)}).apply(split, "", checked=True)
    assert isinstance(write, Patch) and write.resource_version == "1"
    after: dict[str, Any] = _merged(found, write.body)
    return after


def _merged(before: Any, patch: Any) -> Any:
    """A JSON merge patch applied."""
    if not isinstance(patch, dict):
        return patch
    found = dict(before) if isinstance(before, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), value)
    return found


SHARED = [{"service": "api", "weight": 80}, {"service": "api-canary", "weight": 20}]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("split", "said"),
    [
        (Split(20), {"canaryWeight": 20, "stableWeight": 80}),
        (Split(100), {"canaryWeight": 100, "stableWeight": 0}),
        (listed(NOW), {"canaryWeight": 0, "stableWeight": 100}),
        (Split(0, (MATCH,)), {"canaryWeight": -1, "stableWeight": 101, "matches": [MATCH.to_json_dict()]}),
        (Split(5, (MATCH,)), {"canaryWeight": 5, "stableWeight": 95, "matches": [MATCH.to_json_dict()]}),
        (
            Split(5, (), MODIFIER),
            {"canaryWeight": 5, "stableWeight": 95, "requestHeaderModifier": {"remove": ["x-a"]}},
        ),
    ],
)
def test_what_a_script_is_given(split: Split, said: dict[str, Any]) -> None:
    found = live(
        labels={"team": "a"}, annotations={"note": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    )
    asked = router(found).evaluation(split)
    assert asked is not None and (asked.key, asked.script) == (KEY, TEXT)
    data = {"spec": {"to": [{"service": "api"}]}, "labels": {"team": "a"}, "annotations": {"note": "b"}}
    services = {"stableService": "api", "canaryService": "api-canary"}
    assert msgspec.json.decode(asked.given) == {"data": data, **services, **said}


def test_no_share_needs_no_script() -> None:
    assert router(live()).evaluation(ALL_STABLE) is None
    shared = written(live(), Split(20), SHARED)
    (write,) = router(shared).apply(ALL_STABLE, "", checked=True)
    assert isinstance(write, Patch)
    after = _merged(shared, write.body)
    assert after["spec"] == live()["spec"]
    state = router(after).state
    assert (state.reaches_canary, state.weight, state.carried, state.modified) == (False, 0, True, False)
    assert CustomRouter.restore(after, UID, KEYS) == live()


def test_each_share_is_worked_out_from_the_users_own_object() -> None:
    shared = written(live(), Split(20), SHARED)
    first, second = router(live()).evaluation(Split(40)), router(shared).evaluation(Split(40))
    assert first == second is not None
    assert router(shared).is_written(Split(20))
    assert router(shared).evaluations(Split(20)) == ()
    assert not router(shared, text="return obj").is_written(Split(20)), "another script is run"


def test_without_a_check_nothing_is_written_that_was_not_before() -> None:
    asked = router(live()).evaluation(Split(20))
    assert asked is not None
    known = {asked: Output(msgspec.json.encode({"spec": {"to": SHARED}}))}
    assert router(live(), known).apply(Split(20), "", checked=False) == ()
    assert router(live(), known).apply(ALL_STABLE, "", checked=True) == ()


@pytest.mark.parametrize("outcome", [None, Failure("line 1: no"), Output(b"7"), Output(b'{"labels": {}}')])
def test_without_a_result_nothing_is_written(outcome: Outcome | None) -> None:
    asked = router(live()).evaluation(Split(20))
    assert asked is not None
    found = router(live(), {asked: outcome} if outcome is not None else {})
    assert found.apply(Split(20), "", checked=True) == ()
    problem = found.check(Split(20))
    assert (problem is None) == (outcome is None)
    assert problem is None or problem.message.startswith(f"script {KEY} of ConfigMap system/scripts, run for MeshRoute")


def test_an_object_that_has_lost_its_annotation_is_not_changed() -> None:
    shared = written(live(), Split(20), SHARED)
    bare = {**shared, "metadata": live()["metadata"]}
    asked = router(bare).evaluation(Split(40))
    assert asked is not None
    known = router(bare, {asked: Output(msgspec.json.encode({"spec": {"to": SHARED}}))})
    assert known.apply(Split(40), "", checked=True) == known.apply(ALL_STABLE, "", checked=True) == ()
    assert known.state.unmarked and "has no annotation" in known.state.unaccepted
    for split in (None, Split(40)):
        problem = known.check(split)
        assert problem is not None and "has no annotation" in problem.message


def test_no_edit_of_what_was_added_keeps_requests_at_the_service_that_goes() -> None:
    """A member whose whole value was changed, not an item of a list."""
    before = live() | {"spec": {"to": "api"}}
    asked = router(before).evaluation(Split(100))
    assert asked is not None
    body = msgspec.json.encode({"spec": {"to": "api-canary", "mirror": "none"}})
    (write,) = router(before, {asked: Output(body)}).apply(Split(100), "", checked=True)
    assert isinstance(write, Patch)
    edited = _merged(_merged(before, write.body), {"spec": {"to": "api-canary.prod.svc", "mirror": "theirs"}})
    restored = CustomRouter.restore(edited, UID, KEYS)
    assert restored["spec"] == {"to": "api", "mirror": "theirs"}
    assert restored["metadata"] == before["metadata"]


@pytest.mark.parametrize("resource", [MESH_ROUTES, HTTP_ROUTES, INGRESSES], ids=str)
@pytest.mark.parametrize("deleted", [False, True], ids=["own", "of a deleted Rollout"])
def test_a_change_of_a_script_is_undone_whatever_the_kind(resource: Resource, deleted: bool) -> None:
    """Also where a router of ours writes objects of that kind otherwise."""
    shared = written(live(), Split(20), SHARED)
    marked = Marked("uid-other" if deleted else UID, KEYS, {resource: (shared,)}, names=Names("api"))
    assert marked.any_own is not deleted
    writes = [*(marked.take_back(UID, "chat", "") if deleted else marked.give_back(""))]
    assert [_merged(shared, each.body) for each in writes if isinstance(each, Patch)] == [live()]


def test_a_route_that_is_known_waits_for_the_script_of_another_rollout() -> None:
    rules = [{"backendRefs": [{"name": "api", "port": 80}]}]
    route = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": live()["metadata"]}
    route |= {"spec": {"rules": rules}}
    theirs = {**route, "metadata": written(live(), Split(20), SHARED)["metadata"]}
    for found, by, waits in ((route, UID, False), (theirs, UID, False), (theirs, "uid-other", True)):
        names = Names(service="api", refs=(ManagedRef(kind="HTTPRoute", name="chat"),))
        facts = RoutingFacts(names, "prod", by, KEYS, objects={HTTP_ROUTES: {"chat": found}})
        problem = HttpRouter(facts, "chat").check()
        assert (problem is not None and "cannot be told apart" in problem.message) is waits
