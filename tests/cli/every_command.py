"""What every command answers in every state of a release, as a page: docs/commands.md.

`python -m tests.cli.every_command` writes it; a test fails when what is said has changed since.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollout_lws.api.resources import keys
from rollout_lws.cli.demo import manifests
from rollout_lws.errors import ApiError
from rollout_lws.objects.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS
from rollout_lws.sandbox.faults import Effect
from rollout_lws.targets.table import stored_version
from rollout_lws.targets.version import Version
from rollout_lws.workload.revisions import history_body
from tests.cli.conftest import World
from tests.cli.states import HASH, HEALTHY
from tests.docs.pages import ROOT

Object = dict[str, Any]
PAGE = ROOT / "docs" / "commands.md"
NAME = "llama"
_IN_STEPS: Object = {
    "phase": "Progressing",
    "observedTemplateHash": HASH,
    "observedRolloutID": "r7",
    "currentStepIndex": 2,
    "currentStepState": "StepUpgrade",
    "capacity": "ExtraWorkload",
}


def _version_before() -> Version:
    spec = manifests.workload()["spec"]
    for template in ("leaderTemplate", "workerTemplate"):
        spec["leaderWorkerTemplate"][template]["spec"]["containers"][0]["image"] = f"{manifests.IMAGE}:v0.17.0"
    return stored_version(spec)


#: The version that serves while another is released.
_BEFORE = _version_before()


def _in_steps(state: str, message: str, **more: Any) -> Object:
    said = {"state": state, "step": "2/3", "traffic": "20%", "new": "1/2", "stable": "4/4"}
    return {**_IN_STEPS, "message": message, "summary": said, **more}


def _stalled(reason: str, message: str) -> list[Object]:
    return [
        {
            "type": "Stalled",
            "status": "True",
            "reason": reason,
            "message": message,
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]


_TOO_FEW = "the new version completed 12 requests, and 100 are the least"
_LATE = "step 2 has had no further ready group for 1h: abort, or fix it and retry"
_EDITED = (
    "LeaderWorkerSet llama-green has all requests, and the version in its template waits: apply it to llama to release"
    " it, and restore the template of llama-green"
)
#: A release to the second LWS of a pair is over.
_OF_PAIR: Object = {
    **HEALTHY,
    "active": f"{NAME}-green",
    "inactiveHash": _BEFORE.template_hash,
    "observedRolloutID": "r7",
}
_STANDS_IN = (
    "llama-canary serves, and LeaderWorkerSet llama has no groups: to have its requests brought there first: kubectl"
    " rollout-lws home llama; to leave both as they are: kubectl annotate rollout llama"
    " rollouts.kruise.io/leave-as-is=true"
)
_INVALID = "spec.strategy.canary.steps[1].replicas decreases: correct it"


@dataclass(frozen=True, slots=True)
class State:
    """A state of a release: what the controller says in it, and what else is the matter."""

    name: str
    about: str
    status: Object | None = None
    arguments: tuple[str, ...] = ()
    prepare: Callable[[World], object] = field(default=lambda _: None)
    #: Whether the Rollout names two LWSs, of which `llama` serves the version before at first; and whether its releases
    #: scale them.
    paired: bool = False
    scaled: bool = False
    #: Whether LWS `llama` is parked, and `llama-canary` serves in its place.
    swapped: bool = False


def _newer(world: World) -> None:
    labels = {"metadata": {"labels": {"rollouts.kruise.io/rollout-id": "r8"}}}
    world.server.patch(LEADER_WORKER_SETS, "default", NAME, labels)


def _forbid(world: World) -> None:
    """Reading is allowed, nothing else; in the words of RBAC."""
    for verb, plural, resource, group in (
        ("patch", "rollouts", "rollouts/status", "rollouts.kruise.io"),
        ("patch", "leaderworkersets", "leaderworkersets", "leaderworkerset.x-k8s.io"),
    ):
        said = (
            f'{plural}.{group} "{NAME}" is forbidden: User "jane" cannot {verb} resource "{resource}" in API group'
            f' "{group}" in the namespace "default"'
        )
        effect = Effect(refusal=ApiError(403, "Forbidden", said))
        world.http.gate.faults.add(effect, verb, plural, count=None)


STATES = (
    State("At rest", "The stable version serves, nothing is released.", HEALTHY | {"observedRolloutID": "r7"}),
    State(
        "Waiting for groups",
        "Groups of a step are loading.",
        _in_steps("Loading", "1 of 2 groups of the new version ready"),
    ),
    State(
        "Waiting for approval",
        "A step is complete and has a pause without a duration.",
        _in_steps("AwaitingApproval", "step 2 of 3 waits for approval", currentStepState="StepPaused"),
    ),
    State(
        "Waiting for the router",
        "A share was asked for and no router has accepted it yet.",
        _in_steps(
            "Routing", "HTTPRoute llama: Gateway inference says nothing about it", currentStepState="StepTrafficRouting"
        ),
    ),
    State(
        "Deadline passed",
        "No further group was ready in time.",
        _in_steps("Stalled", _LATE, conditions=_stalled("ProgressDeadlineExceeded", _LATE)),
    ),
    State(
        "Gate without a verdict",
        "The time of a gate is over, and its figures say nothing.",
        _in_steps(
            "Stalled",
            f"gate errors: {_TOO_FEW}",
            currentStepState="StepMetricsAnalysis",
            conditions=_stalled("GateInconclusive", f"gate errors: {_TOO_FEW}"),
            gates=[{"name": "errors", "result": "Inconclusive", "message": _TOO_FEW}],
        ),
    ),
    State(
        "Promoting",
        "The steps are over, the LWS's own groups are renewed.",
        _in_steps("Promoting", "renewing group 3", finalising={"reason": "Success", "task": "Promote"}),
    ),
    State(
        "Aborted",
        "The release went back; the LWS still asks for the aborted version.",
        {
            **_IN_STEPS,
            "phase": "Aborted",
            "aborted": {"templateHash": HASH},
            "stable": {"templateHash": _BEFORE.template_hash},
            "summary": {"state": "Aborted", "stable": "4/4"},
            "message": "aborted by jane",
        },
    ),
    State(
        "Superseded",
        "A newer version, r8, was applied; the command still means r7.",
        _in_steps(
            "Loading", "0 of 2 groups of the new version ready", observedRolloutID="r8", observedTemplateHash="b"
        ),
        ("--release-id", "r7"),
        _newer,
    ),
    State(
        "Invalid",
        "The controller refuses the Rollout.",
        {
            **HEALTHY,
            "phase": "Healthy",
            "stable": {"templateHash": _BEFORE.template_hash},
            "summary": {"state": "Stalled", "stable": "4/4"},
            "message": _INVALID,
            "conditions": _stalled("InvalidSpec", _INVALID),
        },
    ),
    State(
        "Pair at rest",
        "The Rollout names LWSs `llama` and `llama-green`, with `touch: RouteOnly`; a release to the second one is"
        " over, and the first one still has the version before.",
        _OF_PAIR,
        paired=True,
    ),
    State(
        "Pair at rest, scaled by its releases",
        "The same without `touch`: `llama` is parked, with 0 groups.",
        _OF_PAIR,
        paired=True,
        scaled=True,
    ),
    State(
        "Pair whose active side was edited",
        "Another template was applied to `llama-green`, which has the requests and is held.",
        {
            **_OF_PAIR,
            "stable": {"templateHash": _BEFORE.template_hash},
            "observedTemplateHash": _BEFORE.template_hash,
            "verdict": {"condition": "Stalled", "reason": "ActiveSideEdited", "since": "2026-01-01T00:00:00Z"},
            "conditions": _stalled("ActiveSideEdited", _EDITED),
            "summary": {"state": "Stalled", "stable": "4/4"},
            "message": _EDITED,
        },
        paired=True,
        scaled=True,
    ),
    State(
        "Pair that waits for approval",
        "A release moves requests from LWS `llama` to `llama-green`, and a step of it is complete.",
        _in_steps(
            "AwaitingApproval",
            "step 2 of 3 waits for approval",
            currentStepState="StepPaused",
            active=NAME,
            inactiveHash=_BEFORE.template_hash,
            capacity="Pair",
        ),
        paired=True,
    ),
    State(
        "Swapped, at rest",
        "A release with promotion `Swap` is over: LWS `llama-canary` serves, and `llama` is parked, with 0 groups.",
        HEALTHY | {"observedRolloutID": "r7"},
        swapped=True,
    ),
    State(
        "Swapped, and a release is on",
        "The next release brings its version to LWS `llama`, and a step of it is complete.",
        _in_steps("AwaitingApproval", "step 2 of 3 waits for approval", currentStepState="StepPaused"),
        swapped=True,
    ),
    State(
        "Swapped, and to be deleted",
        "The Rollout is deleted while LWS `llama-canary` serves in place of `llama`.",
        HEALTHY
        | {
            "observedRolloutID": "r7",
            "phase": "Terminating",
            "verdict": {"condition": "Stalled", "reason": "StandInServes", "since": "2026-01-01T00:00:00Z"},
            "conditions": _stalled("StandInServes", _STANDS_IN),
            "summary": {"state": "Stalled", "stable": "4/4"},
            "message": _STANDS_IN,
        },
        swapped=True,
    ),
    State("Not found", "There is no Rollout of that name."),
    State(
        "No permission",
        "A step waits for approval; the user may only read.",
        _in_steps("AwaitingApproval", "step 2 of 3 waits for approval", currentStepState="StepPaused"),
        prepare=_forbid,
    ),
    State("API server away", "No server answers at the address.", arguments=("--server", "http://127.0.0.1:1")),
)
COMMANDS = (
    ("get", NAME),
    ("status", NAME, "--timeout", "0"),
    ("promote", NAME),
    ("promote", NAME, "--full"),
    ("promote", NAME, "--to-step", "1"),
    ("pause", NAME),
    ("resume", NAME),
    ("abort", NAME),
    ("retry", NAME),
    ("skip", NAME, "errors"),
    ("start", NAME),
    ("home", NAME),
    ("history", NAME),
    ("undo", NAME),
    ("restart", NAME),
    ("set", "image", NAME, "*=vllm:9"),
    ("release-hold", NAME, "--yes"),
)
#: What these say hangs on every object of a release, not on its state alone: here only where they cannot look.
LOOKS = (("plan", NAME), ("analyze", NAME), ("events", NAME), ("doctor", NAME))
#: Commands that take --release-id.
_BOUND = ("status", "promote", "abort")


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    said: str


def answer(state: State, command: tuple[str, ...]) -> Answer:
    """What the command says in a fresh world in this state."""
    with tempfile.TemporaryDirectory() as directory:
        world = World(Path(directory))
        try:
            return _ask(world, state, command)
        finally:
            world.close()


def _ask(world: World, state: State, command: tuple[str, ...]) -> Answer:
    if state.status is not None:
        status: Object = {"stable": {"templateHash": _BEFORE.template_hash}} | state.status
        if state.paired:
            world.pair(scaled=state.scaled, **status)
        elif state.swapped:
            world.swap(**status)
        else:
            world.release(**status)
        _remember(world)
        world.answer()
        world.do(lambda: state.prepare(world))
    extra = state.arguments if command[0] in _BOUND or "--server" in state.arguments else ()
    result = world.run(*command, *extra)
    lines = [line for line in (result.stdout or result.stderr).splitlines() if line.strip()]
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return Answer(1, f"rollout-lws: {result.exception}")
    if command[0] == "get":
        lines = [next(line for line in lines if line.startswith("Status"))]
    if command[0] == "history":
        lines = [" ".join(line.split()[:2]) for line in lines[1:]]
    return Answer(result.exit_code, "; ".join(lines) if command[0] == "history" else lines[-1])


def _remember(world: World) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}
    body = history_body(_BEFORE, keys(), rollout=NAME, namespace="default", owner=owner, number=1, revision="6d8f7c9b5")
    world.do(lambda: world.server.create(CONTROLLER_REVISIONS, body))


def page() -> str:
    parts = [_INTRODUCTION]
    parts += [section(state) for state in STATES]
    return "\n".join(parts)


def section(state: State) -> str:
    """What the page says of a state."""
    lines = [f"## {state.name}", "", state.about, "", "| command | exit code | says |", "|---|---|---|"]
    blind = state.status is None or "--server" in state.arguments
    for command in (*COMMANDS, *(LOOKS if blind else ())):
        found = answer(state, command)
        lines.append(f"| `{' '.join(command)}` | {found.code} | {_cell(found.said)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


_INTRODUCTION = """\
# Every command in every state

What each command answers about Rollout `llama`, state by state: its exit code, and its last line (of `get` the one with
the state, of `history` revisions and roles). Lines that begin with `rollout-lws:` go to standard error. A controller is
running, and does what it is asked for. `plan`, `analyze`, `events` and `doctor` tell of every object of a release, not
of its state alone, so they are here only where they cannot look.

This page is written by the commands themselves, and a test fails when one of them says something else.
"""

if __name__ == "__main__":
    PAGE.write_text(page())
