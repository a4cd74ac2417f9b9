"""history, undo, restart, set image, release-hold: read the history and edit the LWS of a release.

The controller releases edits of the templates like any version. They need ``patch`` on leaderworkersets.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime

import click

from rollout_lws.cli import versions
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.actions import edit_client, pair_rules, undo_rules
from rollout_lws.cli.actions.edit_client import Seen, look, patch
from rollout_lws.cli.options import rollout_argument, with_target
from rollout_lws.cli.releases import stored_versions
from rollout_lws.cli.rollouts import fetch_rollout, find_rollouts, release_name
from rollout_lws.cli.sides import called, standing_in
from rollout_lws.cli.view import age, document, table
from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import Resource
from rollout_lws.targets.version import HASH_SEPARATOR, hashes_of

_force = click.option("--force", is_flag=True, help="Though a GitOps controller keeps the LWS and may take it back.")
_SHOWN_IMAGES = 3
_SHOWN_DIGITS = 5


@click.command()
@rollout_argument
@click.option("--revision", type=int, metavar="N", help="Print the whole version N.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Another form of output.")
@with_target
def history(name: str, revision: int | None, output: str | None, target: Target) -> None:
    """List the versions that Rollout NAME has stored; undo goes back to any of them."""
    transport, rollouts = _cluster(target)
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
        role = versions.role_of(each, rollout) or versions.left_because(each)
        rows.append((str(each.number), role, each.revision, _short(each.template_hash), age(each.created, now), images))
    click.echo("\n".join(table(rows)))


@click.command()
@rollout_argument
@click.option("--to-revision", type=int, metavar="N", help="The stored version N; by default the one before.")
@_force
@with_target
def undo(name: str, to_revision: int | None, force: bool, target: Target) -> None:
    """Put the version before into the LWS of Rollout NAME; in mid-release that is the stable one."""
    transport, rollouts = _cluster(target)
    click.echo(
        edit_client.undo(transport, rollouts, release_name(name), number=to_revision, force=force, tell=click.echo)
    )


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
        return versions.restarting(seen.lws, now), f"is to be restarted: {undo_rules.released(seen.rollout)}"

    transport, rollouts = _cluster(target)
    message = edit_client.edit(
        transport,
        rollouts,
        release_name(name),
        edit,
        force=force,
        instead=lambda seen, sides: pair_rules.without_restart(seen.rollout, sides),
    )
    click.echo(message)


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

    transport, rollouts = _cluster(target)
    click.echo(edit_client.edit(transport, rollouts, release_name(name), edit, force=force))


@click.command("release-hold")
@rollout_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@with_target
def release_hold(name: str, yes: bool, target: Target) -> None:
    """Let the workload of Rollout NAME roll by itself, without steps, until the annotation is removed."""
    transport, rollouts = _cluster(target)
    seen = look(
        transport,
        rollouts,
        release_name(name),
        lambda seen, sides: pair_rules.without_hold(seen.rollout, sides),
        held=True,
    )
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
        patch(replace(seen, lws=each), versions.annotating(each, mark, "true"))
    again = f"kubectl annotate lws {' '.join(names)} {mark}-"
    click.echo(f"{what} {are} let go of: {rolls}; to have {'them' if len(names) > 1 else 'it'} held again: {again}")


def _cluster(target: Target) -> tuple[Transport, Resource]:
    transport = click.get_current_context().with_resource(Transport.to(target))
    return transport, find_rollouts(transport, target.api_group)


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


def _as_json(each: versions.Stored, rollout: Object) -> Object:
    return {
        "revision": each.number,
        "role": versions.role_of(each, rollout) or versions.left_because(each),
        "lwsRevision": each.revision,
        "templateHash": each.template_hash,
        "created": each.created,
        "images": each.images,
    }
