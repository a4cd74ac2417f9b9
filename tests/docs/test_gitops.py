"""What the page on traffic tells GitOps tools to ignore is all that a release changes in objects that stand in Git."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollout_lws.kube.client import Client
from rollout_lws.objects.resources import (
    DESTINATION_RULES,
    GRPC_ROUTES,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    LEADER_WORKER_SETS,
    SERVICES,
    VIRTUAL_SERVICES,
    Resource,
)
from tests.docs.pages import blocks
from tests.scenarios.routed import PROVIDERS, SERVICE, Provider, routed_at_rest
from tests.scenarios.shell import ShellWorld
from tests.scenarios.stories import waiting_for_approval
from tests.scenarios.world import KEYS, NAME

PAGE = Path("docs/traffic.md")
Object = Mapping[str, Any]
#: Kinds of which a release makes a second object, and leaves the user's alone.
COPIED = (INGRESSES, DESTINATION_RULES)
#: What is restored, and whether the controller stays its manager: a list as a whole, of a map what it has added goes.
GIVEN_BACK = (
    (HTTP_ROUTES, "rules", True),
    (GRPC_ROUTES, "rules", True),
    (VIRTUAL_SERVICES, "http", True),
    (INFERENCE_POOLS, "selector", False),
)
#: As whom the controller writes.
MANAGER: str = inspect.signature(Client).parameters["field_manager"].default
STEP = {
    "replicas": 1,
    "traffic": "20%",
    "matches": [{"headers": [{"name": "x-canary", "value": "yes"}]}],
    "pause": {},
}


def rules(member: str, which: str) -> list[dict[str, Any]]:
    """The rules of the page's blocks in which ``which`` stands, e.g. jsonPointers of ignoreDifferences."""
    specs = [yaml.safe_load(block).get("spec") or {} for block in blocks(PAGE, "yaml")]
    return [rule for spec in specs for rule in spec.get(member, ()) if which in rule]


def ignored() -> list[dict[str, tuple[str, ...]]]:
    """Pointers by kind, as Argo CD is told and as Flux is."""
    argo = {
        rule["kind"]: tuple(f"{each}/" for each in rule["jsonPointers"])
        for rule in rules("ignoreDifferences", "jsonPointers")
    }
    flux = {rule["target"]["kind"]: tuple(f"{each}/" for each in rule["paths"]) for rule in rules("ignore", "paths")}
    return [argo, flux]


def changes(before: Any, after: Any, *at: str) -> Iterator[tuple[str, ...]]:
    """The members that lead to what differs; lists as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from changes(before.get(key), after.get(key), *at, key)
    elif before != after:
        yield at


def owners(live: Object, members: Iterable[str]) -> set[str]:
    """Managers that own what these members lead to, or what it is a part of."""
    found = set()
    for entry in live["metadata"]["managedFields"]:
        fields: Any = entry["fieldsV1"]
        for member in members:
            # Below what is owned as a whole no members are listed.
            fields = fields and fields.get(f"f:{member}")
        if fields is not None:
            found.add(entry["manager"])
    return found


def test_argo_cd_is_told_the_same_places_as_flux_and_the_same_kinds_by_manager() -> None:
    argo, flux = ignored()
    assert argo == flux
    by_manager = {
        rule["kind"]: rule["managedFieldsManagers"] for rule in rules("ignoreDifferences", "managedFieldsManagers")
    }
    assert by_manager == {kind: [MANAGER] for kind in argo}


@pytest.mark.one_in(3)
@pytest.mark.looptime
@pytest.mark.parametrize("by", PROVIDERS, ids=str)
async def test_a_release_changes_only_what_tools_are_told_to_ignore(by: Provider) -> None:
    world = ShellWorld()
    await routed_at_rest(world, STEP, by=by)
    hold_record: tuple[tuple[Resource, str], ...] = ((SERVICES, SERVICE), *by.hold_record)
    tracked = {
        "annotations": {"argocd.argoproj.io/tracking-id": "a"},
        "labels": {"kustomize.toolkit.fluxcd.io/name": "a"},
    }
    for resource, name in hold_record:
        world.patch(resource, name, {"metadata": tracked})
    await world.rest()
    before = {each: world.get(*each) for each in hold_record}
    await waiting_for_approval(world)
    for resource, name in hold_record:
        live, was = world.get(resource, name), before[resource, name]
        assert live is not None
        assert was is not None
        changed = list(changes(was["spec"], live["spec"], "spec"))
        assert bool(changed) is (resource not in COPIED)
        for members in changed:
            assert all(f"/{'/'.join(members)}/".startswith(ways[resource.kind]) for ways in ignored()), members
            assert owners(live, members) == {MANAGER}
        notes = set(changes(was["metadata"]["annotations"], live["metadata"]["annotations"]))
        assert notes <= {(KEYS.original,)}
    for resource, name in ((SERVICES, f"{SERVICE}-canary"), *((kind, f"{NAME}-canary") for kind in COPIED)):
        made = world.get(resource, name)
        assert (made is not None) is (resource == SERVICES or resource in dict(by.hold_record))
        if made is not None:
            assert not {*tracked["annotations"], *tracked["labels"]} & {
                *made["metadata"].get("annotations", {}),
                *made["metadata"].get("labels", {}),
            }
    lws = world.get(LEADER_WORKER_SETS, NAME)
    assert lws is not None
    (partition,) = ignored()[0]["LeaderWorkerSet"]
    assert owners(lws, partition.strip("/").split("/")) == {MANAGER}
    world.request("Abort")
    await world.until_state("Aborted")
    await world.rest()
    for resource, member, stays in GIVEN_BACK:
        for name in (name for kind, name in by.hold_record if kind == resource):
            given_back = world.get(resource, name)
            assert given_back is not None
            assert (MANAGER in owners(given_back, ("spec", member))) is stays
    await world.gone()
    world.close()
