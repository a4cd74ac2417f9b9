"""history, undo, restart, set image, release-hold: read the history and edit the LWS of a release.

The controller releases edits of the templates like any version. They need ``patch`` on leaderworkersets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import click

from rollout_lws.cli import gitops, versions
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.actions import action_rules, pair_rules
from rollout_lws.cli.actions.action_client import ask
from rollout_lws.cli.options import rollout_argument, with_target
from rollout_lws.cli.releases import fetch_companions, side_hash, stored_versions
from rollout_lws.cli.rollouts import (
    fetch_named,
    fetch_rollout,
    fetch_workload,
    find_rollouts,
    recorded_capacity,
    release_name,
)
from rollout_lws.cli.sides import Sides, called, kept_version, scales_sides, sides_of, standing_in
from rollout_lws.cli.view import age, document, table
from rollout_lws.cli.watch.stream import follow
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import Resource
from rollout_lws.targets.table import released_type
from rollout_lws.targets.version import HASH_SEPARATOR, hashes_of

_force = click.option("--force", is_flag=True, help="Though a GitOps controller keeps the LWS and may take it back.")
_SHOWN_IMAGES = 3
_SHOWN_DIGITS = 5
#: Role shown for a version whose release did not complete, by the controller's rollback reason.
_LEFT = {"Aborted": "aborted", "Rollback": "taken back", "Continuous": "superseded"}


@click.command()
@rollout_argument
@click.option("--revision", type=int, metavar="N", help="Print the whole version N.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Another form of output.")
@with_target
def history(name: str, revision: int | None, output: str | None, target: Target) -> None:
    """List the versions that Rollout NAME has stored; undo goes back to any of them."""
    transport = click.get_current_context().with_resource(Transport.to(target))
    rollouts = find_rollouts(transport, target.api_group)
    rollout = fetch_rollout(transport, rollouts, release_name(name))
    known = stored_versions(transport, rollouts, rollout)
    if revision is not None:
        known = [each for each in known if each.number == revision]
        if not known:
            raise UsageError(f"rollout/{release_name(name)} has stored no revision {revision}: `rollout-lws history`")
        click.echo(document(known[0].members, output or "yaml"), nl=False)
        return
    if output:
        click.echo(document([_as_json(each, rollout) for each in known], output), nl=False)
        return
    now = datetime.now(UTC)
    rows = [("REVISION", "ROLE", "LWS REVISION", "VERSION", "AGE", "IMAGES")]
    for each in known:
        more = len(each.images) - _SHOWN_IMAGES
        images = ", ".join(each.images[:_SHOWN_IMAGES]) + (f" and {more} more" if more > 0 else "")
        role = _role(each, rollout)
        rows.append((str(each.number), role, each.revision, _short(each.template_hash), age(each.created, now), images))
    click.echo("\n".join(table(rows)))


@click.command()
@rollout_argument
@click.option("--to-revision", type=int, metavar="N", help="The stored version N; by default the one before.")
@_force
@with_target
def undo(name: str, to_revision: int | None, force: bool, target: Target) -> None:
    """Put the version before into the LWS of Rollout NAME; in mid-release that is the stable one."""

    def edit(seen: Seen) -> tuple[versions.Operations, str]:
        found = versions.to_undo(seen.known, seen.live, seen.stable, to_revision)
        what = _released(seen)
        if found.template_hash == seen.stable:
            on = action_rules.phase_of(seen.rollout) == "Progressing"
            what = "the release goes back to it" if on else "it is what serves, so nothing restarts"
        elif found.template_hash == seen.aborted:
            what = f"it was aborted, so it waits for `rollout-lws retry {release_name(name)}`"
        elif kept_version(seen.rollout) == found.template_hash:
            what = "its groups are still there, and get all requests without steps"
        message = f"has revision {found.number} again ({', '.join(found.images)}): {what}"
        return versions.putting_back(seen.lws, found.members), message

    def prepare(seen: Seen) -> bool:
        # When the template is the stable one again, LWS deletes all surge groups at once, so drain requests first.
        found = versions.to_undo(seen.known, seen.live, seen.stable, to_revision)
        surge = recorded_capacity(seen.rollout).surges and action_rules.phase_of(seen.rollout) == "Progressing"
        if not surge or found.template_hash != seen.stable:
            return False
        _abort(seen)
        return True

    def instead(seen: Seen, sides: Sides) -> str:
        return pair_rules.way_back(seen.rollout, sides, seen.known, seen.live, to_revision)

    _edit(name, target, force, edit, prepare, instead=instead)


@click.command()
@rollout_argument
@_force
@with_target
def restart(name: str, force: bool, target: Target) -> None:
    """Release the version of Rollout NAME's LWS once more, so that each of its groups is recreated, step by step."""

    def edit(seen: Seen) -> tuple[versions.Operations, str]:
        if seen.live != seen.stable:
            raise UsageError(
                f"{seen.called} asks for a version that is not stable: there is"
                f" nothing to restart before it is promoted, or taken back with `rollout-lws undo {release_name(name)}`"
            )
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return versions.restarting(seen.lws, now), f"is to be restarted: {_released(seen)}"

    _edit(name, target, force, edit, instead=lambda seen, sides: pair_rules.without_restart(seen.rollout, sides))


@click.group("set")
def set_() -> None:
    """Change a part of the version."""


@set_.command("image")
@rollout_argument
@click.argument("images", nargs=-1, required=True, metavar="CONTAINER=IMAGE...")
@click.option(
    "--role", type=click.Choice(["leader", "worker", "all"]), default="all", show_default=True, help="Whose containers."
)
@_force
@with_target
def image(name: str, images: tuple[str, ...], role: str, force: bool, target: Target) -> None:
    """Give containers of Rollout NAME's LWS another image; * stands for every container."""
    wanted = _pairs(images)

    def edit(seen: Seen) -> tuple[versions.Operations, str]:
        operations, told = versions.setting_images(seen.lws, wanted, role)
        return operations if told else [], "; ".join(told) or "has these images already"

    _edit(name, target, force, edit)


@click.command("release-hold")
@rollout_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@with_target
def release_hold(name: str, yes: bool, target: Target) -> None:
    """Let the workload of Rollout NAME roll by itself, without steps, until the annotation is removed."""
    seen = _look(name, target, lambda seen, sides: pair_rules.without_hold(seen.rollout, sides), held=True)
    made = standing_in(seen.rollout)
    if made:
        raise UsageError(
            f"{called(seen.rollout, made)} serves in place of {seen.called}, which has no"
            f" groups that could roll: `rollout-lws home {release_name(name)}` brings the requests there first"
        )
    mark = f"{seen.rollouts.group}/release-hold"
    every = [seen.lws, *seen.beside]
    held = [each for each in every if (each["metadata"].get("annotations") or {}).get(mark) != "true"]
    names = [each["metadata"]["name"] for each in held or every]
    what, are = " and ".join(called(seen.rollout, each) for each in names), "are" if len(names) > 1 else "is"
    if not held:
        click.echo(f"{what} {are} let go of already")
        return
    waits = seen.live != seen.stable
    rolls = "the version that waits rolls at once, in every group" if waits else "the next version rolls at once"
    if not yes and not sys.stdin.isatty():
        raise UsageError(f"{what}: {rolls}. If that is meant, say so with --yes")
    # The prompt may take long, and servers close idle connections.
    seen.transport.close()
    if not yes and not click.confirm(f"{what}: {rolls}. Go on?", err=True):
        raise UsageError("nothing was changed")
    for each in held:
        _patch(replace(seen, lws=each), versions.annotating(each, mark, "true"))
    again = f"kubectl annotate lws {' '.join(names)} {mark}-"
    click.echo(f"{what} {are} let go of: {rolls}; to have {'them' if len(names) > 1 else 'it'} held again: {again}")


@dataclass(frozen=True, slots=True)
class Seen:
    """A release as an edit reads it. ``live``, ``stable`` and ``aborted`` are our hashes of the LWS's current version,
    the serving version, and the last aborted one ("": none). ``beside`` are companions of a pair's active side.
    """

    transport: Transport
    rollouts: Resource
    rollout: Object
    lws: Object
    known: list[versions.Stored]
    live: str
    stable: str
    aborted: str
    beside: tuple[Object, ...] = ()

    @property
    def called(self) -> str:
        """The edited workload as commands name it."""
        return called(self.rollout, self.lws["metadata"]["name"])


#: Why an edit of a pair is refused, and what to do instead.
Instead = Callable[[Seen, Sides], str]


def _of_pair(seen: Seen, sides: Sides) -> str:
    return pair_rules.without_edit(seen.rollout, sides)


def _look(name: str, target: Target, instead: Instead = _of_pair, *, held: bool = False) -> Seen:
    """Reads the release; UsageError for a pair, whose templates only their owner edits. ``held``: what is meant is the
    hold, which the active side of a pair has if releases scale it.
    """
    transport = click.get_current_context().with_resource(Transport.to(target))
    rollouts = find_rollouts(transport, target.api_group)
    rollout = fetch_rollout(transport, rollouts, release_name(name))
    known = stored_versions(transport, rollouts, rollout)

    def told(record: str) -> str:
        return str(((rollout.get("status") or {}).get(record) or {}).get("templateHash") or "")

    sides = sides_of(rollout)
    of_active = held and sides is not None and sides.known and scales_sides(rollout)
    if of_active and sides is not None:
        lws = fetch_named(transport, rollout, sides.active)
    else:
        lws = fetch_workload(transport, rollout)
    companions = fetch_companions(transport, rollout)
    live = side_hash(rollout, lws, companions)
    beside = [companions[each] for each in sides.members(sides.active)[1:] if each in companions] if sides else ()
    seen = Seen(transport, rollouts, rollout, lws, known, live, told("stable") or live, told("aborted"), (*beside,))
    if sides is not None and not of_active:
        raise UsageError(instead(seen, sides))
    return seen


def _released(seen: Seen) -> str:
    """What becomes of another version in the LWS: while another one stands in for it, it has no groups."""
    made = standing_in(seen.rollout)
    if not made or action_rules.phase_of(seen.rollout) == "Progressing":
        return "it is released in steps"
    if action_rules.waits_to_leave(seen.rollout):
        return f"it waits for `rollout-lws home {seen.rollout['metadata']['name']}`"
    loads = seen.rollout["spec"].get("replicas")
    count = "its groups" if not loads else "1 group" if loads == 1 else f"{loads} groups"
    return f"it is released in steps and loads {count}, and the requests come back from {called(seen.rollout, made)}"


#: Maps what was read to JSON Patch operations (empty: nothing to do) and a description of them.
Edit = Callable[[Seen], tuple[versions.Operations, str]]


def _edit(
    name: str,
    target: Target,
    force: bool,
    edit: Edit,
    prepare: Callable[[Seen], bool] | None = None,
    *,
    instead: Instead = _of_pair,
) -> None:
    """Edit the LWS. ``prepare`` runs before a needed edit and returns whether it changed the release."""
    seen = _look(name, target, instead)
    operations, told = edit(seen)
    if operations:
        _refuse_kept(seen.lws, force)
        if prepare is not None and prepare(seen):
            seen = _look(name, target)
            operations, told = edit(seen)
    if operations:
        _patch(seen, operations)
    click.echo(f"{seen.called} {told}")


def _patch(seen: Seen, operations: versions.Operations) -> None:
    """Apply the patch; UsageError when the LWS has changed since it was read."""
    try:
        seen.transport.json_patch(_path(seen.lws), operations)
    except ApiError as error:
        if error.code in (409, 422) and _moved(seen):
            raise UsageError(
                f"{seen.called} was changed by another client meanwhile, nothing was"
                " changed here: look and decide again"
            ) from error
        raise


def _abort(seen: Seen) -> None:
    """Abort the release and wait until the rollback has finished."""
    name = seen.rollout["metadata"]["name"]
    click.echo(ask(seen.transport, seen.rollouts, name, action_rules.abort(), reason="undo"))
    current = fetch_rollout(seen.transport, seen.rollouts, name)
    for rollout in follow(seen.transport, seen.rollouts, current, None):
        if action_rules.phase_of(rollout) != "Progressing":
            return


def _path(lws: Object) -> str:
    return released_type(lws).resource.path(lws["metadata"]["namespace"], lws["metadata"]["name"])


def _moved(seen: Seen) -> bool:
    before = seen.lws["metadata"]
    now = fetch_named(seen.transport, seen.rollout, before["name"])["metadata"]
    return (now["uid"], now["generation"]) != (before["uid"], before["generation"])


def _refuse_kept(lws: Object, force: bool) -> None:
    keeper = gitops.owner(lws)
    if keeper and not force:
        raise UsageError(
            f"{lws['kind'].lower()}/{lws['metadata']['name']} is kept by {keeper}, which may take this back: change it"
            " in Git, or give --force"
        )


def _pairs(images: tuple[str, ...]) -> dict[str, str]:
    wanted = {}
    for each in images:
        container, equals, value = each.partition("=")
        if not (container and equals and value):
            raise click.UsageError(f"{each!r} is no CONTAINER=IMAGE")
        wanted[container] = value
    return wanted


def _short(template_hash: str) -> str:
    """A hash that is not too wide for a table: of several workloads that have a version together, the beginning of
    each of theirs.
    """
    own = hashes_of(template_hash)
    return template_hash if len(own) == 1 else HASH_SEPARATOR.join(each[:_SHOWN_DIGITS] for each in own)


def _role(each: versions.Stored, rollout: Object) -> str:
    status = rollout.get("status") or {}
    if each.template_hash == (status.get("stable") or {}).get("templateHash"):
        return "stable"
    if each.template_hash == (status.get("aborted") or {}).get("templateHash"):
        return "aborted"
    if status.get("phase") == "Progressing" and each.template_hash == status.get("observedTemplateHash"):
        return "new"
    if sides_of(rollout) is not None and each.template_hash == status.get("inactiveHash"):
        return "inactive"
    return _LEFT.get(each.rollback_reason, "")


def _as_json(each: versions.Stored, rollout: Object) -> Object:
    return {
        "revision": each.number,
        "role": _role(each, rollout),
        "lwsRevision": each.revision,
        "templateHash": each.template_hash,
        "created": each.created,
        "images": each.images,
    }
