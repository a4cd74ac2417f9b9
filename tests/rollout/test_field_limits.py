"""What others say at length does not make a status that the API server refuses, nor do moments that they make up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace as change

from rollout_lws.api import Capacity, Condition, Rollout, RolloutStatus, TrafficRecord
from rollout_lws.api.structural import ITEMS_LIMIT, TEXT_LIMIT, structural
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.decide import decide
from rollout_lws.rollout.field_limits import not_ahead, within_limits
from rollout_lws.rollout.observation import Observation, RefusedWrite
from rollout_lws.workload.facts import Facts
from tests.rollout.build import STEPS, at_rest, canary, held, in_step, rollout
from tests.workload.build import BEFORE, KEYS, NAME, NEW, NOW, pod

LONG = "x" * 10_000
SCHEMA = structural(Rollout)["properties"]["status"]


def test_texts_and_lists_are_cut_to_what_the_definition_takes() -> None:
    status = RolloutStatus(
        message=LONG,
        conditions=(Condition(type="Ready", status="False", message=LONG),),
        traffic=TrafficRecord(message=LONG, unmanaged_backends=tuple(f"Service s{at}" for at in range(100))),
    )
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(status.to_json_dict(), SCHEMA)
    fitting = within_limits(status)
    jsonschema.validate(fitting.to_json_dict(), SCHEMA)
    assert fitting.message == "x" * (TEXT_LIMIT - 1) + "…"
    assert fitting.traffic is not None
    assert len(fitting.traffic.unmanaged_backends) == ITEMS_LIMIT


def test_what_fits_is_left_as_it_is() -> None:
    status = RolloutStatus(message="short", conditions=(Condition(type="Ready", status="True"),))
    assert within_limits(status) is status


NEVER = "9999-12-31T23:59:59Z"


def filled(schema: Mapping[str, Any]) -> Any:
    """A value with every member that the definition knows, each moment of it at the end of time."""
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        return {name: filled(each) for name, each in schema["properties"].items()}
    if kind == "object":
        return {"0": filled(schema["additionalProperties"])}
    if kind == "array":
        return [filled(schema["items"])]
    if kind in ("boolean", "integer"):
        return {"boolean": True, "integer": 1}[kind]
    return NEVER if schema.get("format") == "date-time" else schema.get("enum", ["x"])[0]


def test_no_moment_of_a_status_stays_ahead_of_the_clock() -> None:
    forged = RolloutStatus.model_validate(filled(SCHEMA))
    assert forged.model_dump_json(by_alias=True).count(NEVER[:10]) >= 25
    # The timeline is put in order when it is written: see test_timeline.py.
    fixed = not_ahead(forged, NOW).model_copy(update={"timeline": ()})
    assert NEVER[:10] not in fixed.model_dump_json(by_alias=True)
    assert (fixed.traffic and fixed.traffic.last_pod_gone_at, fixed.current_step_state) == (NOW, "x")
    assert not_ahead(fixed, NOW) is fixed


def test_a_webhook_that_refuses_in_ten_thousand_characters_is_told() -> None:
    refused = RefusedWrite("create LeaderWorkerSet default/llama-canary", LONG, "")
    decision = decide(Observation(NOW, KEYS, rollout(status=at_rest()), stable=held(), refused=refused))
    (written,) = (write for write in decision.writes if isinstance(write, Patch) and write.subresource == "status")
    jsonschema.validate(written.body["status"], {**SCHEMA, "required": []})
    assert written.body["status"]["message"].startswith("the API server refuses to create LeaderWorkerSet")


def _with_replicas(facts: Facts, replicas: int) -> Facts:
    return replace(facts, workload=change(facts.workload, spec=change(facts.workload.spec, replicas=replicas)))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("number", [-(2**62), 2**36, 2**62])
def test_a_release_is_decided_whatever_numbers_its_status_has(number: int) -> None:
    """Whoever may write a status may claim that a group took two thousand years to load."""
    step = {"startedAt": BEFORE, "bestReady": number, "partitionAttempts": {"0": number}}
    restarts = [{"workload": f"{NAME}-canary", "group": "0", "uid": str(at), "at": BEFORE} for at in range(5)]
    forged = {"longestStartupSeconds": number, "flaps": number, "localPods": number, "step": step, "restarts": restarts}
    loading = pod(0, revision=NEW, since=None, workload=f"{NAME}-canary")
    seen = Observation(
        NOW, KEYS, rollout(status=in_step(1, paused=False, **forged)), stable=held(), canary=canary(loading)
    )
    decision = decide(seen)
    assert decision.verdict is not None and decision.verdict.state


_ENDING = {"reason": "Success", "task": "Promote", "since": NOW}


@pytest.mark.one_in(3)
@pytest.mark.timeout(20)
@pytest.mark.parametrize("capacity", list(Capacity))
@pytest.mark.parametrize(
    "status",
    [
        None,
        at_rest(),
        in_step(1, paused=False),
        in_step(2, paused=False),
        in_step(3, paused=False, finalising=_ENDING),
        in_step(3, paused=False, finalising={**_ENDING, "reason": "Aborted", "task": "RollBackSteps"}),
    ],
)
def test_two_billion_replicas_are_decided_in_a_moment(capacity: Capacity, status: dict[str, Any] | None) -> None:
    """A number is typed in a moment; it must not take the memory of a controller that looks after others too."""
    if status is not None and "step" in status:
        status = {**status, "capacity": capacity.value}
    seen = Observation(
        NOW,
        KEYS,
        rollout(status=status, canary={"steps": STEPS, "capacity": capacity.value}),
        stable=_with_replicas(held(), 2**31 - 1),
        canary=canary() if capacity is Capacity.EXTRA_WORKLOAD and status and "step" in status else None,
    )
    for write in decide(seen).writes:
        if isinstance(write, Patch) and write.subresource == "status" and "status" in write.body:
            jsonschema.validate(within_required(write.body["status"]), {**SCHEMA, "required": []})


def within_required(status: dict[str, Any]) -> dict[str, Any]:
    """The texts and lists of a patch; what it removes and what it leaves alone is no matter of limits."""
    return {name: value for name, value in status.items() if isinstance(value, (str, list))}
