"""The chart's files fit together, and the sources that they follow from; nothing of this needs Helm."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from rollout_lws import __version__
from rollout_lws.api import generate
from rollout_lws.cli.install import chart
from tests.chart.rendering import CHART

Object = dict[str, Any]
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
TEMPLATES = {path: path.read_text() for path in sorted((CHART / "templates").rglob("*.*"))}


def test_it_is_of_this_version() -> None:
    described = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert described["appVersion"] == described["version"] == __version__


@pytest.mark.parametrize("files", [generate.files, chart.files], ids=["definitions", "rights"])
def test_what_is_generated_is_fresh(files: Any) -> None:
    assert [path.name for path, text in files().items() if path.read_text() != text] == []


def test_what_is_stale_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    stale = generate.ROOT / generate.TEMPLATES / "_rules.tpl"
    wanted = {stale: stale.read_text() + "more\n"}
    assert generate.bring(wanted, ["--check"]) == 1
    assert capsys.readouterr().err == (
        "charts/rollout-lws/templates/_rules.tpl differs from the sources: run 'make generate'\n"
    )
    assert generate.bring(chart.files(), ["--check"]) == 0


def test_braces_of_a_description_are_no_template() -> None:
    assert generate.literal("a {{ b }} c") == 'a {{ "{{" }} b }} c'


def leaves(values: Object, schema: Object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of the values that the schema describes one by one."""
    for key, each in schema["properties"].items():
        if "properties" in each:
            yield from leaves(values, each, (*path, key))
        else:
            yield (*path, key)


def test_every_value_is_in_the_schema_and_fits_it() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(VALUES, SCHEMA)


#: What the schema allows and no default names: Helm's own, and a field of Kubernetes.
UNNAMED = {("global",), ("resources", "claims")}


def test_every_value_of_the_schema_has_a_default() -> None:
    for path in {*leaves(VALUES, SCHEMA)} - UNNAMED:
        value = VALUES
        for key in path:
            assert key in value, path
            value = value[key]


def strict(schema: Object) -> Iterator[bool]:
    if "properties" in schema and "required" not in schema:
        yield schema.get("additionalProperties") is False
        for each in schema["properties"].values():
            yield from strict(each)


def test_a_value_that_is_misspelt_is_never_overlooked() -> None:
    assert all(strict(SCHEMA))


def test_every_value_is_explained() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    unexplained = [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if re.match(r" *[\w./]+:", line) and not before.lstrip().startswith("#")
    ]
    assert unexplained == []


def used() -> set[tuple[str, ...]]:
    """Values that templates name in full."""
    text = "\n".join(TEMPLATES.values())
    return {tuple(found.split(".")) for found in re.findall(r"\.Values\.([\w.]+)", text)}


def test_every_value_that_a_template_names_is_there() -> None:
    for path in used():
        value: Any = VALUES
        for key in path:
            assert isinstance(value, dict) and key in value, path
            value = value[key]


def test_every_value_is_used_by_a_template() -> None:
    """By its full name, or as a part of one that is used as a whole."""
    whole = used()
    unused = [
        path
        for path in {*leaves(VALUES, SCHEMA)} - UNNAMED
        if not any(path[: end + 1] in whole for end in range(len(path)))
    ]
    assert unused == []


def pinned(name: str) -> dict[str, str]:
    text = (generate.ROOT / "requirements" / f"{name}.txt").read_text()
    return dict(re.findall(r"^([\w-]+)==([\w.]+)", text, re.MULTILINE))


def test_who_gets_helm_keeps_what_everybody_has() -> None:
    """And nobody gets it who has not asked."""
    ours, everybodys = pinned("chart"), pinned("dev")
    assert {name for name in ours if name not in everybodys} >= {"helm-python-sdk", "kubernetes-validate"}
    assert {name: everybodys[name] for name in ours if name in everybodys}.items() <= ours.items()
