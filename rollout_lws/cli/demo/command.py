"""demo: a whole release on a throw-away cluster; the exit code is the result of the end state's checks."""

from __future__ import annotations

import asyncio
import sys
from contextlib import nullcontext

import click

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.demo.checks import Object
from rollout_lws.cli.demo.play import Plan, play
from rollout_lws.cli.demo.teller import Teller
from rollout_lws.cli.get.listing import coloured
from rollout_lws.cli.manifests import read_manifests
from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.cli.screen import Screen, has_colours, is_terminal
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import DEFAULT_API_GROUP, LEADER_WORKER_SETS
from rollout_lws.settings import Settings

#: Seconds of a pod's startup, of the user's hesitation, and of a deleted pod's termination: normally, and with --fast.
_LEISURE, _FAST = (3.0, 2.0, 0.5), (0.3, 0.2, 0.25)
#: Strategy of our own manifests in each demo that is not a plain canary.
_STYLES = {
    "blue-green": {"style": "blueGreen"},
    "in-place": {"capacity": "InPlace"},
    "surge": {"capacity": "Surge"},
}


@click.command()
@click.argument("what", type=click.Choice(["canary", "abort", "blue-green", "in-place", "surge"]), default="canary")
@click.option(
    "-f",
    "files",
    multiple=True,
    metavar="FILE|DIR",
    help="Your own LeaderWorkerSet, Rollout, and what goes with them. A second document of the same LeaderWorkerSet is"
    " its new version; without one a harmless annotation on its templates is. Pauses and"
    f" drains are cut to {manifests.SHORT_WAIT} s.",
)
@click.option("--fast", is_flag=True, help="Groups load in a moment.")
@click.option("--api-group", default=DEFAULT_API_GROUP, show_default=True, help="API group of our kinds.")
def demo(what: str, files: tuple[str, ...], fast: bool, api_group: str) -> None:
    """Watch a release on an embedded cluster: a canary that is promoted, or one that is aborted, or blue-green, or a
    canary whose groups are in the LeaderWorkerSet itself: renewed in place, or made in a surge.

    A Gateway shares the requests, and a meter says where they went; with -f as your own Rollout says.

    Exit code 0 only if the end state was checked and found right.
    """
    settings = Settings(api_group=api_group, scrape_through="api-server")
    given = read_manifests(files)
    if files and not given:
        raise UsageError("-f gives no manifests: add the one of the LeaderWorkerSet to release")
    plan = plan_of(what, given, fast, rollouts_of(api_group).api_version)
    with Screen(coloured if has_colours() else str) if is_terminal() else nullcontext() as screen:
        passed = asyncio.run(play(plan, settings, Teller(screen)))
    if not passed:
        click.echo("rollout-lws: the end state is not what it should be: see the checks marked FAIL", err=True)
        sys.exit(1)


def plan_of(what: str, given: list[Object], fast: bool, api_version: str) -> Plan:
    """The demo of the user's manifests, or of our own; UsageError when the user's do not fit together."""
    load, hesitation, ending = _FAST if fast else _LEISURE
    workloads = [each for each in given if each["kind"] == LEADER_WORKER_SETS.kind]
    releases = [each for each in given if each["kind"] == "Rollout"]
    others = tuple(each for each in given if each not in workloads and each not in releases)
    for each in (*workloads, *releases):
        _demand(each, "leaderWorkerTemplate" if each in workloads else "workloadRef")
    if given and not workloads:
        raise UsageError("-f gives no LeaderWorkerSet: add the manifest of the one to release")
    if len(releases) > 1 or len({each["metadata"]["name"] for each in workloads}) > 1 or len(workloads) > 2:
        raise UsageError("-f takes one LeaderWorkerSet (twice for its new version) and one Rollout")
    old = workloads[0] if workloads else manifests.workload()
    rollout = (
        releases[0]
        if releases
        else manifests.rollout(api_version, old["metadata"], routed=not given, **_STYLES.get(what, {}))
    )
    target = rollout["spec"]["workloadRef"].get("name")
    if target != old["metadata"]["name"]:
        raise UsageError(
            f"the Rollout's workloadRef names {target!r}, the LeaderWorkerSet is {old['metadata']['name']!r}"
        )
    aborts = what == "abort"
    template, change = _version(old, workloads[1:], aborts)
    others = others if given else manifests.traffic()
    short = manifests.with_short_waits(rollout)
    return Plan(old, short, others, template, change, aborts, load, hesitation, ending)


def _demand(manifest: Object, member: str) -> None:
    spec = manifest.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get(member), dict):
        raise UsageError(f"{manifest['kind']} {manifest['metadata']['name']} has no spec.{member}: add it")


def _version(old: Object, second: list[Object], aborts: bool) -> tuple[Object, str]:
    """The new leaderWorkerTemplate and a description of the change."""
    if aborts:
        return manifests.with_image(old, manifests.BAD), f"set image {manifests.BAD}"
    if second:
        template: Object = second[0]["spec"]["leaderWorkerTemplate"]
        return template, "apply the second document"
    if manifests.with_image(old, manifests.OLD) == manifests.workload()["spec"]["leaderWorkerTemplate"]:
        return manifests.with_image(old, manifests.NEW), f"set image {manifests.NEW}"
    return manifests.with_annotation(old), "annotate the templates"
