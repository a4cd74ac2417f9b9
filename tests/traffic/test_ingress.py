"""Ingresses of ingress-nginx: the second Ingress beside the user's, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from rollout_lws.api.rollout_spec import HeaderMatch, HeaderValue, HttpMatch, PathMatch, RequestHeaderModifier
from rollout_lws.traffic.copies import ingress as ingresses
from rollout_lws.traffic.copies.ingress import canary_ingress, reaches_new, weight
from rollout_lws.traffic.copies.ingress_classes import CLASSES, UNSAFE, served_by
from rollout_lws.traffic.copy_names import written_name
from rollout_lws.traffic.registry import INGRESS
from rollout_lws.traffic.split import ALL_STABLE, Split
from tests.traffic.build import KEYS, OWNER

PREFIX = "nginx.ingress.kubernetes.io/"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def ingress_problem(main: Any, service: str, class_type: str, split: Split) -> str:
    return ingresses.ingress_problem(main, service, class_type) or ingresses.split_problem(split, served_by(class_type))


def path(service: str, at: str = "/") -> dict[str, Any]:
    return {"path": at, "pathType": "Prefix", "backend": {"service": {"name": service, "port": {"number": 8000}}}}


def ingress(*rules: Any, annotations: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "llama",
            "namespace": "prod",
            "uid": "u",
            "labels": {"team": "ml"},
            "annotations": annotations or {},
        },
        "spec": {"rules": list(rules) or [{"host": "llama.example.com", "http": {"paths": [path("llama-api")]}}]}
        | spec,
        "status": {"loadBalancer": {}},
    }


def header(name: str, value: str, how: Any = "Exact") -> HttpMatch:
    return HttpMatch(headers=(HeaderMatch(type=how, name=name, value=value),))


def made(main: Any, split: Split) -> Any:
    before = copy.deepcopy(main)
    copied = canary_ingress(
        main,
        KEYS,
        name="llama-canary",
        service="llama-api",
        canary_service="llama-api-canary",
        split=split,
        owner=OWNER,
    )
    assert main == before
    return copied


def nginx(split: Split) -> dict[str, str]:
    return {key.removeprefix(PREFIX): value for key, value in made(ingress(), split)["metadata"]["annotations"].items()}


def test_only_the_paths_to_the_stable_service_are_taken_over() -> None:
    main = ingress(
        {"host": "a", "http": {"paths": [path("llama-api", "/v1"), path("other", "/x")]}},
        {"host": "b", "http": {"paths": [path("other")]}},
        {"http": {"paths": [path("llama-api")]}},
        ingressClassName="nginx",
        tls=[{"hosts": ["a"], "secretName": "a"}],
        defaultBackend={"service": {"name": "llama-api", "port": {"number": 8000}}},
    )
    assert made(main, Split(20)) == {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "name": "llama-canary",
            "namespace": "prod",
            "labels": {"team": "ml"},
            "annotations": {f"{PREFIX}canary": "true", f"{PREFIX}canary-weight": "20"},
            "ownerReferences": [OWNER],
        },
        "spec": {
            "ingressClassName": "nginx",
            "tls": [{"hosts": ["a"], "secretName": "a"}],
            "rules": [
                {"host": "a", "http": {"paths": [path("llama-api-canary", "/v1")]}},
                {"http": {"paths": [path("llama-api-canary")]}},
            ],
        },
    }


def test_annotations_are_copied_but_for_marks_shares_and_claims_of_others() -> None:
    main = ingress(
        annotations={
            f"{PREFIX}proxy-read-timeout": "600",
            f"{PREFIX}canary-weight": "7",
            "kubernetes.io/ingress.class": "nginx",
            "cert-manager.io/cluster-issuer": "x",
            "argocd.argoproj.io/tracking-id": "x",
            LAST_APPLIED: "{}",
            KEYS.original: "{}",
        }
    )
    assert made(main, Split(5))["metadata"]["annotations"] == {
        f"{PREFIX}proxy-read-timeout": "600",
        "kubernetes.io/ingress.class": "nginx",
        f"{PREFIX}canary": "true",
        f"{PREFIX}canary-weight": "5",
    }


def test_a_split_that_reaches_nobody_has_no_second_ingress() -> None:
    assert made(ingress(), ALL_STABLE) is None


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        (Split(100), {"canary-weight": "100"}),
        (
            Split(0, (header("x-canary", "always"),)),
            {"canary-weight": "0", "canary-by-header": "x-canary", "canary-by-header-value": "always"},
        ),
        (
            Split(10, (header("x-user", "^a.*", "RegularExpression"),)),
            {"canary-weight": "10", "canary-by-header": "x-user", "canary-by-header-pattern": "^a.*"},
        ),
        (Split(10, (header("canary-by-cookie", "beta"),)), {"canary-weight": "10", "canary-by-cookie": "beta"}),
    ],
)
def test_a_split_is_said_in_annotations(split: Split, expected: dict[str, str]) -> None:
    assert ingress_problem(ingress(), "llama-api", "", split) == ""
    assert nginx(split) == {"canary": "true"} | expected


def test_kruise_flaw_rules_without_http_and_backends_that_are_no_services_break_nothing() -> None:
    resource = {"path": "/s", "pathType": "Prefix", "backend": {"resource": {"kind": "Bucket", "name": "llama-api"}}}
    odd = [{"host": "a"}, {"host": "b", "http": {"paths": [resource]}}, {"host": "c", "http": {}}]
    main = ingress(*odd, {"host": "d", "http": {"paths": [resource, path("llama-api")]}})
    assert ingress_problem(main, "llama-api", "nginx", Split(1)) == ""
    assert made(main, Split(1))["spec"]["rules"] == [{"host": "d", "http": {"paths": [path("llama-api-canary")]}}]
    assert "no path with the backend Service llama-api" in ingress_problem(ingress(*odd), "llama-api", "", Split(1))


TWO = HttpMatch(headers=(HeaderMatch(name="a", value="1"), HeaderMatch(name="b", value="2")))


@pytest.mark.parametrize(
    ("main", "class_type", "split", "words"),
    [
        (ingress(), "higress", Split(), "classType higress is not supported: only nginx and traefik are; use the"),
        (ingress(), "Traefik", Split(), "classType Traefik is not supported: only nginx and traefik are; use the"),
        (ingress(), "haproxy", Split(), "route-acl alone, which goes before all longer paths of a host and could send"),
        (
            ingress(ingressClassName="traefik"),
            "",
            Split(),
            "is of class traefik: set classType to nginx if ingress-nginx",
        ),
        (
            ingress(ingressClassName="haproxy"),
            "",
            Split(),
            "(kubernetesIngressNGINX) of v3.7 or newer serves the class;",
        ),
        (ingress(annotations={"kubernetes.io/ingress.class": "alb"}), "", Split(), "of class alb"),
        (ingress(annotations={f"{PREFIX}canary": "true"}), "", Split(), "is itself a canary"),
        (ingress({"http": {"paths": [path("x")]}}), "", Split(), "no path with the backend Service llama-api"),
        (ingress(), "", Split(0, (TWO,)), "ingress-nginx cannot express this step: it matches exactly one header or"),
        (ingress(), "traefik", Split(0, (TWO,)), "Traefik cannot express this step: it matches exactly one header or"),
        (ingress(), "", Split(0, (HttpMatch(),)), "exactly one header or cookie"),
        (ingress(), "", Split(0, (header("a", "1"), header("b", "2"))), "one match, not several"),
        (ingress(), "", Split(0, (HttpMatch(path=PathMatch(value="/x")),)), "no path or query parameter"),
        (ingress(), "", Split(0, (HttpMatch(query_params=TWO.headers[:1]),)), "no path or query parameter"),
        (ingress(), "", Split(0, (header("canary-by-cookie", "x", "RegularExpression"),)), "use type Exact"),
        (
            ingress(),
            "",
            Split(1, header_modifier=RequestHeaderModifier(set=(HeaderValue(name="a", value="b"),))),
            "remove requestHeaderModifier",
        ),
    ],
)
def test_kruise_flaw_what_nginx_cannot_express_is_refused_and_not_left_out(
    main: Any, class_type: str, split: Split, words: str
) -> None:
    assert words in ingress_problem(main, "llama-api", class_type, split)


def test_kruise_flaw_matches_alone_give_no_weight_to_requests_that_match_nothing() -> None:
    matched = header("x-canary", "always")
    assert nginx(Split(0, (matched,)))["canary-weight"] == "0"
    both = nginx(Split(30, (matched,)))
    assert (both["canary-weight"], both["canary-by-header"]) == ("30", "x-canary")


@pytest.mark.parametrize("matches", [(TWO,), (header("a", "1"), header("b", "2"))], ids=["headers", "matches"])
def test_kruise_flaw_of_several_headers_or_matches_none_is_dropped_in_silence(matches: tuple[HttpMatch, ...]) -> None:
    assert ingress_problem(ingress(), "llama-api", "", Split(0, matches)).startswith("ingress-nginx cannot express")


@pytest.mark.parametrize("class_type", CLASSES)
def test_a_class_of_any_name_is_taken_on_the_users_word(class_type: str) -> None:
    for named in ("public", "nginx", "traefik", "haproxy"):
        assert ingress_problem(ingress(ingressClassName=named), "llama-api", class_type, Split(1)) == ""


@pytest.mark.parametrize("named", [*CLASSES, *UNSAFE, "public"])
def test_of_a_class_alone_nothing_but_ingress_nginx_is_inferred(named: str) -> None:
    assert (ingress_problem(ingress(ingressClassName=named), "llama-api", "", Split(1)) == "") is (named == "nginx")


def test_the_second_ingress_is_called_after_the_first() -> None:
    assert written_name(INGRESS, "llama") == "llama-canary"
    assert len(written_name(INGRESS, "x" * 253)) == 253


@pytest.mark.parametrize(
    ("said", "share"),
    [
        ("20", 20),
        ("100", 100),
        ("250", 100),
        ("", 0),
        ("9" * 4301, 0),
        ("\u00b2", 0),
        ("-5", 0),
        ("2.5", 0),
    ],
)
def test_a_weight_that_somebody_wrote_over_is_read_as_far_as_it_is_one(said: str, share: int) -> None:
    live = {"metadata": {"annotations": {f"{PREFIX}canary-weight": said}}}
    assert (weight(live), reaches_new(live)) == (share, share > 0)
