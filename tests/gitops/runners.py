"""Runners of CI systems, as far as the recipes need them: which scripts they run, in which order, with which
environment.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.docs.pages import ROOT
from tests.reader import PATIENCE

RECIPES = ROOT / "examples" / "ci"
_EXPRESSION = re.compile(r"\$\{\{\s*([\w.\-]+)\s*\}\}")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class Shell:
    """Where scripts run: ``environment`` is everybody's, and ``said`` what they have printed so far."""

    def __init__(self, environment: Mapping[str, str], directory: Path) -> None:
        self.environment, self.directory = dict(environment), directory
        self.said = ""

    async def run(self, script: str, *options: str, **more: str) -> int:
        """The exit code; a script that does not end is killed and fails the test."""
        process = await asyncio.create_subprocess_exec(
            *("bash", "--noprofile", "--norc", *options, "-c", script),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env={**self.environment, **more},
            cwd=self.directory,
        )
        try:
            self.said += (await asyncio.wait_for(process.communicate(), PATIENCE))[0].decode()
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"did not end within {PATIENCE} s: {script}\n{self.said}") from None
        assert process.returncode is not None
        return process.returncode


class GitHub:
    """GitHub Actions: a job's steps one after the other, and files that a step leaves for the later ones."""

    def __init__(self, shell: Shell, file: Path, contexts: Mapping[str, str]) -> None:
        self._shell, self._contexts = shell, dict(contexts)
        self._workflow = yaml.safe_load(file.read_text())
        shell.environment["RUNNER_TEMP"] = str(shell.directory)

    async def job(self, name: str, *, without: Sequence[str] = ()) -> bool:
        """Whether the job went well. Steps ``without`` are what a checkout and the network would be needed for."""
        job = self._workflow["jobs"][name]
        outer = {**self._workflow.get("env", {}), **job.get("env", {})}
        kept: dict[str, str] = {}
        well = True
        for step in job["steps"]:
            if "uses" in step or step["name"] in without or ("if" in step) == well:
                continue
            files = {each: self._shell.directory / each.lower() for each in ("GITHUB_ENV", "GITHUB_OUTPUT")}
            for file in files.values():
                file.write_text("")
            given = {key: self._said(str(value)) for key, value in {**outer, **step.get("env", {})}.items()}
            more = {**given, **kept, **{each: str(file) for each, file in files.items()}}
            well &= await self._shell.run(self._said(step["run"]), "-e", **more) == 0
            kept |= _pairs(files["GITHUB_ENV"])
            for key, value in _pairs(files["GITHUB_OUTPUT"]).items():
                self._contexts[f"steps.{step['id']}.outputs.{key}"] = value
        for key, value in job.get("outputs", {}).items():
            self._contexts[f"needs.{name}.outputs.{key}"] = self._said(value)
        return well

    def _said(self, text: str) -> str:
        return _EXPRESSION.sub(lambda found: self._contexts[found[1]], text)


class GitLab:
    """GitLab CI: a job's script, after the one that it has from what it extends."""

    def __init__(self, shell: Shell, file: Path, variables: Mapping[str, str]) -> None:
        self._shell = shell
        self._config = yaml.safe_load(file.read_text())
        given = dict(variables)
        for name, value in self._config["variables"].items():
            given[name] = _VARIABLE.sub(lambda found: given[found[1] or found[2]], value)
        self._variables = given

    async def job(self, name: str) -> bool:
        """Whether the job went well."""
        lines = self._config[name]["script"]
        return await self._shell.run("\n".join(lines), "-e", "-o", "pipefail", **self._variables) == 0


class Tekton:
    """Tekton: the script of a Task's only step, with parameters and results put into its environment."""

    def __init__(self, shell: Shell, file: Path) -> None:
        self._shell, self._task = shell, yaml.safe_load(file.read_text())

    async def run(self, **params: str) -> tuple[int, dict[str, str]]:
        """Exit code and results."""
        spec = self._task["spec"]
        (step,) = spec["steps"]
        values = {f"params.{each['name']}": each.get("default", "") for each in spec["params"]}
        values |= {f"params.{name}": value for name, value in params.items()}
        results = {each["name"]: self._shell.directory / f"result-{each['name']}" for each in spec["results"]}
        values |= {f"results.{name}.path": str(path) for name, path in results.items()}
        put = re.compile(r"\$\(([\w.\-]+)\)")
        more = {each["name"]: put.sub(lambda found: values[found[1]], each["value"]) for each in step["env"]}
        code = await self._shell.run(step["script"], **more)
        return code, {name: path.read_text() for name, path in results.items()}


def _pairs(file: Path) -> dict[str, Any]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines())
