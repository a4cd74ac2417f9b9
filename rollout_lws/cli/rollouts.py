"""Rollouts as raw JSON from the API server: fetch them by name or selector, and read spec and status.

This module imports only what every command needs, so that `get` and `promote` start fast.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.sides import edited, released_kind, scales_sides, shift_of, standing_in
from rollout_lws.errors import ApiError, RolloutLwsError, UsageError
from rollout_lws.kubeconfig import context as kubeconfig
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import DEFAULT_API_GROUP, Resource

if TYPE_CHECKING:
    from rollout_lws.capacity.base import CapacityStrategy

VERSION = "v1beta1"
SHORT_NAME = "lwsro"
#: Timeout of shell completion, which blocks the user's prompt.
_PATIENCE_SECONDS = 2.0


def rollouts_of(group: str) -> Resource:
    return Resource(group, VERSION, "Rollout", "rollouts")


def find_rollouts(transport: Transport, group: str | None = None) -> Resource:
    """The Rollouts resource that this cluster serves: in ``group``, else by short name, which Kruise's lack."""
    if group:
        return rollouts_of(group)
    if _serves(transport, DEFAULT_API_GROUP):
        return rollouts_of(DEFAULT_API_GROUP)
    away: ApiError | None = None
    for served in transport.get("/apis").get("groups", ()):
        versions = {version["version"] for version in served["versions"]}
        if served["name"] == DEFAULT_API_GROUP or VERSION not in versions:
            continue
        try:
            if _serves(transport, served["name"]):
                return rollouts_of(served["name"])
        except ApiError as error:
            # An aggregated API whose server is down, such as the metrics API, must not hide ours.
            away = error
    if away is not None:
        raise away
    raise UsageError(
        "this cluster does not serve rollout-lws's Rollouts: `rollout-lws install` makes it, or"
        " `rollout-lws crds | kubectl apply -f -` for these kinds alone"
    )


def _serves(transport: Transport, group: str) -> bool:
    resources = (transport.find(f"/apis/{group}/{VERSION}") or {}).get("resources", ())
    return any(each["name"] == "rollouts" and SHORT_NAME in (each.get("shortNames") or ()) for each in resources)


def fetch_rollout(transport: Transport, rollouts: Resource, name: str) -> Object:
    """One Rollout; UsageError, with the namespace that was searched, when it does not exist."""
    found = transport.find(rollouts.path(transport.namespace, name))
    if found is None:
        raise UsageError(
            f"there is no Rollout {name!r} in namespace {transport.namespace!r}:"
            f" see `rollout-lws get -n {transport.namespace}`"
        )
    return found


def fetch_workload(transport: Transport, rollout: Object) -> Object:
    """The LWS whose template asks for a Rollout's version: of a pair the inactive side, otherwise the one that the
    Rollout refers to. UsageError when it does not exist.
    """
    return fetch_named(transport, rollout, edited(rollout))


def fetch_named(transport: Transport, rollout: Object, name: str) -> Object:
    """The workload of this name, to which a Rollout refers. UsageError when it does not exist."""
    resource = released_kind(rollout)
    found = transport.find(resource.path(rollout["metadata"]["namespace"], name))
    if found is None:
        raise UsageError(
            f"rollout/{rollout['metadata']['name']} refers to {resource.kind} {name!r},"
            " which does not exist: apply it first"
        )
    return found


def chosen_names(transport: Transport, rollouts: Resource, names: Iterable[str], selector: str | None) -> list[str]:
    """The Rollouts that a command acts on, by name or by label; UsageError when there are none."""
    given = [release_name(name) for name in names]
    if given and selector:
        raise UsageError("a NAME and -l are given: leave out either")
    if given:
        return list(dict.fromkeys(given))
    if not selector:
        raise UsageError("the Rollout's name is missing: write NAME, rollout/NAME or -l SELECTOR")
    found = items(transport, rollouts, labelSelector=selector)
    if not found:
        raise UsageError(f"no Rollout in namespace {transport.namespace!r} has the labels {selector}")
    return [each["metadata"]["name"] for each in found]


def release_name(text: str) -> str:
    """The name in ``NAME`` or ``rollout/NAME``."""
    kind, slash, name = text.rpartition("/")
    if slash and kind not in ("rollout", "rollouts", "lwsro"):
        raise click.UsageError(f"{text!r} is no Rollout: write NAME or rollout/NAME")
    if not name:
        raise click.UsageError("the Rollout's name is missing: write NAME or rollout/NAME")
    return name


def rollout_names(target: Target, beginning: str) -> list[str]:
    """Names of Rollouts that begin so; none where the cluster does not answer, or what leads to it is not installed."""
    prefix = "rollout/" if beginning.startswith("rollout/") else ""
    try:
        # An exec credential plugin must not prompt while the user types.
        with Transport(kubeconfig.load(target), _PATIENCE_SECONDS, asks=False) as transport:
            rollouts = find_rollouts(transport, target.api_group)
            items = transport.get(rollouts.path(transport.namespace)).get("items") or ()
    except (RolloutLwsError, ImportError):
        return []
    return sorted(name for each in items if (name := prefix + each["metadata"]["name"]).startswith(beginning))


def style(rollout: Object) -> Object:
    """The canary or blueGreen section of the strategy; {} when there is none."""
    strategy = rollout["spec"].get("strategy") or {}
    found: Object = strategy.get("canary") or strategy.get("blueGreen") or {}
    return found


def planned_gates(rollout: Object) -> list[Object]:
    """What the plan says of the gates of the step that a release is in; [] while it is in none."""
    status, steps = rollout.get("status") or {}, style(rollout).get("steps") or ()
    index = int(status.get("currentStepIndex") or 0)
    if not releasing(rollout) or status.get("finalising") or not 1 <= index <= len(steps):
        return []
    return list(steps[index - 1].get("gates") or ())


def watched_gates(rollout: Object) -> list[Object]:
    """What the plan says of gates of the release; [] while none is on."""
    return list(style(rollout).get("gates") or ()) if releasing(rollout) else []


def gates(rollout: Object) -> list[Object]:
    """What the status says of the gates of a release that is on, those of its step and then its own, without hashes; []
    while none is.
    """
    status = rollout.get("status") or {}
    found = (*(status.get("gates") or ()), *(status.get("releaseGates") or ())) if releasing(rollout) else ()
    return [{key: content for key, content in each.items() if key != "hash"} for each in found]


def recorded_capacity(rollout: Object) -> CapacityStrategy:
    """The current release's capacity by its status; ExtraWorkload when that is empty or an unknown value."""
    # Imported here, since listing Rollouts does not need it.
    from rollout_lws.capacity import known

    if scales_sides(rollout):
        return known.SHIFTED_PAIR if shift_of(rollout) is not None else known.SCALED_PAIR
    if standing_in(rollout):
        return known.SHIFT_BACK if shift_of(rollout) is not None else known.SWAP_BACK
    return known.BY_NAME.get((rollout.get("status") or {}).get("capacity") or "", known.EXTRA_WORKLOAD)


def summary(rollout: Object) -> dict[str, str]:
    """``status.summary``, with empty strings for what the controller has not reported."""
    said = (rollout.get("status") or {}).get("summary") or {}
    keys = ("state", "step", "traffic", "new", "stable", "accelerators", "since")
    return {key: "" if said.get(key) is None else str(said[key]) for key in keys}


def words(rollout: Object) -> str:
    """The summary as one line: ``AwaitingApproval step 2/5 traffic 20% new 1/1 stable 4/4``."""
    said = summary(rollout)
    parts = [f"{key} {said[key]}" for key in ("step", "traffic", "new", "stable") if said[key]]
    return " ".join([said["state"] or "Unknown", *parts])


def message(rollout: Object) -> str:
    """The controller's status message, or a hint that no controller has set one."""
    if not rollout.get("status"):
        return "no controller has seen this Rollout yet; is one running?"
    return str(rollout["status"].get("message") or "")


def condition(rollout: Object, kind: str) -> Object | None:
    """A condition that is True and was observed at the current generation."""
    for each in (rollout.get("status") or {}).get("conditions") or ():
        current = int(each.get("observedGeneration") or 0) >= rollout["metadata"].get("generation", 0)
        if each["type"] == kind and each["status"] == "True" and current:
            found: Object = each
            return found
    return None


def releasing(rollout: Object) -> bool:
    return (rollout.get("status") or {}).get("phase") == "Progressing"


def has_succeeded(rollout: Object) -> bool:
    """Whether the release that was the last one has gone to its end, of a Rollout at rest."""
    status = rollout.get("status") or {}
    told = (each["status"] for each in status.get("conditions") or () if each["type"] == "Succeeded")
    return next(told, "True") == "True" and status.get("phase") == "Healthy"


def items(transport: Transport, resource: Resource, **query: str) -> list[Object]:
    """Objects of a kind in the transport's namespace that match ``query``."""
    return list(transport.get(resource.path(transport.namespace), **query).get("items") or ())
