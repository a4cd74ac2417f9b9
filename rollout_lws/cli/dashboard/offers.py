"""What a person may do with a release now: each action with its effect, or why it makes no sense. Pure.

The command line's rules judge, so that the page refuses what a command would refuse, in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rollout_lws.cli.actions import action_rules
from rollout_lws.cli.actions.action_rules import Ask, Judge
from rollout_lws.cli.get.ahead import after_approval, effect_of_abort, effect_of_home, effect_of_start, live_hash
from rollout_lws.cli.get.plan import planned_steps
from rollout_lws.cli.releases import Release
from rollout_lws.cli.rollouts import gates
from rollout_lws.cli.sides import sides_of, standing_in
from rollout_lws.errors import UsageError

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Action:
    """One action: its name in addresses, what its button says, who judges it, and its effect in words."""

    name: str
    label: str
    judge: Callable[[Release], Judge]
    effect: Callable[[Release], str] = lambda _: ""
    applies: Callable[[Release], bool] = lambda _: True
    """Whether it is offered at all."""


ACTIONS = (
    Action("approve", "Approve", lambda _: action_rules.approve, lambda shown: _after(shown)),
    Action("promote", "Promote all", lambda _: action_rules.promote_full, lambda _: "skips the steps that are left"),
    Action(
        "pause",
        "Pause",
        lambda _: action_rules.pause,
        lambda _: "nothing goes forward until it is resumed",
        lambda shown: not action_rules.is_paused(shown.rollout),
    ),
    Action(
        "resume",
        "Resume",
        lambda _: action_rules.resume,
        lambda _: "the release goes on",
        lambda shown: action_rules.is_paused(shown.rollout),
    ),
    Action("abort", "Abort", lambda _: action_rules.abort(), effect_of_abort),
    Action("retry", "Retry", lambda _: action_rules.retry, lambda _: "counts deadlines and failures anew"),
    Action(
        "start",
        "Start",
        lambda shown: action_rules.start(live_hash(shown)) if shown.canary is not None else action_rules.start(""),
        lambda shown: effect_of_start(shown) if shown.canary is not None else "",
        lambda shown: sides_of(shown.rollout) is not None,
    ),
    Action(
        "home",
        "Bring home",
        lambda _: action_rules.home,
        effect_of_home,
        lambda shown: bool(standing_in(shown.rollout)),
    ),
)


def offers(shown: Release) -> list[Object]:
    """Each action that the page has a button for: ``refused`` is why it makes no sense now, "" where it does."""
    return [*(_offer(each, shown) for each in ACTIONS if each.applies(shown)), *_skips(shown)]


def _offer(action: Action, shown: Release) -> Object:
    refused = refusal(action.judge(shown), shown.rollout)
    effect = "" if refused else action.effect(shown)
    return {"action": action.name, "label": action.label, "effect": effect, "refused": refused}


def _skips(shown: Release) -> Iterator[Object]:
    for name in dict.fromkeys(str(each["name"]) for each in gates(shown.rollout)):
        refused = refusal(action_rules.skip(name), shown.rollout)
        effect = "" if refused else "passes it by hand"
        yield {"action": "skip", "gate": name, "label": f"Skip {name}", "effect": effect, "refused": refused}


def refusal(judge: Judge, rollout: Object) -> str:
    """Why an action makes no sense for the Rollout as it is, "" where it does."""
    try:
        found = judge(rollout)
    except UsageError as error:
        return str(error)
    return "" if isinstance(found, Ask) else found.told


def _after(shown: Release) -> str:
    return after_approval(shown, planned_steps(shown.rollout, shown.full_size))
