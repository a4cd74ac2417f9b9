"""Validation of Events: kube-apiserver is strict about events.k8s.io/v1 and refuses an incomplete Event there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollout_lws.objects.resources import EVENTS, Resource
from rollout_lws.sandbox.admission import naming

_LONGEST_NOTE = 1024
_LONGEST_WORD = 128
#: Immutable fields (all but the series, which counts repetitions), mapped to core/v1's names, which errors use.
_FIXED = {
    **{field: field for field in ("action", "reason", "type", "eventTime", "reportingController", "reportingInstance")},
    "note": "message",
    "regarding": "involvedObject",
    "related": "related",
}


def violations(resource: Resource, event: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[str]:
    """kube-apiserver's violations of an Event of core/v1 or events.k8s.io/v1."""
    about = event.get("involvedObject") or event.get("regarding") or {}
    namespace = about.get("namespace", "")
    if namespace and namespace != event["metadata"].get("namespace"):
        yield f'involvedObject.namespace: Invalid value: "{namespace}": does not match event.namespace'
    if resource != EVENTS:
        return
    if old is not None:
        for field, named in _FIXED.items():
            if event.get(field) != old.get(field):
                yield f'{named}: Invalid value: "{event.get(field)}": field is immutable'
        return
    if not event.get("eventTime"):
        yield "eventTime: Required value"
        return
    yield from _words(event)
    if event.get("type") not in ("Normal", "Warning"):
        yield f'type: Invalid value: "": has invalid value: {event.get("type", "")}'
    if len(event.get("note", "")) > _LONGEST_NOTE:
        yield f'message: Invalid value: "": can have at most {_LONGEST_NOTE} characters'


def _words(event: Mapping[str, Any]) -> Iterator[str]:
    for field in ("reportingController", "reportingInstance", "action", "reason"):
        word = event.get(field, "")
        if not word:
            yield f"{field}: Required value"
        if field == "reportingController":
            yield from naming.qualified(field, word)
        if len(word) > _LONGEST_WORD:
            yield f'{field}: Invalid value: "": can have at most {_LONGEST_WORD} characters'
