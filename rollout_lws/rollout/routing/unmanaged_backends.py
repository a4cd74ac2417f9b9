"""Unmanaged backends: Services, pools and budgets that select an LWS's groups without being named in its Rollout.

They are reported or refused: the controller pins only named backends, so other clients reach groups at any weight.
Without trafficRoutings the selectors of Services decide which version gets requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rollout_lws.api.structural import ITEMS_LIMIT
from rollout_lws.objects.released import workload_selected
from rollout_lws.objects.resources import POD_DISRUPTION_BUDGETS, SERVICES, Resource
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.reasons import EventReason
from rollout_lws.rollout.routing.versions import new_endpoints
from rollout_lws.rollout.routing.weights import settings
from rollout_lws.targets.table import TARGETS
from rollout_lws.targets.target import Target
from rollout_lws.traffic import pinned_selectors, pools, services
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.pinned_selectors import Selector
from rollout_lws.traffic.selectors import matched
from rollout_lws.traffic.split import Object
from rollout_lws.workload.revisions import target_revision

_KINDS = tuple(each.resource.kind for each in TARGETS)


def leader_labels(workload: Target) -> dict[str, str]:
    """The labels by which a selector may tell leaders of a workload, by its template."""
    labels = workload.labels
    template = (workload.version.leader_template.get("metadata") or {}).get("labels") or {}
    leader = dict([labels.leader] if labels.leader is not None else ())
    own = {labels.workload: workload.metadata.name} if labels.workload is not None else {}
    return {**template, **own, **leader}


def labels_of_new(d: Draft) -> dict[str, str]:
    """The labels of the new version's leaders."""
    patch, labels = d.strategy.metadata_patch, d.stable.workload.labels
    return {
        **((d.version.leader_template.get("metadata") or {}).get("labels") or {}),
        **(patch.labels if patch else {}),
        **new_endpoints(d).selects,
        labels.revision: target_revision(d.stable),
        **dict([labels.leader] if labels.leader is not None else ()),
    }


def unlisted(facts: RoutingFacts, labels: Iterable[Mapping[str, str]]) -> Iterator[tuple[Resource, str]]:
    """Kind and name of each Service and pool that selects a pod with any of these labels and is not named by the
    Rollout, except those by which pods find each other.
    """
    sets = tuple(labels)
    names = facts.names
    listed = {
        services.SELECTING: (names.service, facts.canary_service_name),
        pools.SELECTING: (names.stable_pool, names.canary_pool),
    }
    for selecting, known in listed.items():
        for name, live in sorted(facts.objects.get(selecting.resource, {}).items()):
            known_or_made = name in known or name in facts.discovery or made_by_lws(live)
            if not known_or_made and any(selecting.selects(live, each) for each in sets):
                yield selecting.resource, name


def report_unmanaged(d: Draft) -> Draft:
    """Reports once each: Services and pools that are not named, whose clients reach stable groups anyway; budgets,
    which limit evictions, not releases; and LWSs that share a pinned backend.
    """
    facts, record = d.o.routing, d.status.traffic
    if facts is None or record is None:
        return d
    leaders = [leader.metadata.labels for leader in d.stable.leaders]
    budgets = facts.objects.get(POD_DISRUPTION_BUDGETS, {}).items()
    told = (
        (
            {f"{resource.kind} {name}" for resource, name in unlisted(facts, leaders)},
            EventReason.UNMANAGED_BACKEND,
            f"sends requests to groups of {d.called} too, whatever share a step says: its clients"
            f" get the old version until {_until(d)}; use the one in trafficRoutings",
        ),
        (
            {f"PodDisruptionBudget {name}" for name, live in budgets if any(covers(live, each) for each in leaders)},
            EventReason.UNMANAGED_BACKEND,
            f"covers groups of {d.called}: it limits evictions, and a release makes none"
            + ("" if d.capacity.swaps else "; how many groups are renewed at a time is up to maxUnavailable"),
        ),
        (
            _shut_out(d, facts),
            EventReason.SHARED_BACKEND,
            f"gets no requests from it until the release of {d.called} is over, for which it is"
            " pinned: give it one of its own",
        ),
    )
    known = {*record.unmanaged_backends}
    # The status holds no more items, and an item that it does not hold would be reported in every pass.
    room = ITEMS_LIMIT - len(record.unmanaged_backends)
    for found, reason, text in told:
        for what in sorted(found - known)[: max(0, room)]:
            d = d.event(reason, f"{what} {text}", warning=reason is EventReason.SHARED_BACKEND)
            known.add(what)
            room -= 1
    after = tuple(sorted(known))
    if after != record.unmanaged_backends:
        d = d.set(traffic=record.model_copy(update={"unmanaged_backends": after}))
    return d


def _until(d: Draft) -> str:
    return f"{d.new_name} serves alone" if d.capacity.swaps else "the promotion renews the groups"


def of_one_workload(d: Draft, workload: str) -> Iterator[tuple[Resource, str]]:
    """Kind and name of each Service, pool and budget that selects groups of this LWS by its name: it has none of the
    groups of another one that serves in its place.
    """
    facts = d.o.routing
    objects = facts.objects if facts is not None else {SERVICES: d.o.services}
    for selecting in (services.SELECTING, pools.SELECTING):
        for name, live in sorted(objects.get(selecting.resource, {}).items()):
            if facts is not None and facts.is_ours(live):
                # The copy that a release has made leads to one of the two, and goes with it.
                continue
            own = selecting.selector(selecting.unpinned(live, d.uid, d.keys))
            # By headless ones pods find each other.
            if workload_selected(own) == workload and live["spec"].get("clusterIP") != "None":
                yield selecting.resource, name
    for name, live in sorted(objects.get(POD_DISRUPTION_BUDGETS, {}).items()):
        if workload_selected(_matched(live)) == workload:
            yield POD_DISRUPTION_BUDGETS, name


def _matched(budget: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = ((budget.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    return found


def shut_out(facts: RoutingFacts, each: Selector) -> tuple[str, ...]:
    """Names of the other LWSs whose leaders the user's selector matches and our pin excludes: they or the selector
    appeared after preflight.
    """
    if each.live is None or not each.given:
        return ()
    own = each.selecting.selector(each.selecting.unpinned(each.live, facts.by, facts.keys))
    found = (name for name, sets in facts.other_leaders.items() if any(matched(own, labels) for labels in sets))
    return tuple(sorted(found))


def _shut_out(d: Draft, facts: RoutingFacts) -> set[str]:
    return {
        f"{d.kind} {name} behind {each.ref}"
        for each in (*pinned_selectors.of_stable(facts), *pinned_selectors.of_new(facts))
        for name in shut_out(facts, each)
    }


def covers(budget: Object, labels: Mapping[str, str]) -> bool:
    """True if a budget's selector matches; with expressions, only its labels are compared."""
    wanted = _matched(budget)
    return bool(wanted) and wanted.items() <= labels.items()


def made_by_lws(live: Object) -> bool:
    """True if LWS created the Service for discovery within a group."""
    owners = live["metadata"].get("ownerReferences") or ()
    return any(each.get("controller") and each.get("kind") in (*_KINDS, "Pod") for each in owners)


@dataclass(frozen=True, slots=True)
class Reach:
    """Names of Services that select leaders of the LWS: ``both`` also those of the new version, ``old`` do not."""

    both: tuple[str, ...] = ()
    old: tuple[str, ...] = ()

    @property
    def new(self) -> bool:
        """True if the new version gets requests, or no Service is known to select either version."""
        return bool(self.both) or not self.old


def reached_by(every: Iterable[Object], leaders: Iterable[Mapping[str, str]], new: Mapping[str, str]) -> Reach:
    """The reach of these Services, except those that LWS creates for discovery within a group: ``leaders`` are the
    labels of running leaders, ``new`` those of the new version's.
    """
    labels = tuple(leaders)
    leading = {
        live["metadata"]["name"]: services.selects(live, new)
        for live in every
        if not made_by_lws(live) and any(services.selects(live, each) for each in labels)
    }
    both = tuple(sorted(name for name, also in leading.items() if also))
    return Reach(both, tuple(sorted(leading.keys() - {*both})))


def reach(d: Draft, every: Mapping[str, Object]) -> Reach:
    """The reach of all Services of the namespace, by name."""
    return reached_by(every.values(), (leader.metadata.labels for leader in d.stable.leaders), labels_of_new(d))


def and_requests(d: Draft, told: str) -> str:
    """``told``, and a warning for the user who judges the new version if it receives no requests at all."""
    return ". ".join(filter(None, (told, _no_requests(d))))


def _no_requests(d: Draft) -> str:
    """That no Service selects the new version; "" if one does, if trafficRoutings split traffic, or if no Service
    selects the old version either.
    """
    if settings(d) is not None:
        return ""
    found = reach(d, d.o.services)
    if found.new:
        return ""
    listed = ", ".join(found.old)
    who = f"Services {listed} select" if len(found.old) > 1 else f"Service {listed} selects"
    return f"The new version gets no requests before the promotion: {who} none of its groups"
