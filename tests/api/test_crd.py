"""The CustomResourceDefinitions: committed as generated, accepted by an API server, and readable by kubectl."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import jsonschema
import pytest
import yaml
from pydantic import BaseModel, Field

from rollout_lws.api import crd
from rollout_lws.api.base import Model
from rollout_lws.api.generate import ROOT, files, main
from rollout_lws.api.structural import ITEMS_LIMIT, TEXT_LIMIT, structural

Schema = dict[str, Any]
ROLLOUT, RECORD = crd.render()


def test_committed_files_are_the_generated_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err
    assert {path.relative_to(ROOT).as_posix() for path in files()} == {
        "crds/rollouts.yaml",
        "crds/batchreleases.yaml",
        "charts/rollout-lws/templates/crds/rollouts.yaml",
        "charts/rollout-lws/templates/crds/batchreleases.yaml",
        "schemas/rollouts.json",
        "schemas/batchreleases.json",
    }


def test_a_file_that_differs_is_named_and_nothing_is_written(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rollout_lws.api.generate.ROOT", tmp_path)
    assert main(["--check"]) == 1
    assert "crds/rollouts.yaml differs from the sources: run 'make generate'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main([]) == 0
    assert main(["--check"]) == 0


def test_the_yaml_reads_back_as_rendered_and_has_no_anchors() -> None:
    for manifest in crd.render():
        text = (ROOT / "crds" / f"{manifest['spec']['names']['plural']}.yaml").read_text()
        assert yaml.safe_load(text) == manifest
        assert not [event for event in yaml.parse(text) if isinstance(event, yaml.AliasEvent)]


# What a structural schema may contain

_KEYWORDS = {
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-validations",
}


def root(manifest: Mapping[str, Any]) -> Schema:
    (version,) = manifest["spec"]["versions"]
    found: Schema = version["schema"]["openAPIV3Schema"]
    return found


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], path + mark)


NODES = [
    pytest.param(schema, id=f"{manifest['spec']['names']['kind']}{path}")
    for manifest in (ROLLOUT, RECORD)
    for path, schema in nodes(root(manifest))
]


def test_every_node_is_one_that_an_api_server_accepts() -> None:
    for parameter in NODES:
        (schema,), at = parameter.values, parameter.id
        assert set(schema) <= _KEYWORDS, at
        if schema.get("x-kubernetes-int-or-string"):
            assert "type" not in schema, at
            assert schema["anyOf"] == [{"type": "integer"}, {"type": "string"}], at
        else:
            assert schema["type"] in ("object", "array", "string", "integer", "boolean"), at
            assert "anyOf" not in schema, at
        assert isinstance(schema.get("minimum", 0), int) and isinstance(schema.get("maximum", 0), int), at
        assert not (schema.get("properties") and schema.get("additionalProperties")), at
        assert set(schema.get("required", ())) <= set(schema.get("properties", ())), at
        assert (schema.get("type") == "array") == ("items" in schema), at


def test_every_text_list_and_map_is_bounded() -> None:
    for parameter in NODES:
        (schema,), at = parameter.values, parameter.id
        if at.count(".") < 2:
            continue
        if schema.get("type") == "string":
            assert schema.keys() & {"maxLength", "enum", "format"}, at
        if schema.get("type") == "array":
            assert 0 < schema["maxItems"] <= 64, at
        if isinstance(schema.get("additionalProperties"), dict):
            assert schema["maxProperties"] > 0, at
        if schema.get("x-kubernetes-int-or-string"):
            assert 0 < schema["maxLength"] <= 15, at


def test_every_default_is_valid_under_its_own_schema() -> None:
    defaults = [(at.id, at.values[0]) for at in NODES if "default" in at.values[0]]
    assert len(defaults) > 10
    for at, schema in defaults:
        assert schema["default"] is not None, at
        jsonschema.validate(schema["default"], {key: value for key, value in schema.items() if key != "default"})
    required = [at for at, schema in defaults if at.rpartition(".")[2] in _parent(at).get("required", ())]
    assert required == []


def _parent(at: str) -> Schema:
    path = at.rpartition(".")[0]
    found: Schema = next(parameter.values[0] for parameter in NODES if parameter.id == path)
    return found


def test_every_field_is_described_in_a_sentence() -> None:
    for parameter in NODES:
        (schema,), at = parameter.values, parameter.id
        for name, child in schema.get("properties", {}).items():
            if child == {"type": "object"} and name == "metadata":
                # The API server describes it, and takes no description from others.
                continue
            told = child.get("description", "")
            assert len(told) > 3 and told[0] == told[0].upper() and told.rstrip().endswith("."), (
                f"{at}.{name}: {told!r}"
            )


def test_lists_with_keys_are_maps_whose_keys_are_always_there() -> None:
    maps = [(at.id, at.values[0]) for at in NODES if at.values[0].get("x-kubernetes-list-type") == "map"]
    assert [at for at, _ in maps] == ["Rollout.status.conditions"]
    for at, schema in maps:
        assert set(schema["x-kubernetes-list-map-keys"]) <= set(schema["items"]["required"]), at


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        (".status.step.partitionAttempts", 10_000),
        (".spec.strategy.canary.patchPodTemplateMetadata.labels", ITEMS_LIMIT),
    ],
)
def test_maps_have_room_for_what_is_written_into_them(path: str, limit: int) -> None:
    # One entry a group that was renewed: an LWS of 65 groups must not end in a status that cannot be written.
    assert dict(nodes(root(ROLLOUT)))[path]["maxProperties"] == limit


# Names, columns, subresources


def names(manifest: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest["spec"]["names"]
    return found


def test_names_are_those_of_openkruise_and_one_short_name() -> None:
    assert names(ROLLOUT) == {
        "kind": "Rollout",
        "listKind": "RolloutList",
        "plural": "rollouts",
        "singular": "rollout",
        "shortNames": ["lwsro"],
    }
    assert names(RECORD) == {
        "kind": "BatchRelease",
        "listKind": "BatchReleaseList",
        "plural": "batchreleases",
        "singular": "batchrelease",
    }


@pytest.mark.parametrize("manifest", [ROLLOUT, RECORD])
def test_one_version_is_served_and_stored_with_a_status_of_its_own(manifest: dict[str, Any]) -> None:
    (version,) = manifest["spec"]["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1beta1", True, True)
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    # Groups are asked of the Rollout; the other is a record.
    assert version["subresources"] == ({"status": {}, "scale": scale} if manifest is ROLLOUT else {"status": {}})
    assert manifest["spec"]["scope"] == "Namespaced"


def columns(manifest: Mapping[str, Any], priority: int = 0) -> dict[str, str]:
    (version,) = manifest["spec"]["versions"]
    listed = version["additionalPrinterColumns"]
    return {each["name"]: each["jsonPath"] for each in listed if each.get("priority", 0) == priority}


def test_kubectl_shows_what_a_release_does() -> None:
    assert columns(ROLLOUT) == {
        "STATUS": ".status.summary.state",
        "STEP": ".status.summary.step",
        "TRAFFIC": ".status.summary.traffic",
        "NEW": ".status.summary.new",
        "STABLE": ".status.summary.stable",
        "AGE": ".metadata.creationTimestamp",
    }
    assert list(columns(ROLLOUT, 1)) == ["ACCELERATORS", "SINCE", "PHASE", "MESSAGE"]
    assert columns(RECORD)["KIND"] == ".spec.workloadRef.kind"
    assert list(columns(RECORD)) == ["KIND", "PHASE", "BATCH", "BATCH-STATE", "AGE"]


@pytest.mark.parametrize("manifest", [ROLLOUT, RECORD])
def test_every_column_shows_a_field_of_the_schema_in_its_type(manifest: dict[str, Any]) -> None:
    types = dict(nodes(root(manifest)))
    (version,) = manifest["spec"]["versions"]
    for column in version["additionalPrinterColumns"]:
        assert column["description"]
        if column["jsonPath"].startswith(".metadata."):
            assert column["type"] == "date"
            continue
        field = types[column["jsonPath"]]
        assert column["type"] == ("date" if field.get("format") == "date-time" else field["type"]), column


def test_another_group_is_nothing_but_another_name() -> None:
    others = crd.render("rollouts.example.org")
    assert [each["metadata"]["name"] for each in others] == [
        "rollouts.rollouts.example.org",
        "batchreleases.rollouts.example.org",
    ]
    text = json.dumps(others)
    assert "kruise.io" not in text
    assert json.loads(text.replace("rollouts.example.org", "rollouts.kruise.io")) == crd.render()


def test_rendering_twice_gives_values_that_nobody_shares() -> None:
    first = crd.render()
    root(first[0])["properties"]["spec"]["properties"].clear()
    assert root(crd.render()[0]) == root(ROLLOUT)


# The schemas for editors


def schema_for_editors(plural: str) -> Schema:
    found: Schema = json.loads((ROOT / "schemas" / f"{plural}.json").read_text())
    return found


def rollout(**canary: Any) -> dict[str, Any]:
    return {
        "apiVersion": "rollouts.kruise.io/v1beta1",
        "kind": "Rollout",
        "metadata": {"name": "llama", "labels": {"a": "b"}},
        "spec": {
            "workloadRef": {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "llama"},
            "strategy": {"canary": {"steps": [{"replicas": "20%", "pause": {"duration": 60}}], **canary}},
        },
    }


@pytest.mark.parametrize("plural", ["rollouts", "batchreleases"])
def test_schemas_for_editors_are_json_schemas_without_kubernetes_words(plural: str) -> None:
    schema = schema_for_editors(plural)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert "x-kubernetes" not in json.dumps(schema)


def test_an_editor_accepts_a_manifest() -> None:
    jsonschema.validate(rollout(failureThreshold=1, capacity="ExtraWorkload"), schema_for_editors("rollouts"))


@pytest.mark.parametrize(
    ("canary", "text"),
    [
        ({"stpes": []}, "'stpes' was unexpected"),
        ({"steps": []}, "[] should be non-empty"),
        ({"steps": [{"replicas": "20"}]}, "'20' does not match"),
        ({"steps": [{"replicas": 1.5}]}, "1.5 is not valid under any of the given schemas"),
        ({"steps": [{"pause": {}}]}, "'replicas' is a required property"),
        ({"capacity": "Sideways"}, "'Sideways' is not one of"),
        ({"steps": [{"replicas": 1, "pause": {"duration": "60s"}}]}, "'60s' is not of type 'integer'"),
    ],
)
def test_an_editor_marks_mistakes(canary: dict[str, Any], text: str) -> None:
    with pytest.raises(jsonschema.ValidationError) as caught:
        jsonschema.validate(rollout(**canary), schema_for_editors("rollouts"))
    assert text in caught.value.message


# What models may not say


class _Leaf(BaseModel):
    value: int


class _Recursive(BaseModel):
    children: list[_Recursive] = []


class _ModelOrNumber(BaseModel):
    either: _Leaf | int


class _Anything(BaseModel):
    any_value: Any


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (_Recursive, "_Recursive contains itself"),
        (_ModelOrNumber, "a union of"),
        (_Anything, "_Anything.any_value: no single type"),
    ],
)
def test_what_a_structural_schema_cannot_say_is_an_error_here(model: type[BaseModel], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        structural(model)


class _Everything(Model):
    """All kinds of fields."""

    maybe: _Leaf | None = None
    """A part."""
    free: dict[str, Any] = Field(default={})
    """Whatever."""
    only: Literal["One"] = "One"
    """A constant."""
    flag: bool = False
    """A flag."""
    zero: int = 0
    """A number."""
    text: str = ""
    """A text."""
    limited: dict[str, int] = Field(default={}, max_length=3)
    """A map."""


def test_each_kind_of_field_becomes_what_an_api_server_understands() -> None:
    assert structural(_Everything)["properties"] == {
        "maybe": {
            "type": "object",
            "properties": {"value": {"type": "integer", "format": "int64"}},
            "required": ["value"],
            "description": "A part.",
        },
        "free": {"type": "object", "description": "Whatever.", "x-kubernetes-preserve-unknown-fields": True},
        "only": {"type": "string", "enum": ["One"], "default": "One", "description": "A constant."},
        "flag": {"type": "boolean", "default": False, "description": "A flag."},
        "zero": {"type": "integer", "format": "int64", "default": 0, "description": "A number."},
        "text": {"type": "string", "maxLength": TEXT_LIMIT, "description": "A text."},
        "limited": {
            "type": "object",
            "additionalProperties": {"type": "integer", "format": "int64"},
            "maxProperties": 3,
            "description": "A map.",
        },
    }
