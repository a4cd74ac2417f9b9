"""The two workloads of a Rollout that change roles, and their roles by its status. Pure: reads Rollouts as raw JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollout_lws.objects.released import RELEASED
from rollout_lws.objects.resources import LEADER_WORKER_SETS, Resource

Object = dict[str, Any]
#: Reasons of a verdict that the route does not say what it should.
_OF_ROUTE = ("Routing", "RouteNotUsable", "RouteConflict")


@dataclass(frozen=True, slots=True)
class Sides:
    """Names of two workloads that change roles. ``active`` has the requests at rest, and a release moves them to
    ``inactive``.

    ``known`` is whether the status says so; until then they are those of workloadRef and counterpartRef.
    ``companions`` are the names of each companion, that of the active side first; ``kind`` is theirs in commands.
    """

    active: str
    inactive: str
    known: bool
    companions: tuple[tuple[str, str], ...] = ()
    kind: str = "leaderworkerset"

    def role(self, name: str) -> str:
        """``active`` or ``inactive``; "" while that is not known."""
        if not self.known:
            return ""
        return "active" if name in self.members(self.active) else "inactive"

    def members(self, name: str) -> tuple[str, ...]:
        """All workloads of the side that is named so: that one, and the companions that go with it."""
        at = 0 if name == self.active else 1
        return (name, *(each[at] for each in self.companions))

    def called(self, name: str) -> str:
        """A side in words: ``leaderworkerset/a``, with companions ``leaderworkerset/a with b and c``."""
        first, *others = self.members(name)
        return f"{self.kind}/{first}" + (f" with {' and '.join(others)}" if others else "")

    @property
    def every(self) -> tuple[str, ...]:
        """All workloads, those of the two sides first."""
        return (self.active, self.inactive, *(name for each in self.companions for name in each))


def released_kind(rollout: Object) -> Resource:
    """The kind of the workload that a Rollout releases; the first of all where it names one that cannot be released."""
    ref = (rollout.get("spec") or {}).get("workloadRef") or {}
    named = ref.get("apiVersion"), ref.get("kind")
    return next((each for each in RELEASED if (each.api_version, each.kind) == named), LEADER_WORKER_SETS)


def called(rollout: Object, name: str) -> str:
    """A workload of the Rollout as commands name it: ``leaderworkerset/llama``, ``statefulset/llama``."""
    return f"{_kind(rollout)}/{name}"


def _kind(rollout: Object) -> str:
    return released_kind(rollout).kind.lower()


def sides_of(rollout: Object) -> Sides | None:
    """The sides of a pair; None of a Rollout that names one workload."""
    other = str(((rollout.get("spec") or {}).get("counterpartRef") or {}).get("name") or "")
    if not other:
        return None
    first = named(rollout)
    active = (rollout.get("status") or {}).get("active")
    # By name, as their hashes are in that of the version.
    companions = sorted(
        (str(each.get("name")), str(each.get("counterpart"))) for each in rollout["spec"].get("companions") or ()
    )
    if active == other:
        turned = tuple((there, here) for here, there in companions)
        return Sides(other, first, known=True, companions=turned, kind=_kind(rollout))
    return Sides(first, other, known=active == first, companions=tuple(companions), kind=_kind(rollout))


def standing_in(rollout: Object) -> str:
    """Name of the workload that a release has made and left the requests to, while it serves in place of the user's,
    which has no groups at rest then; "" while the user's serves, and of a pair.
    """
    if (rollout.get("spec") or {}).get("counterpartRef"):
        return ""
    return str((rollout.get("status") or {}).get("active") or "")


def roles_of(rollout: Object) -> Sides | None:
    """The sides of a pair, or of a swap while the workload that a release has made serves; None of others."""
    made = standing_in(rollout)
    return Sides(made, named(rollout), known=True, kind=_kind(rollout)) if made else sides_of(rollout)


def swaps(rollout: Object) -> bool:
    """Whether the roles of two workloads change at the end of the release that is on, or of the next one, which loads
    each group once: of a swap, not of a pair.
    """
    plan = ((rollout.get("spec") or {}).get("strategy") or {}).get("blueGreen") or {}
    asked = plan.get("promotion") == "Swap" or _canary(rollout).get("capacity") == "Shift"
    return bool(standing_in(rollout)) or (sides_of(rollout) is None and asked)


def kept_version(rollout: Object) -> str:
    """The version whose groups have stayed since it served, so that it gets requests back at once; "" without one."""
    status = rollout.get("status") or {}
    kept, ending = status.get("kept") or {}, status.get("finalising") or {}
    stays = kept.get("since") and ending.get("task") == "CleanUp" and status.get("phase") == "Healthy"
    return str(kept.get("templateHash") or "") if stays else ""


def keeps_seconds(rollout: Object) -> int:
    """Seconds that groups which gave up the requests stay after a release."""
    plan = ((rollout.get("spec") or {}).get("strategy") or {}).get("blueGreen") or {}
    return int(plan.get("scaleDownDelaySeconds") or 0)


def turning(rollout: Object) -> Sides | None:
    """The two workloads between which its releases move requests, whether the second one exists or not: of a pair, and
    where workloads that releases make take the place of the user's; None of others.
    """
    if not swaps(rollout):
        return sides_of(rollout)
    # Imported here, since listing Rollouts does not need it.
    from rollout_lws.workload.canary import name_of_canary

    users = named(rollout)
    return roles_of(rollout) or Sides(users, name_of_canary(users), known=True)


def scales_roles(rollout: Object) -> bool:
    """Whether its releases scale two workloads, of which one has no groups at rest, or does not exist."""
    return scales_sides(rollout) or swaps(rollout)


def scales_sides(rollout: Object) -> bool:
    """Whether it is of a pair whose workloads its releases scale. Between them the inactive side has no groups."""
    spec = rollout.get("spec") or {}
    return bool(spec.get("counterpartRef")) and not spec.get("touch")


def shift_of(rollout: Object) -> Object | None:
    """What the plan says of the groups that both sides may have together while a release takes those of one side as the
    other one gets some; None where the active side keeps all of its groups.
    """
    canary = _canary(rollout)
    asked: Object | None = canary.get("shift")
    if sides_of(rollout) is None:
        return (asked or {}) if canary.get("capacity") == "Shift" else None
    return asked if scales_sides(rollout) else None


def _canary(rollout: Object) -> Object:
    found: Object = ((rollout.get("spec") or {}).get("strategy") or {}).get("canary") or {}
    return found


def has_given_up_groups(rollout: Object) -> bool:
    """Whether the workload that serves has fewer groups by the status than the Rollout asks for, since a release takes
    them.
    """
    status, asked = rollout.get("status") or {}, rollout["spec"].get("replicas") or 0
    stable = (status.get("groups") or {}).get("stable") or {}
    taken = shift_of(rollout) is not None and status.get("phase") == "Progressing"
    return taken and not have_turned(rollout) and int(stable.get("total", asked)) < asked


def have_turned(rollout: Object) -> bool:
    """Whether the roles have changed in the release that is on, so that only its clean-up is left."""
    return has_promoted(rollout) and roles_of(rollout) is not None


#: Tasks of an ending release in which a workload that is released alone has its own groups renewed.
PROMOTIONS = ("Promote", "RollBackPromotion")


def has_promoted(rollout: Object) -> bool:
    """Whether the new version of the release that is on serves everywhere, so that only its clean-up is left."""
    status = rollout.get("status") or {}
    ending = status.get("finalising") or {}
    return (ending.get("reason"), ending.get("task")) == ("Success", "CleanUp") and status.get("phase") == "Progressing"


def goes_back(rollout: Object) -> bool:
    """Whether the release that is on ends without its version."""
    status = rollout.get("status") or {}
    how = (status.get("finalising") or {}).get("reason")
    return how not in (None, "Success", "RolledOutNatively") and status.get("phase") == "Progressing"


def renews(rollout: Object) -> bool:
    """Whether a promotion, or the way back from one, renews the workload's own groups, which get their part of the
    requests all the while.
    """
    task = ((rollout.get("status") or {}).get("finalising") or {}).get("task")
    return task in PROMOTIONS and sides_of(rollout) is None and not swaps(rollout)


def tells_share(rollout: Object) -> bool:
    """Whether the weight in the status is the share of requests that the new version gets. It is that of the groups
    beside the workload's own, which says less once those are renewed too, or once the roles have changed.
    """
    applied = ((rollout.get("status") or {}).get("traffic") or {}).get("applied") or {}
    return not has_promoted(rollout) and (not renews(rollout) or applied.get("weight") == 100)


def named(rollout: Object) -> str:
    """Name of the workload in workloadRef."""
    return str(rollout["spec"]["workloadRef"]["name"])


def edited(rollout: Object) -> str:
    """Name of the workload whose template asks for a version: of a pair the inactive side."""
    sides = sides_of(rollout)
    return named(rollout) if sides is None else sides.inactive


def is_settled(rollout: Object) -> bool:
    """Whether a pair is at rest, and neither side has a version that waits."""
    status = rollout.get("status") or {}
    stable, judged = serving_hash(rollout), status.get("observedTemplateHash")
    return (
        status.get("phase") == "Healthy"
        and not status.get("startRequested")
        and not is_active_edited(rollout)
        and not is_arriving(rollout)
        and bool(stable and judged)
        and judged in (stable, status.get("inactiveHash"))
    )


def is_active_edited(rollout: Object) -> bool:
    """Whether the active side of a pair has a version in its template that the hold keeps from starting."""
    return _reason(rollout) == "ActiveSideEdited"


def is_arriving(rollout: Object) -> bool:
    """Whether some workloads of a pair's inactive side have another version, and its release waits for the others, or
    for a while in which none changes.
    """
    return bool((rollout.get("status") or {}).get("arriving")) or is_incomplete(rollout)


def is_incomplete(rollout: Object) -> bool:
    """Whether such a version stays as it is until a person acts."""
    return _reason(rollout) == "VersionIncomplete"


def serving_hash(rollout: Object) -> str:
    """Our hash of the version that serves, "" before there is one."""
    return str(((rollout.get("status") or {}).get("stable") or {}).get("templateHash") or "")


def names_served(rollout: Object) -> bool:
    """Whether the id in the status is of the release that is on, that was aborted, or that serves. At rest that of a
    pair may be of its inactive side's version.
    """
    status = rollout.get("status") or {}
    if sides_of(rollout) is None or status.get("phase") != "Healthy":
        return True
    return bool(serving_hash(rollout)) and serving_hash(rollout) == status.get("observedTemplateHash")


def serves_alone(rollout: Object, *, parked: bool) -> bool:
    """Whether no release is on, and the active side has all requests. It has not while only the other side serves, or
    while another client insists on other weights, and the message says so. ``parked``: the inactive side was scaled to
    0, which happens when no request can reach it.
    """
    status, sides = rollout.get("status") or {}, roles_of(rollout)
    if sides is None or not sides.known:
        return False
    if have_turned(rollout):
        return _reason(rollout) not in _OF_ROUTE
    if standing_in(rollout):
        stable = (status.get("groups") or {}).get("stable") or {}
        # Without a ready group, those that stay for a while answer.
        alone = parked or bool(kept_version(rollout) and stable.get("ready"))
        return alone and status.get("phase") != "Progressing" and _reason(rollout) not in _OF_ROUTE
    if status.get("phase") not in ("Healthy", "Aborted"):
        return False
    if _reason(rollout) == "CounterpartMissing":
        return True
    if scales_sides(rollout):
        return parked and _reason(rollout) not in _OF_ROUTE
    retirable = (each for each in status.get("conditions") or () if each["type"] == "ReadyToRetire")
    if any(each["status"] == "True" for each in retirable):
        return True
    # Requests that still run on the inactive side may delay that for a while.
    return (status.get("summary") or {}).get("state") == "Healthy" and not status.get("message")


def _reason(rollout: Object) -> str:
    return str(((rollout.get("status") or {}).get("verdict") or {}).get("reason") or "")
