"""promote and abort: requests that the controller carries out, each bound to the release and step that was seen."""

from __future__ import annotations

import getpass
import uuid
from datetime import UTC, datetime
from typing import Any

import click

from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.options import Target, release_name, with_target
from rollout_lws.cli.releases import fetch_rollout, find_rollouts, summary
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.objects.resources import Resource

#: A status changes often in a release; so many newer ones are looked at before giving up.
_ATTEMPTS = 5


@click.command()
@click.argument("name")
@with_target
def promote(name: str, target: Target) -> None:
    """Approve the step at which the release of Rollout NAME waits."""
    transport = click.get_current_context().with_resource(Transport.to(target))
    click.echo(approve(transport, find_rollouts(transport, target.api_group), release_name(name)))


@click.command()
@click.argument("name")
@click.option("--reason", metavar="TEXT", help="Why; kept in the Rollout's status and in the event.")
@click.option(
    "--force",
    is_flag=True,
    help="Remove the new version after grace and drain even if no router has taken its share away; requests may fail.",
)
@with_target
def abort(name: str, reason: str | None, force: bool, target: Target) -> None:
    """Abort the release of Rollout NAME and go back to the stable version."""
    transport = click.get_current_context().with_resource(Transport.to(target))
    rollouts = find_rollouts(transport, target.api_group)
    click.echo(go_back(transport, rollouts, release_name(name), reason, force=force))


def approve(transport: Transport, rollouts: Resource, name: str) -> str:
    """Ask for the approval of the step that waits, and say so; UsageError when none does."""
    rollout = fetch_rollout(transport, rollouts, name)
    _refuse_promotion(rollout)
    _request(transport, rollouts, rollout, "Approve", None)
    return f"rollout/{name} step {_step(rollout)} approved"


def go_back(
    transport: Transport, rollouts: Resource, name: str, reason: str | None = None, *, force: bool = False
) -> str:
    """Ask for the abort of the release that is on, and say so; UsageError when none is. With ``force`` it does not wait
    for routers.
    """
    rollout = fetch_rollout(transport, rollouts, name)
    if phase_of(rollout) == "Aborted":
        return f"rollout/{name} is aborted already"
    _refuse_abort(rollout)
    _request(transport, rollouts, rollout, "Abort", reason, force=force)
    waits = ", without waiting for routers" if force else ""
    return f"rollout/{name} aborted at step {_step(rollout)}; going back to stable{waits}"


def _step(rollout: Object) -> str:
    """How a step is shown: 2/5 where the controller says so, else its number."""
    return summary(rollout)["step"] or str(step_of(rollout))


def phase_of(rollout: Object) -> str:
    return str((rollout.get("status") or {}).get("phase") or "")


def step_of(rollout: Object) -> int:
    return int((rollout.get("status") or {}).get("currentStepIndex") or 0)


def _refuse_promotion(rollout: Object) -> None:
    """UsageError when no step of this Rollout waits for somebody."""
    name, status = rollout["metadata"]["name"], rollout.get("status") or {}
    _refuse_busy(rollout)
    if phase_of(rollout) != "Progressing":
        raise UsageError(
            f"rollout/{name} is {phase_of(rollout) or 'not seen by a controller yet'}: nothing waits for approval"
        )
    if status.get("currentStepState") != "StepPaused":
        now = summary(rollout)["state"] or status.get("currentStepState") or "starting"
        raise UsageError(
            f"rollout/{name} step {_step(rollout)} is not waiting for approval (now {now}):"
            f" `rollout-lws status {name} --for paused` waits for it"
        )


def _refuse_abort(rollout: Object) -> None:
    """UsageError when there is no release that could be aborted."""
    name = rollout["metadata"]["name"]
    _refuse_busy(rollout)
    if phase_of(rollout) != "Progressing":
        raise UsageError(
            f"rollout/{name} is {phase_of(rollout) or 'not seen by a controller yet'}: nothing is being released"
        )
    ending = rollout["status"].get("finalising") or {}
    if (ending.get("reason"), ending.get("task")) == ("Success", "CleanUp"):
        raise UsageError(f"rollout/{name} is already promoted: apply the old template to go back")


def _refuse_busy(rollout: Object) -> None:
    pending = (rollout.get("status") or {}).get("requestedAction")
    if pending:
        raise UsageError(
            f"rollout/{rollout['metadata']['name']} has a request that waits ({pending.get('type')}):"
            " is the controller running?"
        )


def _request(
    transport: Transport, rollouts: Resource, seen: Object, kind: str, reason: str | None, *, force: bool = False
) -> None:
    """Ask for an action on the release and step of ``seen``; UsageError when the release has moved on meanwhile."""
    rollout = seen
    for _ in range(_ATTEMPTS):
        try:
            transport.merge_patch(
                rollouts.path(rollout["metadata"]["namespace"], rollout["metadata"]["name"], "status"),
                {
                    "metadata": {"resourceVersion": rollout["metadata"]["resourceVersion"]},
                    "status": {"requestedAction": _action(seen, kind, reason) | ({"force": True} if force else {})},
                },
            )
            return
        except ApiError as error:
            if error.code != 409:
                raise
        rollout = fetch_rollout(transport, rollouts, seen["metadata"]["name"])
        if _identity(rollout) != _identity(seen):
            break
    raise UsageError(
        f"rollout/{seen['metadata']['name']} moved on to step {step_of(rollout)} meanwhile, nothing was changed:"
        " look with `rollout-lws get` and decide again"
    )


def _action(rollout: Object, kind: str, reason: str | None) -> Object:
    action: dict[str, Any] = {
        "type": kind,
        "id": uuid.uuid4().hex[:12],
        "by": getpass.getuser(),
        "at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "step": step_of(rollout),
    }
    template = (rollout.get("status") or {}).get("observedTemplateHash")
    if template:
        action["templateHash"] = template
    if reason:
        action["reason"] = reason
    return action


def _identity(rollout: Object) -> tuple[Any, ...]:
    """What must not have changed between the look and the deed."""
    status = rollout.get("status") or {}
    return (
        rollout["metadata"]["uid"],
        *(status.get(key) for key in ("phase", "observedTemplateHash", "currentStepIndex", "currentStepState")),
    )
