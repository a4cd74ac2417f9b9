"""Releases after which another workload serves: what selects groups of one of both by a label that has its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollout_lws.cli.lint.advice.releases import Release, releases
from rollout_lws.cli.lint.advice.services import labels_beside, telling
from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.manifests import NETWORK_POLICIES, POD_MONITORS
from rollout_lws.cli.lint.paths import Path, value_at
from rollout_lws.sandbox.wire.selectors import Requirement
from rollout_lws.targets.target import Target
from rollout_lws.traffic.selectors import matched
from rollout_lws.workload.canary import name_of_canary

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists"}


def advice(files: FileSnapshot) -> Iterator[Finding]:
    for release in releases(files):
        if not release.rollout.spec.swaps or release.is_pair or release.lws is None:
            continue
        pair = _Pair(files, release, release.lws)
        for each in files.of_kind(NETWORK_POLICIES.kind):
            for path in _peers(each.body):
                yield from pair.alone(each, path, "is about", "it does not hold for groups of {}")
        for each in files.of_kind(POD_MONITORS.kind):
            yield from pair.alone(each, ("spec", "selector"), "scrapes", "groups of {} have no figures")


class _Pair:
    """The workload of a Rollout and the one that its releases make, which serve in turn."""

    def __init__(self, files: FileSnapshot, release: Release, users: Target) -> None:
        name = users.metadata.name
        self._release, self._name, self._made = release, name, name_of_canary(name)
        self._labels = files.pods_of(users.resource, name)
        first, beside = self._labels[0], labels_beside(files, users)
        self._apart = {key: beside[key] for key in telling(first, first, beside)}

    def alone(self, found: Shaped, path: Path, does: str, told: str) -> Iterator[Finding]:
        """A finding if its selector at ``path`` selects groups of the user's workload and not the same of the other."""
        selector = value_at(found.body, path)
        if not any(_selects(selector, own) and not _selects(selector, self._beside(own)) for own in self._labels):
            return
        template = next((f"{key}: {value}" for key, value in sorted(self._labels[0].items()) if "/" not in key), "")
        by = f"labels of the template, such as {template}" if template else "labels of the template"
        yield found.manifest.found(
            "LWS333",
            path,
            f"{self._name} and {self._made} serve in turn by {self._release.manifest.what_and_place}, and"
            f" {found.manifest.what} {does} groups of {self._name} alone, by {self._by(selector)}, so that"
            f" {told.format(self._made)} while that one serves: have it select by {by}",
        )

    def _beside(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {**labels, **self._apart}

    def _by(self, selector: Any) -> str:
        """The labels in a selector by which the pods of the two differ."""
        return " and ".join(key for key in self._apart if key in _keys(selector))


def _peers(policy: Mapping[str, Any]) -> Iterator[Path]:
    """The pod selectors of a NetworkPolicy: those that it is about, and those that it lets through."""
    yield ("spec", "podSelector")
    for way, end in (("ingress", "from"), ("egress", "to")):
        for number, rule in enumerate(policy["spec"].get(way) or ()):
            for at, peer in enumerate((rule or {}).get(end) or ()):
                if peer.get("namespaceSelector") is None:
                    yield ("spec", way, number, end, at, "podSelector")


def _keys(selector: Any) -> set[str]:
    """The labels that a selector compares."""
    expressions = selector.get("matchExpressions") or ()
    return {*(selector.get("matchLabels") or {}), *(each["key"] for each in expressions)}


def _selects(selector: Any, labels: Mapping[str, str]) -> bool:
    """Whether a selector that is not empty matches a pod with these labels."""
    if not isinstance(selector, dict):
        return False
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return matched(selector, labels)
    required = [
        Requirement(each["key"], _OPERATORS.get(each["operator"], "absent"), frozenset(each.get("values") or ()))
        for each in selector.get("matchExpressions") or ()
    ]
    own = selector.get("matchLabels") or {}
    return own.items() <= labels.items() and all(each.matches(labels) for each in required)
