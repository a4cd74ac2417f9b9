"""What a person may do with a release now: each action with its effect, or why it makes no sense. Pure.

The command line's rules judge, so that the page refuses what a command would refuse, in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rollout_lws.cli.actions import action_rules, undo_rules
from rollout_lws.cli.actions.action_rules import Already, Ask, Judge
from rollout_lws.cli.get.ahead import after_approval, effect_of_abort, effect_of_home, effect_of_start, live_hash
from rollout_lws.cli.get.plan import PlannedStep, planned_steps
from rollout_lws.cli.releases import Release
from rollout_lws.cli.rollouts import gates, releasing
from rollout_lws.cli.sides import called, edited, goes_back, kept_version, serving_hash, sides_of, standing_in
from rollout_lws.errors import UsageError

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Action:
    """One action: its name in addresses, what its button says, what is asked before it is done, who judges it, and its
    effect in words.
    """

    name: str
    label: str
    question: Callable[[Release], str]
    judge: Callable[[Release], Judge]
    effect: Callable[[Release], str] = lambda _: ""
    applies: Callable[[Release], bool] = lambda _: True
    """Whether it is offered at all."""


def _named(question: str) -> Callable[[Release], str]:
    """The question with the Rollout's name, its release and its step."""

    def ask(shown: Release) -> str:
        status = shown.rollout.get("status") or {}
        release = f"release {status['observedRolloutID']}" if status.get("observedRolloutID") else "the release"
        return question.format(
            name=shown.rollout["metadata"]["name"], release=release, step=action_rules.step_words(shown.rollout)
        )

    return ask


def _may_undo(rollout: Object) -> Ask | Already:
    """What can be said without the history, which is read only when it is undone."""
    name = rollout["metadata"]["name"]
    if sides_of(rollout) is not None:
        raise UsageError(
            f"rollout/{name} is a pair, whose workloads are not edited: in a release abort it, after it start the other"
            f" side; `rollout-lws undo {name}` says which"
        )
    if not action_rules.phase_of(rollout):
        raise UsageError(f"rollout/{name} is not seen by a controller yet: nothing can be undone")
    return Ask("Undo", "")


def _undoes_to(shown: Release) -> tuple[str, str]:
    """The version that an undo puts back, and the stable one. At rest that is in the history, which is read only when
    it is undone; "" for one that has to load.
    """
    live = shown.edited.workload.version.template_hash if shown.edited is not None else ""
    stable = serving_hash(shown.rollout) or live
    return (stable if live != stable else kept_version(shown.rollout)), stable


def _effect_of_undo(shown: Release) -> str:
    version, stable = _undoes_to(shown)
    what = "the stable version" if version == stable else "the version before"
    return undo_rules.effect(shown.rollout, version, stable, what)


def _undo_aborts(shown: Release) -> bool:
    return undo_rules.aborts(shown.rollout, *_undoes_to(shown))


ACTIONS = (
    Action(
        "approve",
        "Approve",
        _named("Approve step {step} of {name}?"),
        lambda _: action_rules.approve,
        lambda shown: after_approval(shown, planned_steps(shown.rollout, shown.full_size)),
    ),
    Action(
        "promote",
        "Promote all",
        _named("Promote {release} of {name} as a whole?"),
        lambda _: action_rules.promote_full,
        lambda _: "skips the steps that are left",
    ),
    Action(
        "pause",
        "Pause",
        _named("Pause {name}?"),
        lambda _: action_rules.pause,
        lambda shown: (
            "nothing goes forward until it is resumed"
            if releasing(shown.rollout)
            else "the next version will wait in its first step"
        ),
        lambda shown: not action_rules.is_paused(shown.rollout),
    ),
    Action(
        "resume",
        "Resume",
        _named("Resume {name}?"),
        lambda _: action_rules.resume,
        lambda _: "the release goes on",
        lambda shown: action_rules.is_paused(shown.rollout),
    ),
    Action("abort", "Abort", _named("Abort {release} of {name}?"), lambda _: action_rules.abort(), effect_of_abort),
    Action(
        "retry",
        "Retry",
        _named("Retry {release} of {name}?"),
        lambda _: action_rules.retry,
        lambda shown: (
            "counts deadlines and failures anew"
            if releasing(shown.rollout) and not goes_back(shown.rollout)
            else "releases the same version again, from its first step"
        ),
    ),
    Action(
        "undo",
        "Undo",
        lambda shown: f"Put the version before into {called(shown.rollout, edited(shown.rollout))}?",
        lambda _: _may_undo,
        _effect_of_undo,
    ),
    Action(
        "start",
        "Start",
        lambda shown: f"Release the version of {_inactive(shown)}?",
        lambda shown: action_rules.start(live_hash(shown)) if shown.canary is not None else action_rules.start(""),
        lambda shown: effect_of_start(shown) if shown.canary is not None else "",
        lambda shown: sides_of(shown.rollout) is not None,
    ),
    Action(
        "home",
        "Bring home",
        lambda shown: f"Bring the requests of {shown.rollout['metadata']['name']} back to its own workload?",
        lambda _: action_rules.home,
        effect_of_home,
        lambda shown: bool(standing_in(shown.rollout)),
    ),
)


def offers(shown: Release, steps: tuple[PlannedStep, ...]) -> list[Object]:
    """Each action that the page has a button for: ``refused`` is why it makes no sense now, "" where it does. Of undo
    ``aborts`` says whether it aborts the release first.
    """
    listed = [_offer(each, shown) for each in ACTIONS if each.applies(shown)]
    return [*listed, *_jumps(shown, steps), *_skips(shown)]


def _offer(action: Action, shown: Release) -> Object:
    refused = refusal(action.judge(shown), shown.rollout)
    told = (
        _told(action.name, action.label, "", "", refused)
        if refused
        else _told(action.name, action.label, action.question(shown), action.effect(shown), "")
    )
    return {**told, "aborts": _undo_aborts(shown)} if action.name == "undo" else told


def _told(action: str, label: str, question: str, effect: str, refused: str) -> Object:
    return {
        "action": action,
        "label": label,
        "question": "" if refused else question,
        "effect": "" if refused else effect,
        "refused": refused,
    }


def _jumps(shown: Release, steps: tuple[PlannedStep, ...]) -> Iterator[Object]:
    """To each other step of a release that is in its steps."""
    name, status = shown.rollout["metadata"]["name"], shown.rollout.get("status") or {}
    if not releasing(shown.rollout) or status.get("finalising"):
        return
    for step in steps:
        if step.index != action_rules.step_of(shown.rollout):
            refused = refusal(action_rules.jump_to(step.index), shown.rollout)
            question = f"Go to step {step.index} of {name}?"
            told = _told("jump", f"Go to step {step.index}", question, _where(step), refused)
            yield {**told, "toStep": step.index}


def _where(step: PlannedStep) -> str:
    """What there is at the end of a step."""
    if step.promotes:
        return "promotes the new version"
    groups = f"{step.groups} group{'' if step.groups == 1 else 's'} of the new version"
    return f"{groups}, {step.traffic} traffic" if "%" in step.traffic else groups


def _skips(shown: Release) -> Iterator[Object]:
    for name in dict.fromkeys(str(each["name"]) for each in gates(shown.rollout)):
        refused = refusal(action_rules.skip(name), shown.rollout)
        question = f"Pass gate {name} of {shown.rollout['metadata']['name']} by hand?"
        told = _told("skip", f"Skip {name}", question, "passes it by hand", refused)
        yield {**told, "gate": name}


def _inactive(shown: Release) -> str:
    sides = sides_of(shown.rollout)
    return sides.called(sides.inactive) if sides is not None else ""


def refusal(judge: Judge, rollout: Object) -> str:
    """Why an action makes no sense for the Rollout as it is, "" where it does."""
    try:
        found = judge(rollout)
    except UsageError as error:
        return str(error)
    return "" if isinstance(found, Ask) else found.told
