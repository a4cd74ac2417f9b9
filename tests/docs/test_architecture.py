"""The page for contributors is about the program that is there: each of its packages, its contracts, its files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.docs.pages import ROOT

PAGE = ROOT / "docs/architecture.md"
_ROOMS = re.compile(r"^\| `(rollout_lws/[\w.]+)` \|", re.MULTILINE)
_FILE = re.compile(r"`([\w-]+(?:/[\w.-]+)+|[\w-]+\.toml)`")
_LAYERS = re.compile(r"<!-- layers -->\n```text\n(.*?)```", re.DOTALL)


def test_every_package_has_its_line_and_no_other() -> None:
    there = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "rollout_lws").iterdir()
        if not path.name.startswith("__") and (path.suffix == ".py" or (path / "__init__.py").exists())
    }
    assert sorted(_ROOMS.findall(PAGE.read_text())) == sorted(there)


def test_every_package_below_them_is_named() -> None:
    there = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "rollout_lws").rglob("*/__init__.py")}
    assert there - set(_FILE.findall(PAGE.read_text())) == set()


def test_files_that_are_named_are_there() -> None:
    named = _FILE.findall(PAGE.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert Path("rollout_lws/rollout/decide.py").as_posix() in named


def test_layers_are_those_that_the_linter_of_imports_holds() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [each["layers"] for each in contracts if each["type"] == "layers"]
    [told] = _LAYERS.findall(PAGE.read_text())
    assert told.splitlines() == layers


def test_what_the_core_may_not_import_is_named() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [core] = [each for each in contracts if each["type"] == "forbidden" and "asyncio" in each["forbidden_modules"]]
    page = PAGE.read_text()
    outside = {name for name in core["forbidden_modules"] if not name.startswith("rollout_lws.")}
    # What kubernetes-asyncio is used for, only the edge does; the page says so.
    assert {name for name in outside - {"kubernetes_asyncio"} if f"`{name}`" not in page} == set()
