"""What is particular to kinds that come with the server: what they refuse, fill in and do not let change."""

from __future__ import annotations

import pytest

from rollout_lws.objects.resources import CONFIG_MAPS, CORE_EVENTS, EVENTS, PODS, SERVICES, STATEFUL_SETS
from tests.conformance.asking import Asking, Object
from tests.conformance.differences import DIGIT_SERVICE, EMPTY_POD, POD_VOLUMES, STATEFUL_SET_GATE, UNKNOWN_BUILT_IN
from tests.conformance.objects import config_map, pod, service, stateful_set
from tests.conformance.words import NAME_PART


async def test_an_event_is_told_in_the_namespace_of_its_object(server: Asking) -> None:
    body = {
        "metadata": {"generateName": "chat."},
        "involvedObject": {"kind": "Pod", "name": "chat", "namespace": "elsewhere"},
        "type": "Normal",
    }
    refused = await server.create(CORE_EVENTS, body)
    code, reason, message = refused.refusal
    assert (code, reason) == (422, "Invalid")
    text = 'involvedObject.namespace: Invalid value: "elsewhere": does not match event.namespace'
    assert message.endswith(f" is invalid: {text}")
    body["involvedObject"] = {"kind": "Pod", "name": "chat", "namespace": server.namespace}
    made = (await server.create(CORE_EVENTS, body)).ok()
    assert made["metadata"]["name"].startswith("chat.")


def event(namespace: str, **fields: str) -> Object:
    regarding = {"kind": "Pod", "name": "chat", "namespace": namespace}
    told = {"reason": "Stepped", "note": "step 1 of 2", "type": "Normal", "action": "Release"}
    by = {"reportingController": "rollouts.kruise.io/rollout", "reportingInstance": "one"}
    times = {"eventTime": "2026-01-01T00:00:00.000000Z"}
    return {"metadata": {"name": "chat.1"}, "regarding": regarding, **told, **by, **times, **fields}


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("eventTime", "", "eventTime: Required value"),
        ("reportingInstance", "", "reportingInstance: Required value"),
        ("action", "", "action: Required value"),
        ("reason", "", "reason: Required value"),
        ("reason", "x" * 129, 'reason: Invalid value: "": can have at most 128 characters'),
        ("note", "x" * 1025, 'message: Invalid value: "": can have at most 1024 characters'),
        ("type", "Loud", 'type: Invalid value: "": has invalid value: Loud'),
        ("reportingController", "a b", f'reportingController: Invalid value: "a b": {NAME_PART}'),
    ],
    ids=lambda value: value[:20],
)
async def test_an_event_tells_who_does_what_and_when(server: Asking, field: str, value: str, text: str) -> None:
    body = event(server.namespace, **{field: value})
    if not value:
        del body[field]
    refused = await server.create(EVENTS, body)
    assert refused.refusal == (422, "Invalid", f'Event "chat.1" is invalid: {text}')


async def test_of_an_event_only_its_series_changes(server: Asking) -> None:
    made = (await server.create(EVENTS, event(server.namespace))).ok()
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
    assert (await server.patch(EVENTS, "chat.1", {"series": series})).ok()["series"] == series
    refused = await server.patch(EVENTS, "chat.1", {"note": "other"})
    text = 'message: Invalid value: "other": field is immutable'
    assert refused.refusal == (422, "Invalid", f'Event "chat.1" is invalid: {text}')
    core = (await server.get(CORE_EVENTS, "chat.1")).ok()
    assert (core["message"], core["involvedObject"]) == (made["note"], made["regarding"])
    assert (core["reportingComponent"], core["series"]) == (made["reportingController"], series)


async def test_a_pod_that_names_no_volumes_is_given_a_token(server: Asking) -> None:
    made = (await server.create(PODS, pod())).ok()
    assert len(made["spec"].get("volumes", ())) == POD_VOLUMES.on(server.name)


async def test_the_gate_of_stateful_sets_is_shut(server: Asking) -> None:
    body = stateful_set()
    body["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    made = (await server.create(STATEFUL_SETS, body)).ok()
    assert made["spec"]["updateStrategy"]["rollingUpdate"] == STATEFUL_SET_GATE.on(server.name)


async def test_what_a_built_in_kind_does_not_have(server: Asking) -> None:
    made = (await server.create(CONFIG_MAPS, {**config_map(), "shape": "round"}, fieldValidation="Ignore")).ok()
    assert made.get("shape") == UNKNOWN_BUILT_IN.on(server.name)


async def test_a_pod_without_containers_is_invalid(server: Asking) -> None:
    answer = await server.create(PODS, {"metadata": {"name": "web"}, "spec": {}})
    assert answer.code == EMPTY_POD.on(server.name)


async def test_what_may_not_change_of_a_pod(server: Asking) -> None:
    (await server.create(PODS, pod())).ok()
    refused = await server.patch(PODS, "web", {"spec": {"restartPolicy": "Never"}})
    code, reason, message = refused.refusal
    assert (code, reason) == (422, "Invalid")
    fields = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations`"
    text = f"spec: Forbidden: pod updates may not change fields other than {fields} (only additions to existing"
    assert message.startswith(f'Pod "web" is invalid: {text}')


async def test_what_may_not_change_of_a_stateful_set(server: Asking) -> None:
    (await server.create(STATEFUL_SETS, stateful_set())).ok()
    refused = await server.patch(STATEFUL_SETS, "web", {"spec": {"serviceName": "other"}})
    text = (
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
        "forbidden"
    )
    assert refused.refusal == (422, "Invalid", f'StatefulSet.apps "web" is invalid: {text}')


async def test_a_service_has_ports_unless_it_is_but_a_name(server: Asking) -> None:
    refused = await server.create(SERVICES, service(ports=[], selector={"app": "chat"}))
    assert refused.refusal == (422, "Invalid", 'Service "web" is invalid: spec.ports: Required value')
    headless = (await server.create(SERVICES, service(ports=[], clusterIP="None"))).ok()
    assert headless["spec"]["clusterIPs"] == ["None"]


async def test_a_service_keeps_its_address(server: Asking) -> None:
    made = (await server.create(SERVICES, service())).ok()
    address = made["spec"]["clusterIP"]
    assert made["spec"]["clusterIPs"] == [address]
    changed = (await server.put(SERVICES, service(selector={"app": "chat"}))).ok()
    assert changed["spec"]["clusterIP"] == address
    refused = await server.patch(SERVICES, "web", {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}})
    text = 'spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set'
    assert refused.refusal == (422, "Invalid", f'Service "web" is invalid: {text}')


async def test_a_service_is_named_as_a_host(server: Asking) -> None:
    assert (await server.create(SERVICES, service("a.b"))).refusal[:2] == (422, "Invalid")
    assert (await server.create(SERVICES, service("1a"))).code == DIGIT_SERVICE.on(server.name)
