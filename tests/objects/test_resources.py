"""A name never leads a request to another object than the one it names."""

from __future__ import annotations

import pytest

from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import CLUSTER_ROLES, LEADER_WORKER_SETS, PODS


def test_paths_are_those_of_the_api() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("prod", "llama-0") == "/api/v1/namespaces/prod/pods/llama-0"
    assert PODS.path("prod", "llama-0", "status") == "/api/v1/namespaces/prod/pods/llama-0/status"
    assert LEADER_WORKER_SETS.path("prod") == "/apis/leaderworkerset.x-k8s.io/v1/namespaces/prod/leaderworkersets"
    assert CLUSTER_ROLES.path(name="system:node").endswith("/clusterroles/system%3Anode")


@pytest.mark.parametrize(
    "name", ["..", ".", "../../secrets/token", "a/b", "a%2fb", "%2e%2e", "/", "llama/status", "../../../../apis"]
)
def test_what_would_lead_elsewhere_is_no_name(name: str) -> None:
    for given in ({"namespace": name}, {"namespace": "prod", "name": name}):
        with pytest.raises(UsageError) as refused:
            PODS.path(**given)
        assert str(refused.value).startswith(f"{name!r} is no name of an object: ")


@pytest.mark.parametrize("name", ["a?watch=true", "a#b", "a b", "a\r\nX-Header: b", "ü", "a;b", "a&b=c"])
def test_what_ends_a_path_is_quoted(name: str) -> None:
    path = PODS.path("prod", name)
    assert path.startswith("/api/v1/namespaces/prod/pods/a") or name == "ü"
    assert not set("?#\r\n &;ü") & set(path)
