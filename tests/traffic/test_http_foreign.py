"""HTTPRoutes: what others changed of ours is told and fixed, and what they changed beside it is kept."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from rollout_lws.api.rollout_spec import HeaderMatch, HttpMatch
from rollout_lws.traffic.split import Backend, Backends, Split
from tests.traffic.build import KEYS, A, drifted, http_route, own, routed, rule, stable_ref
from tests.traffic.edits import Edit, add_first, edited, rename, reorder, time_out

OURS = Backends(Backend("a"), Backend("a-canary"))
TESTER = HttpMatch(headers=(HeaderMatch(name="x-canary", value="always"),))


def ref_of(live: Any, name: str, at: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = next(ref for ref in live["spec"]["rules"][at]["backendRefs"] if ref["name"] == name)
    return found


class TestForeignWeights:
    def written(self, *refs_: Any) -> dict[str, Any]:
        return copy.deepcopy(dict(routed(http_route(rule(*refs_)), A, KEYS, OURS, Split(20))))

    def test_a_weight_that_others_set_beside_ours_is_kept_in_the_scale_they_saw(self) -> None:
        live = self.written(stable_ref("a"), stable_ref("c"))
        ref_of(live, "c")["weight"] = 300
        back = own(live, A, KEYS)
        assert (ref_of(back, "a")["weight"], ref_of(back, "c")["weight"]) == (100, 300)
        again = routed(live, A, KEYS, OURS, Split(20))
        assert again["spec"] == live["spec"]

    def test_a_weight_that_others_set_keeps_the_originals_where_the_scale_is_the_users(self) -> None:
        live = self.written(stable_ref("a", weight=100), stable_ref("c", weight=50))
        ref_of(live, "c")["weight"] = 70
        back = own(live, A, KEYS)
        assert (ref_of(back, "a")["weight"], ref_of(back, "c")["weight"]) == (100, 70)

    def test_a_backend_that_others_added_keeps_its_share(self) -> None:
        live = self.written(stable_ref("a", weight=1))
        live["spec"]["rules"][0]["backendRefs"].append(stable_ref("d", weight=100))
        back = own(live, A, KEYS)
        assert (ref_of(back, "a")["weight"], ref_of(back, "d")["weight"]) == (100, 100)

    def test_a_list_that_was_applied_anew_is_the_users_whatever_its_weights(self) -> None:
        live = self.written(stable_ref("a"), stable_ref("c"))
        live["spec"]["rules"] = [rule(stable_ref("a", weight=80), stable_ref("c", weight=20))]
        back = own(live, A, KEYS)
        assert back["spec"]["rules"] == live["spec"]["rules"]

    def test_our_stable_reference_deleted_by_hand_is_put_back_rather_than_no_backend(self) -> None:
        live = self.written(stable_ref("a"))
        del live["spec"]["rules"][0]["backendRefs"][0]
        (back,) = own(live, A, KEYS)["spec"]["rules"]
        assert back == rule({"group": "", "kind": "Service"} | stable_ref("a"))


class TestDrift:
    def live(self) -> dict[str, Any]:
        route = http_route(rule(stable_ref("a"), stable_ref("c"), name="api"), rule(stable_ref("c"), path="/x"))
        return copy.deepcopy(dict(routed(route, A, KEYS, OURS, Split(20, (TESTER,)))))

    def test_a_weight_of_ours_that_others_set_is_told_and_fixed(self) -> None:
        live = self.live()
        ref_of(live, "a-canary")["weight"] = 50
        assert drifted(live, A, KEYS) == ("rule api: Service/a-canary:8000 has weight 50, not 20",)
        assert routed(live, A, KEYS, OURS, Split(20, (TESTER,))) == self.live()

    def test_an_apply_of_the_users_manifest_is_told_and_fixed(self) -> None:
        live = self.live()
        live["spec"]["rules"] = [rule(stable_ref("a"), stable_ref("c"), name="api"), rule(stable_ref("c"), path="/x")]
        assert drifted(live, A, KEYS) == (
            "rule api: Service/a-canary:8000 is gone",
            "rule api: Service/a:8000 has weight 1, not 80",
            "appended rule 1 is changed or gone",
        )
        assert routed(live, A, KEYS, OURS, Split(20, (TESTER,))) == self.live()

    def test_an_appended_rule_that_was_edited_is_told_and_does_not_outlive_the_release(self) -> None:
        live = self.live()
        live["spec"]["rules"][-1]["matches"] = [{"path": {"type": "Exact", "value": "/me"}}]
        assert drifted(live, A, KEYS) == ("appended rule 1 is changed or gone",)
        assert len(own(live, A, KEYS)["spec"]["rules"]) == 2
        assert routed(live, A, KEYS, OURS, Split(20, (TESTER,))) == self.live()

    def test_a_rule_that_the_user_sends_to_the_new_version_is_the_users(self) -> None:
        live = self.live()
        mine = rule(stable_ref("a-canary"), path="/mine")
        live["spec"]["rules"].insert(0, mine)
        assert drifted(live, A, KEYS) == ()
        assert own(live, A, KEYS)["spec"]["rules"][0] == mine

    @pytest.mark.parametrize("edit", [add_first, reorder, rename, time_out], ids=lambda edit: str(edit.__name__))
    def test_what_the_user_does_with_other_parts_is_no_drift(self, edit: Edit) -> None:
        assert drifted(edited(self.live(), [edit]), A, KEYS) == ()

    def test_a_rule_that_the_user_sends_elsewhere_is_no_drift(self) -> None:
        live = self.live()
        live["spec"]["rules"][0]["backendRefs"] = [stable_ref("c")]
        assert drifted(live, A, KEYS) == ()

    def test_a_rule_that_the_user_took_away_is_no_drift(self) -> None:
        live = self.live()
        del live["spec"]["rules"][0]
        assert drifted(live, A, KEYS) == ()
