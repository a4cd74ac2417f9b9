"""The image has the program in it, nothing else of whoever builds it, and what the Deployment asks of an image."""

from __future__ import annotations

import re
import subprocess
import tomllib
from typing import Any

import pytest

from rollout_lws.cli.install.manifests import objects
from rollout_lws.cli.install.options import Installation
from tests.docs.pages import ROOT
from tests.image.containerfile import copied, sent, stages

#: What a wheel is made of, and what it needs to run.
NEEDED = {
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "requirements/build.txt",
    "requirements/controller.txt",
    "rollout_lws/",
}
BUILD, FINAL = stages()


def pod() -> dict[str, Any]:
    *_, deployment = objects(Installation(image="registry.example.com/rollout-lws:1"))
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return found


def test_it_takes_what_it_needs_and_no_more() -> None:
    assert {name for names, _ in copied(BUILD) for name in names} == NEEDED
    assert copied(FINAL) == []
    assert [name for name in NEEDED if not (ROOT / name).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert {project["project"]["readme"], *project["project"]["license-files"]} <= NEEDED
    assert {f"{name}/" for name in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]} <= NEEDED


def test_it_has_what_the_controller_needs_and_none_of_the_command_lines_own() -> None:
    def names(file: str) -> set[str]:
        return set(re.findall(r"^([\w.-]+==[\w.]+)", (ROOT / "requirements" / file).read_text(), re.MULTILINE))

    assert names("controller.txt") < names("run.txt") < names("dev.txt")
    left = {each.partition("==")[0] for each in names("run.txt") - names("controller.txt")}
    assert {"cel-python", "python-socks"} <= left
    assert "cryptography" not in left


def test_an_engine_sees_all_of_that_and_nothing_else() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("needs a clone of the repository, not a copy of its files")
    files = tracked.stdout.splitlines()
    wanted = {path for path in files if path in NEEDED or path.startswith("rollout_lws/")}
    assert {path for path in files if sent(path)} == wanted


@pytest.mark.parametrize(
    "secret",
    [
        ".git/config",
        ".env",
        ".pypirc",
        "sandbox.kubeconfig",
        "kubeconfig",
        ".kube/config",
        "rollout_lws/.env",
        "rollout_lws/cli/kubeconfig",
        "rollout_lws/kubeconfig/kubeconfig",
        "rollout_lws/kubeconfig/prod.yaml",
        "rollout_lws/prod.kubeconfig",
        "rollout_lws/kube/client.key",
        "rollout_lws/tls.pem",
        "rollout_lws/cli/__pycache__/main.pyc",
        "requirements/.netrc",
        "requirements/pip.conf",
        "README.md.orig",
    ],
)
def test_what_may_lie_in_a_clone_is_not_sent(secret: str) -> None:
    assert not sent(secret)


def test_every_engine_is_told_the_same() -> None:
    """Podman reads the one file, docker the other."""
    assert (ROOT / ".dockerignore").read_text() == (ROOT / ".containerignore").read_text()


def test_both_stages_have_one_interpreter_which_can_be_pinned() -> None:
    assert BUILD.base == FINAL.base == "${BASE}"
    (default,) = re.findall(r"^ARG BASE=(\S+)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    assert default == "docker.io/library/python:3.11-slim"
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"] == ">=3.11"


def test_what_comes_from_an_index_is_held_to_its_hash() -> None:
    commands = [part for each in BUILD.every("RUN") for part in each.text.split("&&") if " install " in part]
    assert len(commands) == 3
    assert [part for part in commands if "--require-hashes" not in part and "--no-index" not in part] == []


def test_user_ports_and_program_are_those_of_the_deployment() -> None:
    (container,) = pod()["containers"]
    context = pod()["securityContext"]
    assert FINAL.only("USER").text == f"{context['runAsUser']}:{context['runAsGroup']}"
    assert context["runAsUser"] != 0
    assert {int(port) for port in FINAL.only("EXPOSE").words} == {each["containerPort"] for each in container["ports"]}
    assert FINAL.only("ENTRYPOINT").words == container["command"]
    assert FINAL.every("RUN") == FINAL.every("CMD") == []
    wanted = {each["name"]: each["value"] for each in container["env"]}
    assert {name: FINAL.only("ENV").pairs[name] for name in wanted} == wanted


def test_it_says_what_it_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    labels = FINAL.only("LABEL").pairs
    given = {name for each in FINAL.every("ARG") for name in each.pairs}
    assert {value.strip("${}") for value in labels.values() if value.startswith("$")} == given
    assert {key.rpartition(".")[2] for key in labels} == {
        *("title", "description", "licenses", "version", "revision", "source"),
    }
    assert labels["org.opencontainers.image.title"] == project["name"]
    assert labels["org.opencontainers.image.licenses"] == project["license"]
