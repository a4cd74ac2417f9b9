"""The workflows are what GitHub reads, run nothing that a stranger chose, and may do no more than each job needs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.image.containerfile import stages

Object = dict[str, Any]
FOLDER = ROOT / ".github/workflows"
WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yml"))}
RELEASE = WORKFLOWS["release.yml"]
JOBS = [(name, key, job) for name, each in WORKFLOWS.items() for key, job in each["jobs"].items()]
STEPS = [(f"{name}: {key}", step) for name, key, job in JOBS for step in job.get("steps", [])]
#: What each job of a release may write. Names and contents of images and charts; tokens by which it signs as this
#: workflow; the release itself.
WRITES = {
    "ci": set(),
    "plan": set(),
    "packages": {"id-token", "attestations"},
    "image": {"packages", "id-token", "attestations"},
    "index": {"packages", "id-token", "attestations"},
    "chart": {"packages", "id-token"},
    "manifest": set(),
    "release": {"contents", "id-token"},
}


def test_every_job_may_do_what_it_needs_and_no_more() -> None:
    assert {each["permissions"] == {} for each in WORKFLOWS.values()} == {True}
    granted = {
        key: {name for name, right in job["permissions"].items() if right == "write"}
        for key, job in RELEASE["jobs"].items()
    }
    assert granted == WRITES
    assert [job["permissions"] for job in WORKFLOWS["ci.yml"]["jobs"].values()] == [{"contents": "read"}] * 2


@pytest.mark.parametrize(("where", "step"), STEPS, ids=[where for where, _ in STEPS])
def test_a_step_runs_what_is_pinned_and_nothing_out_of_an_expression(where: str, step: Object) -> None:
    if "uses" in step:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]), where
    else:
        # What an expression gives would be read as a script.
        assert "${{" not in step["run"], where
        read = subprocess.run(["bash", "-n"], input=step["run"], capture_output=True, text=True)
        assert read.stderr == ""
    if step.get("uses", "").startswith("actions/checkout@"):
        assert step["with"]["persist-credentials"] is False


def test_an_action_is_of_one_version_which_is_named_beside_it() -> None:
    lines = re.findall(r"uses: (\S+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$", _text(), re.MULTILINE)
    assert len(lines) == sum("uses" in step for _, step in STEPS)
    assert len(set(lines)) == len({action for action, *_ in lines})


def _text() -> str:
    return "".join(path.read_text() for path in FOLDER.glob("*.yml"))


def test_every_job_ends() -> None:
    assert [key for _, key, job in JOBS if "timeout-minutes" not in job and "uses" not in job] == []


def test_only_a_tag_releases_and_only_what_passed() -> None:
    # YAML reads the key `on` as true.
    assert RELEASE[True] == {"push": {"tags": ["v*"]}}
    jobs = RELEASE["jobs"]
    assert jobs["ci"]["uses"] == "./.github/workflows/ci.yml"
    checks = [step.get("run") for job in WORKFLOWS["ci.yml"]["jobs"].values() for step in job["steps"]]
    assert {".ci/run", "make audit REQUIRED=1"} <= set(checks)

    def before(key: str) -> set[str]:
        needed = set(jobs[key].get("needs", []))
        return needed.union(*(before(each) for each in needed))

    publishing = {key for key in jobs if jobs[key]["permissions"].keys() & {"packages"}} | {"release"}
    assert publishing == {"image", "index", "chart", "release"}
    assert {key: {"ci", "plan"} <= before(key) for key in publishing} == dict.fromkeys(publishing, True)
    assert before("release") == jobs.keys() - {"release"}
    checked = [step.get("run", "") for step in jobs["plan"]["steps"]]
    assert 'python3 .ci/version "$GITHUB_REF_NAME"' in checked


def test_files_and_arguments_that_it_names_are_there() -> None:
    (built,) = [step["with"] for _, step in STEPS if "build-push-action" in step.get("uses", "")]
    assert (ROOT / built["file"]).exists()
    given = {line.partition("=")[0] for line in built["build-args"].splitlines()}
    _, final = stages()
    assert given == {"BASE", *(name for each in final.every("ARG") for name in each.pairs)}
    for named in re.findall(r"(?:requirements|charts|e2e)/[\w./-]+", _text()):
        assert (ROOT / named).exists(), named
    for script in re.findall(r"\.ci/\w+", _text()):
        assert (ROOT / script).stat().st_mode & 0o111, script


def test_the_chart_gets_the_name_of_its_image(tmp_path: Path) -> None:
    (packed,) = [step["run"] for _, step in STEPS if "helm package" in step.get("run", "")]
    values = tmp_path / "charts/rollout-lws/values.yaml"
    values.parent.mkdir(parents=True)
    before = (ROOT / "charts/rollout-lws/values.yaml").read_text()
    values.write_text(before)
    script = packed.replace("helm package", "test -d")
    image = "ghcr.io/somebody/rollout-lws"
    subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "IMAGE": image}, check=True
    )
    after = yaml.safe_load(values.read_text())
    assert after["image"].pop("repository") == image
    wanted = yaml.safe_load(before)
    del wanted["image"]["repository"]
    assert after == wanted
