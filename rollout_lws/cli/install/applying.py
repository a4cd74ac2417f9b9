"""An installation put on a cluster: judged first, then applied, each object told; again and again if need be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.install import extras, order, ownership
from rollout_lws.cli.install.installation import POD_DELETION_POLICY, Installation
from rollout_lws.cli.install.manifests import NAMESPACED, PART_OF, PRODUCT, home, objects
from rollout_lws.cli.install.rights import CONTROLLER
from rollout_lws.errors import ApiError, RolloutLwsError, Unreachable, UsageError
from rollout_lws.objects.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    POD_MONITORS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICE_MONITORS,
    SERVICES,
    VALIDATING_WEBHOOKS,
    Resource,
)

Object = dict[str, Any]
Tell = Callable[[str], None]
#: Who has applied these fields, for the API server.
MANAGER = "rollout-lws-install"
RESOURCES = {
    each.kind: each
    for each in (
        *(NAMESPACES, CUSTOM_RESOURCE_DEFINITIONS, SERVICE_ACCOUNTS, DEPLOYMENTS, POD_DISRUPTION_BUDGETS),
        *(CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS, ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS),
        *(NETWORK_POLICIES, SERVICES, SERVICE_MONITORS, POD_MONITORS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS),
    )
}


#: An object, and what writes or deletes it and says what was done.
Step = tuple[Object, Callable[[Object], str]]


@dataclass(frozen=True, slots=True)
class Left:
    """What remains when everything is applied. ``alone_first``: the Deployment ends a controller that knows no election
    before it starts the next one; once that runs, ``settle`` gives it the strategy that it is to have. ``rights`` are
    those that only controllers of the version before need: ``withdraw`` takes them when none of these is left.
    """

    alone_first: bool
    rights: tuple[Step, ...]


def install(transport: Transport, chosen: Installation, tell: Tell, warn: Tell) -> Left:
    """Apply everything that ``chosen`` needs, a line for each object, and take nothing away that a controller which
    runs may need. UsageError before anything has changed when somebody else's would be replaced; RolloutLwsError,
    which says how far it got, when the API server refuses one.
    """
    found = _judge(transport, chosen, warn)
    wanted = _wanted(transport, chosen)
    unwatched = [*_unwatched(transport, wanted)]
    surplus = [each for each in extras.unwanted(chosen) if _left_over(transport, each)]
    alone_first = found.deployment is not None and ownership.knows_no_election(found.deployment)
    first, last = order.writes(map(_alone, wanted) if alone_first else wanted, _roles(transport, wanted))
    apply, delete = partial(_apply, transport), partial(_withdraw, transport)
    _take([*((each, apply) for each in first), *((each, delete) for each in surplus)], tell)
    left = Left(alone_first, (*((each, apply) for each in last), *((each, delete) for each in unwatched)))
    if found.deployment is not None:
        return left
    withdraw(left, tell)
    return Left(alone_first, ())


def withdraw(left: Left, tell: Tell) -> None:
    """Take the rights that nobody needs any more. RolloutLwsError as from ``install``."""
    _take(left.rights, tell)


def _take(steps: Sequence[Step], tell: Tell) -> None:
    for done, (each, take) in enumerate(steps):
        try:
            tell(f"{name_of(each)} {take(each)}")
        except (ApiError, Unreachable) as error:
            raise RolloutLwsError(
                f"{name_of(each)}: {error}; {done} of {len(steps)} objects are applied and stay: correct this and run"
                " the same command again, it goes on from there"
            ) from error


def settle(transport: Transport, chosen: Installation, tell: Tell) -> None:
    """The Deployment as it is wanted, now that no controller runs which knows no election."""
    final = objects(chosen)[-1]
    tell(f"{name_of(final)} {_apply(transport, final)}")


def _alone(obj: Object) -> Object:
    """The Deployment with the strategy that starts nothing before everything of the version before has ended."""
    if obj["kind"] != DEPLOYMENTS.kind:
        return obj
    return {**obj, "spec": {**obj["spec"], "strategy": {"type": "Recreate"}}}


def _wanted(transport: Transport, chosen: Installation) -> tuple[Object, ...]:
    """With the namespace, where there is none to live in."""
    made = objects(chosen)
    if made[0]["kind"] == NAMESPACES.kind or _found(transport, NAMESPACES, chosen.namespace) is not None:
        return made
    return (home(chosen), *made)


def name_of(obj: Object) -> str:
    """As kubectl tells it: deployment.apps/name."""
    resource = RESOURCES[obj["kind"]]
    group = f".{resource.group}" if resource.group else ""
    return f"{resource.kind.lower()}{group}/{obj['metadata']['name']}"


def place_of(obj: Object) -> str:
    """Its name, with the namespace that it is in."""
    namespace = obj["metadata"].get("namespace")
    return name_of(obj) + (f" in namespace {namespace}" if namespace else "")


def path_of(obj: Object) -> str:
    metadata = obj["metadata"]
    return RESOURCES[obj["kind"]].path(metadata.get("namespace", ""), metadata["name"])


def _judge(transport: Transport, chosen: Installation, warn: Tell) -> ownership.Found:
    """What is there, when all that is wanted may be applied."""
    looked_at = ((name, _found(transport, CUSTOM_RESOURCE_DEFINITIONS, name)) for name in ownership.definitions(chosen))
    found = ownership.Found(
        {name: definition for name, definition in looked_at if definition is not None},
        _found(transport, CLUSTER_ROLE_BINDINGS, CONTROLLER),
        _found(transport, DEPLOYMENTS, CONTROLLER, chosen.namespace),
        POD_DELETION_POLICY not in chosen.extras or _serves(transport, ADMISSION_POLICIES),
    )
    refusal = ownership.refusal(chosen, found)
    if refusal:
        raise UsageError(f"nothing was changed: {refusal}")
    missing = [name for name in chosen.watch_namespaces if _found(transport, NAMESPACES, name) is None]
    if missing:
        raise UsageError(
            f"nothing was changed: namespace {' and '.join(missing)} of --watch-namespace does not exist: create it"
            " first, the controller gets its rights there"
        )
    for each in ownership.warnings(chosen, found):
        warn(each)
    return found


def _serves(transport: Transport, resource: Resource) -> bool:
    """Whether it is there, as far as this can be asked; who may not ask is told by the write."""
    try:
        known = transport.get(f"/apis/{resource.api_version}").get("resources") or ()
    except ApiError as error:
        return error.code != 404
    return any(each["name"] == resource.plural for each in known)


def _apply(transport: Transport, obj: Object) -> str:
    """What was done, in kubectl's words."""
    before = _found(transport, RESOURCES[obj["kind"]], obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
    if before is not None and obj["kind"] == NAMESPACES.kind and not ownership.is_ours(before):
        return "exists, left as it is"
    after = transport.apply(path_of(obj), obj, MANAGER)
    if before is None:
        return "created"
    same = before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    return "unchanged" if same else "configured"


def _roles(transport: Transport, wanted: Iterable[Object]) -> dict[str, Object]:
    names = [each["metadata"]["name"] for each in wanted if each["kind"] == CLUSTER_ROLES.kind]
    return {name: role for name in names if (role := _found(transport, CLUSTER_ROLES, name)) is not None}


def _unwatched(transport: Transport, wanted: Iterable[Object]) -> Iterator[Object]:
    """The controller's rights in namespaces that it watches no longer, and the role that gives them when there is no
    such namespace any more.
    """
    kept = {each["metadata"]["namespace"] for each in wanted if _watches(each)}
    bound = transport.get(ROLE_BINDINGS.path(), labelSelector=f"{PART_OF}={PRODUCT}").get("items") or ()
    for each in bound:
        if each["metadata"]["name"] == CONTROLLER and each["metadata"]["namespace"] not in kept:
            yield {**each, "kind": ROLE_BINDINGS.kind}
    role = None if kept else _found(transport, CLUSTER_ROLES, NAMESPACED)
    if role is not None and ownership.is_ours(role):
        yield {**role, "kind": CLUSTER_ROLES.kind}


def _left_over(transport: Transport, obj: Object) -> bool:
    """Whether an installation before has made it. Who may not even see such objects is not kept from installing."""
    metadata = obj["metadata"]
    try:
        before = _found(transport, RESOURCES[obj["kind"]], metadata["name"], metadata.get("namespace", ""))
    except ApiError as error:
        if error.code != 403:
            raise
        return False
    return before is not None and ownership.is_ours(before)


def _watches(obj: Object) -> bool:
    """Whether it gives the controller its rights in a namespace that it watches."""
    return bool((obj["kind"], obj["metadata"]["name"]) == (ROLE_BINDINGS.kind, CONTROLLER))


def _withdraw(transport: Transport, obj: Object) -> str:
    """What was done; somebody else may have been quicker."""
    try:
        transport.delete(path_of(obj))
    except ApiError as error:
        if error.code != 404:
            raise
    if _watches(obj):
        return f"in namespace {obj['metadata']['namespace']} deleted: it is watched no longer"
    return "deleted: nothing needs it"


def _found(transport: Transport, resource: Resource, name: str, namespace: str = "") -> Object | None:
    try:
        return transport.get(resource.path(namespace, name))
    except ApiError as error:
        if error.code != 404:
            raise
        return None
