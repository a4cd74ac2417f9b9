"""Which definitions are ours, and what is Helm's to delete: tables."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from rollout_lws.api import crd
from rollout_lws.cli.uninstall.cluster import our_groups
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from tests.cli.conftest import World
from tests.cli.uninstall.commands import printed

Object = dict[str, Any]
OURS = {"app.kubernetes.io/part-of": "rollout-lws"}
RELEASE = {"meta.helm.sh/release-name": "lws", "meta.helm.sh/release-namespace": "infra"}
KEEP = {"helm.sh/resource-policy": "keep"}


def definition(group: str, *, short: str = "", plural: str = "rollouts", labels: Object | None = None) -> Object:
    kinds = {"rollouts": "Rollout", "batchreleases": "BatchRelease"}
    names = {"plural": plural, "kind": kinds[plural], "shortNames": [short] if short else None}
    return {"metadata": {"name": f"{plural}.{group}", "labels": labels}, "spec": {"group": group, "names": names}}


@pytest.mark.parametrize(
    ("definitions", "groups"),
    [
        ([], ()),
        ([definition("rollouts.kruise.io")], ()),
        ([definition("rollouts.kruise.io", short="lwsro")], ("rollouts.kruise.io",)),
        ([definition("b.org", labels=OURS), definition("a.org", short="lwsro")], ("a.org", "b.org")),
        ([definition("argoproj.io", short="ro")], ()),
        ([definition("a.org", plural="batchreleases", labels=OURS)], ()),
    ],
)
def test_groups_whose_rollouts_are_ours(definitions: list[Object], groups: tuple[str, ...]) -> None:
    assert our_groups(definitions) == groups


@pytest.mark.parametrize(
    ("notes", "helms"),
    [
        pytest.param(KEEP, False, id="rendered by Helm, applied by other tools"),
        pytest.param(RELEASE | KEEP, False, id="Helm keeps them"),
        pytest.param(RELEASE, True, id="Helm deletes them"),
    ],
)
def test_definitions_that_helm_keeps_are_deleted_by_kubectl(world: World, notes: Object, helms: bool) -> None:
    for each in crd.render():
        name, body = each["metadata"]["name"], {"metadata": {"annotations": notes}}
        world.do(partial(world.server.patch, CUSTOM_RESOURCE_DEFINITIONS, "", name, body))
    (command,) = printed(world.run("uninstall", "--dry-run").stdout.splitlines())
    assert command.startswith("helm uninstall lws -n infra" if helms else "kubectl delete customresourcedefinition")
