"""docs/pictures/*.svg, made of plans by what ``rollout-lws plan --svg`` makes its pictures with.

``python -m tests.docs.pictures`` writes them; ``--check`` only compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.api import CanaryStrategy
from rollout_lws.api.generate import bring
from rollout_lws.api.resources import Keys
from rollout_lws.cli.demo import manifests
from rollout_lws.cli.manifests import read_manifests
from rollout_lws.cli.plan.picture import course_of
from rollout_lws.cli.plan.sources import Sources, plans
from rollout_lws.drawing.course import Course
from rollout_lws.drawing.foreseen import Asked, Held, course, way_back
from rollout_lws.drawing.picture import NARROW, picture
from rollout_lws.forecast.forecast import forecast
from rollout_lws.forecast.model import Forecast
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.observe.snapshot import Snapshot
from tests.docs import capacity, corridor
from tests.docs.pages import ROOT, blocks

FOLDER = ROOT / "docs/pictures"
#: How long a group of the pictures loads.
LOAD = 600.0
#: Accelerators of a group of the worked example.
GPU = {"nvidia.com/gpu": capacity.ACCELERATORS}
HELD = Held(GPU, GPU)
#: Titles of the capacities, by the style of the worked example.
CAPACITIES = {
    "InPlace": "InPlace",
    "Surge": "Surge",
    "ExtraWorkload": "ExtraWorkload",
    "BlueGreen": "Blue-green",
    "Swap": "Blue-green, Swap",
    "Shift": "Shift",
    "Pair": "Pair",
    "shift": "Pair, shift",
    "RouteOnly": "Pair, RouteOnly",
}


#: Names of files that are not those of the styles, as names that only differ in case may not be beside each other.
_FILES = {capacity.SHIFT: "shift-of-pair"}


def planned(*given: dict[str, Any], load: float = LOAD) -> Course:
    """The release of these manifests alone."""
    sources = Sources(Snapshot(Keys(DEFAULT_API_GROUP), {}), given, "default", asked=False)
    [plan] = plans(sources, "", datetime(2026, 1, 1, tzinfo=UTC), load)
    assert not plan.refusals, plan.refusals
    return course_of(plan)


def example(name: str, load: float = LOAD) -> Course:
    """The release of an example."""
    return planned(*read_manifests((str(ROOT / "examples" / name),)), load=load)


def of_readme() -> Course:
    """The release of the Rollout that the README begins with."""
    shown = yaml.safe_load(next(blocks(Path("README.md"), "yaml")))
    return replace(planned(manifests.workload(), shown, *manifests.traffic()), title="A release of llama")


def of_gates() -> Course:
    """The release of the strategy that the page about gates begins with."""
    shown = yaml.safe_load(next(blocks(Path("docs/gates.md"), "yaml")))
    made = manifests.rollout("rollouts.kruise.io/v1beta1", {"name": manifests.NAME})
    made["spec"]["strategy"] = shown["strategy"]
    return replace(planned(manifests.workload(), made, *manifests.traffic()), title="A step with three gates")


def capacities() -> dict[str, Course]:
    """The worked example by every capacity."""
    return {style: _of_capacity(style, title) for style, title in CAPACITIES.items()}


def _of_capacity(style: str, title: str) -> Course:
    found = capacity.of_example(style)
    peak = (capacity.EXAMPLE.replicas + found.extra) * capacity.ACCELERATORS
    loads = f"{found.loads} model loads" if found.loads else "its owner has loaded the new groups"
    if style == capacity.ROUTE_ONLY:
        peak *= 2
    return course(found, title, f"{loads}, {peak} accelerators at peak", HELD)


def promotions() -> dict[str, Course]:
    """A promotion in windows, and one in which the canary takes over."""
    steps = [{"replicas": "50%", "traffic": "50%", "pause": {"duration": 300}}]
    full = [*steps, {"replicas": "100%", "traffic": "100%"}]
    told = {"promotion-windows": ("In windows", steps), "promotion-at-once": ("All at once", full)}
    return {
        name: course(found := _forecast("ExtraWorkload", asked), title, _loads(found), HELD, asked={1: Asked(300)})
        for name, (title, asked) in told.items()
    }


def ways_back() -> dict[str, Course]:
    """Ways back out of the second step: of groups beside the old ones, and of groups in their places."""
    steps = [{"replicas": share, "traffic": share, "pause": {"duration": 300}} for share in ("25%", "50%")]
    asked = {1: Asked(300), 2: Asked(300)}
    titles = {"ExtraWorkload": "ExtraWorkload: at once", "InPlace": "InPlace: by loading again"}
    return {
        f"back-{style}": way_back(_forecast(style, steps), 2, title, "abort at the end of step 2", HELD, asked)
        for style, title in titles.items()
    }


def _forecast(style: str, steps: list[dict[str, Any]]) -> Forecast:
    routing = [{"service": "chat", "gateway": {"httpRouteName": "chat"}}]
    members = {"capacity": style, "steps": steps, "trafficRoutings": routing}
    return forecast(CanaryStrategy.model_validate(members), capacity.EXAMPLE)


def _loads(found: Forecast) -> str:
    return f"{found.loads} model loads, {found.seconds / 60:.0f} min"


def _beside(courses: Mapping[str, Course]) -> Iterator[tuple[str, str]]:
    """Pictures that stand side by side, on one scale."""
    for name, each in courses.items():
        yield name, picture(each, NARROW, [*courses.values()])


def pictures() -> dict[Path, str]:
    """All of them by their files."""
    alone = {
        "release": of_readme(),
        "plan": example("vllm", load=720),
        "gates": of_gates(),
        "pair": example("pair"),
        "pair-shift": example("pair-shift"),
        "prefill-decode": example("prefill-decode"),
        "swap": example("swap"),
        "shift": example("shift"),
    }
    made = {name: picture(each) for name, each in alone.items()}
    made |= _beside({f"capacity-{_FILES.get(style, style)}": each for style, each in capacities().items()})
    made |= _beside(promotions())
    made |= _beside(ways_back())
    made["corridor"] = corridor.corridor()
    return {FOLDER / f"{name.lower()}.svg": text for name, text in made.items()}


if __name__ == "__main__":
    sys.exit(bring(pictures(), sys.argv[1:]))
