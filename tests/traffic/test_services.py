"""Services: pinned and restored exactly, their copies, and which of them no release can use."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_lws.objects.json_patch import merge_patch
from rollout_lws.objects.resources import LWS_NAME, LWS_WORKER_INDEX
from rollout_lws.traffic import marks
from rollout_lws.traffic.selectors import selector_changes
from rollout_lws.traffic.services import (
    canary_service,
    canary_service_name,
    drifted,
    pin,
    selects,
    service_problem,
    unpinned,
)
from tests.traffic.build import KEYS, OWNER, A, B, canonical, leader, property_test, service
from tests.workload.build import lws

TARGETS = ["AsSelected", "Leaders", "AllPods"]
STABLE = selector_changes({LWS_NAME: "llama"}, "AsSelected")

values = st.sampled_from(["", "llama", "0", "x"])
selector_keys = st.sampled_from(["app", LWS_NAME, LWS_WORKER_INDEX, "role"])
selectors = st.dictionaries(selector_keys, values)
changes = st.dictionaries(selector_keys, st.none() | values)


def test_as_selected_pins_only_to_the_lws() -> None:
    assert selector_changes({LWS_NAME: "llama"}, "AsSelected") == {LWS_NAME: "llama"}
    assert selector_changes({LWS_NAME: "llama"}, "Leaders") == {LWS_NAME: "llama", LWS_WORKER_INDEX: "0"}
    assert selector_changes({LWS_NAME: "llama"}, "AllPods") == {LWS_NAME: "llama", LWS_WORKER_INDEX: None}


@property_test
@given(selectors, changes, changes)
def test_a_service_pinned_twice_is_pinned_once_and_comes_back_exactly(
    selector: dict[str, str], first: dict[str, str | None], second: dict[str, str | None]
) -> None:
    before = service(selector=selector)
    if not selector:
        del before["spec"]["selector"]
    kept = copy.deepcopy(before)
    once = pin(before, A, KEYS, first)
    assert pin(once, A, KEYS, first) == once
    assert pin(once, A, KEYS, second) == pin(before, A, KEYS, second)
    for key, value in first.items():
        assert (once["spec"].get("selector") or {}).get(key) == value
    assert canonical(unpinned(once, A, KEYS)) == canonical(before)
    assert before == kept


@property_test
@given(selectors, changes, selectors)
def test_what_others_changed_is_told_and_kept(
    selector: dict[str, str], ours: dict[str, str | None], theirs: dict[str, str]
) -> None:
    pinned = pin(service(selector=selector), A, KEYS, ours)
    edited = copy.deepcopy(dict(pinned))
    edited["spec"]["selector"] = {**(pinned["spec"].get("selector") or {}), **theirs}
    foreign = {key for key, value in theirs.items() if key in ours and ours[key] != value}
    assert drifted(edited, A, KEYS) == tuple(sorted(foreign))
    restored = unpinned(edited, A, KEYS)["spec"].get("selector") or {}
    for key in selector.keys() | theirs.keys():
        changed = key in theirs and (key in foreign or key not in ours)
        assert restored.get(key) == (theirs[key] if changed else selector.get(key))


@pytest.mark.parametrize(
    ("owned", "left"),
    [
        # The API server keeps records of a Service's selector as a whole, of a pool's by key.
        ({"f:selector": {}}, {"app": "llama", LWS_NAME: "llama"}),
        ({"f:selector": {f"f:{LWS_NAME}": {}}}, {"app": "llama", LWS_NAME: "llama"}),
        ({"f:selector": {"f:app": {}}}, {"app": "llama"}),
        ({"f:ports": {}}, {"app": "llama"}),
    ],
)
def test_a_pin_that_somebody_states_as_well_stays(owned: dict[str, Any], left: dict[str, str]) -> None:
    pinned = pin(service(selector={"app": "llama"}), A, KEYS, STABLE)
    records = [{"manager": "argocd", "operation": "Apply", "fieldsV1": {"f:spec": owned}}]
    stated = {**pinned, "metadata": {**pinned["metadata"], "managedFields": records}}
    assert unpinned(stated, A, KEYS)["spec"]["selector"] == left
    assert drifted(stated, A, KEYS) == ()


def test_a_service_that_was_replaced_by_its_manifest_is_the_users_own() -> None:
    assert unpinned(service(), A, KEYS) == service()
    assert drifted(service(), A, KEYS) == ()


def test_the_patch_that_pins_touches_the_selector_and_the_mark_alone() -> None:
    before = service()
    patch = merge_patch(before, pin(before, A, KEYS, STABLE))
    assert patch["spec"] == {"selector": {LWS_NAME: "llama"}}
    assert set(patch["metadata"]["annotations"]) == {KEYS.original}
    back = merge_patch(pin(before, A, KEYS, STABLE), before)
    assert back == {"metadata": {"annotations": {KEYS.original: None}}, "spec": {"selector": {LWS_NAME: None}}}


def test_a_mark_of_a_wrong_form_is_dropped_and_the_selector_left_alone() -> None:
    broken = marks.put(service(), A, KEYS, {"written": {"app": ["x"]}, "original": 3})
    assert unpinned(broken, A, KEYS) == service()


#: A Service with every member that only it can have.
FULL: dict[str, Any] = {
    "type": "LoadBalancer",
    "clusterIP": "10.0.0.1",
    "clusterIPs": ["10.0.0.1"],
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
    "healthCheckNodePort": 31000,
    "loadBalancerIP": "1.2.3.4",
    "loadBalancerClass": "x/y",
    "loadBalancerSourceRanges": ["10.0.0.0/8"],
    "allocateLoadBalancerNodePorts": True,
    "externalIPs": ["1.2.3.4"],
    "externalTrafficPolicy": "Local",
    "internalTrafficPolicy": "Cluster",
    "sessionAffinity": "ClientIP",
    "ports": [{"name": "http", "port": 8000, "targetPort": "http", "nodePort": 31001, "appProtocol": "h2c"}],
}
#: Label sets of leader pods by their LWS.
LEADERS = {"llama": [leader("llama")], "llama-canary": [leader("llama-canary")]}


class TestCopy:
    def made(self, stable: Any, **more: Any) -> Any:
        given = {
            "name": "llama-api-canary",
            "changes": selector_changes({LWS_NAME: "llama-canary"}, "Leaders"),
            "owner": OWNER,
        }
        return canary_service(stable, A, KEYS, **(given | more))

    def test_takes_no_address_no_port_of_a_node_and_no_load_balancer(self) -> None:
        made = self.made(service(**FULL))
        assert made["spec"] == {
            "type": "ClusterIP",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "ClientIP",
            "ports": [{"name": "http", "port": 8000, "targetPort": "http", "appProtocol": "h2c"}],
            "selector": {"app": "llama", LWS_NAME: "llama-canary", LWS_WORKER_INDEX: "0"},
        }

    def test_kruise_flaw_a_copy_kept_the_health_check_port_of_the_original(self) -> None:
        assert "healthCheckNodePort" not in self.made(service(**FULL))["spec"]

    def test_kruise_flaw_a_headless_service_became_one_with_an_address(self) -> None:
        made = self.made(service(clusterIP="None", clusterIPs=["None"]))
        assert made["spec"]["clusterIP"] == "None"
        assert "clusterIPs" not in made["spec"]

    def test_is_made_from_the_users_own_service_not_from_the_pinned_one(self) -> None:
        stable = service()
        assert self.made(pin(stable, A, KEYS, selector_changes({LWS_NAME: "llama"}, "AllPods"))) == self.made(stable)

    def test_is_marked_as_made_and_carries_no_other_marks_of_ours_of_deployment_tools_or_of_names_outside(self) -> None:
        stable = service()
        stable["metadata"] |= {"uid": "u", "resourceVersion": "7", "finalizers": ["x/y"], "managedFields": []}
        stable["metadata"]["labels"] |= {"app.kubernetes.io/instance": "argo", "argocd.argoproj.io/instance": "x"}
        stable["metadata"]["annotations"] |= {
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "external-dns.alpha.kubernetes.io/hostname": "llama.example.com",
        }
        stable["status"] = {"loadBalancer": {}}
        made = self.made(pin(stable, A, KEYS, STABLE))
        assert made["metadata"] == {
            "name": "llama-api-canary",
            "namespace": "prod",
            "labels": {"team": "ml"},
            "annotations": {"note": "x", KEYS.original: '{"uid-a":{"made":"llama-api-canary"}}'},
            "ownerReferences": [OWNER],
        }
        assert "status" not in made

    def test_selects_the_other_side(self) -> None:
        made = self.made(service())
        assert selects(made, leader("llama-canary"))
        assert not selects(made, leader("llama"))

    def test_is_called_after_the_original_within_63_characters(self) -> None:
        assert canary_service_name("llama") == "llama-canary"
        long = canary_service_name("x" * 63)
        assert len(long) == 63 and long.endswith("-canary")
        assert long != canary_service_name("x" * 62 + "y")


class TestProblem:
    def said(self, live: Any, **more: Any) -> str:
        return service_problem(live, A, KEYS, **({"workload": lws(), "leaders": LEADERS} | more))

    def test_a_service_that_selects_leaders_of_the_lws_and_its_canary_is_fine(self) -> None:
        assert self.said(service()) == ""
        assert self.said(pin(service(), A, KEYS, STABLE)) == ""

    def test_nothing_is_said_about_leaders_that_are_not_there(self) -> None:
        assert self.said(service(), leaders={}) == ""

    @pytest.mark.parametrize(
        ("live", "words"),
        [
            (service("llama"), "make another Service"),
            (service(type="ExternalName"), "ExternalName"),
            (service(selector={}), "has no selector"),
            (service(selector={"app": "other"}), "selects no leader of LeaderWorkerSet llama (app=other)"),
            (pin(service(), B, KEYS, STABLE), f"pinned by another Rollout (UID {B})"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_an_unfit_service_is_refused_with_what_to_do(self, live: Any, words: str) -> None:
        assert words in self.said(live)

    def test_prefill_and_decode_behind_one_service_are_refused_also_when_it_is_pinned(self) -> None:
        leaders = LEADERS | {"decode": [leader("decode")]}
        for live in (service(), pin(service(), A, KEYS, STABLE)):
            assert "selects leaders of LeaderWorkerSet decode besides llama" in self.said(live, leaders=leaders)
        assert self.said(service(selector={LWS_NAME: "llama"}), leaders=leaders) == ""
