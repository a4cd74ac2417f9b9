"""The recipes for CI systems are run: their own scripts, in bash, with real kubectl, a cluster and a controller."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.cli.rollouts import rollouts_of
from rollout_lws.objects.resources import DEFAULT_API_GROUP
from rollout_lws.sandbox.behaviours.faults import PREFIX
from tests.gitops.runners import RECIPES, GitHub, GitLab, Shell, Tekton
from tests.reader import Reader, reading

pytestmark = [pytest.mark.kubectl, pytest.mark.long]

ROLLOUTS = rollouts_of(DEFAULT_API_GROUP)
CONTEXTS = {"github.run_number": "7", "github.run_attempt": "1", "github.run_id": "1234"}
VARIABLES = {"CI_PIPELINE_IID": "7", "CI_PIPELINE_URL": "https://gitlab.example.com/p/7"}
#: Steps that fetch and build this project.
FETCHED = ("Install",)


class Site:
    """A repository ``deploy/`` whose LWS runs already, and the cluster that it is for."""

    def __init__(self, reader: Reader, home: Path) -> None:
        self.reader, self.home = reader, home
        self.deploy = home / "deploy"

    async def begin(self) -> None:
        (self.home / "examples" / "quickstart").rename(self.deploy)
        await self.reader.run(
            "kubectl apply -f deploy/\nkubectl wait lws/quickstart --for=condition=Available --timeout=20s\n"
            "rollout-lws status quickstart --timeout 20s"
        )

    def commit(self, tag: str, *, broken: bool = False) -> None:
        """Another version; a broken one crashes, and its release stalls after a second."""
        file = self.deploy / "lws.yaml"
        text = re.sub(r"(nginx-unprivileged):\S+", rf"\1:{tag}", file.read_text())
        if broken:
            labels = "        labels:\n          app: quickstart\n"
            text = text.replace(labels, f"{labels}        annotations: {{{PREFIX}fail: CrashLoopBackOff}}\n")
            patch = {"spec": {"strategy": {"progressDeadlineSeconds": 1}}}
            self.reader.server.patch(ROLLOUTS, "default", "quickstart", patch)
        file.write_text(text)

    def shell(self) -> Shell:
        return Shell(self.reader.environment, self.home)

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.reader.server.get(ROLLOUTS, "default", "quickstart")["status"]
        return found

    async def approved_by_somebody(self, release: str) -> None:
        await self.reader.run(
            f"rollout-lws status quickstart --release-id {release} --for paused --timeout 20s\n"
            f"rollout-lws promote quickstart --release-id {release}"
        )


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with reading(tmp_path) as reader:
        made = Site(reader, tmp_path)
        await made.begin()
        yield made


def github(site: Site) -> tuple[GitHub, Shell]:
    shell = site.shell()
    secret = Path(shell.environment.pop("KUBECONFIG")).read_text()
    contexts = {**CONTEXTS, "secrets.KUBECONFIG": secret}
    return GitHub(shell, RECIPES / "github-actions.yaml", contexts), shell


async def test_github_releases_in_two_jobs_with_a_review_between_them(site: Site) -> None:
    site.commit("1.28")
    actions, shell = github(site)
    assert await actions.job("canary", without=FETCHED), shell.said
    assert (site.status["summary"]["state"], site.status["observedRolloutID"]) == ("AwaitingApproval", "build-7-1")
    assert await actions.job("promote", without=FETCHED), shell.said
    assert site.reader.tags("quickstart") == ["1.28"] * 4
    assert "result=healthy rollout=default/quickstart release=build-7-1 exit=0" in shell.said


async def test_github_takes_back_what_goes_wrong(site: Site) -> None:
    site.commit("broken", broken=True)
    actions, shell = github(site)
    assert not await actions.job("canary", without=FETCHED)
    assert "result=stalled" in shell.said
    await site.reader.run("rollout-lws status quickstart --for aborted --timeout 20s")
    assert site.reader.tags("quickstart") == ["1.27"] * 4
    assert site.status["lastAction"]["reason"] == "run 1234 failed"


async def test_github_takes_nothing_back_that_only_waits_for_its_next_approval(site: Site) -> None:
    steps = [{"replicas": 1, "pause": {}}, {"replicas": 2, "pause": {}}, {"replicas": "100%"}]
    site.reader.server.patch(ROLLOUTS, "default", "quickstart", {"spec": {"strategy": {"canary": {"steps": steps}}}})
    site.commit("1.28")
    actions, shell = github(site)
    assert await actions.job("canary", without=FETCHED), shell.said
    assert not await actions.job("promote", without=FETCHED)
    assert (site.status["summary"]["state"], site.status["currentStepIndex"]) == ("AwaitingApproval", 2)
    assert await actions.job("promote", without=FETCHED), shell.said
    assert site.reader.tags("quickstart") == ["1.28"] * 4


async def test_gitlab_releases_in_two_jobs_of_which_somebody_starts_the_second(site: Site) -> None:
    site.commit("1.28")
    shell = site.shell()
    pipeline = GitLab(shell, RECIPES / "gitlab-ci.yaml", VARIABLES)
    assert await pipeline.job("canary"), shell.said
    assert (site.status["summary"]["state"], site.status["observedRolloutID"]) == ("AwaitingApproval", "build-7")
    assert await pipeline.job("promote"), shell.said
    assert site.reader.tags("quickstart") == ["1.28"] * 4


async def test_gitlab_takes_back_what_goes_wrong(site: Site) -> None:
    site.commit("broken", broken=True)
    shell = site.shell()
    pipeline = GitLab(shell, RECIPES / "gitlab-ci.yaml", VARIABLES)
    assert not await pipeline.job("canary")
    assert await pipeline.job("abort"), shell.said
    await site.reader.run("rollout-lws status quickstart --for aborted --timeout 20s")
    assert site.reader.tags("quickstart") == ["1.27"] * 4


async def test_tekton_waits_for_what_something_else_applies_and_gives_the_outcome(site: Site) -> None:
    task = Tekton(site.shell(), RECIPES / "tekton-task.yaml")
    waiting = asyncio.create_task(task.run(rollout="quickstart", release="build-7", timeout="20s", **{"for": "paused"}))
    site.commit("1.28")
    await site.reader.run(
        "kubectl label --local -f deploy/lws.yaml rollouts.kruise.io/rollout-id=build-7 -o yaml | kubectl apply -f -"
    )
    assert await waiting == (0, {"outcome": "paused"})
    assert await task.run(rollout="quickstart", release="build-7", timeout="20s") == (5, {"outcome": "approval"})


async def test_a_shell_script_releases_and_waits(site: Site) -> None:
    site.commit("1.28")
    shell = site.shell()
    command = "examples/ci/release.sh quickstart deploy/lws.yaml build-7"
    assert await shell.run(command) == 5
    assert shell.said.endswith("approve it: rollout-lws promote quickstart --release-id build-7; then run this again\n")
    await site.approved_by_somebody("build-7")
    assert await shell.run(command) == 0, shell.said
    assert site.reader.tags("quickstart") == ["1.28"] * 4
    site.commit("broken", broken=True)
    assert await shell.run(command.replace("build-7", "build-8")) == 3
    await site.reader.run("rollout-lws status quickstart --for aborted --timeout 20s")
    assert site.status["lastAction"]["reason"] == "release.sh ended with 3"
    assert site.reader.tags("quickstart") == ["1.28"] * 4
