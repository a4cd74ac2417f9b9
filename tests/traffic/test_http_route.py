"""HTTPRoutes: what a step writes into the user's route. Ways back are in test_http_own.py."""

from __future__ import annotations

import copy
import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from rollout_lws.api.rollout_spec import HeaderMatch, HeaderValue, HttpMatch, PathMatch, RequestHeaderModifier
from rollout_lws.objects.resources import HTTP_ROUTES
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.traffic import marks
from rollout_lws.traffic.route import weighted
from rollout_lws.traffic.route.kinds import HTTP_RULES as RULES
from rollout_lws.traffic.split import ALL_STABLE, Backend, Backends, Split, listed
from tests.traffic.build import (
    KEYS,
    NOW,
    A,
    defaulted,
    drifted,
    http_route,
    own,
    routed,
    rule,
    split_problem,
    stable_ref,
)

BACKENDS = Backends(Backend("llama-api"), Backend("llama-api-canary"))
GROUP = "inference.networking.k8s.io"
POOLS = Backends(Backend("llama", GROUP, "InferencePool"), Backend("llama-canary", GROUP, "InferencePool"))
CANARY = {"name": "llama-api-canary", "port": 8000, "group": "", "kind": "Service"}
TESTER = HttpMatch(headers=(HeaderMatch(name="x-canary", value="always"),))
ROOT = {"type": "PathPrefix", "value": "/"}
V1 = {"type": "PathPrefix", "value": "/v1"}
ALWAYS = {"type": "Exact", "name": "x-canary", "value": "always"}


def written(route: Any, split: Split, backends: Backends = BACKENDS) -> list[Any]:
    return list(routed(route, A, KEYS, backends, split)["spec"]["rules"])


def weights(written_rule: Any) -> dict[str, int | None]:
    return {ref["name"]: ref.get("weight") for ref in written_rule["backendRefs"]}


ANY: tuple[dict[str, Any], ...] = (
    {},
    {"matches": None},
    {"matches": []},
    {"matches": [{}]},
    {"matches": [{"path": None}]},
    {"matches": [{"path": {}}]},
    {"matches": [{"path": {"type": "PathPrefix"}}]},
    {"matches": [{"path": {"value": "/"}}]},
    {"matches": [{"path": {"type": None, "value": None}}]},
    {"matches": [{"path": ROOT, "headers": [], "queryParams": None, "method": None}]},
)


class TestAnyPath:
    """A rule that leaves out what the API server adds by default, as in a file, matches all the same."""

    @pytest.mark.parametrize("stated", ANY, ids=json.dumps)
    def test_a_match_of_ours_goes_into_it_at_the_root(self, stated: Any) -> None:
        route = http_route({**stated, "backendRefs": [stable_ref()]})
        split = Split(20, matches=(TESTER,))
        assert split_problem(route, BACKENDS, split) == ""
        share, added = written(route, split)
        assert added["matches"] == [{"path": ROOT, "headers": [ALWAYS]}]
        assert {member: value for member, value in share.items() if member != "backendRefs"} == stated

    @pytest.mark.parametrize("stated", ANY, ids=json.dumps)
    def test_it_is_found_again_when_the_defaults_are_there(self, stated: Any) -> None:
        route = http_route({**stated, "backendRefs": [stable_ref()]}, rule(stable_ref("other"), path="/x"))
        live = copy.deepcopy(routed(route, A, KEYS, BACKENDS, Split(20, matches=(TESTER,))))
        live["spec"]["rules"][0]["matches"] = [{"path": ROOT}]
        assert drifted(live, A, KEYS) == ()
        (first, second) = own(live, A, KEYS)["spec"]["rules"]
        assert first == {"matches": [{"path": ROOT}], "backendRefs": [stable_ref()]}
        assert second == rule(stable_ref("other"), path="/x")

    def test_a_path_of_another_type_begins_at_the_root_as_well(self) -> None:
        (made, added) = written(
            http_route({"matches": [{"path": {"type": "Exact"}}], "backendRefs": [stable_ref()]}),
            Split(20, matches=(TESTER,)),
        )
        assert added["matches"][0]["path"] == {"type": "Exact", "value": "/"}
        assert made["matches"] == [{"path": {"type": "Exact"}}]

    @pytest.mark.parametrize("stated", [each for each in ANY if each.get("matches") != []], ids=json.dumps)
    def test_the_sandbox_adds_them(self, stated: Any) -> None:
        server = ApiServer(clock=lambda: 0.0)
        body = {
            "metadata": {"namespace": "default", "name": "llama"},
            "spec": {"rules": [{**stated, "backendRefs": []}]},
        }
        (made,) = server.create(HTTP_ROUTES, body)["spec"]["rules"]
        assert [match["path"] for match in made["matches"]] == [ROOT]


class TestWeights:
    def test_a_share_of_the_only_backend(self) -> None:
        (made,) = written(http_route(rule(stable_ref())), Split(20))
        assert made == rule(stable_ref(weight=80), CANARY | {"weight": 20})

    def test_kruise_flaw_third_backends_keep_their_share(self) -> None:
        (made,) = written(http_route(rule(stable_ref(weight=1), stable_ref("other", weight=1))), Split(20))
        assert weights(made) == {"llama-api": 80, "llama-api-canary": 20, "other": 100}

    def test_kruise_flaw_the_weight_before_the_release_comes_back(self) -> None:
        before = http_route(rule(stable_ref(weight=7), stable_ref("other", weight=3)))
        assert own(routed(before, A, KEYS, BACKENDS, Split(33)), A, KEYS)["spec"] == before["spec"]

    def test_every_rule_that_refers_to_the_stable_version_is_written(self) -> None:
        made = written(
            http_route(rule(stable_ref()), rule(stable_ref("other"), path="/x"), rule(stable_ref(), path="/v2")),
            Split(50),
        )
        assert [weights(each) for each in made] == [
            {"llama-api": 50, "llama-api-canary": 50},
            {"other": None},
            {"llama-api": 50, "llama-api-canary": 50},
        ]

    def test_each_port_has_its_own_twin(self) -> None:
        (made,) = written(http_route(rule(stable_ref(), {"name": "llama-api", "port": 9000, "weight": 3})), Split(50))
        assert [(ref["name"], ref["port"], ref["weight"]) for ref in made["backendRefs"]] == [
            ("llama-api", 8000, 50),
            ("llama-api-canary", 8000, 50),
            ("llama-api", 9000, 150),
            ("llama-api-canary", 9000, 150),
        ]

    @pytest.mark.parametrize(
        "other",
        [
            {"namespace": "elsewhere"},
            {"group": GROUP, "kind": "InferencePool"},
            {"group": "multicluster.x-k8s.io", "kind": "ServiceImport"},
        ],
        ids=lambda other: next(iter(other.values())),
    )
    def test_a_backend_of_the_same_name_elsewhere_is_another_one(self, other: Any) -> None:
        (made,) = written(http_route(rule(stable_ref(**other), stable_ref(namespace="prod", weight=4))), Split(50))
        assert [ref.get("weight") for ref in made["backendRefs"]] == [None, 2, 2]

    def test_pools_are_written_as_pools(self) -> None:
        ref = {"group": GROUP, "kind": "InferencePool", "name": "llama", "weight": 10}
        (made,) = written(http_route(rule(ref)), Split(20), POOLS)
        assert made["backendRefs"] == [ref | {"weight": 8}, ref | {"name": "llama-canary", "weight": 2}]

    def test_a_weight_of_zero_stays_zero_and_nothing_is_matched_there(self) -> None:
        off = rule(stable_ref(weight=0), stable_ref("other"))
        assert written(http_route(off), Split(20, (TESTER,))) == [off]

    def test_without_anything_to_share_rules_are_as_the_user_wrote_them(self) -> None:
        before = http_route(rule(stable_ref(), stable_ref("other", weight=3)))
        assert written(before, ALL_STABLE) == before["spec"]["rules"]

    def test_a_backend_that_is_only_listed_has_weight_0(self) -> None:
        users = rule(stable_ref(), stable_ref("other", weight=3))
        (made,) = written(http_route(users), listed(NOW))
        assert made["backendRefs"] == [users["backendRefs"][0], CANARY | {"weight": 0}, users["backendRefs"][1]]

    def test_header_changes_go_with_the_new_versions_reference(self) -> None:
        modifier = RequestHeaderModifier(set=(HeaderValue(name="x-version", value="new"),))
        (made,) = written(http_route(rule(stable_ref())), Split(20, header_modifier=modifier))
        stable, canary = made["backendRefs"]
        assert "filters" not in stable
        assert canary["filters"] == [
            {
                "type": "RequestHeaderModifier",
                "requestHeaderModifier": {"set": [{"name": "x-version", "value": "new"}]},
            }
        ]


class TestMatches:
    def test_one_rule_after_the_users_sends_matching_requests_to_the_new_version_alone(self) -> None:
        retry = {"attempts": 2, "codes": [503]}
        users = rule(stable_ref(), timeouts={"request": "600s"}, retry=retry, name="api")
        made = written(http_route(users), Split(0, (TESTER,)))
        assert made == [
            users | {"backendRefs": [*users["backendRefs"], CANARY | {"weight": 0}]},
            {
                "matches": [{"path": V1, "headers": [ALWAYS]}],
                "timeouts": {"request": "600s"},
                "retry": retry,
                "backendRefs": [CANARY | {"weight": 1}],
            },
        ]

    def test_kruise_flaw_several_matches_of_a_rule_meet_several_of_a_step(self) -> None:
        users = rule(stable_ref())
        users["matches"] = [{"path": V1}, {"headers": [{"type": "Exact", "name": "model", "value": "llama"}]}]
        query = HttpMatch(query_params=(HeaderMatch(name="canary", value="1"),))
        _, headers, queries = written(http_route(users), Split(0, (TESTER, query)))
        model = {"type": "Exact", "name": "model", "value": "llama"}
        param = {"type": "Exact", "name": "canary", "value": "1"}
        assert headers["matches"] == [{"path": V1, "headers": [ALWAYS]}, {"path": ROOT, "headers": [model, ALWAYS]}]
        assert queries["matches"] == [
            {"path": V1, "queryParams": [param]},
            {"path": ROOT, "headers": [model], "queryParams": [param]},
        ]

    def test_kruise_flaw_a_path_beside_headers_applies_to_every_rule(self) -> None:
        route = http_route(rule(stable_ref()), rule(stable_ref(), path="/v2", timeouts={"request": "9s"}))
        path = HttpMatch(path=PathMatch(type="Exact", value="/beta"), headers=TESTER.headers)
        made = written(route, Split(0, (TESTER, path)))
        beta = {"type": "Exact", "value": "/beta"}
        v2 = {"type": "PathPrefix", "value": "/v2"}
        assert [each["matches"] for each in made[2:]] == [
            [{"path": V1, "headers": [ALWAYS]}],
            [{"path": beta, "headers": [ALWAYS]}],
            [{"path": v2, "headers": [ALWAYS]}],
        ]

    def test_rules_for_matches_of_pools_refer_to_pools(self) -> None:
        ref = {"group": GROUP, "kind": "InferencePool", "name": "llama"}
        _, made = written(http_route(rule(ref)), Split(0, (TESTER,)), POOLS)
        assert made["backendRefs"] == [ref | {"name": "llama-canary", "weight": 1}]

    def test_kruise_flaw_match_rules_of_an_earlier_step_do_not_survive(self) -> None:
        route = http_route(rule(stable_ref()))
        first = routed(route, A, KEYS, BACKENDS, Split(0, (TESTER,)))
        assert routed(first, A, KEYS, BACKENDS, Split(50)) == routed(route, A, KEYS, BACKENDS, Split(50))

    def test_a_rule_without_matches_matches_everything(self) -> None:
        users = {"backendRefs": [stable_ref()]}
        _, made = written(http_route(users), Split(0, (TESTER,)))
        assert made["matches"] == [{"path": ROOT, "headers": [ALWAYS]}]

    def test_a_header_that_the_user_matches_otherwise_can_not_be_matched_too(self) -> None:
        users = rule(stable_ref())
        users["matches"] = [
            {"path": V1, "headers": [{"name": "X-Canary", "value": "never"}]},
            {"path": V1, "headers": [{"name": "X-Canary", "value": "always"}]},
        ]
        _, made = written(http_route(users), Split(0, (TESTER,)))
        assert made["matches"] == [{"path": V1, "headers": [{"type": "Exact", "name": "X-Canary", "value": "always"}]}]
        users["matches"].pop()
        assert len(written(http_route(users), Split(0, (TESTER,)))) == 1

    def test_kruise_flaw_header_changes_are_merged_into_the_users_own_filter(self) -> None:
        users = rule(
            stable_ref(),
            filters=[
                {
                    "type": "RequestHeaderModifier",
                    "requestHeaderModifier": {
                        "set": [{"name": "X-Version", "value": "old"}, {"name": "tenant", "value": "a"}],
                        "remove": ["cookie"],
                    },
                },
                {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "shadow", "port": 1}}},
            ],
        )
        modifier = RequestHeaderModifier(
            set=(HeaderValue(name="x-version", value="new"),), add=(HeaderValue(name="via", value="canary"),)
        )
        before = copy.deepcopy(users)
        kept, made = written(http_route(users), Split(0, (TESTER,), modifier))
        assert kept["filters"] == before["filters"]
        assert kept["backendRefs"][:-1] == before["backendRefs"]
        assert made["filters"] == [
            {
                "type": "RequestHeaderModifier",
                "requestHeaderModifier": {
                    "set": [{"name": "tenant", "value": "a"}, {"name": "x-version", "value": "new"}],
                    "add": [{"name": "via", "value": "canary"}],
                    "remove": ["cookie"],
                },
            },
            users["filters"][1],
        ]
        assert "filters" not in made["backendRefs"][0]


def test_what_is_written_comes_back_from_an_api_server_as_it_was_written() -> None:
    route = defaulted(http_route(rule(stable_ref(), stable_ref("other")), {"backendRefs": [stable_ref()]}))
    query = HttpMatch(query_params=(HeaderMatch(name="canary", value="1"),))
    once = routed(route, A, KEYS, BACKENDS, Split(20, (TESTER, query)))
    assert defaulted(once) == once
    assert routed(defaulted(once), A, KEYS, BACKENDS, Split(20, (TESTER, query))) == once


class TestListing:
    """What the entry on the route remembers, which no status has to."""

    LATER = NOW + timedelta(seconds=40)

    def write(self, live: Any, split: Split) -> Any:
        return routed(live, A, KEYS, BACKENDS, split)

    def told(self, live: Any) -> tuple[datetime | None, bool]:
        return weighted.listed_at(live, A, KEYS), weighted.carried(live, A, KEYS)

    def test_since_when_a_route_names_the_backend_stands_until_it_gives_it_requests(self) -> None:
        users = http_route(rule(stable_ref()))
        once = self.write(users, listed(NOW))
        assert self.write(once, listed(self.LATER)) == once
        assert self.write(once, ALL_STABLE) == once
        assert self.told(once) == (NOW, False)
        shares = self.write(once, Split(20))
        assert self.told(shares) == (None, True)
        assert self.told(self.write(shares, ALL_STABLE)) == (None, True)
        assert self.told(self.write(shares, listed(self.LATER))) == (None, True)

    def test_a_backend_that_was_taken_out_is_named_from_then_on(self) -> None:
        users = http_route(rule(stable_ref()))
        once = self.write(users, listed(NOW))
        without = once | {"spec": users["spec"]}
        assert RULES.unlisted(without, A, KEYS, BACKENDS)
        assert drifted(without, A, KEYS) == ()
        left = self.write(without, ALL_STABLE)
        assert left["spec"] == users["spec"]
        assert self.write(left, ALL_STABLE) == left
        assert self.told(self.write(without, listed(self.LATER))) == (self.LATER, False)

    def test_a_route_without_requests_for_stable_has_nothing_to_name(self) -> None:
        assert not RULES.unlisted(http_route(rule(stable_ref(weight=0))), A, KEYS, BACKENDS)
        assert RULES.unlisted(http_route(rule(stable_ref(weight=0)), rule(stable_ref())), A, KEYS, BACKENDS)

    def test_entries_of_controllers_that_did_not_list_and_unreadable_ones_have_carried_requests(self) -> None:
        users = http_route(rule(stable_ref()))
        older = marks.put(users, A, KEYS, {"stable": {"name": "llama-api"}, "canary": {"name": "llama-api-canary"}})
        assert self.told(older) == (None, True)
        assert self.told(marks.put(users, A, KEYS, {"listedAt": "yesterday"})) == (None, True)
        naive = {**marks.read(older, A, KEYS), "listedAt": "2026-09-01T12:00:00"}  # type: ignore[dict-item]
        assert self.told(marks.put(users, A, KEYS, naive)) == (None, True)
        assert self.told(users) == (None, False)
