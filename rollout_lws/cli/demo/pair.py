"""The demo of a pair that shifts: a model server in two LeaderWorkerSets, one of which gives up groups as the other one
gets some, and the checks of how that went.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import yaml

from rollout_lws.cli.demo import checks, manifests
from rollout_lws.cli.demo.checks import Check, Expected, Listing, Object
from rollout_lws.cli.demo.manifests import GROUPS, NAME, NAMESPACE, SHORT_GRACE, SHORT_WAIT
from rollout_lws.cli.demo.replay import counted, group_sizes, loads, moments
from rollout_lws.objects.resources import LEADER_WORKER_SETS, LWS_NAME, LWS_WORKER_INDEX
from rollout_lws.sandbox.store import Event

#: The side that serves at first, and the one that is parked.
BLUE, GREEN = f"{NAME}-blue", f"{NAME}-green"
ROUTE = NAME
#: Groups beyond GROUPS that a release may have.
EXTRA = 1


def service(side: str) -> str:
    """The name of the Service that selects the leaders of ``side``."""
    return f"{side}-api"


def workload(side: str) -> Object:
    """The LeaderWorkerSet of ``side``, with all groups or none."""
    made = manifests.workload()
    made["metadata"]["name"] = side
    made["spec"]["replicas"] = GROUPS if side == BLUE else 0
    return made


def others() -> tuple[Object, ...]:
    """The parked side, a Service for the leaders of each, a Gateway, and an HTTPRoute to both Services."""
    kinds = {each["kind"]: each for each in manifests.traffic()}
    services = (service_of(kinds["Service"], side, service(side)) for side in (BLUE, GREEN))
    route = kinds["HTTPRoute"]
    route["spec"]["rules"][0]["backendRefs"] = [
        {"name": service(side), "port": 80, "weight": weight} for side, weight in ((BLUE, 100), (GREEN, 0))
    ]
    return (workload(GREEN), *services, kinds["Gateway"], route)


def service_of(plain: Object, workload: str, name: str) -> Object:
    """The Service with another ``name`` that selects the leaders of ``workload`` alone."""
    # The leaders' label "app" is what a group loses before it goes.
    selector = {**plain["spec"]["selector"], LWS_NAME: workload, LWS_WORKER_INDEX: "0"}
    return {
        **plain,
        "metadata": {**plain["metadata"], "name": name},
        "spec": {**plain["spec"], "selector": selector},
    }


def rollout(api_version: str) -> Object:
    """One group with its share and a short pause, two with an approval, then the hand-over."""
    text = f"""
    apiVersion: {api_version}
    kind: Rollout
    metadata: {{name: {NAME}, namespace: {NAMESPACE}}}
    spec:
      workloadRef: &lws {{apiVersion: {LEADER_WORKER_SETS.api_version}, kind: LeaderWorkerSet, name: {BLUE}}}
      counterpartRef: {{<<: *lws, name: {GREEN}}}
      strategy:
        canary:
          capacity: Pair
          shift: {{maxExtraGroups: {EXTRA}, maxUnavailableGroups: 0}}
          trafficRoutings:
          - service: {service(BLUE)}
            counterpartService: {service(GREEN)}
            gateway: {{httpRouteName: {ROUTE}}}
            gracePeriodSeconds: {SHORT_GRACE}
            drainSeconds: {SHORT_WAIT}
          steps:
          - {{replicas: 1, traffic: auto, pause: {{duration: {SHORT_WAIT}}}}}
          - {{replicas: 2, traffic: auto, pause: {{}}}}
    """
    made: Object = yaml.safe_load(text)
    return made


def is_parked(listing: Listing, side: str) -> bool:
    """Whether ``side`` has no groups, and is to have none."""
    asked = listing["LeaderWorkerSet"][side]["spec"].get("replicas", 1)
    return asked == 0 and not any(checks.label(pod, LWS_NAME) == side for pod in listing["Pod"].values())


def end_state(before: Listing, after: Listing, events: Iterable[Event], expected: Expected) -> list[Check]:
    """All checks of the demo; ``expected`` is about the side that was parked, ``events`` have each change since
    ``before``.
    """
    (rollout,) = after["Rollout"].values()
    reached = str((rollout.get("status") or {}).get("phase"))
    services = [("Service", service(side)) for side in (BLUE, GREEN)]
    return [
        *checks.updated(before, after, expected),
        checks.all_ready(after, expected.workload),
        checks.images(after, expected),
        *_counted(_Counts.of(before, events)),
        parked(after, BLUE),
        Check(reached == "Healthy", "the Rollout says Healthy", f"phase {reached}"),
        checks.held(after["LeaderWorkerSet"][expected.workload], expected.api_group),
        nothing_more(before, after, {expected.workload}),
        replace(checks.given_back(before, after, services), claim="no Service was changed"),
    ]


def nothing_more(before: Listing, after: Listing, new: Collection[str]) -> Check:
    """Nothing is there that was not there before, but for pods and sets of the ``new`` LeaderWorkerSets."""
    extra = [
        f"{kind} {name}"
        for kind, names in after.items()
        for name, obj in names.items()
        if name not in before[kind] and checks.label(obj, LWS_NAME) not in new
    ]
    return Check(not extra, "nothing is left over", ", ".join(sorted(extra)) or "the same objects as before")


def parked(after: Listing, side: str) -> Check:
    """The workload of the old side has no groups."""
    left = [name for name, pod in after["Pod"].items() if checks.label(pod, LWS_NAME) == side]
    asked = after["LeaderWorkerSet"][side]["spec"].get("replicas", 1)
    said = f"{asked} groups of {side}" + (f": {', '.join(sorted(left))}" if left else "")
    return Check(is_parked(after, side), "the old side is parked", said)


def _counted(found: _Counts) -> list[Check]:
    return [
        Check(
            found.most <= GROUPS + EXTRA,
            f"both sides together had at most {GROUPS + EXTRA} groups",
            f"{found.most} at most, terminating ones among them",
        ),
        Check(
            found.fewest >= GROUPS,
            f"{GROUPS} groups were ready at every moment",
            f"{found.fewest} at least",
        ),
        Check(found.loaded == GROUPS, "each group was loaded once", f"{found.loaded} loads of {GROUPS} groups"),
    ]


@dataclass(frozen=True, slots=True)
class _Counts:
    """The most groups that there were at any moment, the fewest ready ones, and how many were made."""

    most: int
    fewest: int
    loaded: int

    @classmethod
    def of(cls, before: Listing, events: Iterable[Event]) -> _Counts:
        every, sizes = list(events), group_sizes(before)
        counts = [counted(pods, sizes).values() for _, pods in moments(before, every)]
        return cls(
            max(sum(total for total, _ in each) for each in counts),
            min(sum(ready for _, ready in each) for each in counts),
            sum(loads(before, every).values()),
        )
