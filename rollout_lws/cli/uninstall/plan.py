"""The plan of an uninstallation as a value, its text, and the reasons why it may not begin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rollout_lws.api.resources import keys
from rollout_lws.cli.install.inventory import starting
from rollout_lws.cli.uninstall.detach_plan import Detachment
from rollout_lws.cli.uninstall.opening import Roll
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.settings import DEFAULT_GUARD
from rollout_lws.targets.target import ON_DELETE

_SHOWN_IMAGES = 3
#: How to keep the running version without a Rollout to `undo`.
PUT_BACK = "put the template of what runs back"


@dataclass(frozen=True, slots=True)
class Controller:
    """The controller's Deployment; ``name`` is "" when there is none, and ``namespace`` is then where controllers
    elected a leader, if known. ``wanted`` and ``available`` are its replicas; ``watched`` are the controller's
    namespaces, () for all.
    """

    namespace: str = ""
    name: str = ""
    available: int = 0
    wanted: int = 1
    watched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """``guarded``: the API server rejects edits while no controller answers. ``groups`` are the API groups that the
    cluster serves for us. ``commands`` delete the installation. ``notes`` are sentences about what stays.
    """

    detachments: tuple[Detachment, ...]
    controller: Controller = Controller()
    guarded: bool = False
    groups: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def refusal(plan: Plan) -> str:
    """Why the uninstallation may not begin, "" when it may: without a controller, Rollouts would stay half deleted."""
    bound, at = [each for each in plan.detachments if each.finalizer], plan.controller
    if bound and at.name and not at.available:
        kubectl = f"kubectl -n {at.namespace}"
        start = f"see {kubectl} describe deployments,pods"
        if not at.wanted:
            start = f"it is scaled to 0: {starting(at.namespace)}"
        return (
            f"the controller does not run (deployment/{at.name} in namespace {at.namespace}), and only a controller can"
            f" restore what Rollouts have changed ({len(bound)} of them): {start}. If it can run there no more,"
            f" {kubectl} delete deployment/{at.name} --cascade=foreground, let `{running(plan)}` run beside this"
            " command"
        )
    if plan.guarded and plan.detachments and not at.available:
        return (
            "no controller answers the guard's webhooks, and with failurePolicy Fail every edit is refused: kubectl"
            f" delete mutatingwebhookconfigurations,validatingwebhookconfigurations {DEFAULT_GUARD}"
            " --ignore-not-found, then run this command again"
        )
    unseen = [each for each in bound if at.watched and each.namespace not in at.watched]
    if unseen:
        return (
            f"{title(unseen[0])} waits for the controller by its finalizer, and that one watches namespace"
            f" {' and '.join(at.watched)} only: `rollout-lws install` with --watch-namespace {unseen[0].namespace}"
            " besides the others, then this command again"
        )
    staying = next((each for each in bound if each.stays), None)
    if staying is not None:
        place, mark = f"{staying.rollout} -n {staying.namespace}", keys(staying.group).leave_as_is
        return (
            f"{title(staying)} stays while {staying.called(staying.workload)} serves in place of"
            f" {staying.called(staying.stood_for)}: to have the requests brought there first, which loads its groups:"
            f" rollout-lws home {place}; to leave both as they are: kubectl annotate rollouts.{staying.group} {place}"
            f" {mark}=true"
        )
    return ""


def running(plan: Plan) -> str:
    """The command that runs a controller anywhere, as a standby while one on the cluster still leads."""
    home = plan.controller.namespace
    waits = ["--leader-elect", f"--leader-elect-resource-namespace {home}"] if home else []
    groups = {each.group for each in plan.detachments} - {DEFAULT_API_GROUP}
    return " ".join(["rollout-lws controller", *waits, *(f"--api-group {each}" for each in sorted(groups))])


def lines(plan: Plan) -> Iterator[str]:
    """The plan as text, without the commands."""
    yield from plan.notes
    if plan.detachments:
        yield "These let go of their workloads, one after the other:"
    for each in plan.detachments:
        yield f"  {title(each)}: {each.outlook}"
        for roll in each.rolls:
            yield f"    {rolling(each, roll)}"
        if each.rolls and each.rollout:
            yield f"    to keep what runs, first: {keeping(each)}"
    if not plan.controller.name and any(each.finalizer for each in plan.detachments):
        yield (
            "No Deployment of the controller is on this cluster: nothing lets go of these Rollouts unless one runs"
            f" elsewhere: `{running(plan)}`"
        )


def title(each: Detachment) -> str:
    name = f"rollout/{each.rollout}" if each.rollout else each.called(each.workload)
    return f"{name} in namespace {each.namespace}"


def rolling(each: Detachment, roll: Roll) -> str:
    """Which version rolls in a workload of this Rollout, and at what pace."""
    shown = ", ".join(roll.images[:_SHOWN_IMAGES])
    more = len(roll.images) - _SHOWN_IMAGES
    what = f"the version that waits ({shown}{f' and {more} more' if more > 0 else ''})"
    what += f" in {each.called(roll.companion)}" if roll.companion else ""
    groups = "1 group" if roll.groups == 1 else f"{roll.groups} groups"
    pace = f"{roll.unavailable} at a time"
    if roll.surge:
        pace = f"at most {roll.unavailable} down and {roll.surge} extra at a time"
    why = f"; its release was aborted: {roll.aborted}" if roll.aborted else ""
    if roll.on_delete:
        return f"{what} gets into {groups}, each when its pod is deleted, as the strategy is {ON_DELETE}{why}"
    return f"{what} ROLLS in {groups}, {pace}{why}"


def keeping(each: Detachment) -> str:
    """What prevents a roll: of a pair only its owner edits templates."""
    if each.inactive or each.stood_for:
        names = [roll.companion or each.workload for roll in each.rolls] or [each.workload]
        return f"{PUT_BACK} into {' and '.join(each.called(name) for name in names)}"
    return f"rollout-lws undo {each.rollout} -n {each.namespace}"
