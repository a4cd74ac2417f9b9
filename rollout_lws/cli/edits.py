"""history, undo, restart, set image, release-hold: what people do to the LWS of a release.

Edits of its templates are released like any version. They need ``patch`` on leaderworkersets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import click

from rollout_lws.cli import gitops, versions
from rollout_lws.cli.access.transport import Object, Transport
from rollout_lws.cli.options import Target, release_name, rollout_argument, with_target
from rollout_lws.cli.releases import fetch_rollout, find_rollouts, stored_versions, version_hash
from rollout_lws.cli.view import age, table
from rollout_lws.errors import ApiError, UsageError
from rollout_lws.objects.resources import LEADER_WORKER_SETS

_force = click.option("--force", is_flag=True, help="Though a GitOps controller keeps the LWS and may take it back.")
_SHOWN_IMAGES = 3


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
        _dump(known[0].members, output or "yaml")
        return
    if output:
        _dump([_as_json(each, rollout) for each in known], output)
        return
    now = datetime.now(UTC)
    rows = [("REVISION", "ROLE", "LWS REVISION", "VERSION", "AGE", "IMAGES")]
    for each in known:
        more = len(each.images) - _SHOWN_IMAGES
        images = ", ".join(each.images[:_SHOWN_IMAGES]) + (f" and {more} more" if more > 0 else "")
        role = _role(each, rollout)
        rows.append((str(each.number), role, each.revision, each.template_hash, age(each.created, now), images))
    click.echo("\n".join(table(rows)))


@click.command()
@rollout_argument
@click.option("--to-revision", type=int, metavar="N", help="The stored version N; by default the one before.")
@_force
@with_target
def undo(name: str, to_revision: int | None, force: bool, target: Target) -> None:
    """Put the version before into the LWS of Rollout NAME; in mid-release that is the stable one."""

    def edit(lws: Object, rollout: Object, known: list[versions.Stored]) -> tuple[versions.Operations, str]:
        live = version_hash(lws)
        stable = ((rollout.get("status") or {}).get("stable") or {}).get("templateHash") or live
        found = versions.to_undo(known, live, stable, to_revision)
        if found.template_hash == stable:
            what = "the release goes back to it"
        else:
            what = "it is released in steps"
        told = f"has revision {found.number} again ({', '.join(found.images)}): {what}"
        return versions.putting_back(lws, found.members), told

    _edit(name, target, force, edit)


@click.command()
@rollout_argument
@_force
@with_target
def restart(name: str, force: bool, target: Target) -> None:
    """Release the version of Rollout NAME's LWS once more, so that each of its groups is made anew, step by step."""

    def edit(lws: Object, *_: Any) -> tuple[versions.Operations, str]:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return versions.restarting(lws, now), "is to be restarted: it is released in steps"

    _edit(name, target, force, edit)


@click.group("set")
def set_() -> None:
    """Change a part of the version."""


@set_.command("image")
@rollout_argument
@click.argument("images", nargs=-1, required=True, metavar="CONTAINER=IMAGE...")
@click.option("--role", type=click.Choice(["leader", "worker", "all"]), default="all", show_default=True)
@_force
@with_target
def image(name: str, images: tuple[str, ...], role: str, force: bool, target: Target) -> None:
    """Give containers of Rollout NAME's LWS another image; * stands for every container."""
    wanted = _pairs(images)

    def edit(lws: Object, *_: Any) -> tuple[versions.Operations, str]:
        operations, told = versions.setting_images(lws, wanted, role)
        return operations if told else [], "; ".join(told) or "has these images already"

    _edit(name, target, force, edit)


@click.command("release-hold")
@rollout_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@with_target
def release_hold(name: str, yes: bool, target: Target) -> None:
    """Let LeaderWorkerSet roll the LWS of Rollout NAME by itself, without steps, until the annotation is removed."""
    transport = click.get_current_context().with_resource(Transport.to(target))
    rollouts = find_rollouts(transport, target.api_group)
    rollout = fetch_rollout(transport, rollouts, release_name(name))
    lws = _workload(transport, rollout)
    mark, what = f"{rollouts.group}/release-hold", f"leaderworkerset/{lws['metadata']['name']}"
    if (lws["metadata"].get("annotations") or {}).get(mark) == "true":
        click.echo(f"{what} is let go of already")
        return
    stable = ((rollout.get("status") or {}).get("stable") or {}).get("templateHash")
    waits = stable is not None and version_hash(lws) != stable
    rolls = "the version that waits rolls at once, in every group" if waits else "the next version rolls at once"
    if not yes:
        click.confirm(f"{what}: {rolls}. Go on?", abort=True, err=True)
    path = LEADER_WORKER_SETS.path(lws["metadata"]["namespace"], lws["metadata"]["name"])
    transport.merge_patch(path, {"metadata": {"annotations": {mark: "true"}}})
    click.echo(
        f"{what} is let go of: {rolls}; to have it held again: kubectl annotate lws {lws['metadata']['name']} {mark}-"
    )


#: An LWS, its Rollout and the stored versions → operations (none: nothing to do) and what they do, in words.
Edit = Callable[[Object, Object, list[versions.Stored]], tuple[versions.Operations, str]]


def _edit(name: str, target: Target, force: bool, edit: Edit) -> None:
    transport = click.get_current_context().with_resource(Transport.to(target))
    rollouts = find_rollouts(transport, target.api_group)
    rollout = fetch_rollout(transport, rollouts, release_name(name))
    lws = _workload(transport, rollout)
    operations, told = edit(lws, rollout, stored_versions(transport, rollouts, rollout))
    meta = lws["metadata"]
    if operations:
        _refuse_kept(lws, force)
        try:
            transport.json_patch(LEADER_WORKER_SETS.path(meta["namespace"], meta["name"]), operations)
        except ApiError as error:
            if error.code in (409, 422) and _moved(transport, rollout, meta):
                raise UsageError(
                    f"leaderworkerset/{meta['name']} was changed by somebody else meanwhile, nothing was changed here:"
                    " look and decide again"
                ) from error
            raise
    click.echo(f"leaderworkerset/{meta['name']} {told}")


def _moved(transport: Transport, rollout: Object, meta: Mapping[str, Any]) -> bool:
    now = _workload(transport, rollout)["metadata"]
    return (now["uid"], now["generation"]) != (meta["uid"], meta["generation"])


def _refuse_kept(lws: Object, force: bool) -> None:
    keeper = gitops.owner(lws)
    if keeper and not force:
        raise UsageError(
            f"leaderworkerset/{lws['metadata']['name']} is kept by {keeper}, which may take this back: change it in"
            " Git, or give --force"
        )


def _workload(transport: Transport, rollout: Object) -> Object:
    name, namespace = rollout["spec"]["workloadRef"]["name"], rollout["metadata"]["namespace"]
    try:
        return transport.get(LEADER_WORKER_SETS.path(namespace, name))
    except ApiError as error:
        if error.code != 404:
            raise
        raise UsageError(
            f"rollout/{rollout['metadata']['name']} refers to LeaderWorkerSet {name!r}, which does not exist"
        ) from error


def _pairs(images: tuple[str, ...]) -> dict[str, str]:
    wanted = {}
    for each in images:
        container, equals, value = each.partition("=")
        if not (container and equals and value):
            raise click.UsageError(f"{each!r} is no CONTAINER=IMAGE")
        wanted[container] = value
    return wanted


def _role(each: versions.Stored, rollout: Object) -> str:
    status = rollout.get("status") or {}
    if each.template_hash == (status.get("stable") or {}).get("templateHash"):
        return "stable"
    if each.template_hash == (status.get("aborted") or {}).get("templateHash"):
        return "aborted"
    if status.get("phase") == "Progressing" and each.template_hash == status.get("observedTemplateHash"):
        return "new"
    return ""


def _as_json(each: versions.Stored, rollout: Object) -> Object:
    return {
        "revision": each.number,
        "role": _role(each, rollout),
        "lwsRevision": each.revision,
        "templateHash": each.template_hash,
        "created": each.created,
        "images": each.images,
    }


def _dump(value: Any, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(value, indent=4))
    else:
        import yaml

        click.echo(yaml.safe_dump(value, sort_keys=False), nl=False)
