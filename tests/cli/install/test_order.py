"""Objects applied one after the other: at every moment the controllers that run have their rights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from rollout_lws.cli.install import rbac
from rollout_lws.cli.install.applying import keeping_rules
from rollout_lws.cli.install.manifests import objects
from rollout_lws.cli.install.options import Installation
from tests.cli.install.test_manifests import IMAGE, rules

Object = dict[str, Any]
Cluster = dict[tuple[str, str, str], Object]
NEEDED = rules(rbac.controller_role())


def applied(cluster: Cluster, each: Object) -> Cluster:
    metadata = each["metadata"]
    return {**cluster, (each["kind"], metadata.get("namespace", ""), metadata["name"]): each}


def cluster_of(wanted: Iterable[Object]) -> Cluster:
    cluster: Cluster = {}
    for each in wanted:
        cluster = applied(cluster, each)
    return cluster


def watched(cluster: Cluster) -> tuple[str, ...]:
    """By the controller of the Deployment that is there."""
    (deployment,) = [each for (kind, _, _), each in cluster.items() if kind == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return tuple(each.partition("=")[2] for each in container["args"] if each.startswith("--namespace="))


def lacking(cluster: Cluster, namespaces: tuple[str, ...]) -> set[tuple[str, str, str]]:
    """Rights that a controller which watches these, () for all, does not have in one of them."""
    return {right for namespace in namespaces or ["anywhere"] for right in NEEDED - rights_in(cluster, namespace)}


def rights_in(cluster: Cluster, namespace: str) -> set[tuple[str, str, str]]:
    bound = {
        each["roleRef"]["name"] for (_, at, _), each in cluster.items() if at in ("", namespace) and "roleRef" in each
    }
    return {right for name in bound for right in rules(cluster["ClusterRole", "", name])}


@pytest.mark.parametrize(
    ("before", "after"),
    [((), ("team-a",)), (("team-a",), ()), (("team-a",), ("team-b",)), (("team-a", "team-b"), ("team-b",))],
)
def test_no_write_takes_a_right_that_is_still_needed(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    cluster = cluster_of(objects(Installation(IMAGE, watch_namespaces=before)))
    wanted = objects(Installation(IMAGE, watch_namespaces=after))
    roles = {name: role for (kind, _, name), role in cluster.items() if kind == "ClusterRole"}
    first, last = keeping_rules(wanted, roles)
    for each in first:
        cluster = applied(cluster, each)
        assert lacking(cluster, before) == set(), each["metadata"]["name"]
        assert lacking(cluster, watched(cluster)) == set(), each["metadata"]["name"]
    assert watched(cluster) == after
    for each in last:
        cluster = applied(cluster, each)
        assert lacking(cluster, after) == set(), each["metadata"]["name"]
    assert cluster_of(wanted).items() <= cluster.items()


def test_a_first_installation_writes_each_object_once() -> None:
    wanted = objects(Installation(IMAGE))
    assert keeping_rules(wanted, {}) == (wanted, ())
