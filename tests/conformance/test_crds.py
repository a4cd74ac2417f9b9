"""Custom resources by our own definitions: what is refused, filled in and taken away, and what definitions do."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, LEADER_WORKER_SETS, Resource
from tests.conformance.asking import Asking, Object
from tests.conformance.differences import RULED_OBJECT, STRICT_PATCH
from tests.conformance.objects import ROLLOUTS, lws, rollout

_UNASKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_ROLLOUT = "Rollout.rollouts.kruise.io"


def canary(**fields: Any) -> Object:
    """The strategy of a Rollout with one step, in which ``fields`` are set."""
    return {"strategy": {"canary": {"steps": [{"replicas": 1, **fields}]}}}


async def test_defaults_are_filled_in(server: Asking) -> None:
    body = lws()
    body["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] = {}
    spec = (await server.create(LEADER_WORKER_SETS, body)).ok()["spec"]
    assert (spec["replicas"], spec["startupPolicy"]) == (1, "LeaderCreated")
    assert spec["leaderWorkerTemplate"]["restartPolicy"] == "RecreateGroupOnPodRestart"
    rolling = spec["rolloutStrategy"]["rollingUpdateConfiguration"]
    assert rolling == {"partition": 0, "maxUnavailable": 1, "maxSurge": 0}


async def test_defaults_are_not_filled_in_where_there_is_nothing(server: Asking) -> None:
    spec = (await server.create(LEADER_WORKER_SETS, lws())).ok()["spec"]
    assert spec["rolloutStrategy"] == {"type": "RollingUpdate"}
    assert "leaderTemplate" not in spec["leaderWorkerTemplate"]


async def test_a_default_comes_back_when_its_field_is_removed(server: Asking) -> None:
    (await server.create(LEADER_WORKER_SETS, lws(replicas=5))).ok()
    patched = (await server.patch(LEADER_WORKER_SETS, "llama", {"spec": {"replicas": None}})).ok()
    assert patched["spec"]["replicas"] == 1


async def test_null_stands_for_nothing(server: Asking) -> None:
    made = (await server.create(LEADER_WORKER_SETS, lws(replicas=None, networkConfig=None))).ok()
    assert made["spec"]["replicas"] == 1
    assert "networkConfig" not in made["spec"]


async def test_what_the_schema_does_not_know_is_taken_away_and_warned_about(server: Asking) -> None:
    made = await server.create(ROLLOUTS, rollout(shape="round"), fieldValidation="Warn")
    assert made.code == 201
    assert "shape" not in made.body["spec"]
    assert made.headers["warning"] == '299 - "unknown field \\"spec.shape\\""'
    silent = await server.create(ROLLOUTS, {**rollout("other"), "shape": "round"}, fieldValidation="Ignore")
    assert silent.code == 201
    assert "shape" not in silent.body
    assert "warning" not in silent.headers


async def test_what_the_schema_does_not_know_is_refused_when_asked_to(server: Asking) -> None:
    refused = await server.create(ROLLOUTS, rollout(shape="round", **canary(sides=3)), fieldValidation="Strict")
    unknown = 'unknown field "spec.shape", unknown field "spec.strategy.canary.steps[0].sides"'
    text = 'Rollout in version "v1beta1" cannot be handled as a Rollout: strict decoding error'
    assert refused.refusal == (400, "BadRequest", f"{text}: {unknown}")
    assert (await server.get(ROLLOUTS, "llama")).code == 404
    made = (await server.create(ROLLOUTS, rollout())).ok()
    body = {**made, "spec": {**made["spec"], "shape": "round"}}
    refused = await server.put(ROLLOUTS, body, fieldValidation="Strict")
    assert refused.refusal == (400, "BadRequest", f'{text}: unknown field "spec.shape"')
    refused = await server.patch(ROLLOUTS, "llama", {"spec": {"shape": "round"}}, fieldValidation="Strict")
    assert refused.code == STRICT_PATCH.on(server.name)
    assert refused.refusal[2].endswith('strict decoding error: unknown field "spec.shape"')


async def test_what_the_schema_does_not_know_cannot_be_applied(server: Asking) -> None:
    refused = await server.apply(ROLLOUTS, "llama", {"spec": {"shape": "round"}}, "one")
    what = f"(/llama; {ROLLOUTS.api_version}, Kind=Rollout)"
    text = f"failed to create typed patch object {what}: .spec.shape: field not declared in schema"
    assert refused.refusal == (500, "", text)


@pytest.mark.parametrize(
    ("spec", "reason", "field", "text"),
    [
        ({"workloadRef": None}, "FieldValueRequired", "spec.workloadRef", "Required value"),
        (
            {"disabled": "yes"},
            "FieldValueTypeInvalid",
            "spec.disabled",
            'Invalid value: "string": spec.disabled in body must be of type boolean: "string"',
        ),
        (
            canary(traffic="many"),
            "FieldValueInvalid",
            "spec.strategy.canary.steps[0].traffic",
            'Invalid value: "many": spec.strategy.canary.steps[0].traffic in body should match '
            "'^(auto|(100|[1-9]?[0-9])%)$'",
        ),
        (
            {"strategy": {"canary": {"steps": []}}},
            "FieldValueInvalid",
            "spec.strategy.canary.steps",
            "Invalid value: 0: spec.strategy.canary.steps in body should have at least 1 items",
        ),
        (
            {"strategy": {"canary": {"steps": [{"replicas": 1}] * 51}}},
            "FieldValueTooMany",
            "spec.strategy.canary.steps",
            "Too many: 51: must have at most 50 items",
        ),
        (
            canary(replicas=-1),
            "FieldValueInvalid",
            "spec.strategy.canary.steps[0].replicas",
            "Invalid value: -1: spec.strategy.canary.steps[0].replicas in body should be greater than or equal to 0",
        ),
        (
            {"workloadRef": {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": ""}},
            "FieldValueInvalid",
            "spec.workloadRef.name",
            'Invalid value: "": spec.workloadRef.name in body should be at least 1 chars long',
        ),
    ],
    ids=["required", "type", "pattern", "least items", "most items", "minimum", "length"],
)
async def test_what_a_schema_forbids_is_refused(
    server: Asking, spec: Object, reason: str, field: str, text: str
) -> None:
    answer = await server.create(ROLLOUTS, rollout(**spec))
    assert (reason, field, text) in answer.causes
    assert answer.refusal[:2] == (422, "Invalid")
    assert answer.refusal[2].startswith(f'{_ROLLOUT} "llama" is invalid: ')
    assert f"{field}: {text}" in answer.refusal[2]


async def test_a_word_must_be_one_of_those_listed(server: Asking) -> None:
    refused = await server.create(LEADER_WORKER_SETS, lws(startupPolicy="Never"))
    text = 'Unsupported value: "Never": supported values: "LeaderCreated", "LeaderReady"'
    message = f'LeaderWorkerSet.leaderworkerset.x-k8s.io "llama" is invalid: spec.startupPolicy: {text}'
    assert refused.refusal == (422, "Invalid", message)
    assert refused.causes == [("FieldValueNotSupported", "spec.startupPolicy", text)]


@pytest.mark.parametrize("replicas", [1, "50%"])
async def test_a_number_or_a_share_is_either(server: Asking, replicas: int | str) -> None:
    made = (await server.create(ROLLOUTS, rollout(**canary(replicas=replicas)))).ok()
    assert made["spec"]["strategy"]["canary"]["steps"][0]["replicas"] == replicas


@pytest.mark.parametrize("replicas", [1.5, True, []], ids=repr)
async def test_a_number_or_a_share_is_nothing_else(server: Asking, replicas: Any) -> None:
    refused = await server.create(ROLLOUTS, rollout(**canary(replicas=replicas)))
    assert refused.refusal[:2] == (422, "Invalid")
    assert {field for _, field, _ in refused.causes} == {"spec.strategy.canary.steps[0].replicas", "<nil>"}


async def test_rules_are_asked(server: Asking) -> None:
    refused = await server.create(ROLLOUTS, rollout(strategy={"paused": True}))
    text = "exactly one of canary and blueGreen must be set"
    told = f"{RULED_OBJECT.on(server.name)}: {text}"
    assert refused.refusal == (422, "Invalid", f'{_ROLLOUT} "llama" is invalid: spec.strategy: {told}')
    assert refused.causes == [("FieldValueInvalid", "spec.strategy", told)]


async def test_rules_of_list_items_name_the_item(server: Asking) -> None:
    steps = [{"replicas": 1}, {"replicas": "0%"}]
    refused = await server.create(ROLLOUTS, rollout(strategy={"canary": {"steps": steps}}))
    ((cause, field, told),) = refused.causes
    assert (cause, field) == ("FieldValueInvalid", "spec.strategy.canary.steps[1]")
    assert told.endswith("replicas must be more than 0")


@pytest.mark.parametrize(
    ("shift", "refused"),
    [
        ({}, False),
        ({"maxExtraGroups": "1%"}, False),
        ({"maxExtraGroups": 0, "maxUnavailableGroups": 1}, False),
        ({"maxExtraGroups": "0%", "maxUnavailableGroups": "25%"}, False),
        ({"maxExtraGroups": 0}, True),
        ({"maxExtraGroups": "0%", "maxUnavailableGroups": 0}, True),
        ({"maxExtraGroups": 0, "maxUnavailableGroups": "0%"}, True),
    ],
    ids=str,
)
async def test_a_rule_may_ask_which_of_a_number_and_a_share_it_is(server: Asking, shift: Object, refused: bool) -> None:
    other = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "other"}
    canary = {"capacity": "Pair", "steps": [{"replicas": 1}], "shift": shift}
    answer = await server.create(ROLLOUTS, rollout(counterpartRef=other, strategy={"canary": canary}))
    fields = [field for _, field, _ in answer.causes] if refused else []
    assert (answer.code, fields) == ((422, ["spec.strategy.canary.shift"]) if refused else (201, []))


async def test_rules_are_not_asked_of_what_the_schema_refuses(server: Asking) -> None:
    refused = await server.create(ROLLOUTS, rollout(strategy={"paused": "maybe"}))
    assert refused.causes == [
        (
            "FieldValueTypeInvalid",
            "spec.strategy.paused",
            'Invalid value: "string": spec.strategy.paused in body must be of type boolean: "string"',
        ),
        ("FieldValueInvalid", "<nil>", f"Invalid value: null: {_UNASKED}"),
    ]
    assert refused.refusal[2].endswith(f", <nil>: Invalid value: null: {_UNASKED}]")


async def test_rules_are_asked_beside_what_is_wrong_in_value_only(server: Asking) -> None:
    body = rollout(strategy={"canary": {"steps": [{"replicas": "0%", "traffic": "many"}]}})
    refused = await server.create(ROLLOUTS, body)
    step = "spec.strategy.canary.steps[0]"
    assert [field for _, field, _ in refused.causes] == [f"{step}.traffic", step]


async def test_a_rule_may_look_at_the_name(server: Asking) -> None:
    refused = await server.create(ROLLOUTS, rollout("x" * 64))
    assert refused.refusal[:2] == (422, "Invalid")
    assert refused.refusal[2].endswith(
        "the name may have at most 63 characters: objects of a release carry it as a label"
    )


async def test_a_rule_may_look_at_what_was_before(server: Asking) -> None:
    (await server.create(ROLLOUTS, rollout())).ok()
    other = {"spec": {"workloadRef": {"name": "other"}}}
    (await server.patch(ROLLOUTS, "llama", other)).ok()
    stable = {"revision": "one", "templateHash": "one"}
    (await server.patch(ROLLOUTS, "llama", {"status": {"stable": stable}}, subresource="status")).ok()
    other["spec"]["workloadRef"]["name"] = "third"
    refused = await server.patch(ROLLOUTS, "llama", other)
    assert refused.refusal[:2] == (422, "Invalid")
    assert "spec.workloadRef cannot change while that workload is in care" in refused.refusal[2]
    (await server.patch(ROLLOUTS, "llama", {"spec": {"disabled": True}})).ok()


WIDGETS = Resource("conformance.example.com", "v1", "Widget", "widgets")


def definition(**properties: Object) -> Object:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": WIDGETS.kind, "plural": WIDGETS.plural}
    spec = {"group": WIDGETS.group, "names": names, "scope": "Namespaced", "versions": [version]}
    return {"metadata": {"name": f"{WIDGETS.plural}.{WIDGETS.group}"}, "spec": spec}


def widget(name: str = "one", **metadata: Any) -> Object:
    identity = {"apiVersion": WIDGETS.api_version, "kind": WIDGETS.kind}
    return {**identity, "metadata": {"name": name, **metadata}, "spec": {"size": 1}}


async def test_a_definition_serves_its_kind_until_it_is_deleted(server: Asking) -> None:
    body = definition(size={"type": "integer", "default": 3})
    name = body["metadata"]["name"]
    made = (await server.create(CUSTOM_RESOURCE_DEFINITIONS, body)).ok()
    assert made["spec"]["names"]["listKind"] == "WidgetList"
    assert made["spec"]["names"]["singular"] == "widget"
    assert made["spec"]["conversion"] == {"strategy": "None"}

    def established(found: Object) -> bool:
        conditions = found.get("status", {}).get("conditions") or ()
        return {each["type"] for each in conditions if each["status"] == "True"} >= {"NamesAccepted", "Established"}

    found = await server.until(CUSTOM_RESOURCE_DEFINITIONS, name, established)
    assert found["status"]["acceptedNames"] == made["spec"]["names"]
    assert found["status"]["storedVersions"] == ["v1"]
    (await server.create(WIDGETS, widget())).ok()
    (await server.delete(CUSTOM_RESOURCE_DEFINITIONS, name)).ok()
    await server.gone(CUSTOM_RESOURCE_DEFINITIONS, name)
    assert (await server.get(CUSTOM_RESOURCE_DEFINITIONS, name)).code == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scope": "Everywhere"}, "spec.scope"),
        ({"versions": []}, "spec.versions"),
        ({"names": {"kind": "Widget", "plural": "gadgets"}}, "metadata.name"),
        ({"group": ""}, "spec.group"),
    ],
    ids=["scope", "versions", "names", "group"],
)
async def test_a_definition_that_cannot_be_served_is_refused(server: Asking, change: Object, field: str) -> None:
    body = definition()
    body["spec"] |= change
    refused = await server.create(CUSTOM_RESOURCE_DEFINITIONS, body)
    assert refused.refusal[:2] == (422, "Invalid")
    assert field in {each for _, each, _ in refused.causes}
