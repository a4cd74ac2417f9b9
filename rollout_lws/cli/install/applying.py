"""Applies an installation to a cluster: checks first, then reports each object; safe to repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.install import ownership
from rollout_lws.cli.install.inventory import RESOURCES, RIGHTS, labelled, name_of, place_of
from rollout_lws.cli.install.manifests import home, objects
from rollout_lws.cli.install.options import (
    DEFAULT_SCRIPTS,
    EXTRAS,
    POD_DELETION_POLICY,
    POD_MONITOR,
    SERVICE_MONITOR,
    Installation,
)
from rollout_lws.cli.install.rbac import CONTROLLER
from rollout_lws.errors import ApiError, RolloutLwsError, Unreachable, UsageError
from rollout_lws.objects.resources import (
    ADMISSION_POLICIES,
    CLUSTER_ROLE_BINDINGS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    POD_MONITORS,
    ROLE_BINDINGS,
    SERVICE_MONITORS,
)

Object = dict[str, Any]
_T = TypeVar("_T")
Tell = Callable[[str], None]
#: An object, and the function that writes or deletes it and returns what it did.
Step = tuple[Object, Callable[[Object], str]]
#: Field manager of server-side apply.
MANAGER = "rollout-lws-install"
#: Kinds that an extra needs and not every cluster serves, and what brings them.
_BROUGHT = {
    POD_MONITOR: (POD_MONITORS, "the Prometheus operator"),
    SERVICE_MONITOR: (SERVICE_MONITORS, "the Prometheus operator"),
    POD_DELETION_POLICY: (ADMISSION_POLICIES, "Kubernetes 1.30 or newer"),
}


def install(transport: Transport, chosen: Installation, tell: Tell, warn: Tell) -> list[Step]:
    """Apply everything that ``chosen`` needs and delete what only the installation before needed, one line per object.

    Returns the steps that take away rights of the controller before, which leads until the new one is available; the
    caller takes them then. UsageError before any change when another product's object would be replaced, or a kind or
    namespace is missing; RolloutLwsError, with the progress so far, when the API server rejects one.
    """
    before = _judge(transport, chosen, warn)
    *others, deployment = _wanted(transport, chosen)
    apply, delete = partial(_apply, transport), partial(_delete, transport)
    first: list[Step] = []
    last: list[Step] = []
    for each in others:
        widened = _widened(transport, each)
        first.append((widened, apply))
        if widened != each:
            last.append((each, apply))
    for each in _surplus(transport, chosen, warn):
        (last if RESOURCES[each["kind"]] in RIGHTS else first).append((each, delete))
    first.append((deployment, apply))
    if before is None or not chosen.replicas:
        first, last = [*first, *last], []
    if last:
        names = ", ".join(place_of(RESOURCES[each["kind"]], each) for each, _ in last)
        warn(
            f"rights that only the controller before this one needs stay until the new one is available ({names}): if"
            " this command ends earlier, run it again"
        )
    take(first, tell)
    return last


def take(steps: Sequence[Step], tell: Tell) -> None:
    """Take the steps, one line per object. RolloutLwsError as from ``install``."""
    for done, (each, act) in enumerate(steps):
        name = name_of(RESOURCES[each["kind"]], each)
        try:
            tell(f"{name} {act(each)}")
        except (ApiError, Unreachable) as error:
            raise RolloutLwsError(
                f"{name}: {error}; {done} of {len(steps)} writes are done and stay: correct this and run the same"
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
    for extra, (resource, source) in _BROUGHT.items():
        if extra in chosen.extras and not transport.serves(resource):
            return (
                f"--with {extra} needs {resource.kind} of {resource.api_version}, which this cluster does not serve;"
                f" {source} brings it: install that first, or leave --with {extra} out"
            )
    missing = [each for each in chosen.watch_namespaces if transport.find(NAMESPACES.path("", each)) is None]
    if missing:
        return f"namespace {' and '.join(missing)} of --watch-namespace does not exist: create it first"
    return None


def _wanted(transport: Transport, chosen: Installation) -> tuple[Object, ...]:
    """All objects, with the namespace when it does not exist; the Deployment is the last."""
    made = objects(chosen)
    if made[0]["kind"] == NAMESPACES.kind or transport.find(NAMESPACES.path("", chosen.namespace)) is not None:
        return made
    return (home(chosen), *made)


def _widened(transport: Transport, obj: Object) -> Object:
    """One of the controller's roles with the rules that it has besides on the cluster; any other object as it is."""
    if "rules" not in obj or not obj["metadata"]["name"].startswith(CONTROLLER):
        return obj
    found = transport.find(_path(obj)) or {}
    return {**obj, "rules": [*obj["rules"], *(rule for rule in found.get("rules") or () if rule not in obj["rules"])]}


def _surplus(transport: Transport, chosen: Installation, warn: Tell) -> Iterator[Object]:
    """What earlier installations may have made, also interrupted ones, and this one does not need, in the order in
    which it can be deleted: webhooks before what answers them.
    """
    bound = _unless_forbidden(lambda: labelled(transport, ROLE_BINDINGS), warn) or ()
    watched = {each["metadata"]["namespace"] for each in bound if each["metadata"]["name"] == CONTROLLER}
    # With a namespace at least, for the role that is there only where some are watched.
    most = replace(
        chosen,
        extras=EXTRAS,
        watch_namespaces=tuple(sorted({chosen.namespace, *watched})),
        custom_network_scripts=DEFAULT_SCRIPTS,
    )
    kept = {_path(each) for each in objects(chosen)}
    for each in reversed(objects(most)):
        path = _path(each)
        if path in kept:
            continue
        found = _unless_forbidden(partial(transport.find, path), warn)
        if found is not None and ownership.is_ours(found):
            yield each


def _unless_forbidden(look: Callable[[], _T], warn: Tell) -> _T | None:
    """What ``look`` returns; None, with a warning, when the user may not look."""
    try:
        return look()
    except ApiError as error:
        if error.code != 403:
            raise
        warn(f"what an earlier installation has left could not be looked for, and stays: {error}")
        return None


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
