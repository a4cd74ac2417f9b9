"""How the StatefulSet controller behaves, told of two: the sandbox's, and the real one where that is built.

What a release of a StatefulSet relies on, and where the controller stands still. Kubelets are the sandbox's in both, as
clients.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from rollout_lws.kube.client import Client
from rollout_lws.objects.released import POD_INDEX, POD_NAME, POD_REVISION, RECORD_HASH
from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    PODS,
    STATEFUL_SETS,
    Resource,
)
from rollout_lws.objects.writes import Create, Delete, Patch
from rollout_lws.sandbox.behaviours.base import has_condition
from rollout_lws.sandbox.behaviours.cluster import Options
from rollout_lws.sandbox.behaviours.faults import PREFIX, Timing
from rollout_lws.sandbox.definitions import gateway_api
from tests.definitions import definitions
from tests.e2e import behaviours, sandboxed, tools
from tests.e2e.mirror import Mirror
from tests.e2e.plane import connected, control_plane
from tests.e2e.waiting import condition, until

SANDBOX, KUBERNETES = "sandbox", "kubernetes"
OPTIONS = Options(nodes=4, timing=Timing(ready_after=0.3, terminate_after=0.05))
#: Seconds in which a controller that acts would have acted.
QUIET = 1.5
NAME = "web"
HOLD = 1_000_000
_numbers = itertools.count(1)

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _defined(admin: Client) -> None:
    for body in (*definitions(), *gateway_api.manifests()):
        name = body["metadata"]["name"]
        await admin.send(Create(CUSTOM_RESOURCE_DEFINITIONS, body, "the behaviours follow it"))
        await until(admin, CUSTOM_RESOURCE_DEFINITIONS, "", name, lambda obj: condition(obj, "Established") == "True")


@asynccontextmanager
async def _sandbox(folder: Path) -> AsyncIterator[Client]:
    async with sandboxed.control_plane(folder) as (_, connection):
        yield Client(connection, field_manager="sandbox")


@asynccontextmanager
async def _kubernetes(folder: Path) -> AsyncIterator[Client]:
    async with (
        control_plane(tools.directory(), folder, install=_defined) as plane,
        connected(plane.admin) as connection,
    ):
        yield Client(connection, field_manager="sandbox")


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[
        pytest.param(SANDBOX, marks=[pytest.mark.long]),
        pytest.param(KUBERNETES, marks=[pytest.mark.e2e, pytest.mark.timeout(300)]),
    ],
)
async def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    of = {SANDBOX: _sandbox, KUBERNETES: _kubernetes}[request.param]
    async with of(tmp_path_factory.mktemp(request.param)) as made, behaviours.running(made, OPTIONS):
        yield made


@dataclass
class Site:
    """One StatefulSet ``web`` in a namespace of its own, and what becomes of it."""

    client: Client
    namespace: str
    mirror: Mirror = field(init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        kinds = (STATEFUL_SETS, PODS, CONTROLLER_REVISIONS)
        self.mirror = Mirror(self.client, self.namespace, kinds, self._news.set, lambda: None)

    # What is done

    async def create(self, template: Mapping[str, Any], **spec: Any) -> None:
        body = STATEFUL_SETS.manifest(
            NAME,
            self.namespace,
            spec={
                "replicas": 3,
                "serviceName": NAME,
                "selector": {"matchLabels": {"app": NAME}},
                "template": template,
                **spec,
            },
        )
        await self.client.send(Create(STATEFUL_SETS, body, "the story's"))

    async def patch(self, resource: Resource = STATEFUL_SETS, name: str = NAME, **body: Any) -> None:
        await self.client.send(Patch(resource, self.namespace, name, body, "the story's"))

    async def apply(self, template: Mapping[str, Any]) -> None:
        await self.patch(spec={"template": template})

    async def delete(self, index: int) -> None:
        pod = self.pods[index]
        await self.client.send(Delete(PODS, self.namespace, f"{NAME}-{index}", pod["metadata"]["uid"], "the story's"))

    # What is there

    @property
    def live(self) -> Mapping[str, Any]:
        return self.mirror.newest.find(STATEFUL_SETS, NAME) or {}

    @property
    def status(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.live.get("status") or {}
        return found

    @property
    def pods(self) -> dict[int, Mapping[str, Any]]:
        every = self.mirror.newest.list(PODS)
        return {int(each["metadata"]["name"].rpartition("-")[2]): each for each in every}

    @property
    def told(self) -> dict[int, str]:
        """The version of each pod by its ordinal, with "!" where it is not ready."""
        return {index: _version(pod) + ("" if _ready(pod) else "!") for index, pod in sorted(self.pods.items())}

    @property
    def is_settled(self) -> bool:
        """Whether the controller has one version, and has seen the spec."""
        status, meta = self.status, self.live.get("metadata") or {}
        seen = status.get("observedGeneration") == meta.get("generation")
        return bool(seen and status.get("currentRevision") and status["currentRevision"] == status["updateRevision"])

    async def until(self, holds: Callable[[], bool], seconds: float = 20) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    await self._news.wait()
                    self._news.clear()
        except TimeoutError:
            raise AssertionError(f"not within {seconds:g} s: {self.told}, {json.dumps(self.status)}") from None

    async def comes_to(self, **told: str) -> None:
        """Wait until the pods are these: ``_0="A", _1="B!"``."""
        wanted = {int(name.removeprefix("_")): each for name, each in told.items()}
        await self.until(lambda: self.told == wanted)

    async def stays(self) -> None:
        """Nothing becomes of the pods for as long as a controller takes to act."""
        before = self.told, {index: pod["metadata"]["uid"] for index, pod in self.pods.items()}
        await asyncio.sleep(QUIET)
        assert (self.told, {index: pod["metadata"]["uid"] for index, pod in self.pods.items()}) == before


def _version(pod: Mapping[str, Any]) -> str:
    return str(pod["spec"]["containers"][0]["image"].rpartition(":")[2])


def _ready(pod: Mapping[str, Any]) -> bool:
    return has_condition(pod, "Ready") and "deletionTimestamp" not in pod["metadata"]


def template(version: str, **annotations: str) -> dict[str, Any]:
    """That of a version; ``fail`` and others are what befalls its pods."""
    marks: dict[str, Any] = {PREFIX + key.replace("_", "-"): value for key, value in annotations.items()}
    marks.setdefault(PREFIX + "fail", None)
    if version == "A":
        marks = {key: value for key, value in marks.items() if value is not None}
    return {
        "metadata": {"labels": {"app": NAME}, "annotations": marks},
        "spec": {"containers": [{"name": "main", "image": f"model:{version}"}]},
    }


def rolling(partition: int) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}


PARALLEL: dict[str, Any] = {"podManagementPolicy": "Parallel"}


@pytest_asyncio.fixture(loop_scope="module")
async def site(client: Client) -> AsyncIterator[Site]:
    namespace = f"sets-{next(_numbers)}"
    await client.send(Create(NAMESPACES, NAMESPACES.manifest(namespace), "a story's"))
    made = Site(client, namespace)
    tasks = made.mirror.start()
    await made.mirror.synced()
    yield made
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_pods_and_records_have_the_labels_by_which_a_release_tells_them(site: Site) -> None:
    await site.create(template("A"), **PARALLEL)
    await site.comes_to(_0="A", _1="A", _2="A")
    await site.until(lambda: site.is_settled)
    revision = site.status["updateRevision"]
    for index, pod in site.pods.items():
        expected = {"app": NAME, POD_NAME: f"{NAME}-{index}", POD_INDEX: str(index), POD_REVISION: revision}
        assert expected.items() <= pod["metadata"]["labels"].items()
    (record,) = site.mirror.newest.list(CONTROLLER_REVISIONS)
    assert record["metadata"]["name"] == revision
    assert revision.startswith(f"{NAME}-")
    assert record["metadata"]["labels"].keys() == {"app", RECORD_HASH}
    assert record["data"]["spec"].keys() == {"template"}
    assert record["data"]["spec"]["template"]["$patch"] == "replace"


async def test_below_the_partition_pods_keep_their_version_whoever_deletes_them(site: Site) -> None:
    await site.create(template("A"), **PARALLEL, updateStrategy=rolling(HOLD))
    await site.comes_to(_0="A", _1="A", _2="A")
    await site.apply(template("B"))
    await site.until(lambda: not site.is_settled)
    await site.stays()
    await site.delete(1)
    await site.until(lambda: len(site.pods) == 2 or not _ready(site.pods[1]))
    await site.comes_to(_0="A", _1="A", _2="A")
    await site.patch(spec={"updateStrategy": rolling(2)})
    await site.comes_to(_0="A", _1="A", _2="B")
    # The window is closed while one has the new version: the others come back as they were, and so does that one.
    await site.patch(spec={"updateStrategy": rolling(HOLD)})
    await site.delete(2)
    await site.comes_to(_0="A", _1="A", _2="A")
    await site.patch(spec={"updateStrategy": rolling(0)})
    await site.comes_to(_0="B", _1="B", _2="B")
    await site.until(lambda: site.is_settled)


async def test_when_all_are_new_the_hold_does_not_keep_the_version_before(site: Site) -> None:
    """From then on there is no way back by deleting pods, whatever the partition is."""
    await site.create(template("A"), **PARALLEL)
    await site.comes_to(_0="A", _1="A", _2="A")
    await site.apply(template("B"))
    await site.comes_to(_0="B", _1="B", _2="B")
    await site.patch(spec={"updateStrategy": rolling(HOLD)})
    await site.until(lambda: site.is_settled)
    await site.delete(0)
    await site.until(lambda: 0 not in site.pods or not _ready(site.pods[0]))
    await site.comes_to(_0="B", _1="B", _2="B")


async def test_on_delete_renews_what_is_deleted_and_never_calls_it_current(site: Site) -> None:
    await site.create(template("A"), **PARALLEL, updateStrategy={"type": "OnDelete"})
    await site.comes_to(_0="A", _1="A", _2="A")
    await site.apply(template("B"))
    await site.until(lambda: not site.is_settled)
    await site.stays()
    for index, expected in ((1, {"_0": "A", "_1": "B", "_2": "A"}), (0, {"_0": "B", "_1": "B", "_2": "A"})):
        await site.delete(index)
        await site.comes_to(**expected)
    await site.delete(2)
    await site.comes_to(_0="B", _1="B", _2="B")
    await site.stays()
    assert not site.is_settled, "the first version is still the current one"
    # A partition that holds has it follow at once, as all pods are new and ready.
    await site.patch(spec={"updateStrategy": rolling(HOLD)})
    await site.until(lambda: site.is_settled)
    await site.stays()


async def test_on_delete_takes_no_parameters_beside_it(site: Site) -> None:
    await site.create(template("A"), **PARALLEL, updateStrategy=rolling(1))
    await site.patch(spec={"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}})
    await site.until(lambda: site.live["spec"]["updateStrategy"] == {"type": "OnDelete"})


async def test_in_order_each_pod_waits_for_those_before_it(site: Site) -> None:
    await site.create(template("A", fail="NeverReady"))
    await site.comes_to(_0="A!")
    await site.stays()


async def test_in_parallel_none_waits(site: Site) -> None:
    await site.create(template("A", fail="NeverReady"), **PARALLEL)
    await site.comes_to(_0="A!", _1="A!", _2="A!")


async def test_in_order_a_broken_update_stays_when_its_template_is_taken_back(site: Site) -> None:
    """The known deadlock: the pod has to be deleted by somebody else."""
    await site.create(template("A"))
    await site.comes_to(_0="A", _1="A", _2="A")
    await site.apply(template("B", fail="NeverReady"))
    await site.comes_to(_0="A", _1="A", _2="B!")
    await site.apply(template("A") | {"metadata": {"annotations": {PREFIX + "fail": None}}})
    await site.stays()
    assert site.told == {0: "A", 1: "A", 2: "B!"}
    await site.delete(2)
    await site.comes_to(_0="A", _1="A", _2="A")


async def test_in_parallel_it_goes_back_by_itself(site: Site) -> None:
    await site.create(template("A"), **PARALLEL)
    await site.comes_to(_0="A", _1="A", _2="A")
    await site.apply(template("B", fail="NeverReady"))
    await site.comes_to(_0="A", _1="A", _2="B!")
    await site.apply(template("A") | {"metadata": {"annotations": {PREFIX + "fail": None}}})
    await site.comes_to(_0="A", _1="A", _2="A")


async def test_in_order_a_broken_pod_keeps_another_one_from_being_scaled_away(site: Site) -> None:
    await site.create(template("A"))
    await site.comes_to(_0="A", _1="A", _2="A")
    for index in (1, 2):
        await site.patch(PODS, f"{NAME}-{index}", metadata={"annotations": {PREFIX + "fail": "NeverReady"}})
    await site.comes_to(_0="A", _1="A!", _2="A!")
    await site.patch(spec={"replicas": 0})
    await site.until(lambda: site.status.get("observedGeneration") == site.live["metadata"]["generation"])
    await site.stays()
    await site.delete(1)
    await site.until(lambda: site.told == {})


async def test_partitions_count_from_the_first_ordinal(site: Site) -> None:
    await site.create(template("A"), **PARALLEL, ordinals={"start": 5}, updateStrategy=rolling(2))
    await site.comes_to(_5="A", _6="A", _7="A")
    await site.apply(template("B"))
    await site.comes_to(_5="A", _6="A", _7="B")
    await site.delete(6)
    await site.until(lambda: 6 not in site.pods or not _ready(site.pods[6]))
    await site.comes_to(_5="A", _6="A", _7="B")


async def test_seconds_of_being_ready_count_in_order_and_in_updates(site: Site) -> None:
    await site.create(template("A"), minReadySeconds=2, replicas=2)
    await site.comes_to(_0="A")
    assert len(site.pods) == 1, "the next one waits"
    await site.comes_to(_0="A", _1="A")
    await site.until(lambda: site.status.get("availableReplicas") == 2)
    await site.apply(template("B"))
    await site.comes_to(_0="A", _1="B")
    await site.comes_to(_0="B", _1="B")
