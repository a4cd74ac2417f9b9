"""Formats of names and labels that an API server enforces beyond what a schema can express."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.manifests import Manifest
from rollout_lws.cli.lint.paths import Path, value_at
from rollout_lws.objects.resources import LEADER_WORKER_SETS, SERVICES

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:[a-z0-9][-a-z0-9.]{{0,252}}/)?{_NAME}")
_VALUE = re.compile(rf"(?:{_NAME})?")
#: Service names must be DNS labels.
_HOST = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_TEMPLATES: tuple[Path, ...] = (
    ("spec", "leaderWorkerTemplate", "leaderTemplate", "metadata", "labels"),
    ("spec", "leaderWorkerTemplate", "workerTemplate", "metadata", "labels"),
)
#: Paths of labels and selectors by kind.
_LABELS: dict[str, tuple[Path, ...]] = {LEADER_WORKER_SETS.kind: _TEMPLATES, SERVICES.kind: (("spec", "selector"),)}


def malformed_names(made: Manifest) -> Iterator[Finding]:
    """Names and labels of the right type that an API server would reject."""
    for path in (("metadata", "labels"), *_LABELS.get(made.resource.kind, ())):
        labels = value_at(made.body, path)
        yield from _labels(made, path, labels if isinstance(labels, dict) else {})
    if made.resource == SERVICES:
        yield from _service(made)


def _labels(made: Manifest, path: Path, labels: dict[str, Any]) -> Iterator[Finding]:
    form = "letters, digits, '-', '_' and '.', at most 63 of them, a letter or digit first and last"
    for key, value in labels.items():
        if not _KEY.fullmatch(key):
            yield made.found(
                "LWS102", (*path, key), f"{key!r} is no key of a label: use {form}, after a domain/ or none"
            )
        if isinstance(value, str) and not _VALUE.fullmatch(value):
            yield made.found("LWS102", (*path, key), f"{value!r} is no value of a label: use {form}")


def _service(made: Manifest) -> Iterator[Finding]:
    if not _HOST.fullmatch(made.name):
        message = (
            f"{made.name!r} is no name of a Service: use lower-case letters, digits and '-', at most 63, a letter first"
        )
        yield made.found("LWS106", ("metadata", "name"), message)
    ports = value_at(made.body, ("spec", "ports"))
    for index, port in enumerate(ports if isinstance(ports, list) and len(ports) > 1 else ()):
        if isinstance(port, dict) and not port.get("name"):
            message = f"name is missing in spec.ports[{index}], as a Service of several ports needs it: add it"
            yield made.found("LWS103", ("spec", "ports", index), message)
