"""Applies an installation to a cluster: checks first, then reports each object; safe to repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.install import ownership
from rollout_lws.cli.install.extras import NEEDED
from rollout_lws.cli.install.inventory import RESOURCES, RIGHTS, SERVING, WEBHOOKS, labelled, name_of, place_of
from rollout_lws.cli.install.manifests import home, names, objects
from rollout_lws.cli.install.options import Installation
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.errors import ApiError, RolloutLwsError, Unreachable, UsageError
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    ROLE_BINDINGS,
    Resource,
)

Object = dict[str, Any]
Tell = Callable[[str], None]
#: Field manager of server-side apply.
MANAGER = "rollout-lws-install"
#: An object, and the function that applies or deletes it and returns what was done.
Step = tuple[Object, Callable[[Object], str]]


def install(transport: Transport, chosen: Installation, tell: Tell, warn: Tell) -> tuple[Step, ...]:
    """Apply everything that ``chosen`` needs, one line per object. Returns the steps that remove permissions which only
    controllers of the previous version need: ``take`` them when none of those is left.

    UsageError before any change when another product's object would be replaced; RolloutLwsError, with the progress so
    far, when the API server rejects one.
    """
    before = _judge(transport, chosen, warn)
    wanted = _wanted(transport, chosen)
    roles = {each["metadata"]["name"]: _found(transport, each) for each in wanted if each["kind"] == CLUSTER_ROLES.kind}
    first, narrowed = keeping_rules(wanted, roles)
    apply, delete = partial(_apply, transport), partial(_delete, transport)
    steps: list[Step] = [
        *((each, apply) for each in first),
        *((each, delete) for each in _surplus(transport, chosen, wanted, (*WEBHOOKS, *SERVING), warn)),
    ]
    last: list[Step] = [
        *((each, apply) for each in narrowed),
        *((each, delete) for each in _surplus(transport, chosen, wanted, RIGHTS, warn)),
    ]
    if before is not None and chosen.replicas:
        take(steps, tell)
        return tuple(last)
    take([*steps, *last], tell)
    return ()


def take(steps: Sequence[Step], tell: Tell) -> None:
    """Run the steps; RolloutLwsError as from ``install``."""
    for done, (each, act) in enumerate(steps):
        name = name_of(RESOURCES[each["kind"]], each)
        try:
            tell(f"{name} {act(each)}")
        except (ApiError, Unreachable) as error:
            raise RolloutLwsError(
                f"{name}: {error}; {done} of {len(steps)} objects are applied and stay: correct this and run"
                " the same command again, it goes on from there"
            ) from error


def places_of(steps: Iterable[Step]) -> str:
    return ", ".join(place_of(RESOURCES[each["kind"]], each) for each, _ in steps)


def keeping_rules(
    wanted: Iterable[Object], roles: Mapping[str, Object | None]
) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    """The objects to apply first, and those to apply once no controller of the previous version is left. ``roles`` are
    the cluster's ClusterRoles by name. A role that loses rules is in both and keeps them in the first, so running
    controllers keep their permissions, whichever write is the last to succeed.
    """
    first: list[Object] = []
    last: list[Object] = []
    for each in wanted:
        before = roles.get(each["metadata"]["name"]) if each["kind"] == CLUSTER_ROLES.kind else None
        lost = [rule for rule in (before or {}).get("rules") or () if rule not in each["rules"]]
        first.append({**each, "rules": [*each["rules"], *lost]} if lost else each)
        last += [each] if lost else []
    return tuple(first), tuple(last)


def _judge(transport: Transport, chosen: Installation, warn: Tell) -> Object | None:
    """Check that everything may be applied; returns the existing Deployment."""
    looked_at = (
        (name, transport.find(CUSTOM_RESOURCE_DEFINITIONS.path("", name))) for name in ownership.definitions(chosen)
    )
    found = ownership.Found(
        {name: definition for name, definition in looked_at if definition is not None},
        transport.find(CLUSTER_ROLE_BINDINGS.path("", CONTROLLER)),
        transport.find(DEPLOYMENTS.path(chosen.namespace, CONTROLLER)),
        tuple(each for each, (kind, _) in NEEDED.items() if each in chosen.extras and not transport.serves(kind)),
        tuple(each for each in chosen.watch_namespaces if transport.find(NAMESPACES.path("", each)) is None),
    )
    refusal = ownership.refusal(chosen, found)
    if refusal:
        raise UsageError(f"nothing was changed: {refusal}")
    for each in ownership.warnings(chosen, found):
        warn(each)
    return found.deployment


def _wanted(transport: Transport, chosen: Installation) -> tuple[Object, ...]:
    """All objects, with the namespace when it does not exist."""
    made = objects(chosen)
    if made[0]["kind"] == NAMESPACES.kind or transport.find(NAMESPACES.path("", chosen.namespace)) is not None:
        return made
    return (home(chosen), *made)


def _surplus(
    transport: Transport, chosen: Installation, wanted: Iterable[Object], kinds: Iterable[Resource], warn: Tell
) -> Iterator[Object]:
    """What an installation before has made and this one does not need, in the order in which it can be deleted. Users
    that may not list a kind can install all the same.
    """
    known = names()
    kept = {_path(each) for each in wanted}
    for resource in kinds:
        try:
            there = labelled(transport, resource)
        except ApiError as error:
            if error.code != 403:
                raise
            warn(f"what an installation before has made of {resource}, and this one does not need, stays: {error}")
            continue
        for each in there:
            if (resource.kind, each["metadata"]["name"]) in known and _path(each) not in kept and _of(chosen, each):
                yield each


def _of(chosen: Installation, obj: Object) -> bool:
    """Whether it can be of this installation: of other namespaces it has nothing but the right to watch them."""
    return obj["metadata"].get("namespace") in (None, chosen.namespace) or _watches(obj)


def _watches(obj: Object) -> bool:
    """Whether it gives the controller its rights in a namespace that it watches."""
    return bool((obj["kind"], obj["metadata"]["name"]) == (ROLE_BINDINGS.kind, CONTROLLER))


def _apply(transport: Transport, obj: Object) -> str:
    """Apply the object; returns the outcome in kubectl's words."""
    before = _found(transport, obj)
    if before is not None and obj["kind"] == NAMESPACES.kind and not ownership.is_ours(before):
        return "exists, left as it is"
    after = transport.apply(_path(obj), obj, MANAGER)
    if before is None:
        return "created"
    same = before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    return "unchanged" if same else "configured"


def _delete(transport: Transport, obj: Object) -> str:
    """Delete the object, which another client may already have done; returns the outcome."""
    try:
        transport.delete(_path(obj))
    except ApiError as error:
        if error.code != 404:
            raise
    if _watches(obj):
        return f"in namespace {obj['metadata']['namespace']} deleted: it is watched no longer"
    return "deleted: nothing needs it"


def _found(transport: Transport, obj: Object) -> Object | None:
    """The cluster's current object of that name."""
    return transport.find(_path(obj))


def _path(obj: Object) -> str:
    metadata = obj["metadata"]
    return RESOURCES[obj["kind"]].path(metadata.get("namespace", ""), metadata["name"])
