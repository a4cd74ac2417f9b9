"""PersistentVolumeClaims of groups that a release creates and deletes: which ones remain, by which retention policy.

A StatefulSet names a claim after its template and its pod, and keeps it unless the retention policy says otherwise. A
later pod of the same name gets that claim with its data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rollout_lws.targets.target import Target
from rollout_lws.targets.version import Version


@dataclass(frozen=True, slots=True)
class Kept:
    """Claims that remain: of leaders, of workers, from the claim templates ``names``; ``size`` is pods per group, and
    ``first`` the index of the first group.
    """

    names: tuple[str, ...]
    size: int
    leaders: bool
    workers: bool
    first: int = 0

    def __bool__(self) -> bool:
        return self.count(1) > 0

    def of(self, workload: str, ordinals: Iterable[int]) -> Iterator[str]:
        """Names of the remaining claims of these groups of ``workload``, by their places from 0. An iterator, since
        there may be very many.
        """
        for ordinal in ordinals if self else ():
            pod = f"{workload}-{self.first + ordinal}"
            if self.leaders:
                yield from (f"{name}-{pod}" for name in self.names)
            if self.workers:
                yield from (f"{name}-{pod}-{index}" for index in range(1, self.size) for name in self.names)

    def patterns(self, workload: str, groups: range) -> list[str]:
        """Patterns that a shell with brace expansion (bash, zsh) expands to the same names, however many. Leaders'
        claims have no label with their group.
        """
        if not self or not groups:
            return []
        names = self.names[0] if len(self.names) == 1 else f"{{{','.join(self.names)}}}"
        leaders = f"{names}-{workload}-{_from_to(self.first + groups[0], self.first + groups[-1])}"
        workers = [f"{leaders}-{_from_to(1, self.size - 1)}"] if self.workers and self.size > 1 else []
        return [leaders, *workers] if self.leaders else workers

    def count(self, groups: int) -> int:
        """Number of claims that remain of this many groups."""
        return groups * len(self.names) * (self.leaders + (self.size - 1) * self.workers)


def kept(workload: Target, version: Version, *, by_scaling: bool) -> Kept:
    """The remaining claims of groups of this version, which are deleted with a workload such as ``workload`` or,
    ``by_scaling``, by scaling it down, as surge groups are. A group's workers have a StatefulSet of their own, which is
    deleted either way.
    """
    template = workload.claims(version)
    policy = template.get("persistentVolumeClaimRetentionPolicy") or {}
    deleted, scaled = (policy.get(each) == "Delete" for each in ("whenDeleted", "whenScaled"))
    # A canary LWS is scaled to 0 before it is deleted.
    return Kept(
        names=tuple(filter(None, map(_name, template.get("volumeClaimTemplates") or ()))),
        size=version.size,
        leaders=not (scaled or (deleted and not by_scaling)),
        workers=not deleted,
        first=workload.first_ordinal,
    )


def _from_to(first: int, last: int) -> str:
    return str(first) if first == last else f"{{{first}..{last}}}"


def _name(claim: Mapping[str, Any]) -> str:
    # A manifest that the API server has not accepted yet may have no name.
    return str((claim.get("metadata") or {}).get("name") or "")


def policy_that_deletes(*, by_scaling: bool) -> str:
    """The setting under which no claim remains; by scaling, it also applies to claims of the LWS's regular groups."""
    said = "whenScaled: Delete, whenDeleted: Delete" if by_scaling else "whenDeleted: Delete"
    return f"set persistentVolumeClaimRetentionPolicy: {{{said}}}"
