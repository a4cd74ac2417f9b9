"""Applies an installation to a cluster: checks first, then reports each object; safe to repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.install import ownership
from rollout_lws.cli.install.inventory import RESOURCES, name_of
from rollout_lws.cli.install.manifests import home, objects
from rollout_lws.cli.install.options import EXTRAS, Installation
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.errors import ApiError, RolloutLwsError, Unreachable, UsageError
from rollout_lws.objects.resources import (
    CLUSTER_ROLE_BINDINGS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
)

Object = dict[str, Any]
Tell = Callable[[str], None]
#: Field manager of server-side apply.
MANAGER = "rollout-lws-install"


def install(transport: Transport, chosen: Installation, tell: Tell, warn: Tell) -> None:
    """Apply everything that ``chosen`` needs and delete what only the installation before needed, one line per object.

    UsageError before any change when another product's object would be replaced, or a kind or namespace is missing;
    RolloutLwsError, with the progress so
    far, when the API server rejects one.
    """
    before = _judge(transport, chosen, warn)
    *others, deployment = _wanted(transport, chosen)
    apply, delete = partial(_apply, transport), partial(_delete, transport)
    # The Deployment comes last: an installation that was interrupted still finds there what it watched before.
    steps = [
        *((each, apply) for each in others),
        *((each, delete) for each in _surplus(transport, chosen, before)),
        (deployment, apply),
    ]
    for done, (each, act) in enumerate(steps):
        name = name_of(RESOURCES[each["kind"]], each)
        try:
            tell(f"{name} {act(each)}")
        except (ApiError, Unreachable) as error:
            raise RolloutLwsError(
                f"{name}: {error}; {done} of {len(steps)} objects are applied and stay: correct this and run the same"
                " command again, it goes on from there"
            ) from error


def _judge(transport: Transport, chosen: Installation, warn: Tell) -> Object | None:
    """Check that everything may be applied; returns the existing Deployment."""
    looked_at = (
        (name, transport.find(CUSTOM_RESOURCE_DEFINITIONS.path("", name))) for name in ownership.definitions(chosen)
    )
    found = ownership.Found(
        {name: definition for name, definition in looked_at if definition is not None},
        transport.find(CLUSTER_ROLE_BINDINGS.path("", CONTROLLER)),
        transport.find(DEPLOYMENTS.path(chosen.namespace, CONTROLLER)),
    )
    refusal = ownership.refusal(chosen, found) or _lacking(transport, chosen)
    if refusal:
        raise UsageError(f"nothing was changed: {refusal}")
    for each in ownership.warnings(chosen, found):
        warn(each)
    return found.deployment


def _lacking(transport: Transport, chosen: Installation) -> str | None:
    """What the cluster lacks for the installation: a kind, or a namespace to watch; None if it lacks nothing."""
    for resource in {RESOURCES[each["kind"]] for each in objects(chosen)}:
        if "/" in resource.api_version and not transport.serves(resource):
            return (
                f"this cluster does not serve {resource.kind} of {resource.api_version}: install what brings it, or"
                " leave out the --with that needs it"
            )
    for namespace in chosen.watch_namespaces:
        if transport.find(NAMESPACES.path("", namespace)) is None:
            return f"namespace {namespace} of --watch-namespace does not exist: create it first"
    return None


def _wanted(transport: Transport, chosen: Installation) -> tuple[Object, ...]:
    """All objects, with the namespace when it does not exist; the Deployment is the last."""
    made = objects(chosen)
    if made[0]["kind"] == NAMESPACES.kind or transport.find(NAMESPACES.path("", chosen.namespace)) is not None:
        return made
    return (home(chosen), *made)


def _surplus(transport: Transport, chosen: Installation, before: Object | None) -> Iterator[Object]:
    """What the installation of Deployment ``before`` may have made and this one does not need, in the order in which it
    can be deleted: webhooks before what answers them.
    """
    if before is None:
        return
    watched = tuple(ownership.flags(before, "--namespace"))
    kept = {_path(each) for each in objects(chosen)}
    for each in reversed(objects(replace(chosen, extras=EXTRAS, watch_namespaces=watched))):
        found = None if _path(each) in kept else transport.find(_path(each))
        if found is not None and ownership.is_ours(found):
            yield each


def _apply(transport: Transport, obj: Object) -> str:
    """Apply the object; returns the outcome in kubectl's words."""
    before = transport.find(_path(obj))
    if before is not None and obj["kind"] == NAMESPACES.kind and not ownership.is_ours(before):
        return "exists, left as it is"
    after = transport.apply(_path(obj), obj, MANAGER)
    if before is None:
        return "created"
    same = before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    return "unchanged" if same else "configured"


def _delete(transport: Transport, obj: Object) -> str:
    transport.delete(_path(obj))
    namespace = obj["metadata"].get("namespace")
    return (f"in namespace {namespace} " if namespace else "") + "deleted: nothing needs it"


def _path(obj: Object) -> str:
    metadata = obj["metadata"]
    return RESOURCES[obj["kind"]].path(metadata.get("namespace", ""), metadata["name"])
