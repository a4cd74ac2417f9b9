"""The example of a StatefulSet: what its comments claim is so, and the commands of its README do what is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rollout_lws.api import Rollout
from rollout_lws.api.validation import problems
from rollout_lws.objects.released import POD_NAME
from rollout_lws.objects.resources import PODS
from tests.examples.examples import objects
from tests.examples.test_readmes import sections
from tests.reader import Reader, reading

EXAMPLE, NAME = "stateful-set", "scout"


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with reading(tmp_path) as someone:
        yield someone


def pods(reader: Reader) -> dict[str, tuple[str, str]]:
    """UID and image tag by name."""
    found = (pod for pod in reader.server.list(PODS, "default") if POD_NAME in pod["metadata"]["labels"])
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["spec"]["containers"][0]["image"].rpartition(":")[2])
        for pod in found
        if "deletionTimestamp" not in pod["metadata"]
    }


def test_its_rollout_names_it_and_requests_come_by_another_service_than_names() -> None:
    by_kind = {each["kind"]: each for each in objects(EXAMPLE) if each["kind"] != "Service"}
    services = {each["metadata"]["name"]: each["spec"] for each in objects(EXAMPLE) if each["kind"] == "Service"}
    spec, workload = Rollout.model_validate(by_kind["Rollout"]).spec, by_kind["StatefulSet"]
    assert problems(spec) == ()
    assert (spec.workload_ref.kind, spec.workload_ref.name) == ("StatefulSet", workload["metadata"]["name"])
    assert services[workload["spec"]["serviceName"]]["clusterIP"] == "None"
    assert "clusterIP" not in services[f"{NAME}-api"]
    assert workload["spec"]["podManagementPolicy"] == "Parallel"
    assert "updateStrategy" not in workload["spec"], "which would lift the hold"


@pytest.mark.kubectl
async def test_the_commands_of_its_readme_do_what_it_says(reader: Reader) -> None:
    scripts = sections(EXAMPLE)
    assert list(scripts) == ["Start", "Release a new version", "Approve", "Abort", "Clean up"]
    await reader.run(scripts["Start"])
    before = pods(reader)
    assert [tag for _, tag in before.values()] == ["1.27"] * 4
    printed = await reader.run(scripts["Release a new version"])
    assert f"{NAME}-api-canary" in printed
    now = pods(reader)
    assert now.items() > before.items()
    assert {name: tag for name, (_, tag) in now.items() if name not in before} == {f"{NAME}-canary-0": "1.28"}
    await reader.run(scripts["Approve"])
    after = pods(reader)
    assert {name: tag for name, (_, tag) in after.items()} == {f"{NAME}-{index}": "1.28" for index in range(4)}
    await reader.run(scripts["Abort"])
    assert pods(reader) == after
    await reader.run(scripts["Clean up"])
    await reader.nothing_left()
