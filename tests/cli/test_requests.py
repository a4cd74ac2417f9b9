"""What may be asked of a release, state by state."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from rollout_lws.cli.actions import action_rules
from rollout_lws.cli.actions.action_rules import Already, Ask, Judge
from rollout_lws.errors import UsageError
from rollout_lws.workload.trouble import EXHAUSTED

IN_STEPS: dict[str, Any] = {
    "phase": "Progressing",
    "currentStepIndex": 2,
    "summary": {"state": "Loading", "step": "2/3"},
}
STATES: dict[str, dict[str, Any]] = {
    "unseen": {},
    "at rest": {"phase": "Healthy"},
    "loading": IN_STEPS | {"currentStepState": "StepUpgrade"},
    "awaiting": IN_STEPS | {"currentStepState": "StepPaused", "summary": {"state": "AwaitingApproval", "step": "2/3"}},
    "approved": IN_STEPS | {"currentStepState": "StepReady"},
    "paused": IN_STEPS
    | {"currentStepState": "StepUpgrade", "paused": True, "summary": {"state": "Paused", "step": "2/3"}},
    "promoting": IN_STEPS
    | {"finalising": {"reason": "Success", "task": "Promote"}, "summary": {"state": "Promoting", "step": "3/3"}},
    "promoted": IN_STEPS | {"finalising": {"reason": "Success", "task": "CleanUp"}},
    "superseded": IN_STEPS
    | {"finalising": {"reason": "Continuous", "task": "CleanUp"}, "summary": {"state": "RollingBack", "step": "2/3"}},
    "aborting": IN_STEPS
    | {"finalising": {"reason": "Aborted", "task": "RollBackPromotion"}, "aborted": {"templateHash": "h"}},
    "aborted": {"phase": "Aborted", "aborted": {"templateHash": "h"}},
    "measured": IN_STEPS
    | {
        "currentStepState": "StepMetricsAnalysis",
        "summary": {"state": "Analyzing", "step": "2/3"},
        "gates": [
            {"name": "first-token"},
            {"name": "errors", "result": "Passed"},
            {"name": "evals", "result": "Failed"},
        ],
    },
}
JUDGES: dict[str, Judge] = {
    "promote": action_rules.approve,
    "promote --full": action_rules.promote_full,
    "promote --to-step 3": action_rules.jump_to(3),
    "abort": action_rules.abort(),
    "abort --force": action_rules.abort(force=True),
    "retry": action_rules.retry,
    "skip first-token": action_rules.skip("first-token"),
    "pause": action_rules.pause,
    "resume": action_rules.resume,
}
#: What each command finds in each state: a request (!), that it is so (=), or why not.
TABLE = """
                     unseen                  at rest                 loading               awaiting              approved               paused               promoting               promoted                superseded              aborting                aborted                measured
promote              not seen by a           is Healthy: nothing     not waiting           !                     =approved already      not waiting          past its steps          past its steps          past its steps          past its steps          is Aborted: nothing    !
promote --full       not seen by a           is Healthy: there       !                     !                     !                      !                    =being promoted         past its steps          past its steps          past its steps          is Aborted: there      !
promote --to-step 3  not seen by a           is Healthy: there       !                     !                     !                      !                    past its steps          past its steps          past its steps          past its steps          is Aborted: there      !
abort                not seen by a           is Healthy: nothing     !                     !                     !                      !                    !                       already promoted        !                       =going back already     =aborted already       !
abort --force        not seen by a           is Healthy: nothing     !                     !                     !                      !                    !                       already promoted        !                       !                       =aborted already       !
retry                no version was aborted  no version was aborted  !                     !                     !                      !                    past its steps          past its steps          past its steps          !                       !                      !
skip first-token     not seen by a           is Healthy: no gate     measures no gates     measures no gates     measures no gates      measures no gates    past its steps          past its steps          past its steps          past its steps          is Aborted: no gate    !
pause                !                       !                       !                     !                     !                      =paused already      !                       !                       !                       !                       !                      !
resume               =is not paused          =is not paused          =is not paused        =is not paused        =is not paused         !                    =is not paused          =is not paused          =is not paused          =is not paused          =is not paused         =is not paused
"""  # noqa: E501


def rollout(status: dict[str, Any], **strategy: Any) -> dict[str, Any]:
    steps = [{"replicas": 1}, {"replicas": 2}, {"replicas": "100%"}]
    return {
        "metadata": {"name": "llama"},
        "spec": {"strategy": {"canary": {"steps": steps}, **strategy}},
        "status": status,
    }


def cells() -> list[tuple[str, str, str]]:
    """Command, state and what is found, of each cell of the table."""
    head, *rows = TABLE.strip("\n").splitlines()
    starts = [head.index(state) for state in STATES]
    ends = [*starts[1:], None]
    return [
        (row[: starts[0]].strip(), state, row[start:end].strip())
        for row in rows
        for state, start, end in zip(STATES, starts, ends, strict=True)
    ]


@pytest.mark.parametrize(("command", "state", "found"), cells())
def test_every_command_in_every_state(command: str, state: str, found: str) -> None:
    judge, seen = JUDGES[command], rollout(STATES[state])
    if found.startswith("="):
        answer = judge(seen)
        assert isinstance(answer, Already) and found[1:] in answer.told
    elif found == "!":
        answer = judge(seen)
        assert isinstance(answer, Ask) and answer.done.startswith("rollout/llama ")
    else:
        with pytest.raises(UsageError, match=found):
            judge(seen)


def test_the_table_has_every_command_and_every_state() -> None:
    assert {command for command, _, _ in cells()} == set(JUDGES)
    assert len(cells()) == len(JUDGES) * len(STATES)


@pytest.mark.parametrize(
    ("command", "state", "kind", "fields", "told"),
    [
        ("promote", "awaiting", "Approve", {}, "step 2/3 approved"),
        ("promote --to-step 3", "loading", "Jump", {"toStep": 3}, "goes to step 3/3"),
        ("abort", "loading", "Abort", {}, "aborted at step 2/3; going back to stable"),
        ("abort --force", "aborting", "Abort", {"force": True}, "going back to stable, without waiting for routers"),
        ("retry", "aborted", "Retry", {}, "released again from its first step"),
        ("retry", "loading", "Retry", {}, "step 2/3 has its whole deadline again"),
        ("promote", "measured", "Approve", {}, "step 2/3 approved: it ends when its gates have passed"),
        ("skip first-token", "measured", "SkipGate", {"gate": "first-token"}, "gate first-token skipped"),
        ("pause", "loading", "Pause", {}, "paused: nothing goes forward until it is resumed"),
        ("pause", "at rest", "Pause", {}, "the next version will wait in its first step"),
        ("resume", "paused", "Resume", {}, "rollout/llama resumed"),
    ],
)
def test_what_is_asked_for(command: str, state: str, kind: str, fields: dict[str, Any], told: str) -> None:
    answer = JUDGES[command](rollout(STATES[state]))
    assert isinstance(answer, Ask)
    assert (answer.type, answer.fields) == (kind, fields)
    assert told in answer.done


def test_gates_that_have_passed_or_are_not_there() -> None:
    seen = rollout(STATES["measured"])
    assert action_rules.skip("errors")(seen) == Already("rollout/llama gate errors is passed already")
    assert isinstance(action_rules.skip("evals")(seen), Ask)
    with pytest.raises(UsageError, match="has no gate 'other': name one of first-token, errors, evals"):
        action_rules.skip("other")(seen)


@pytest.mark.parametrize("step", [0, 4, -1])
def test_a_step_that_does_not_exist_is_told_with_those_that_do(step: int) -> None:
    with pytest.raises(UsageError, match=f"has steps 1 to 3: there is no step {step}"):
        action_rules.jump_to(step)(rollout(STATES["loading"]))


def test_the_step_that_is_on_needs_no_jump() -> None:
    assert action_rules.jump_to(2)(rollout(STATES["loading"])) == Already("rollout/llama is at step 2 already")


@pytest.mark.parametrize(
    ("status", "strategy", "told"),
    [
        ({"paused": True}, {}, "; it stays paused until `rollout-lws resume llama`"),
        ({}, {"paused": True}, "; it stays paused until spec.strategy.paused is false"),
        ({}, {}, ""),
    ],
)
def test_an_approval_does_not_end_a_pause_and_says_so(
    status: dict[str, Any], strategy: dict[str, Any], told: str
) -> None:
    answer = action_rules.approve(rollout(STATES["awaiting"] | status, **strategy))
    assert isinstance(answer, Ask) and answer.done == f"rollout/llama step 2/3 approved{told}"
    again = action_rules.approve(rollout(STATES["approved"] | status, **strategy))
    assert again == Already(f"rollout/llama step 2/3 is approved already{told}")


def test_what_a_spec_pauses_no_request_resumes() -> None:
    with pytest.raises(UsageError, match=r"set spec\.strategy.paused to false"):
        action_rules.resume(rollout(STATES["loading"], paused=True))
    assert isinstance(action_rules.pause(rollout(STATES["loading"], paused=True)), Already)


@pytest.mark.parametrize(
    ("step", "release", "told"), [(1, None, "at step 2/3 now, not 1"), (2, "build-7", "about release build-8 now, not")]
)
def test_a_click_on_an_old_screen_is_told_where_the_release_is(
    step: int | None, release: str | None, told: str
) -> None:
    seen = rollout(STATES["awaiting"] | {"observedRolloutID": "build-8"})
    with pytest.raises(UsageError, match=told):
        action_rules.at(action_rules.approve, step, release)(seen)
    assert isinstance(action_rules.at(action_rules.approve, 2, "build-8")(seen), Ask)


def promoting(result: str | None) -> dict[str, Any]:
    seen = deepcopy(rollout(STATES["measured"]))
    record = {"name": "errors-all-through", **({"result": result} if result else {})}
    seen["status"] |= {"releaseGates": [record], "finalising": {"reason": "Success", "task": "Promote"}}
    return seen


@pytest.mark.parametrize("result", [None, "Failed"])
def test_a_gate_of_the_release_is_skipped_in_a_promotion_too(result: str | None) -> None:
    answer = action_rules.skip("errors-all-through")(promoting(result))
    assert isinstance(answer, Ask)
    assert answer.fields == {"gate": "errors-all-through"}
    with pytest.raises(UsageError, match="has no gate 'first-token': name one of errors-all-through"):
        action_rules.skip("first-token")(promoting(result))


def test_a_promotion_that_waits_for_a_group_that_may_not_restart_is_tried_again() -> None:
    seen = promoting(None)
    seen["status"]["notReadyGroups"] = [{"workload": "llama", "group": "3", "reason": EXHAUSTED}]
    answer = action_rules.retry(seen)
    assert isinstance(answer, Ask)
    assert "made again that may not restart" in answer.done


def test_a_promotion_is_tried_again_after_its_gate_has_failed_only() -> None:
    answer = action_rules.retry(promoting("Failed"))
    assert isinstance(answer, Ask)
    assert "goes on with its promotion" in answer.done
    with pytest.raises(UsageError, match="is past its steps"):
        action_rules.retry(promoting(None))
