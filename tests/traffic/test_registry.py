"""What is known of each kind of routers as data fits its code."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api import TrafficRouting
from rollout_lws.cli.install.rbac import controller_rules
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.names import Names
from rollout_lws.traffic.registry import ROUTING_KINDS, SPECS, field_of, named_in, resources_of
from rollout_lws.traffic.router import Router
from rollout_lws.traffic.routers.of_rollout import ROUTERS, named, routers
from rollout_lws.traffic.split import ALL_STABLE, Split
from tests.traffic.build import KEYS, OWNER, A

POOLS = {"gateway": {"httpRouteName": "r", "inferencePool": {"stable": "a", "canary": "b"}}, "ingress": {"name": "i"}}


def test_each_kind_has_its_code() -> None:
    assert [router.spec for router in ROUTERS] == list(SPECS)


def test_the_controller_may_do_with_each_kind_what_a_release_does() -> None:
    rights = {(rule.group, plural): rule.verbs for rule in controller_rules() for plural in rule.resources}
    for spec in SPECS:
        assert {"list", "watch", *spec.verbs} == set(rights[spec.resource.group, spec.resource.plural])


def test_what_is_named_is_found_by_its_field() -> None:
    said = {"service": "s", **POOLS}
    names = named(TrafficRouting.model_validate(said))
    assert names == named_in(said)
    assert names is not None
    found = [(resource.kind, name) for resource, name in resources_of(names)]
    assert found == [
        ("Service", "s"),
        ("HTTPRoute", "r"),
        ("Ingress", "i"),
        ("InferencePool", "a"),
        ("InferencePool", "b"),
    ]
    for kind, name in found:
        value: Any = said
        for member in field_of(names, kind, name):
            value = value[member]
        assert value == name


@pytest.mark.parametrize("said", [{}, {"gateway": None}, {"gateway": "r", "ingress": []}, {"service": None}])
def test_words_that_cannot_be_read_name_nothing(said: dict[str, Any]) -> None:
    assert named_in(said) == Names()


@pytest.mark.parametrize("router", ROUTERS, ids=lambda router: router.spec.resource.kind)
def test_requests_can_be_shared_by_the_simplest_object_of_a_kind(router: type[Router]) -> None:
    spec = router.spec
    said: Any = "x"
    for member in reversed(spec.field):
        said = {member: said}
    body = spec.example("s", [{"name": "s", "port": 80}])
    live = spec.in_use(
        {"metadata": {"name": "x", "namespace": "prod", "resourceVersion": "1", "uid": "u"}, "spec": body}
    )
    objects = {resource: {"x": live} if resource == spec.resource else {} for resource in ROUTING_KINDS}
    facts = RoutingFacts(named_in({"service": "s", **said}), "prod", A, KEYS, owner=OWNER, objects=objects)
    (made,) = routers(facts)
    assert (made.check(), made.state.modified, made.state.missing, made.state.unused) == (None, False, "", "")
    assert made.apply(ALL_STABLE, "nothing is shared yet", checked=True) == ()
    (write,) = made.apply(Split(20), "a fifth", checked=True)
    assert (write.resource == spec.resource, type(write).__name__) == (True, "Create" if spec.copies else "Patch")
    assert made.restore(live, A, KEYS) == live
