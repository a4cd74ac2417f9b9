"""Leader election as a state machine without I/O: what one candidate knows of a Lease, and what it does next.

The rules are those of Kubernetes' own leader election. A candidate never compares its clock with another's: a lease has
expired when the candidate has seen it unchanged for the holder's stated duration, by its own clock. A leader stops
before that, ``deadline`` seconds after it *asked* for its last renewal. So two never lead at the same time while clocks
differ, jump or stand still, as long as their speeds differ by no more than ``duration / deadline``. Every write names
the version that it is based on, so that of two concurrent claims one is rejected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from rollout_lws.objects.meta import Meta
from rollout_lws.objects.resources import LEASES
from rollout_lws.objects.writes import Create, Patch

#: Missed renewals of another holder after which the Lease is read: a candidate normally sees each by its watch.
_MISSED = 3


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds, each longer than the next. Others may lead ``duration`` (whole seconds) after the last renewal that they
    saw; the leader stops ``deadline`` after it asked for the last granted one; it asks every ``retry``, and no request
    takes longer than that.
    """

    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(msgspec.Struct, frozen=True):
    """A coordination.k8s.io/v1 Lease, with the fields that matter to leader election."""

    metadata: Meta = Meta()
    spec: _Spec = _Spec()

    @property
    def holder(self) -> str:
        """Identity of the holder, "" without one."""
        return self.spec.holder_identity or ""


read = msgspec.json.Decoder(Lease).decode


@dataclass(frozen=True, slots=True)
class Standing:
    """State of the candidate ``me``, with moments of its own clock in seconds.

    ``lease`` was seen last, None when there is none, and has not been renewed since ``changed_at``. ``leads_until`` is
    None while it does not lead. It asks for nothing before ``asks_at``; at ``looks_at`` a candidate that has seen no
    renewal reads the Lease itself, since its watch may be dead. The holder may not know yet that its Lease was deleted:
    before ``mourns_until`` no other candidate recreates it.
    """

    me: str
    terms: Terms
    lease: Lease | None = None
    changed_at: float = 0.0
    leads_until: float | None = None
    asks_at: float = -math.inf
    looks_at: float = math.inf
    mourns_until: float = -math.inf

    @property
    def next_moment(self) -> float:
        """When to act next, unless something changes before."""
        if self.leads_until is not None:
            return min(self.asks_at, self.leads_until)
        return min(max(self.asks_at, self.free_at), self.looks_at)

    @property
    def free_at(self) -> float:
        """When the Lease expires, unless it is renewed before."""
        lease = self.lease
        if lease is None:
            return self.mourns_until
        # A Lease in our own name is ours: its answer was lost or came too late.
        if lease.holder in ("", self.me):
            return -math.inf
        return self.changed_at + _seconds(lease, self.terms)


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until ``until``, or until the Lease changes."""

    until: float


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this write; when it succeeds, call ``granted``."""

    write: Create | Patch


@dataclass(frozen=True, slots=True)
class Look:
    """Read the Lease, and call ``saw`` with the result."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Leadership has ended: no renewal was granted in time."""


Act: TypeAlias = Wait | Ask | Look | Stop


def act(standing: Standing, now: float, date: datetime, namespace: str, name: str) -> Act:
    """The action at ``now``; ``date`` only informs readers of the Lease ``namespace/name``, and decides nothing."""
    if standing.leads_until is not None and now >= standing.leads_until:
        return Stop()
    if now < standing.next_moment:
        return Wait(standing.next_moment)
    if standing.leads_until is None and now < max(standing.asks_at, standing.free_at):
        return Look()
    return Ask(_claim(standing, date, namespace, name))


def saw(standing: Standing, lease: Lease | None, now: float) -> Standing:
    """The Lease was read or has changed. A leader stops leading when its Lease is deleted or has another holder.
    Changes of labels and the like do not count as renewals.
    """
    before, others = standing.lease, lease is not None and lease.holder not in ("", standing.me)
    mourns = standing.mourns_until
    if lease is None and before is not None and before.holder not in ("", standing.me):
        mourns = now + _seconds(before, standing.terms)
    renewed = (None if before is None else before.spec) != (None if lease is None else lease.spec)
    return replace(
        standing,
        lease=lease,
        changed_at=now if renewed else standing.changed_at,
        leads_until=standing.leads_until if lease is not None and lease.holder == standing.me else None,
        looks_at=now + _MISSED * standing.terms.retry if others else math.inf,
        mourns_until=mourns,
    )


def asked(standing: Standing, now: float, again: float) -> Standing:
    """A write is in progress; the next one is sent no sooner than ``again`` seconds from now."""
    return replace(standing, asks_at=now + again)


def looking(standing: Standing, now: float) -> Standing:
    """A read is in progress; if it fails, it is repeated no sooner than a renewal would be."""
    return replace(standing, looks_at=now + standing.terms.retry)


def granted(standing: Standing, lease: Lease, asked_at: float) -> Standing:
    """The write sent at ``asked_at`` has succeeded. That moment counts, not the answer's: others may have seen the
    renewal since.
    """
    until = asked_at + standing.terms.deadline
    return replace(standing, lease=lease, changed_at=asked_at, leads_until=until, looks_at=math.inf)


def refused(standing: Standing, lease: Lease | None, now: float) -> Standing:
    """Another candidate was faster; ``lease`` is the current state. If that is new, the next claim need not wait."""
    again = standing.asks_at if lease == standing.lease else now
    return replace(saw(standing, lease, now), asks_at=again)


def stopped(standing: Standing) -> Standing:
    return replace(standing, leads_until=None)


def handed_back(standing: Standing, date: datetime) -> Patch | None:
    """The write that releases the Lease for others at once; None when this candidate does not hold it."""
    lease = standing.lease
    if lease is None or lease.holder != standing.me:
        return None
    # A holder of "" means no holder. A duration of 0 is invalid.
    spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _micro(date), "acquireTime": _micro(date)}
    meta = lease.metadata
    return Patch(LEASES, meta.namespace, meta.name, {"spec": spec}, "hand leadership back", meta.resource_version)


def _claim(standing: Standing, date: datetime, namespace: str, name: str) -> Create | Patch:
    lease, moment = standing.lease, _micro(date)
    spec: dict[str, Any] = {
        "holderIdentity": standing.me,
        "leaseDurationSeconds": int(standing.terms.duration),
        "renewTime": moment,
    }
    if lease is None:
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec | {"acquireTime": moment, "leaseTransitions": 0},
        }
        return Create(LEASES, body, "lead")
    if lease.holder == standing.me:
        reason = "go on leading"
    else:
        spec |= {"acquireTime": moment, "leaseTransitions": (lease.spec.lease_transitions or 0) + 1}
        reason = "lead"
    return Patch(LEASES, namespace, name, {"spec": spec}, reason, lease.metadata.resource_version)


def _seconds(lease: Lease, terms: Terms) -> float:
    """For how long its holder may assume to hold it."""
    seconds = lease.spec.lease_duration_seconds
    return terms.duration if seconds is None else seconds


def _micro(date: datetime) -> str:
    return date.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
