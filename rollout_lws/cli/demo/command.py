"""demo: a whole release on a throw-away cluster; the exit code is the result of the end state's checks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

import click

from rollout_lws.cli.demo import manifests, pair, prefill_decode
from rollout_lws.cli.demo.checks import Object
from rollout_lws.cli.demo.page import Showing
from rollout_lws.cli.demo.plan import Companion, Course, Plan
from rollout_lws.cli.demo.play import play
from rollout_lws.cli.demo.teller import Teller
from rollout_lws.cli.get.listing import coloured
from rollout_lws.cli.manifests import read_manifests
from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.cli.screen import Screen, has_colours, is_terminal
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import DEFAULT_API_GROUP, LEADER_WORKER_SETS
from rollout_lws.settings import Settings

#: Seconds of a pod's startup, of the user's hesitation, and of a deleted pod's termination: normally, and with --fast.
_LEISURE, _FAST = (2.0, 2.0, 0.5), (0.3, 0.2, 0.25)
#: Seconds between two rounds of measurements: a demo's window is as long as two of a cluster's rounds.
_SCRAPE_EVERY = 1.0


@dataclass(frozen=True, slots=True)
class _Demo:
    """``gated`` and ``strategy`` are those of our own manifests; ``paired``, they are those of two workloads, or with
    ``companions`` of two on each side.
    """

    course: Course = Course.PROMOTED
    gated: bool = False
    strategy: Mapping[str, str] = field(default_factory=dict)
    paired: bool = False
    companions: bool = False


_BAD_VERSION = "bad-version"
_DEMOS = {
    "canary": _Demo(gated=True),
    _BAD_VERSION: _Demo(Course.GATE_FAILED, gated=True),
    "abort": _Demo(Course.ABORTED),
    "blue-green": _Demo(strategy={"style": "blueGreen"}),
    "in-place": _Demo(strategy={"capacity": "InPlace"}),
    "surge": _Demo(strategy={"capacity": "Surge"}),
    "shift": _Demo(paired=True),
    "prefill-decode": _Demo(paired=True, companions=True),
}


@click.command()
@click.argument("what", type=click.Choice(list(_DEMOS)), default="canary")
@click.option(
    "-f",
    "files",
    multiple=True,
    metavar="FILE|DIR",
    help="Your own LeaderWorkerSet, Rollout, and what goes with them. A second document of the same LeaderWorkerSet is"
    " its new version; without one a harmless annotation on its templates is. Pauses and"
    f" drains are cut to {manifests.SHORT_WAIT} s, and gates left out, since no model server runs here.",
)
@click.option("--fast", is_flag=True, help="Groups load in a moment.")
@click.option(
    "--page", is_flag=True, help="Show it on a page in the browser, too; at a terminal without --fast you approve it."
)
@click.option("--no-browser", is_flag=True, help="Of --page: print its address only.")
@click.option("--api-group", default=DEFAULT_API_GROUP, show_default=True, help="API group of our kinds.")
def demo(what: str, files: tuple[str, ...], fast: bool, page: bool, no_browser: bool, api_group: str) -> None:
    """Watch a release on an embedded cluster: a canary that is promoted, or a bad version that a gate finds at 10 % of
    the requests, or one that you abort, or blue-green, or a canary whose groups are in the LeaderWorkerSet itself:
    renewed in place, or made in a surge, or a pair of LeaderWorkerSets of which one gives up groups as the other one
    gets some, or prefill and decode that are released as one version.

    A Gateway shares the requests, and a meter says where they went; with -f as your own Rollout says.

    Exit code 0 only if the end state was checked and found right, or if you went another way on the page.
    """
    if no_browser and not page:
        raise click.UsageError("--no-browser: without --page none is opened")
    settings = Settings(api_group=api_group, scrape_through="api-server", scrape_every=_SCRAPE_EVERY)
    given = read_manifests(files)
    if files and not given:
        raise UsageError("-f gives no manifests: add the one of the LeaderWorkerSet to release")
    plan = plan_of(what, given, fast, rollouts_of(api_group).api_version)
    showing = Showing(opens=not no_browser, attended=is_terminal() and not fast) if page else None
    with Screen(coloured if has_colours() else str) if is_terminal() else nullcontext() as screen:
        passed = asyncio.run(play(plan, settings, Teller(screen), showing))
    if not passed:
        click.echo("rollout-lws: the end state is not what it should be: see the checks marked FAIL", err=True)
        sys.exit(1)


def plan_of(what: str, given: list[Object], fast: bool, api_version: str) -> Plan:
    """The demo of the user's manifests, or of our own; UsageError when the user's do not fit together."""
    load, hesitation, ending = _FAST if fast else _LEISURE
    demo = _DEMOS[what]
    if given and demo.course is Course.GATE_FAILED:
        raise UsageError(f"{what} plays its own manifests, whose model servers tell figures: leave -f out")
    if given and demo.paired:
        raise UsageError(f"{what} plays its own manifests, of several LeaderWorkerSets: leave -f out")
    if demo.paired:
        return _pair(demo, api_version, load, hesitation, ending)
    gated = demo.gated and not given
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
        else manifests.rollout(api_version, old["metadata"], routed=not given, gated=gated, **demo.strategy)
    )
    target = rollout["spec"]["workloadRef"].get("name")
    if target != old["metadata"]["name"]:
        raise UsageError(
            f"the Rollout's workloadRef names {target!r}, the LeaderWorkerSet is {old['metadata']['name']!r}"
        )
    template, change = _version(old, workloads[1:], demo.course)
    if gated:
        old, template = _with_servers(old, template, demo.course)
    others = others if given else manifests.traffic()
    short = manifests.with_short_waits(rollout if gated else manifests.without_gates(rollout))
    return Plan(old, short, others, template, change, demo.course, load, hesitation, ending)


def _pair(demo: _Demo, api_version: str, load: float, hesitation: float, ending: float) -> Plan:
    if demo.companions:
        return _prefill_decode(demo.course, api_version, load, hesitation, ending)
    old = pair.workload(pair.BLUE)
    template, change = _version(manifests.workload(), [], demo.course)
    plan = manifests.with_short_waits(pair.rollout(api_version))
    return Plan(old, plan, pair.others(), template, change, demo.course, load, hesitation, ending, pair.GREEN)


def _prefill_decode(course: Course, api_version: str, load: float, hesitation: float, ending: float) -> Plan:
    old, new = (prefill_decode.decode(name) for name in (prefill_decode.DECODE_BLUE, prefill_decode.DECODE_GREEN))
    template, change = manifests.with_image(new, manifests.NEW), f"set image {manifests.NEW}"
    companion = Companion(
        prefill_decode.PREFILL_BLUE,
        prefill_decode.PREFILL_GREEN,
        manifests.with_image(prefill_decode.prefill(prefill_decode.PREFILL_GREEN), manifests.NEW),
        prefill_decode.RELEASE_ID,
    )
    plan, others = manifests.with_short_waits(prefill_decode.rollout(api_version)), prefill_decode.others()
    side = prefill_decode.DECODE_GREEN
    return Plan(old, plan, others, template, change, course, load, hesitation, ending, side, companion)


def _demand(manifest: Object, member: str) -> None:
    spec = manifest.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get(member), dict):
        raise UsageError(f"{manifest['kind']} {manifest['metadata']['name']} has no spec.{member}: add it")


def _version(old: Object, second: list[Object], course: Course) -> tuple[Object, str]:
    """The new leaderWorkerTemplate and a description of the change."""
    if course is not Course.PROMOTED:
        slow = course is Course.GATE_FAILED
        image = manifests.SLOW if slow else manifests.BAD
        how = ", three times as slow to its first token" if slow else ""
        return manifests.with_image(old, image), f"set image {image}{how}"
    if second:
        template: Object = second[0]["spec"]["leaderWorkerTemplate"]
        return template, "apply the second document"
    if manifests.with_image(old, manifests.OLD) == manifests.workload()["spec"]["leaderWorkerTemplate"]:
        return manifests.with_image(old, manifests.NEW), f"set image {manifests.NEW}"
    return manifests.with_annotation(old), "annotate the templates"


def _with_servers(old: Object, template: Object, course: Course) -> tuple[Object, Object]:
    """The LWS, and its new leaderWorkerTemplate, with model servers whose figures the gate measures."""
    seconds = manifests.SLOW_FIRST_TOKEN if course is Course.GATE_FAILED else manifests.FIRST_TOKEN
    before = manifests.with_first_token(old["spec"]["leaderWorkerTemplate"], manifests.FIRST_TOKEN)
    served = {**old, "spec": {**old["spec"], "leaderWorkerTemplate": before}}
    return served, manifests.with_first_token(template, seconds)
