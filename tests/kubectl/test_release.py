"""An operator's day with nothing but kubectl: adopt, release, approve, release again, abort, and leave."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Iterable

import pytest

from tests.kubectl.operator import ROLLOUT, Object, Operator, workload
from tests.kubectl.programs import Program

pytestmark = pytest.mark.kubectl

HOLD = 1_000_000
#: A row of `kubectl get rollout`: the columns that no release has a word for are empty.
ROW = re.compile(
    r"llama +(?P<status>[A-Z]\w+) +"
    r"(?:(?P<step>\d+/\d+) +(?P<new>\d+/\d+) +)?(?P<stable>\d+/\d+) +(?P<age>\w+)"
)
ABORT = {"type": "Abort", "id": "pager-1", "reason": "it never gets ready"}


def rows(watch: Program) -> list[dict[str, str]]:
    found = [(line, ROW.fullmatch(line.rstrip())) for line in watch.lines[1:]]
    assert all(match for _, match in found), watch.output
    return [match.groupdict() for _, match in found if match]


def distinct(found: Iterable[tuple[str | None, ...]]) -> list[tuple[str | None, ...]]:
    return [row for row, _ in itertools.groupby(found)]


def without(obj: Object, *paths: str) -> Object:
    """A copy without these members; none of them need exist."""
    copied: Object = json.loads(json.dumps(obj))
    for path in ("metadata.resourceVersion", "metadata.generation", "metadata.managedFields", "status", *paths):
        *parents, last = path.split(".")
        member = copied
        for name in parents:
            member = member.get(name, {})
        member.pop(last, None)
    return copied


def images(lws: Object) -> set[str]:
    template = lws["spec"]["leaderWorkerTemplate"]
    roles = (template["leaderTemplate"], template["workerTemplate"])
    return {container["image"] for role in roles for container in role["spec"]["containers"]}


def to_version(version: str) -> list[Object]:
    """A JSON patch; `kubectl set image` refuses every kind that it was not built with."""
    template, image = "/spec/leaderWorkerTemplate", f"vllm/vllm-openai:{version}"
    return [
        {"op": "replace", "path": "/metadata/labels/rollouts.kruise.io~1rollout-id", "value": version},
        {"op": "replace", "path": f"{template}/leaderTemplate/spec/containers/0/image", "value": image},
        {"op": "replace", "path": f"{template}/workerTemplate/spec/containers/0/image", "value": image},
    ]


def as_applied(version: str, live: Object) -> Object:
    """The live LWS as if ``version`` had just been applied to it by a client-side apply."""
    copied = json.loads(json.dumps(live))
    copied["metadata"].setdefault("annotations", {}).pop("kubectl.kubernetes.io/last-applied-configuration", None)
    copied["metadata"]["labels"]["rollouts.kruise.io/rollout-id"] = version
    template = copied["spec"]["leaderWorkerTemplate"]
    for role in ("leaderTemplate", "workerTemplate"):
        template[role]["spec"]["containers"][0]["image"] = f"vllm/vllm-openai:{version}"
    return without(copied)


async def gate(operator: Operator, release: str) -> None:
    """The two-step gate of a pipeline that has nothing but kubectl."""
    await operator.wait("rollout/llama", f"observedRolloutID={release}")
    await operator.wait("rollout/llama", "Ready")


def sections(described: str) -> tuple[list[Object], list[list[str]]]:
    """Conditions and Events as `kubectl describe` shows them."""
    body, _, events = described.partition("\nEvents:\n")
    listed = body.partition("  Conditions:\n")[2].partition("\n  Current Step Index:")[0]
    conditions: list[Object] = []
    for line in listed.splitlines():
        name, _, value = line.strip().partition(":")
        if name == "Last Transition Time":
            conditions.append({})
        conditions[-1][name] = value.strip()
    return conditions, [re.split(r" {2,}", line.strip(), maxsplit=4) for line in events.splitlines()[2:]]


@pytest.mark.long
async def test_a_day_of_an_operator_ends_with_nothing_left_but_history(operator: Operator) -> None:
    assert "created" in await operator.apply(workload("v1"))
    await operator.wait("lws/llama", "Available")
    users_own = await operator.get("lws", "llama")
    assert "created" in await operator.apply(ROLLOUT)
    await operator.wait("rollout/llama", "Ready")
    before = await operator.everything()
    watch = await operator.watch("get", "rollout", "-w")
    await watch.says("Healthy")
    events = await operator.watch("get", "events", "-w", "--field-selector=involvedObject.kind=Rollout")

    # A release with an approval, gated by a pipeline.
    assert "configured" in await operator.apply(workload("v2"))
    pipeline = asyncio.create_task(gate(operator, "v2"))
    await operator.until_state("AwaitingApproval")
    assert not pipeline.done()
    await events.line(lambda line: "BatchReady" in line and "step 2" in line)
    conditions, told = sections(await operator.run("describe", "rollout", "llama"))
    waiting = next(each for each in conditions if each["Type"] == "Reconciling")
    assert (waiting["Status"], waiting["Reason"]) == ("True", "AwaitingApproval")
    assert waiting["Message"] == "step 2 of 3 waits for approval: kubectl rollout-lws promote llama -n prod"
    assert [row[1] for row in told] == ["Adopted", "ReleaseStarted", "BatchReady", "StepChanged", "BatchReady"]
    assert {row[0] for row in told} == {"Normal"}
    assert told[1][4] == "release v2: 3 steps to revision " + told[1][4].rpartition(" ")[2]
    wide = (await operator.run("get", "rollout", "-o", "wide")).splitlines()
    assert wide[0].split()[6:] == ["AGE", "ACCELERATORS", "SINCE", "PHASE", "MESSAGE"]
    assert wide[1].endswith(waiting["Message"])
    await operator.approve()
    await pipeline
    live = await operator.get("lws", "llama")
    assert images(live) == {"vllm/vllm-openai:v2"}
    assert {pod["spec"]["containers"][0]["image"] for pod in (await operator.get("pods"))["items"]} == images(live)

    # The next one right after it, written with a patch.
    await operator.run("patch", "lws", "llama", "--type=json", "-p", json.dumps(to_version("v3")))
    pipeline = asyncio.create_task(gate(operator, "v3"))
    await operator.until_state("AwaitingApproval")
    await operator.approve()
    await pipeline
    await events.line(lambda line: "release v3 is complete" in line)

    # A version that never gets ready is taken back; nothing of stable restarts.
    pods = {pod["metadata"]["uid"] for pod in (await operator.get("pods"))["items"]}
    await operator.apply(workload("bad-v4"))
    await operator.wait("rollout/llama", "observedRolloutID=bad-v4")
    await operator.wait("rollout/llama", "notReadyGroups[0].workload=llama-canary")
    abort = json.dumps({"status": {"requestedAction": ABORT}})
    await operator.run("patch", "rollout", "llama", "--subresource=status", "--type=merge", "-p", abort)
    await operator.wait("rollout/llama", "Stalled")
    conditions, told = sections(await operator.run("describe", "rollout", "llama"))
    stalled = next(each for each in conditions if each["Type"] == "Stalled")
    assert stalled["Reason"] == "Aborted"
    assert stalled["Message"].startswith("release bad-v4 was aborted (it never gets ready);")
    assert all(each["Reason"] for each in conditions), conditions
    assert {pod["metadata"]["uid"] for pod in (await operator.get("pods"))["items"]} == pods
    await events.says("release bad-v4 is aborted")
    await operator.apply(workload("v3"))
    await operator.wait("rollout/llama", "Ready")

    # What is new is history, and what is changed is what was released.
    after = await operator.everything()
    assert {name.partition("/")[0] for name in {*after} ^ {*before}} == {"ControllerRevision"}
    assert {each.rpartition("-")[0] for each in {*before} - {*after}} == {
        f"ControllerRevision/llama-{ordinal}" for ordinal in range(4)
    }
    owners = [after[name]["metadata"]["ownerReferences"][0]["kind"] for name in {*after} - {*before}]
    assert {*owners} == {"Rollout", "LeaderWorkerSet", "StatefulSet"}
    assert owners.count("Rollout") == 3
    lws, rollout = after["LeaderWorkerSet/llama"], after["Rollout/llama"]
    assert rollout["metadata"]["finalizers"] == ["rollouts.kruise.io/rollout"]
    assert "annotations" not in rollout["metadata"] or set(rollout["metadata"]["annotations"]) == {
        "kubectl.kubernetes.io/last-applied-configuration"
    }
    assert set(lws["metadata"]["annotations"]) - set(users_own["metadata"]["annotations"]) == {
        "rollouts.kruise.io/original",
        "rollouts.kruise.io/aborted",
    }
    assert "finalizers" not in lws["metadata"]
    assert lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"].pop("partition") == HOLD
    users_own["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"].pop("partition")
    lws["metadata"]["annotations"] = {}
    assert without(lws) == as_applied("v3", users_own)

    # The rows that somebody saw who looked on.
    await watch.line(lambda line: "Healthy" in line, after=len(watch.lines) - 1)
    assert watch.lines[0].split() == ["NAME", "STATUS", "STEP", "TRAFFIC", "NEW", "STABLE", "AGE"]
    seen = rows(watch)
    release = [("Loading", "1/3"), ("Pausing", "1/3"), ("Loading", "2/3"), ("AwaitingApproval", "2/3")]
    release += [("Promoting", "3/3"), ("Healthy", None)]
    bad = [("Loading", "1/3"), ("RollingBack", "1/3"), ("Aborted", None), ("Healthy", None)]
    assert distinct((row["status"], row["step"]) for row in seen) == [("Healthy", None), *release, *release, *bad]
    for row in seen:
        ready, groups = map(int, row["stable"].split("/"))
        assert 0 <= groups <= 4 and groups - 1 <= ready <= groups, row


@pytest.mark.long
async def test_a_deleted_rollout_gives_everything_back(operator: Operator) -> None:
    await operator.apply(workload("v1"))
    await operator.wait("lws/llama", "Available")
    users_own = await operator.get("lws", "llama")
    before = await operator.everything()
    await operator.apply(ROLLOUT)
    await operator.wait("rollout/llama", "Ready")
    await operator.apply(workload("v2"))
    await operator.until_state("AwaitingApproval")
    await operator.approve()
    await operator.wait("rollout/llama", "observedRolloutID=v2")
    await operator.wait("rollout/llama", "Ready")
    assert "deleted" in await operator.run("delete", "rollout", "llama")
    lws = await operator.get("lws", "llama")
    lws["metadata"]["annotations"].pop("kubectl.kubernetes.io/last-applied-configuration")
    assert lws["metadata"]["annotations"] == {}
    assert without(lws) == as_applied("v2", users_own)
    await operator.gone("controllerrevisions", "-l", "rollouts.kruise.io/history")
    after = await operator.everything()
    kinds = {name.partition("/")[0] for name in {*after} ^ {*before}}
    owners = {after[name]["metadata"]["ownerReferences"][0]["kind"] for name in {*after} - {*before}}
    assert (kinds, owners) == ({"ControllerRevision"}, {"LeaderWorkerSet", "StatefulSet"})


async def test_kubectl_explains_every_field_that_people_write(operator: Operator) -> None:
    told = await operator.run("explain", "rollout.spec.strategy.canary.steps", "--recursive=false")
    assert re.search(r"replicas\t<\S+> -required-", told)
    assert "Groups of the new version" in told
    strategy = "rollout.spec.strategy"
    for path in ("rollout.spec", strategy, f"{strategy}.canary", "rollout.status", "batchrelease.spec"):
        told = await operator.run("explain", path)
        fields = re.split(r"\n {2}(?=\w+\t)", told.partition("FIELDS:")[2])[1:]
        bare = [field.partition("\t")[0] for field in fields if not field.partition("\n")[2].strip()]
        assert bare == [], f"{path} does not say what these are for: {bare}"
