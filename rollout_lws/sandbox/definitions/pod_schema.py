"""The schema of pod and claim templates in custom resources: the fields that matter here; others are preserved."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_STRING: Schema = {"type": "string"}
_BOOLEAN: Schema = {"type": "boolean"}
_NUMBER: Schema = {"type": "integer", "format": "int32"}
_LONG_NUMBER: Schema = {"type": "integer", "format": "int64"}
_NUMBER_OR_STRING: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_STRINGS: Schema = {"type": "array", "items": _STRING}
_STRING_MAP: Schema = {"type": "object", "additionalProperties": _STRING}
_QUANTITIES: Schema = {
    "type": "object",
    "additionalProperties": {
        **_NUMBER_OR_STRING,
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",  # noqa: E501
    },
}


def _open(properties: Schema, **more: Any) -> Schema:
    """An object schema with some known properties that preserves unknown fields."""
    return {"type": "object", "properties": properties, "x-kubernetes-preserve-unknown-fields": True, **more}


def _keyed(item: Schema, *keys: str) -> Schema:
    return {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


def _metadata() -> Schema:
    properties = {"labels": _STRING_MAP, "annotations": _STRING_MAP, "finalizers": _STRINGS}
    return {"type": "object", "properties": {**properties, "name": _STRING, "namespace": _STRING}}


def _probe() -> Schema:
    grpc = {
        "type": "object",
        "required": ["port"],
        "properties": {"port": _NUMBER, "service": {**_STRING, "default": ""}},
    }
    numbers = ("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold", "successThreshold")
    return _open(
        {
            **dict.fromkeys(numbers, _NUMBER),
            "terminationGracePeriodSeconds": _LONG_NUMBER,
            "grpc": grpc,
            "httpGet": _http_get(),
            "tcpSocket": _open({"port": _NUMBER_OR_STRING, "host": _STRING}),
            "exec": _open({"command": _STRINGS}),
        }
    )


def _http_get() -> Schema:
    return _open({"port": _NUMBER_OR_STRING, "path": _STRING, "host": _STRING, "scheme": _STRING})


def _handler() -> Schema:
    sleep = _open({"seconds": _LONG_NUMBER}, required=["seconds"])
    return _open({"httpGet": _http_get(), "exec": _open({"command": _STRINGS}), "sleep": sleep})


def _container() -> Schema:
    port = {
        "type": "object",
        "required": ["containerPort"],
        "properties": {
            "containerPort": _NUMBER,
            "hostIP": _STRING,
            "hostPort": _NUMBER,
            "name": _STRING,
            "protocol": {**_STRING, "default": "TCP"},
        },
    }
    variable = _open({"name": _STRING, "value": _STRING}, required=["name"])
    mount = _open(
        {"name": _STRING, "mountPath": _STRING, "subPath": _STRING, "readOnly": _BOOLEAN},
        required=["mountPath", "name"],
    )
    return _open(
        {
            "name": _STRING,
            "image": _STRING,
            "imagePullPolicy": _STRING,
            "command": _STRINGS,
            "args": _STRINGS,
            "workingDir": _STRING,
            "env": _keyed(variable, "name"),
            "ports": _keyed(port, "containerPort", "protocol"),
            "resources": _open({"limits": _QUANTITIES, "requests": _QUANTITIES}),
            "volumeMounts": _keyed(mount, "mountPath"),
            "livenessProbe": _probe(),
            "readinessProbe": _probe(),
            "startupProbe": _probe(),
            "lifecycle": _open({"preStop": _handler(), "postStart": _handler()}),
        },
        required=["name"],
    )


def template_schema(description: str) -> Schema:
    """The schema of a PodTemplateSpec."""
    containers = _keyed(_container(), "name")
    spec = _open(
        {
            "containers": containers,
            "initContainers": containers,
            "volumes": _keyed(_open({"name": _STRING}, required=["name"]), "name"),
            "nodeSelector": _STRING_MAP,
            "hostNetwork": _BOOLEAN,
            "restartPolicy": _STRING,
            "schedulerName": _STRING,
            "serviceAccountName": _STRING,
            "subdomain": _STRING,
            "terminationGracePeriodSeconds": _LONG_NUMBER,
            "tolerations": {"type": "array", "items": _open({})},
        },
        required=["containers"],
    )
    return {"type": "object", "description": description, "properties": {"metadata": _metadata(), "spec": spec}}


def claim_schema() -> Schema:
    """The schema of a PersistentVolumeClaim template."""
    spec = _open(
        {
            "accessModes": _STRINGS,
            "resources": _open({"limits": _QUANTITIES, "requests": _QUANTITIES}),
            "storageClassName": _STRING,
            "volumeMode": _STRING,
        }
    )
    return {
        "type": "object",
        "properties": {
            "apiVersion": _STRING,
            "kind": _STRING,
            "metadata": _metadata(),
            "spec": spec,
            "status": _open({}),
        },
    }
