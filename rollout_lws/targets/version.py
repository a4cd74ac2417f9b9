"""The version that a workload's spec describes: our own hash of it, and the few values that a release reads.

The workload controller's revision hash changes with releases of that controller, so it is only read (from labels). To
detect that the user changed the version, we hash the members of the spec that the controller itself counts as the
version.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import msgspec

from rollout_lws.objects.scaling import whole_number
from rollout_lws.objects.spelling import plain

#: Default minimum of seconds that a step waits for groups.
LEAST_PROGRESS_SECONDS = 3600
#: Seconds added to the longest start that the start-up probes allow.
START_UP_MARGIN_SECONDS = 900
#: The numbers of a probe may amount to 140 billion years; 68 years is the largest value that clocks can handle.
MOST_START_UP_SECONDS = 2**31 - 1
#: Between the hashes of workloads that have a version together.
HASH_SEPARATOR = "-"
#: The hash of one that does not exist.
MISSING = "missing"


@dataclass(frozen=True, slots=True)
class VersionFormat:
    """Where the spec of a kind of workload has its version."""

    members: tuple[str, ...]
    """Members of the spec that its controller counts as the version."""
    roles: tuple[tuple[str, str], ...]
    """Roles of pods with the names of their templates. The role "worker" is always among them: a kind whose groups are
    single pods has only that one.
    """
    apart: str = ""
    """How the name of the label ends by which pods of a workload that a release has made are told: it is no part of the
    version; "" without one.
    """
    holder: str = ""
    """The member that has the templates of pods and claims, the claims' retention policy and ``size``, the number of
    pods of a group; "" if they are members themselves.
    """

    unversioned: tuple[str, ...] = ()
    """Members of the object with the templates that are no part of the version: a change of them starts nothing."""

    @property
    def paths(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The roles of pods with the paths of their templates in the spec."""
        holder = (self.holder,) if self.holder else ()
        return tuple((role, (*holder, member)) for role, member in self.roles)

    def held(self, members: Mapping[str, Any]) -> Mapping[str, Any]:
        """The object with the templates."""
        return (members.get(self.holder) or {}) if self.holder else members

    def templates(self, members: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """The pod templates by role; a role without one has no item, but there is always one item."""
        holder = self.held(members)
        return [(role, holder[key]) for role, key in self.roles if holder.get(key)] or [("worker", {})]


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a model server: the JSON of the members, and our hash of its meaning."""

    template_hash: str
    """10 hex digits; of several workloads that have a version together those of each, see ``version_together``."""
    document: bytes
    """Canonical JSON of the spec with only the format's members; members that are null are left out."""
    meant: bytes
    """The same for all documents that the workload's controller treats as one version."""
    format: VersionFormat

    @property
    def members(self) -> dict[str, Any]:
        decoded: dict[str, Any] = msgspec.json.decode(self.document)
        return decoded

    @property
    def meaning(self) -> dict[str, Any]:
        """The members in a form that is equal if and only if they mean the same to the controller."""
        decoded: dict[str, Any] = msgspec.json.decode(self.meant)
        return decoded

    @property
    def templates(self) -> list[tuple[str, dict[str, Any]]]:
        """The pod templates by role ("leader", "worker"); a leader without one of its own is made from the workers'."""
        return self.format.templates(self.members)

    @property
    def leader_template(self) -> dict[str, Any]:
        """The template of the pods that take requests."""
        found = dict(self.templates)
        return found.get("leader") or found["worker"]

    @property
    def leaders_have_pre_stop(self) -> bool:
        """True if a leader that is deleted does not end at once."""
        return has_pre_stop((self.leader_template.get("spec") or {}).get("containers") or ())

    @property
    def claims(self) -> Mapping[str, Any]:
        """The object with ``volumeClaimTemplates`` and ``persistentVolumeClaimRetentionPolicy``."""
        return self.format.held(self.members)

    @property
    def claim_templates(self) -> list[Any]:
        """The claim templates, in a form that is equal if and only if they mean the same to the controller."""
        return self.format.held(self.meaning).get("volumeClaimTemplates") or []

    @property
    def size(self) -> int:
        """Pods per group, leader included."""
        return _room(self.document, self.format)[0]

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
        return _room(self.document, self.format)[1:]

    @property
    def start_up_seconds(self) -> float:
        """The longest start that any container's start-up probe allows, 0 without such probes; at most
        ``MOST_START_UP_SECONDS``.
        """
        budgets = [0.0]
        for _, template in self.templates:
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


def version_together(first: Version, others: Sequence[Version | None]) -> Version:
    """The version that several workloads have together: the first one's members, and the hashes of all."""
    if not others:
        return first
    hashes = (first.template_hash, *(each.template_hash if each is not None else MISSING for each in others))
    return replace(first, template_hash=HASH_SEPARATOR.join(hashes))


def hashes_of(template_hash: str) -> tuple[str, ...]:
    """The hashes of the workloads that have the version together; the one of a workload that is released alone."""
    return tuple(template_hash.split(HASH_SEPARATOR))


def with_first(template_hash: str, first: Version) -> Version:
    """``first`` with the other workloads' hashes of ``template_hash``."""
    return replace(first, template_hash=HASH_SEPARATOR.join((first.template_hash, *hashes_of(template_hash)[1:])))


def has_pre_stop(containers: Iterable[Mapping[str, Any]]) -> bool:
    """True if any of a pod's containers has a preStop hook, during which routers learn that the pod terminates."""
    return any((each.get("lifecycle") or {}).get("preStop") for each in containers)


def version_of_members(members: Mapping[str, Any], kind: VersionFormat) -> Version:
    """The version of stored members of a spec; the ``$patch`` markers of ControllerRevisions are dropped."""
    kept = {
        key: {name: value for name, value in (members.get(key) or {}).items() if name != "$patch"}
        for key in kind.members
        if members.get(key) is not None
    }
    return _canonical(kept, kind)


def supposed_version(members: tuple[bytes, ...], kind: VersionFormat) -> Version:
    """The version of a spec's members, each as JSON; "null" for one that is absent."""
    found = zip(kind.members, map(msgspec.json.decode, members), strict=True)
    return _canonical(dict(found), kind)


#: The same, cached. Enough for the releases in progress at one time; each entry takes three times its template.
version = lru_cache(maxsize=512)(supposed_version)


def _canonical(members: dict[str, Any], kind: VersionFormat) -> Version:
    told = _without_nulls(members)
    for _, template in kind.templates(told) if kind.apart else ():
        labels = (template.get("metadata") or {}).get("labels") or {}
        for key in [each for each in labels if each.endswith(kind.apart)]:
            del labels[key]
    document = msgspec.json.encode(told, order="sorted")
    # A quantity written in another form, or a missing default that a webhook fills in, is no change of version.
    meant = msgspec.json.encode(plain(_versioned(told, kind)), order="sorted")
    return Version(hashlib.sha256(meant).hexdigest()[:10], document, meant, kind)


def _versioned(members: dict[str, Any], kind: VersionFormat) -> dict[str, Any]:
    """The members without what is no part of the version."""
    if not (kind.holder and kind.unversioned and members.get(kind.holder)):
        return members
    held = {key: value for key, value in members[kind.holder].items() if key not in kind.unversioned}
    return {**members, kind.holder: held}


def _without_nulls(value: Any) -> Any:
    """Null means "absent" to the API server; empty objects and lists do not, and stay."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


# Every decision asks for every group: each document is parsed once.
@lru_cache(maxsize=128)
def _room(document: bytes, kind: VersionFormat) -> tuple[int, Mapping[str, int], Mapping[str, int]]:
    """Pods per group, and the accelerators of its leader and of each worker."""
    members = msgspec.json.decode(document)
    templates = dict(kind.templates(members))
    worker = templates.get("worker", {})
    size = int(kind.held(members).get("size") or 1)
    return size, _accelerators(templates.get("leader", worker)), _accelerators(worker)


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
