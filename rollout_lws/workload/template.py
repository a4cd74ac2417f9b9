"""The version that a LeaderWorkerSet's spec describes: our own hash of it, and the few values that a release reads.

LWS's revision hash changes with releases of the LWS controller, so it is only read (from labels). To detect that the
user changed the version, we hash the two members that LWS itself counts as the version, {leaderWorkerTemplate,
networkConfig}.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from rollout_lws.objects.scaling import whole_number
from rollout_lws.objects.spelling import plain
from rollout_lws.objects.workloads import LeaderWorkerSetSpec

#: Default minimum of seconds that a step waits for groups.
LEAST_PROGRESS_SECONDS = 3600
#: Seconds added to the longest start that the start-up probes allow.
START_UP_MARGIN_SECONDS = 900
#: The numbers of a probe may amount to 140 billion years; 68 years is the largest value that clocks can handle.
MOST_START_UP_SECONDS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a model server: the JSON of the two members, and our hash of its meaning (10 hex digits)."""

    template_hash: str
    document: bytes
    """Canonical JSON of {"leaderWorkerTemplate": …, "networkConfig": …}; members that are null are left out."""
    meant: bytes
    """The same for all documents that LWS treats as one version."""

    @property
    def members(self) -> dict[str, Any]:
        decoded: dict[str, Any] = msgspec.json.decode(self.document)
        return decoded

    @property
    def meaning(self) -> dict[str, Any]:
        """The members in a form that is equal if and only if they mean the same to LWS."""
        decoded: dict[str, Any] = msgspec.json.decode(self.meant)
        return decoded

    @property
    def size(self) -> int:
        """Pods per group, leader included (LWS's default is 1)."""
        return _room(self.document)[0]

    @property
    def accelerators(self) -> int:
        """Accelerators that a group requests, of all resource names."""
        return sum(self.accelerators_by_name.values())

    @property
    def accelerators_by_name(self) -> dict[str, int]:
        """Accelerators that a group requests (extended resources named *gpu, *tpu or *npu), from the limits."""
        leader, worker = self.accelerators_of_pods
        found = dict(leader)
        for name, amount in worker.items():
            found[name] = found.get(name, 0) + (self.size - 1) * amount
        return {name: amount for name, amount in sorted(found.items()) if amount}

    @property
    def accelerators_of_pods(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """The same for a leader, and for a worker."""
        return _room(self.document)[1:]

    @property
    def start_up_seconds(self) -> float:
        """The longest start that any container's start-up probe allows, 0 without such probes; at most
        ``MOST_START_UP_SECONDS``.
        """
        budgets = [0.0]
        for _, template in _templates(self.members):
            for container in template.get("spec", {}).get("containers", ()):
                probe = container.get("startupProbe")
                if probe:
                    tries = probe.get("failureThreshold") or 3
                    budgets.append(
                        float(probe.get("initialDelaySeconds") or 0) + tries * (probe.get("periodSeconds") or 10)
                    )
        return min(max(budgets), MOST_START_UP_SECONDS)

    @property
    def progress_deadline_seconds(self) -> float:
        """Default of spec.strategy.progressDeadlineSeconds."""
        return max(LEAST_PROGRESS_SECONDS, self.start_up_seconds + START_UP_MARGIN_SECONDS)


def version_of(spec: LeaderWorkerSetSpec) -> Version:
    """The version that an LWS's spec asks for."""
    return _version(bytes(spec.leader_worker_template), bytes(spec.network_config))


def supposed_version_of(spec: LeaderWorkerSetSpec) -> Version:
    """The same for a spec that is not written yet, and may never be: it is not cached."""
    return _version.__wrapped__(bytes(spec.leader_worker_template), bytes(spec.network_config))


def version_of_members(members: dict[str, Any]) -> Version:
    """The version of a stored {"leaderWorkerTemplate", "networkConfig"}; LWS's ``$patch`` markers are dropped."""
    kept = {
        key: {name: value for name, value in (members.get(key) or {}).items() if name != "$patch"}
        for key in ("leaderWorkerTemplate", "networkConfig")
        if members.get(key) is not None
    }
    return _canonical(kept)


# Enough for the releases in progress at one time; each entry takes three times its template.
@lru_cache(maxsize=512)
def _version(template: bytes, network: bytes) -> Version:
    members = {"leaderWorkerTemplate": msgspec.json.decode(template), "networkConfig": msgspec.json.decode(network)}
    return _canonical(members)


def _canonical(members: dict[str, Any]) -> Version:
    told = _without_nulls(members)
    document = msgspec.json.encode(told, order="sorted")
    # A quantity written in another form, or a missing default that LWS's webhook fills in, is no change of version.
    meant = msgspec.json.encode(plain(told), order="sorted")
    return Version(template_hash=hashlib.sha256(meant).hexdigest()[:10], document=document, meant=meant)


def _without_nulls(value: Any) -> Any:
    """Null means "absent" to the API server; empty objects and lists do not, and stay."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


# Every decision asks for every group: each document is parsed once.
@lru_cache(maxsize=128)
def _room(document: bytes) -> tuple[int, Mapping[str, int], Mapping[str, int]]:
    """Pods per group, and the accelerators of its leader and of each worker."""
    members = msgspec.json.decode(document)
    templates = dict(_templates(members))
    worker = templates.get("worker", {})
    size = int(members["leaderWorkerTemplate"].get("size") or 1)
    return size, _accelerators(templates.get("leader", worker)), _accelerators(worker)


def _templates(members: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    template = members.get("leaderWorkerTemplate") or {}
    roles = (("leader", "leaderTemplate"), ("worker", "workerTemplate"))
    return [(role, template[key]) for role, key in roles if template.get(key)] or [("worker", {})]


def _accelerators(template: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for container in template.get("spec", {}).get("containers", ()):
        limits = (container.get("resources") or {}).get("limits") or {}
        for resource, amount in limits.items():
            number = whole_number(str(amount))
            if "/" in resource and resource.endswith(("gpu", "tpu", "npu")) and number is not None:
                found[resource] = found.get(resource, 0) + number
    return found


def short_hash(text: str, length: int = 6) -> str:
    """A short, name-safe digest of any text."""
    return base64.b32encode(hashlib.sha256(text.encode()).digest()).decode().lower()[:length]
