"""Takes requests from single groups of a side before the side is scaled down, while its other groups go on serving.

The pods of such a group lose a label by which the side's Service or pool selects them, so that they get no more
requests; they run until those that they have are answered. A note on the pod has the label, for a group that stays
after all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rollout_lws.api.words import DrainUntil
from rollout_lws.objects.resources import PODS
from rollout_lws.objects.workloads import Pod
from rollout_lws.objects.writes import Patch
from rollout_lws.rollout.draft import Draft
from rollout_lws.rollout.routing.drains import Leaving, drained
from rollout_lws.rollout.routing.route_result import DONE, Routed
from rollout_lws.rollout.routing.weights import settings
from rollout_lws.targets.target import Target
from rollout_lws.traffic import pools, services
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.selectors import Selecting
from rollout_lws.traffic.split import Object
from rollout_lws.workload.draining import Draining, draining, lost_labels, put_back, taken_out
from rollout_lws.workload.facts import Facts
from rollout_lws.workload.groups import Group, groups, worker_pods


def take_out(d: Draft, facts: Facts, leaving: Sequence[Group], *, may_begin: bool) -> tuple[Draft, int, Routed]:
    """Takes requests from the groups that leave, the highest of the side first. The number is how many of them, from
    the first, are done with theirs; the result is done when all are. Without ``may_begin`` no further group loses a
    label.
    """
    done, waits = 0, DONE
    for group in leaving:
        d, emptied = _empty(d, facts, group, may_begin=may_begin)
        if emptied.done and waits.done:
            done += 1
        elif waits.done:
            waits = emptied
        d = d.wake(emptied.until)
    return d, done, waits


def put_back_staying(d: Draft, facts: Facts, number: int) -> Draft:
    """Gives the groups below ``number`` the labels back that they have lost: they stay."""
    for group in groups(facts):
        for pod in _pods(facts, group) if group.ordinal < number else ():
            if d.keys.draining in pod.metadata.annotations and not pod.metadata.terminating:
                body = put_back(_lost(d, facts, pod), d.keys)
                d = d.write((_patch(pod, body, f"group {group.index} stays"),))
    return d


def put_back_all(d: Draft) -> Draft:
    """The same for all groups that the sides are to have."""
    for facts in (d.o.stable, d.o.canary):
        d = put_back_staying(d, facts, facts.workload.replicas) if facts is not None else d
    return d


def _lost(d: Draft, facts: Facts, pod: Pod) -> dict[str, str]:
    """The labels that a pod with a note has lost; if the note cannot be read, those of the template that it lacks."""
    record = draining(pod, d.keys)
    if record is not None:
        return lost_labels(record, d.labels.prefixes)
    labels = (facts.workload.version.leader_template.get("metadata") or {}).get("labels") or {}
    return {key: value for key, value in labels.items() if key not in pod.metadata.labels}


def removable(selector: Mapping[str, str], workload: Target) -> list[str]:
    """Labels of a selector that a pod of the workload may lose: without those that controllers find their pods by."""
    prefixes, own = workload.labels.prefixes, workload.selector
    return sorted(key for key in selector if not key.startswith(prefixes) and key not in own)


def named_selectors(facts: RoutingFacts) -> Iterator[tuple[Selecting, Object]]:
    """The objects that select pods for requests by the Rollout's routes, of either side."""
    names = facts.names
    for selecting, every in (
        (services.SELECTING, (names.service, facts.canary_service_name)),
        (pools.SELECTING, (names.stable_pool, names.canary_pool)),
    ):
        found = (facts.find(selecting.resource, name) for name in every)
        yield from ((selecting, live) for live in found if live is not None)


def _empty(d: Draft, facts: Facts, group: Group, *, may_begin: bool) -> tuple[Draft, Routed]:
    """Done when the group gets no requests, and those that ran have had their time."""
    routing = d.o.routing
    if routing is None or routing.waits:
        return d, Routed(False, routing.waits if routing is not None else "")
    selectors = tuple(named_selectors(routing))
    selected = [(pod, found) for pod in _pods(facts, group) if (found := _selecting(selectors, pod))]
    if selected and not may_begin:
        return d, Routed(False, f"group {group.index} of {facts.name} keeps its requests until routers have others")
    for pod, found in selected:
        lost, kept = _to_lose(facts, pod, found), draining(pod, d.keys)
        if lost is None:
            name = f"{found[0][0].resource.kind} {found[0][1]['metadata']['name']}"
            return d, Routed(False, f"{name} selects pod {pod.metadata.name} by no label that it may lose: add one")
        before = lost_labels(kept, d.labels.prefixes) if kept is not None else {}
        body = taken_out(Draining({**before, **lost}, d.now), d.keys)
        d = d.write((_patch(pod, body, f"group {group.index} of {facts.name} is about to go"),))
    if selected:
        return d, Routed(False, f"group {group.index} of {facts.name} gets no more requests")
    for service in (routing.names.service, routing.canary_service_name):
        if group.leader.metadata.name in routing.endpoints.get(service, frozenset()):
            return d, Routed(False, f"waiting until Service {service} sends no more requests to group {group.index}")
    asked, record = settings(d), draining(group.leader, d.keys)
    if not (group.ready(d.now) or (asked is not None and asked.draining.until is DrainUntil.IDLE)):
        return d, DONE
    if record is None or record.since > d.now:
        # Another client has written the note, or removed the label: since when it gets no requests is not known.
        before = lost_labels(record, d.labels.prefixes) if record is not None else {}
        body = taken_out(Draining(before, d.now), d.keys)
        d = d.write((_patch(group.leader, body, f"group {group.index} of {facts.name} is about to go"),))
        return d, Routed(False, f"requests that run on group {group.index} of {facts.name} get their time")
    return drained(d, record.since, Leaving(f"group {group.index} of {facts.name}", facts, (group,)))


def _patch(pod: Pod, body: Mapping[str, object], reason: str) -> Patch:
    return Patch(PODS, pod.metadata.namespace, pod.metadata.name, body, reason)


def _pods(facts: Facts, group: Group) -> tuple[Pod, ...]:
    return (group.leader, *worker_pods(facts).get(group.index, ()))


def _selecting(selectors: Sequence[tuple[Selecting, Object]], pod: Pod) -> list[tuple[Selecting, Object]]:
    labels = pod.metadata.labels
    return [(each, live) for each, live in selectors if not pod.metadata.terminating and each.selects(live, labels)]


def _to_lose(facts: Facts, pod: Pod, found: Sequence[tuple[Selecting, Object]]) -> dict[str, str] | None:
    """A label of each selector, few altogether; None if one has none that the pod may lose."""
    lost: dict[str, str] = {}
    for selecting, live in found:
        keys = removable(selecting.selector(live), facts.workload)
        if not keys:
            return None
        if not any(key in lost for key in keys):
            lost[keys[0]] = pod.metadata.labels[keys[0]]
    return lost
