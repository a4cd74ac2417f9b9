"""PersistentVolumeClaims of groups that are made for a release and go with it: which of them stay, by whose policy.

A StatefulSet names a claim after its template and its pod, and keeps it unless the retention policy says otherwise; a
later pod of that name gets it with what is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rollout_lws.workload.template import Version


@dataclass(frozen=True, slots=True)
class Kept:
    """Which claims stay: of leaders, of workers, as the templates ``names`` make them; ``size`` is pods a group."""

    names: tuple[str, ...]
    size: int
    leaders: bool
    workers: bool

    def __bool__(self) -> bool:
        return self.count(1) > 0

    def of(self, workload: str, ordinals: Iterable[int]) -> Iterator[str]:
        """Names of the claims that stay of these groups of the LWS ``workload``, one after the other: there may be more
        than anybody has time for.
        """
        for ordinal in ordinals if self else ():
            pod = f"{workload}-{ordinal}"
            if self.leaders:
                yield from (f"{name}-{pod}" for name in self.names)
            if self.workers:
                yield from (f"{name}-{pod}-{index}" for index in range(1, self.size) for name in self.names)

    def patterns(self, workload: str, groups: range) -> list[str]:
        """What a shell with brace expansion (bash, zsh) makes the same names of, however many they are. Leaders' claims
        have no label that tells their group.
        """
        if not self or not groups:
            return []
        names = self.names[0] if len(self.names) == 1 else f"{{{','.join(self.names)}}}"
        leaders = f"{names}-{workload}-{_from_to(groups[0], groups[-1])}"
        workers = [f"{leaders}-{_from_to(1, self.size - 1)}"] if self.workers and self.size > 1 else []
        return [leaders, *workers] if self.leaders else workers

    def count(self, groups: int) -> int:
        """How many stay of so many groups."""
        return groups * len(self.names) * (self.leaders + (self.size - 1) * self.workers)


def kept(version: Version, *, by_scaling: bool) -> Kept:
    """Of groups that go with their own LWS, or ``by_scaling`` alone, as those of a surge do. The workers of a group
    have a StatefulSet of their own, which is deleted either way.
    """
    template: Mapping[str, Any] = version.members["leaderWorkerTemplate"]
    policy = template.get("persistentVolumeClaimRetentionPolicy") or {}
    deleted, scaled = (policy.get(each) == "Delete" for each in ("whenDeleted", "whenScaled"))
    # The LWS of a canary is scaled to 0 before it is deleted.
    return Kept(
        names=tuple(filter(None, map(_name, template.get("volumeClaimTemplates") or ()))),
        size=version.size,
        leaders=not (scaled or (deleted and not by_scaling)),
        workers=not deleted,
    )


def _from_to(first: int, last: int) -> str:
    return str(first) if first == last else f"{{{first}..{last}}}"


def _name(claim: Mapping[str, Any]) -> str:
    # A manifest that nobody has accepted yet may have none.
    return str((claim.get("metadata") or {}).get("name") or "")


def policy_that_deletes(*, by_scaling: bool) -> str:
    """What to write so that nothing stays; by scaling, the claims of the LWS's own groups go with these, too."""
    said = "whenScaled: Delete, whenDeleted: Delete" if by_scaling else "whenDeleted: Delete"
    return f"set persistentVolumeClaimRetentionPolicy: {{{said}}}"
