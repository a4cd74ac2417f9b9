"""docs/api.md, made of the models and the CustomResourceDefinitions: what a field is, and what the API server refuses.

``python -m tests.docs.api_reference`` writes the page; ``--check`` only compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, TypeAdapter

from rollout_lws.api import (
    BatchRelease,
    ConditionType,
    FinalisingStep,
    Keys,
    Phase,
    ProgressingReason,
    Rollout,
    StepState,
    SummaryState,
    keys,
)
from rollout_lws.api.crd import render
from rollout_lws.api.generate import bring
from rollout_lws.api.resources import Key
from rollout_lws.api.rollout_spec import Percent
from rollout_lws.api.structural import ITEMS_LIMIT, TEXT_LIMIT
from rollout_lws.rollout.reasons import Ending, EventReason, Reason, Task
from tests.docs.pages import ROOT
from tests.docs.tables import code, prose, table

PAGE = ROOT / "docs/api.md"
Schema = Mapping[str, Any]
_INTRODUCTION = f"""\
<!-- Generated from rollout_lws/api by 'make generate'; do not edit. -->
# API

Every field of `Rollout`, which you write, and of `BatchRelease`, which the controller writes for each release. Names
are those of OpenKruise Rollouts `v1beta1`; counts are groups, times are RFC 3339, durations whole seconds. The API
group is `rollouts.kruise.io` unless [another one](install.md#beside-openkruise-rollouts) was installed. What each word
of a status means: [What the status says](status.md).

A text without a limit below has at most {TEXT_LIMIT} characters, a list or map at most {ITEMS_LIMIT} entries. Fields
that are not listed are dropped by the API server. What it cannot check alone, `rollout-lws lint` finds in files, and
the controller refuses with the reason `InvalidSpec`; nothing is touched then.
"""
#: Closed lists of words, by the field that has them.
_WORDS: tuple[tuple[str, type[StrEnum]], ...] = (
    ("`status.phase`", Phase),
    ("`status.summary.state`, STATUS of `kubectl get`: [meaning](status.md#status)", SummaryState),
    ("`status.conditions[].type`: [meaning](status.md#conditions)", ConditionType),
    (
        "`status.conditions[].reason` of Ready, Reconciling and Stalled:"
        " [meaning](status.md#reasons-of-ready-reconciling-and-stalled)",
        Reason,
    ),
    ("`status.conditions[].reason` of Progressing", ProgressingReason),
    ("`status.currentStepState`, and that of the sub-status", StepState),
    ("`status.canaryStatus.finalisingStep`, `status.blueGreenStatus.finalisingStep`", FinalisingStep),
    ("`status.finalising.reason`", Ending),
    ("`status.finalising.task`", Task),
    ("reasons of events: [meaning](status.md#events)", EventReason),
)


#: The pattern of percentages, which words say better.
_PERCENT = TypeAdapter(Percent).json_schema()["pattern"]


@dataclass(slots=True)
class Section:
    """A type: its fields, and the places where it is used."""

    name: str
    description: str
    rows: list[tuple[str, ...]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)


class Sections:
    """All types below one or several kinds, in the order in which a reader meets them."""

    def __init__(self) -> None:
        self.found: dict[str, Section] = {}

    def add(self, model: type[BaseModel], served: Schema, place: str) -> None:
        """The types of ``model``; ``served`` is its structural schema, which has the limits."""
        said = model.model_json_schema(by_alias=True)
        self._object(model.__name__, said, said.get("$defs", {}), served, place)

    def _object(self, name: str, said: Schema, defined: Schema, served: Schema, place: str) -> None:
        known = name in self.found
        section = self.found.setdefault(name, Section(name, prose(said.get("description", ""))))
        section.places.append(place)
        if not section.description:
            raise ValueError(f"{name} says nothing of itself: give it a docstring")
        rows: list[tuple[str, ...]] = []
        for key, inner in served["properties"].items():
            where = f"{place}.{key}"
            described = prose(inner.get("description", ""))
            if not described:
                raise ValueError(f"{where} has no description: give it a docstring")
            type_ = self._type(said["properties"][key], defined, inner, where)
            rows.append((f"`{key}`", type_, _default(key, inner, served), _limits(inner), described))
        if known and section.rows != rows:
            raise ValueError(f"{name} has not the same fields everywhere: {', '.join(section.places)}")
        section.rows = rows

    def _type(self, said: Schema, defined: Schema, served: Schema, place: str) -> str:
        """What the value is, with a link where it is a type of its own."""
        if "anyOf" in said:
            branches = [branch for branch in said["anyOf"] if branch.get("type") != "null"]
            if len(branches) == 1:
                return self._type(branches[0], defined, served, place)
            percents = any("%" in branch.get("pattern", "") for branch in branches)
            return "count or percentage" if percents else "number or name"
        if "$ref" in said:
            name = said["$ref"].rpartition("/")[2]
            if "properties" not in defined[name]:
                return self._type(defined[name], defined, served, place)
            self._object(name, defined[name], defined, served, place)
            return f"[{name}](#{name.lower()})"
        if said["type"] == "array":
            return f"list of {self._type(said['items'], defined, served['items'], f'{place}[]')}"
        if said["type"] == "object":
            values = served["additionalProperties"]
            return f"map of {self._type(said['additionalProperties'], defined, values, f'{place}{{}}')} by text"
        if "enum" in served:
            return "one of " + ", ".join(f"`{word}`" for word in served["enum"])
        if served.get("format") == "date-time":
            return "time"
        return {"string": "text", "integer": "integer", "boolean": "boolean"}[said["type"]]


def _default(key: str, schema: Schema, parent: Schema) -> str:
    if key in parent.get("required", ()):
        return "required"
    default = schema.get("default")
    return "" if default is None else f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _limits(schema: Schema) -> str:
    """What a value may be; the limits that every text, list and map has are said once, at the top of the page."""
    least, most = schema.get("minimum"), schema.get("maximum")
    limits = [] if least is most is None else [f"{_bound(least)} to {_bound(most)}"]
    if schema.get("pattern") == _PERCENT:
        return " or ".join([*limits, "0% to 100%"])
    for few, many, what, common in (
        ("minLength", "maxLength", "characters", TEXT_LIMIT),
        ("minItems", "maxItems", "entries", ITEMS_LIMIT),
        ("minProperties", "maxProperties", "entries", ITEMS_LIMIT),
    ):
        if few in schema:
            limits.append(f"{schema[few]} to {schema[many]} {what}")
        elif schema.get(many, common) != common:
            limits.append(f"at most {schema[many]} {what}" if schema[many] > 1 else "at most 1")
    if "pattern" in schema:
        limits.append(code(schema["pattern"]))
    return ", ".join(limits)


def _bound(bound: int | None) -> str:
    return "any" if bound is None else f"{bound:,}"


def rules(schema: Schema, place: str) -> Iterator[tuple[str, str, str]]:
    """Place, message and CEL expression of each rule; ``place`` is where ``schema`` stands."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"`{place}`" if place else "the object", prose(rule["message"]), code(rule["rule"])
    for key, inner in schema.get("properties", {}).items():
        yield from rules(inner, f"{place}.{key}".lstrip("."))
    if "items" in schema:
        yield from rules(schema["items"], f"{place}[]")


def page() -> str:
    """The page as it should be."""
    sections, kinds = Sections(), list(zip((Rollout, BatchRelease), render(), strict=True))
    parts = [_INTRODUCTION]
    for kind, manifest in kinds:
        version = manifest["spec"]["versions"][0]
        served = version["schema"]["openAPIV3Schema"]
        before = set(sections.found)
        for member in ("spec", "status"):
            (model,) = _models(kind, member)
            sections.add(model, served["properties"][member], f"{kind.__name__}.{member}")
        parts += [f"## {kind.__name__}", f"{served['description']} {_names(manifest)}", *_kind(kind, served)]
        parts += [_section(each) for name, each in sections.found.items() if name not in before]
        if found := list(rules(served, "")):
            parts += [f"### Rules of {kind.__name__}", "The API server refuses what breaks one of these (CEL)."]
            parts += [table(("place", "message", "rule"), found)]
        parts += [f"### Columns of {kind.__name__}", _columns(version["additionalPrinterColumns"])]
    parts += ["## Labels, annotations and finalizers", _marks(), "## Words", _words()]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _models(kind: type[BaseModel], member: str) -> Iterator[type[BaseModel]]:
    annotation: Any = kind.model_fields[member].annotation
    for choice in getattr(annotation, "__args__", (annotation,)):
        if isinstance(choice, type) and issubclass(choice, BaseModel):
            yield choice


def _names(manifest: Schema) -> str:
    names = manifest["spec"]["names"]
    short = "".join(f", `{name}`" for name in names.get("shortNames", ()))
    return f"`{manifest['spec']['group']}/{manifest['spec']['versions'][0]['name']}`, `{names['plural']}`{short}."


def _kind(kind: type[BaseModel], served: Schema) -> Iterator[str]:
    rows = []
    for member in ("spec", "status"):
        (model,) = _models(kind, member)
        link = f"[{model.__name__}](#{model.__name__.lower()})"
        rows.append((f"`{member}`", link, prose(served["properties"][member]["description"])))
    yield table(("field", "type", "what it is"), rows)


def _section(section: Section) -> str:
    places = ", ".join(f"`{place}`" for place in _joined(section.places))
    rows = table(("field", "type", "default", "limits", "what it is"), section.rows)
    return f"### {section.name}\n\n{section.description} In {places}.\n\n{rows}"


def _joined(places: Sequence[str]) -> Iterator[str]:
    """The places, those that both styles have as one."""
    for place in places:
        canary, blue_green = place.replace(".blueGreen.", ".canary."), place.replace(".canary.", ".blueGreen.")
        if canary == blue_green or not {canary, blue_green} <= {*places}:
            yield place
        elif place == canary:
            yield place.replace(".canary.", ".{canary,blueGreen}.")


def _columns(columns: Iterable[Schema]) -> str:
    rows = [
        (f"`{each['name']}`", "`-o wide`" if each.get("priority") else "", f"`{each['jsonPath']}`", each["description"])
        for each in columns
    ]
    return table(("column", "only with", "from", "what it is"), rows)


def _marks() -> str:
    rows = []
    for name, member in vars(Keys).items():
        if isinstance(member, Key):
            rows.append((f"`{getattr(keys(), name)}`", prose(str(member.__doc__))))
    return table(("key", "what it is"), rows)


def _words() -> str:
    return table(("where", "words"), [(where, ", ".join(f"`{word}`" for word in words)) for where, words in _WORDS])


if __name__ == "__main__":
    sys.exit(bring({PAGE: page()}, sys.argv[1:]))
