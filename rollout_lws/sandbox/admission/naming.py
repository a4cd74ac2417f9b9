"""Validation of names, labels, annotations, finalizers and ownerReferences with kube-apiserver's messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rollout_lws.objects.resources import CORE_EVENTS, SERVICES, Resource
from rollout_lws.sandbox.wire.api_errors import bad_request

#: Maximum total size of an object's annotations in bytes.
_LARGEST_ANNOTATIONS = 256 * 1024
#: Kubernetes' own finalizers, which need no domain prefix.
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
#: Required members of an ownerReference, and the start of the error about each.
_OWNER = {"apiVersion": "version must", "kind": "must", "name": "must", "uid": "must"}

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_NAME_PART_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_QUALIFIED_TEXT = (
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)


def violations(resource: Resource, metadata: Mapping[str, Any]) -> list[str]:
    """kube-apiserver's violations in metadata; ApiError 400 for a label or annotation that is not a string."""
    return [
        *_name(resource, metadata),
        *_labels(metadata.get("labels") or {}),
        *_annotations(metadata.get("annotations") or {}),
        *_owners(metadata.get("ownerReferences") or ()),
        *_finalizers(metadata.get("finalizers") or ()),
    ]


def _name(resource: Resource, metadata: Mapping[str, Any]) -> Iterator[str]:
    name, prefix = metadata.get("name", ""), metadata.get("generateName", "")
    pattern, limit, text = _SUBDOMAIN, 253, _SUBDOMAIN_TEXT
    if resource == SERVICES:
        pattern, limit, text = _LABEL_1035, 63, _LABEL_1035_TEXT
    # A name generated from a prefix that ends in a dash does not end in the dash.
    if prefix and resource != CORE_EVENTS and not pattern.fullmatch(re.sub("-$", "a", prefix)):
        yield f'metadata.generateName: Invalid value: "{prefix}": {text}'
    if len(name) > limit:
        yield f'metadata.name: Invalid value: "{name}": must be no more than {limit} characters'
    elif not pattern.fullmatch(name):
        yield f'metadata.name: Invalid value: "{name}": {text}'


def _labels(labels: Mapping[str, Any]) -> Iterator[str]:
    for key, value in labels.items():
        _require_text("labels", key, value)
        yield from qualified("metadata.labels", key)
        if len(value) > 63:
            yield f'metadata.labels: Invalid value: "{value}": must be no more than 63 bytes'
        elif not _LABEL_VALUE.fullmatch(value):
            yield f'metadata.labels: Invalid value: "{value}": {_LABEL_VALUE_TEXT}'


def _annotations(annotations: Mapping[str, Any]) -> Iterator[str]:
    size = 0
    for key, value in annotations.items():
        _require_text("annotations", key, value)
        yield from qualified("metadata.annotations", key.lower(), key)
        size += len(key.encode()) + len(value.encode())
    if size > _LARGEST_ANNOTATIONS:
        yield f"metadata.annotations: Too long: may not be more than {_LARGEST_ANNOTATIONS} bytes"


def _owners(references: Any) -> Iterator[str]:
    for owner in references:
        for key, how in _OWNER.items():
            if not isinstance(owner, Mapping) or not owner.get(key):
                yield f'metadata.ownerReferences.{key}: Invalid value: "": {how} not be empty'
    controllers = [each for each in references if isinstance(each, Mapping) and each.get("controller")]
    if len(controllers) > 1:
        first, second = (f"{each.get('kind')}/{each.get('name')}" for each in controllers[:2])
        why = "Only one reference can have Controller set to true. Found"
        shown = str(msgspec.json.encode(references), "utf-8")
        yield f'metadata.ownerReferences: Invalid value: {shown}: {why} "true" in references for {first} and {second}'


def _finalizers(finalizers: Any) -> Iterator[str]:
    for at, entry in enumerate(finalizers):
        yield from qualified("metadata.finalizers", entry)
        if "/" not in entry and entry not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield f'metadata.finalizers[{at}]: Invalid value: "{entry}": {why}'


def qualified(field: str, key: str, shown: str = "") -> Iterator[str]:
    """Violations of a qualified name: a name with an optional domain prefix."""
    start = f'{field}: Invalid value: "{shown or key}": '
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        yield start + _QUALIFIED_TEXT
        return
    if slash and not prefix:
        yield f"{start}prefix part must be non-empty"
    elif slash and not _SUBDOMAIN.fullmatch(prefix):
        yield f"{start}prefix part {_SUBDOMAIN_TEXT}"
    if not name:
        yield f"{start}name part must be non-empty"
    elif len(name) > 63:
        yield f"{start}name part must be no more than 63 bytes"
    if not _NAME_PART.fullmatch(name):
        yield start + _NAME_PART_TEXT


def _require_text(field: str, key: str, value: Any) -> None:
    if not isinstance(value, str):
        raise bad_request(f'metadata.{field}["{key}"] must be a string, not {value!r}: put it in quotes')
