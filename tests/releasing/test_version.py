"""The version is written in pyproject.toml, and whatever else names it follows."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType

import pytest
from click.testing import CliRunner

from rollout_lws import __version__
from rollout_lws.cli.main import program
from tests.docs.pages import ROOT

SCRIPT = ROOT / ".ci/version"


def loaded() -> ModuleType:
    loader = SourceFileLoader("ci_version", str(SCRIPT))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


version = loaded()
FILES = version.named(ROOT)


def test_all_files_and_the_program_agree() -> None:
    assert set(FILES.values()) == {__version__}
    assert CliRunner().invoke(program, ["--version"]).output == f"rollout-lws {__version__}\n"
    assert version.problems(FILES, version.entries((ROOT / "CHANGELOG.md").read_text())) == []


NEXT = "## Unreleased\n\n### Added\n\n* more\n\n"
RELEASED = "## 1.2.0 - 2026-01-31\n\n### Added\n\n* this\n\n## 1.1.0 - 2025-12-24\n\n* that\n"
AGREED = {"pyproject.toml": "1.2.0", "Chart.yaml": "1.2.0"}


@pytest.mark.parametrize(
    ("files", "changelog", "tag", "told"),
    [
        (AGREED, RELEASED, "v1.2.0", []),
        (AGREED, RELEASED, "", []),
        (AGREED, NEXT + RELEASED, "", []),
        ({**AGREED, "Chart.yaml": "1.1.0"}, RELEASED, "", ["Chart.yaml says 1.1.0, pyproject.toml says 1.2.0"]),
        ({**AGREED, "Chart.yaml": ""}, RELEASED, "", ["Chart.yaml says no version, pyproject.toml says 1.2.0"]),
        (
            {"pyproject.toml": "1.3.0"},
            RELEASED,
            "",
            ["the newest entry of CHANGELOG.md is 1.2.0: make it '## 1.3.0 - YYYY-MM-DD'"],
        ),
        (
            AGREED,
            RELEASED,
            "v1.3.0",
            ["the tag is v1.3.0, pyproject.toml says 1.2.0: tag v1.2.0, or raise the version first"],
        ),
        (
            AGREED,
            NEXT + RELEASED,
            "v1.2.0",
            ["CHANGELOG.md does not begin with a release: make its first entry '## 1.2.0 - YYYY-MM-DD'"],
        ),
        (
            AGREED,
            RELEASED.replace(" - 2026-01-31", ""),
            "v1.2.0",
            ["CHANGELOG.md does not begin with a release: make its first entry '## 1.2.0 - YYYY-MM-DD'"],
        ),
    ],
)
def test_what_does_not_fit_is_told(files: dict[str, str], changelog: str, tag: str, told: list[str]) -> None:
    assert version.problems(files, version.entries(changelog), tag) == told


def test_the_notes_of_a_release_are_its_entry() -> None:
    (first, date, text), *_ = version.entries("# Changelog\n\n" + RELEASED)
    assert (first, date, text) == ("1.2.0", "2026-01-31", "### Added\n\n* this")


def test_a_tag_of_something_else_ends_a_release() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "v99.0.0", "--notes"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"version: the tag is v99.0.0, pyproject.toml says {__version__}: ")
