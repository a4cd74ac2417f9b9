"""Lists as `kubectl get` asks for them: columns, cells, and only as much of the object as is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.api.resources import batch_releases
from rollout_lws.objects import resources as known
from rollout_lws.objects.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from tests.conformance.asking import Asking, Object
from tests.conformance.objects import ROLLOUTS, config_map, lws, pod, rollout, service, stateful_set

_FORM = "application/json;as={};v=v1;g=meta.k8s.io"
TABLE = _FORM.format("Table")
#: What kubectl sends: a table, or the objects themselves from a server that makes none.
KUBECTL = f"{TABLE},application/json"


def columns(table: Object) -> list[tuple[str, str, str, int]]:
    """Name, type, format and priority of each column."""
    definitions = table["columnDefinitions"]
    return [(each["name"], each["type"], each["format"], each["priority"]) for each in definitions]


def shown(table: Object, *without: str) -> list[dict[str, Any]]:
    """The cells of each row by the names of their columns."""
    names = [name for name, *_ in columns(table)]
    rows = [dict(zip(names, row["cells"], strict=True)) for row in table["rows"]]
    return [{name: cell for name, cell in row.items() if name not in without} for row in rows]


def texts(*names: str, wide: tuple[str, ...] = (), **types: str) -> list[tuple[str, str, str, int]]:
    """The column of the name, then others, of text unless ``types`` says otherwise."""
    others = [(name, types.get(name.lower(), "string"), "", int(name in wide)) for name in (*names, *wide)]
    return [("Name", "string", "name", 0), *others]


_EVENT = [
    *((name, "string", "", 0) for name in ("Last Seen", "Type", "Reason", "Object")),
    *((name, "string", "", 1) for name in ("Subobject", "Source")),
    ("Message", "string", "", 0),
    *((name, "string", "", 1) for name in ("First Seen", "Count")),
    ("Name", "string", "name", 1),
]
_TEMPLATE = ("Containers", "Images")
_COLUMNS: dict[Resource, list[tuple[str, str, str, int]]] = {
    PODS: texts("Ready", "Status", "Restarts", "Age", wide=("IP", "Node", "Nominated Node", "Readiness Gates")),
    SERVICES: texts("Type", "Cluster-IP", "External-IP", "Port(s)", "Age", wide=("Selector",)),
    STATEFUL_SETS: texts("Ready", "Age", wide=_TEMPLATE),
    DEPLOYMENTS: texts("Ready", "Up-to-date", "Available", "Age", wide=(*_TEMPLATE, "Selector")),
    CORE_EVENTS: _EVENT,
    known.EVENTS: _EVENT,
    CONFIG_MAPS: texts("Data", "Age"),
    known.SECRETS: texts("Type", "Data", "Age"),
    known.NAMESPACES: texts("Status", "Age"),
    known.NODES: texts(
        *("Status", "Roles", "Age", "Version"),
        wide=("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
    ),
    CONTROLLER_REVISIONS: texts("Controller", "Revision", "Age"),
    known.PERSISTENT_VOLUME_CLAIMS: texts(
        *("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age"),
        wide=("VolumeMode",),
    ),
    known.HORIZONTAL_POD_AUTOSCALERS: texts("Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"),
    known.INGRESSES: texts("Class", "Hosts", "Address", "Ports", "Age"),
    known.ENDPOINT_SLICES: texts("AddressType", "Ports", "Endpoints", "Age"),
    known.LEASES: texts("Holder", "Age"),
    known.POD_DISRUPTION_BUDGETS: [
        *texts("Min Available", "Max Unavailable"),
        ("Allowed Disruptions", "integer", "", 0),
        ("Age", "string", "", 0),
    ],
    known.CUSTOM_RESOURCE_DEFINITIONS: [("Name", "string", "name", 0), ("Created At", "date", "", 0)],
}


@pytest.mark.parametrize("resource", _COLUMNS, ids=str)
async def test_built_in_kinds_have_their_columns(server: Asking, resource: Resource) -> None:
    table = (await server.list(resource, KUBECTL)).ok()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["resourceVersion"].isdigit()
    assert columns(table) == _COLUMNS[resource]


@pytest.mark.parametrize("resource", [ROLLOUTS, batch_releases(), LEADER_WORKER_SETS], ids=str)
async def test_custom_resources_have_those_of_their_definition(server: Asking, resource: Resource) -> None:
    name = f"{resource.plural}.{resource.group}"
    definition = (await server.get(known.CUSTOM_RESOURCE_DEFINITIONS, name)).ok()
    (version,) = definition["spec"]["versions"]
    printed = [
        (each["name"], each["type"], each.get("format", ""), each.get("priority", 0))
        for each in version["additionalPrinterColumns"]
    ]
    table = (await server.list(resource, KUBECTL)).ok()
    assert columns(table) == [("Name", "string", "name", 0), *printed]


async def test_cells_tell_of_objects(server: Asking) -> None:
    (await server.create(PODS, pod())).ok()
    (await server.create(SERVICES, service(selector={"app": "chat", "a": "b"}))).ok()
    (await server.create(CONFIG_MAPS, config_map(data={"a": "1", "b": "2"}))).ok()
    (await server.create(STATEFUL_SETS, stateful_set())).ok()
    none = dict.fromkeys(("IP", "Node", "Nominated Node", "Readiness Gates"), "<none>")
    row = {"Name": "web", "Ready": "0/1", "Status": "Pending", "Restarts": "0", **none}
    assert shown((await server.list(PODS, TABLE)).ok(), "Age") == [row]
    (row,) = shown((await server.list(SERVICES, TABLE)).ok(), "Age", "Cluster-IP")
    assert row == {
        "Name": "web",
        "Type": "ClusterIP",
        "External-IP": "<none>",
        "Port(s)": "80/TCP",
        "Selector": "a=b,app=chat",
    }
    assert shown((await server.get(CONFIG_MAPS, "settings", accept=TABLE)).ok(), "Age") == [
        {"Name": "settings", "Data": 2}
    ]
    expected = {"Name": "web", "Ready": "0/0", "Containers": "main", "Images": "web:1"}
    assert shown((await server.list(STATEFUL_SETS, TABLE)).ok(), "Age") == [expected]


async def test_cells_of_a_custom_resource_are_empty_until_there_is_something(server: Asking) -> None:
    (await server.create(LEADER_WORKER_SETS, lws(replicas=3))).ok()
    before = shown((await server.list(LEADER_WORKER_SETS, TABLE)).ok(), "Age")
    assert before == [{"Name": "llama", "Ready": None, "Desired": 3, "Up-to-date": None}]
    body = {"status": {"readyReplicas": 2, "updatedReplicas": 1}}
    (await server.patch(LEADER_WORKER_SETS, "llama", body, subresource="status")).ok()
    after = shown((await server.list(LEADER_WORKER_SETS, TABLE)).ok(), "Age")
    assert after == [{"Name": "llama", "Ready": 2, "Desired": 3, "Up-to-date": 1}]


async def test_an_age_is_told_in_words(server: Asking) -> None:
    (await server.create(ROLLOUTS, rollout())).ok()
    (row,) = shown((await server.list(ROLLOUTS, TABLE)).ok())
    assert row["AGE"].endswith("s")
    assert row["AGE"][:-1].isdigit()


async def test_an_event_is_told_with_its_reporter_and_count(server: Asking) -> None:
    about = {"kind": "Pod", "name": "web", "namespace": server.namespace, "fieldPath": "spec.containers{main}"}
    body = {
        "metadata": {"name": "web.1"},
        "involvedObject": about,
        "reason": "Pulled",
        "message": "it is here\n",
        "type": "Normal",
        "count": 3,
        "source": {"component": "kubelet", "host": "one"},
    }
    (await server.create(CORE_EVENTS, body)).ok()
    assert shown((await server.list(CORE_EVENTS, TABLE)).ok()) == [
        {
            "Last Seen": "<unknown>",
            "Type": "Normal",
            "Reason": "Pulled",
            "Object": "pod/web",
            "Subobject": "spec.containers{main}",
            "Source": "kubelet, one",
            "Message": "it is here",
            "First Seen": "<unknown>",
            "Count": 3,
            "Name": "web.1",
        }
    ]


@pytest.mark.parametrize("include", ["", "Metadata", "Object", "None"])
async def test_rows_carry_as_much_of_the_object_as_is_asked_for(server: Asking, include: str) -> None:
    made = (await server.create(CONFIG_MAPS, config_map())).ok()
    options = {"includeObject": include} if include else {}
    table = await server.ask("GET", CONFIG_MAPS.path(server.namespace, "settings"), accept=TABLE, **options)
    (row,) = table.ok()["rows"]
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    carried = {"None": None, "Object": made}.get(include, partial)
    assert row.get("object") == carried


async def test_metadata_alone_may_be_asked_for(server: Asking) -> None:
    made = (await server.create(LEADER_WORKER_SETS, lws())).ok()
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    accept = _FORM.format("PartialObjectMetadata")
    assert (await server.get(LEADER_WORKER_SETS, "llama", accept=accept)).ok() == partial
    listed = (await server.list(LEADER_WORKER_SETS, _FORM.format("PartialObjectMetadataList"))).ok()
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert [item["metadata"] for item in listed["items"]] == [made["metadata"]]


async def test_a_watch_tells_its_columns_once(server: Asking) -> None:
    version = (await server.create(LEADER_WORKER_SETS, lws("a"))).ok()["metadata"]["resourceVersion"]
    (await server.create(LEADER_WORKER_SETS, lws("b"))).ok()
    (await server.create(LEADER_WORKER_SETS, lws("c"))).ok()
    async with server.watching(LEADER_WORKER_SETS, TABLE, resourceVersion=version) as events:
        (one, first), (two, second) = await events.next(), await events.next()
    assert (one, two, first["kind"]) == ("ADDED", "ADDED", "Table")
    assert len(columns(first)) == 5
    assert not second.get("columnDefinitions")
    assert [table["rows"][0]["cells"][0] for table in (first, second)] == ["b", "c"]
