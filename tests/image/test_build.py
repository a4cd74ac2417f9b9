"""The build stage of the image, run without an engine: its own RUN lines on copies of what it copies, elsewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rollout_lws import __version__
from tests.docs.pages import ROOT
from tests.image.containerfile import copied, sent, stages

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
BUILD, FINAL = stages()
#: Places of the image that lie in a folder of the test instead.
_PLACES = re.compile(r"(?<![\w.])/(?=opt/|build\b|wheels\b|src\b)")


def run(command: str, place: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(["/bin/sh", "-c", command], cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of what the build stage leaves. The base image's part is played by a fresh environment with pip."""
    root = tmp_path_factory.mktemp("image")
    subprocess.run([sys.executable, "-m", "venv", root / "base"], check=True)
    source = root / BUILD.only("WORKDIR").text.lstrip("/")
    source.mkdir()
    # How an index is reached is the builder's own; nothing else of this environment is there in an engine.
    environment = {key: value for key, value in os.environ.items() if key.startswith("PIP_") or "proxy" in key.lower()}
    environment |= {"PATH": f"{root / 'base' / 'bin'}:/usr/bin:/bin", "HOME": str(root)}
    for each in BUILD.instructions:
        if each.name == "COPY":
            *names, target = each.words
            for name in names:
                copy(name, source / target)
        elif each.name in ("ENV", "ARG"):
            environment |= each.pairs
        elif each.name == "RUN":
            run(_PLACES.sub(f"{root}/", each.text), source, environment)
        else:
            assert each.name == "WORKDIR"
    shutil.rmtree(source)
    shutil.rmtree(root / "build")
    return root


def copy(name: str, target: Path) -> None:
    if not name.endswith("/"):
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
        return
    for path in (ROOT / name).rglob("*"):
        inside = path.relative_to(ROOT)
        if path.is_file() and sent(str(inside)):
            (target / inside.relative_to(name)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / inside.relative_to(name))


def started(built: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """With the environment of the last stage and nothing else, in an empty folder."""
    path, *_ = FINAL.only("ENV").pairs["PATH"].split(":")
    environment = {**FINAL.only("ENV").pairs, "PATH": str(built / path.lstrip("/"))}
    (built / "empty").mkdir(exist_ok=True)
    entry = FINAL.only("ENTRYPOINT").words
    program = shutil.which(entry[0], path=environment["PATH"])
    assert program is not None
    return subprocess.run(
        [program, *entry[1:], *arguments], cwd=built / "empty", env=environment, capture_output=True, text=True
    )


def test_what_is_copied_is_what_was_run(built: Path) -> None:
    (moved,) = [each.words for each in FINAL.every("COPY")]
    assert moved == [f"--from={BUILD.name}", "/opt/rollout-lws", "/opt/rollout-lws"]
    assert copied(FINAL) == []
    assert (built / "opt/rollout-lws").is_dir()


def test_the_program_starts_with_nothing_around_it(built: Path) -> None:
    told = started(built, "--version")
    assert (told.returncode, told.stdout, told.stderr) == (0, f"rollout-lws {__version__}\n", "")
    told = started(built, "controller", "--help")
    assert told.returncode == 0
    assert "--leader-elect" in told.stdout


def test_the_controller_loads_all_of_itself_there(built: Path) -> None:
    """Without a cluster it gets as far as looking for one, past every import."""
    told = started(built, "controller", "--leader-elect", "--kubeconfig=nowhere")
    assert told.returncode == 1
    assert "Traceback" not in told.stderr
    assert told.stderr.splitlines()[-1].startswith("rollout-lws: kubeconfig nowhere does not exist: ")


def test_nothing_is_written_or_compiled_when_it_starts(built: Path) -> None:
    """Compiled for this interpreter, and believed whatever the times of the files are."""
    package = next((built / "opt/rollout-lws/lib").glob("python*/site-packages/rollout_lws"))
    before = sorted(built.joinpath("opt").rglob("*"))
    os.utime(package / "settings.py", (0, 0))
    started(built, "controller", "--help")
    assert sorted(built.joinpath("opt").rglob("*")) == before
    sources = list(package.rglob("*.py"))
    assert len(sources) > 100
    for source in sources:
        compiled = Path(importlib.util.cache_from_source(str(source))).read_bytes()
        assert compiled[4:8] == b"\x01\x00\x00\x00", source


def test_it_has_no_pip_no_tests_and_no_place_of_the_builder(built: Path) -> None:
    (site,) = (built / "opt/rollout-lws/lib").glob("python*/site-packages")
    there = {path.name for path in site.iterdir()}
    assert {"rollout_lws", "aiohttp"} <= there
    assert {"pip", "hatchling", "pytest", "tests"} & there == set()


def test_a_wheel_is_the_same_whenever_and_wherever_it_is_made(tmp_path: Path) -> None:
    wheels = []
    for place, moment in (("here", 1_000_000_000), ("there", 1_700_000_000)):
        source = tmp_path / place
        for names, target in copied(BUILD):
            for name in names:
                copy(name, source / target)
        for path in source.rglob("*"):
            os.utime(path, (moment, moment))
        environment = {**os.environ, **BUILD.only("ARG").pairs}
        made = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(source / "dist")]
        subprocess.run(made, cwd=source, env=environment, check=True, capture_output=True)
        (wheel,) = (source / "dist").iterdir()
        wheels.append(wheel.read_bytes())
    assert wheels[0] == wheels[1]
