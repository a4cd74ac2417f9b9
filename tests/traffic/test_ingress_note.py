"""The second Ingress as it stands: what is ours in it, what is others', and which other Ingresses are in its way."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api import TrafficRouting
from rollout_lws.api.rollout_spec import HttpMatch
from rollout_lws.objects.resources import INGRESSES
from rollout_lws.traffic.copies.ingress import (
    annotated,
    drifted,
    ingress_problem,
    no_path,
    reaches_new,
    rival,
    updated,
    weight,
)
from rollout_lws.traffic.copies.ingress_classes import CLASSES
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.registry import named_in
from rollout_lws.traffic.routers.ingress import IngressRouter
from rollout_lws.traffic.split import Split
from tests.traffic.build import KEYS, OWNER, A, B
from tests.traffic.test_ingress import PREFIX, header, ingress, made, path


def live(split: Split, **spec: Any) -> Any:
    """As the API server gives it back."""
    first = annotated(made(ingress(**spec), split), A, KEYS)
    return {**first, "metadata": {**first["metadata"], "uid": "c", "resourceVersion": "7"}}


def test_a_share_that_was_written_is_nobodys_edit_until_somebody_edits_it() -> None:
    stands = live(Split(20))
    assert not drifted(stands, A, KEYS)
    assert drifted(stands, B, KEYS), "it is not the one of another Rollout"
    stands["metadata"]["annotations"][f"{PREFIX}canary-weight"] = "90"
    assert drifted(stands, A, KEYS)


@pytest.mark.parametrize("what", ["rules", "note"])
def test_paths_and_the_note_itself_are_ours_too(what: str) -> None:
    stands = live(Split(20))
    if what == "rules":
        stands["spec"]["rules"][0]["http"]["paths"][0]["path"] = "/elsewhere"
    else:
        del stands["metadata"]["annotations"][KEYS.original]
    assert drifted(stands, A, KEYS)


def test_labels_classes_and_other_annotations_are_others_and_stay() -> None:
    stands = live(Split(20))
    stands["metadata"]["labels"]["seen"] = "yes"
    stands["metadata"]["annotations"]["example.com/seen"] = "yes"
    stands["spec"]["ingressClassName"] = "nginx"
    assert not drifted(stands, A, KEYS)
    after = updated(stands, annotated(made(ingress(), Split(50)), A, KEYS))
    assert (after["metadata"]["labels"]["seen"], after["spec"]["ingressClassName"]) == ("yes", "nginx")
    assert after["metadata"]["annotations"]["example.com/seen"] == "yes"
    assert after["metadata"]["annotations"][f"{PREFIX}canary-weight"] == "50"
    assert (after["metadata"]["uid"], after["metadata"]["resourceVersion"]) == ("c", "7")


def test_a_header_that_the_next_step_does_not_match_goes() -> None:
    stands = live(Split(0, (header("x-canary", "yes"),)))
    said = updated(stands, annotated(made(ingress(), Split(20)), A, KEYS))["metadata"]["annotations"]
    assert {key.removeprefix(PREFIX) for key in said if key.startswith(PREFIX)} == {"canary", "canary-weight"}


def test_certificates_that_the_user_names_no_more_go() -> None:
    stands = live(Split(20), tls=[{"hosts": ["llama.example.com"], "secretName": "llama"}])
    assert "tls" not in updated(stands, annotated(made(ingress(), Split(20)), A, KEYS))["spec"]


def test_without_a_path_to_the_service_there_is_nothing_to_share() -> None:
    elsewhere = ingress({"http": {"paths": [path("other")]}})
    assert made(elsewhere, Split(20)) is None
    assert no_path(elsewhere, "llama-api") == ingress_problem(elsewhere, "llama-api", "") != ""
    assert no_path(ingress(), "llama-api") == ""


@pytest.mark.parametrize(
    "split", [Split(1), Split(40), Split(0, (header("x-canary", "yes"),))], ids=["one percent", "weight", "header"]
)
def test_what_takes_requests_is_told_from_what_takes_none(split: Split) -> None:
    assert reaches_new(live(split))
    assert weight(live(split)) == split.weight
    for said in ("0", "some"):
        quiet = live(Split(1))
        quiet["metadata"]["annotations"][f"{PREFIX}canary-weight"] = said
        assert not reaches_new(quiet)


NGINX, TRAEFIK = CLASSES["nginx"], CLASSES["traefik"]


def other(
    at: str, *, canary: bool = True, host: str = "llama.example.com", service: str = "mine", name: str = "mine"
) -> Any:
    found = ingress({"host": host, "http": {"paths": [path(service, at)]}})
    found["metadata"] |= {"name": name, "annotations": {f"{PREFIX}canary": "true"} if canary else {}}
    return found


@pytest.mark.parametrize("served", CLASSES.values(), ids=CLASSES)
def test_another_canary_of_the_same_host_and_path_is_a_rival(served: Any) -> None:
    harmless = [other("/", canary=False), other("/elsewhere"), other("/", host="b.example.com")]
    assert rival(ingress(), "llama-api", harmless, served) is None
    assert rival(ingress(), "llama-api", [*harmless, other("/")], served) == other("/")


def test_to_traefik_a_canary_of_any_path_to_the_service_is_a_rival() -> None:
    second = other("/", host="b.example.com", canary=False, service="llama-api", name="second")
    canary = other("/", host="b.example.com")
    assert rival(ingress(), "llama-api", [second, canary], NGINX) is None
    assert rival(ingress(), "llama-api", [second, canary], TRAEFIK) == canary
    assert rival(ingress(), "llama-api", iter([canary, second]), TRAEFIK) == canary
    elsewhere = other("/", host="b.example.com", canary=False, service="another", name="second")
    assert rival(ingress(), "llama-api", [elsewhere, canary], TRAEFIK) is None
    assert rival(ingress(), "llama-api", [other("/", host="b.example.com", service="llama-api")], TRAEFIK) is None


@pytest.mark.parametrize("class_type", ["haproxy", "higress"])
def test_of_a_class_that_cannot_be_used_the_class_is_told_whatever_the_step_says(class_type: str) -> None:
    said = {"service": "llama-api", "ingress": {"name": "llama", "classType": class_type}}
    objects = {INGRESSES: {"llama": ingress()}}
    asked = TrafficRouting.model_validate(said)
    router = IngressRouter(
        RoutingFacts(named_in(said), "prod", A, KEYS, owner=OWNER, objects=objects, asked=asked), "llama"
    )
    for problem in (router.check(), router.check(Split(20)), router.check(Split(0, (HttpMatch(),)))):
        assert problem is not None
        assert problem.message.startswith(f"classType {class_type} is not supported: ")
