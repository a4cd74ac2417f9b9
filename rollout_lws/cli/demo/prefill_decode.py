"""The demo of prefill and decode: two sides of two LeaderWorkerSets each, whose version is one, and the checks that
versions never met.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import yaml

from rollout_lws.cli.demo import checks, manifests, pair
from rollout_lws.cli.demo.checks import Check, Expected, Listing, Object
from rollout_lws.cli.demo.manifests import GROUPS, NAME, NAMESPACE, SHORT_GRACE, SHORT_WAIT
from rollout_lws.cli.demo.replay import counted, group_sizes, loads, moments
from rollout_lws.objects.resources import HTTP_ROUTES, LEADER_WORKER_SETS, LWS_NAME, PODS
from rollout_lws.sandbox.store import Event

#: Decode and prefill of the side that serves at first, and of the one that is parked.
BLUE = DECODE_BLUE, PREFILL_BLUE = f"{NAME}-decode-blue", f"{NAME}-prefill-blue"
GREEN = DECODE_GREEN, PREFILL_GREEN = f"{NAME}-decode-green", f"{NAME}-prefill-green"
#: Both workloads of decode, and of prefill.
ROLES = tuple(zip(BLUE, GREEN, strict=True))
#: Groups of prefill that go with GROUPS of decode.
PREFILLS = GROUPS // 2
ROUTE = NAME
#: The release ID that both get with their new version.
RELEASE_ID = manifests.NEW.rpartition(":")[2]


def service(decode: str) -> str:
    """The name of the Service that selects the leaders of this workload: requests go to decode, whose sidecars ask
    prefill.
    """
    return f"{decode}-api"


def decode(name: str) -> Object:
    """A decode workload, with all groups or none: two pods a group, of which the leader has the sidecar."""
    made = _named(name, GROUPS if name in BLUE else 0, gpus=2)
    leader = made["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]
    leader["initContainers"] = [
        {"name": "routing-proxy", "image": "ghcr.io/llm-d/llm-d-routing-sidecar:v0.8.0", "restartPolicy": "Always"}
    ]
    return made


def prefill(name: str) -> Object:
    """A prefill workload, with all groups or none: one pod a group."""
    made = _named(name, PREFILLS if name in BLUE else 0, gpus=4)
    group = made["spec"]["leaderWorkerTemplate"]
    group["size"] = 1
    del group["leaderTemplate"]
    return made


def _named(name: str, groups: int, *, gpus: int) -> Object:
    made = manifests.workload()
    made["metadata"]["name"] = name
    made["spec"]["replicas"] = groups
    for role in ("leaderTemplate", "workerTemplate"):
        (container,) = made["spec"]["leaderWorkerTemplate"][role]["spec"]["containers"]
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return made


def others() -> tuple[Object, ...]:
    """All workloads but decode of the first side, a Service for decode of each side, a Gateway, and an HTTPRoute to
    both Services.
    """
    kinds = {each["kind"]: each for each in manifests.traffic()}
    services = (pair.service_of(kinds["Service"], name, service(name)) for name in (DECODE_BLUE, DECODE_GREEN))
    route = kinds["HTTPRoute"]
    route["spec"]["rules"][0]["backendRefs"] = [
        {"name": service(name), "port": 80, "weight": weight}
        for name, weight in ((DECODE_BLUE, 100), (DECODE_GREEN, 0))
    ]
    workloads = (prefill(PREFILL_BLUE), decode(DECODE_GREEN), prefill(PREFILL_GREEN))
    return (*workloads, *services, kinds["Gateway"], route)


def rollout(api_version: str) -> Object:
    """One group of decode and one of prefill with a tenth of the requests and a short pause, two and one with an
    approval, then the hand-over.
    """
    text = f"""
    apiVersion: {api_version}
    kind: Rollout
    metadata: {{name: {NAME}, namespace: {NAMESPACE}}}
    spec:
      workloadRef: &lws {{apiVersion: {LEADER_WORKER_SETS.api_version}, kind: LeaderWorkerSet, name: {DECODE_BLUE}}}
      counterpartRef: {{<<: *lws, name: {DECODE_GREEN}}}
      companions:
      - {{name: {PREFILL_BLUE}, counterpart: {PREFILL_GREEN}, replicas: 50%}}
      strategy:
        canary:
          capacity: Pair
          trafficRoutings:
          - service: {service(DECODE_BLUE)}
            counterpartService: {service(DECODE_GREEN)}
            gateway: {{httpRouteName: {ROUTE}}}
            gracePeriodSeconds: {SHORT_GRACE}
            drainSeconds: {SHORT_WAIT}
          steps:
          - {{replicas: 1, traffic: 10%, pause: {{duration: {SHORT_WAIT}}}}}
          - {{replicas: 2, traffic: 40%, pause: {{}}}}
    """
    made: Object = yaml.safe_load(text)
    return made


def end_state(before: Listing, after: Listing, events: Iterable[Event], expected: Expected) -> list[Check]:
    """All checks of the demo; ``expected`` is about decode of the side that was parked, ``events`` have each change
    since ``before``.
    """
    (found,) = after["Rollout"].values()
    reached = str((found.get("status") or {}).get("phase"))
    template = manifests.with_image(prefill(PREFILL_GREEN), manifests.NEW)
    every = list(events)
    services = [("Service", service(name)) for name in (DECODE_BLUE, DECODE_GREEN)]
    return [
        _waited(before, every),
        _unmixed(before, every),
        *_counted(before, every),
        *_of_green(after, expected),
        *_of_green(after, replace(expected, workload=PREFILL_GREEN, template=template)),
        *(replace(pair.parked(after, name), claim=f"{name} is parked") for name in BLUE),
        Check(reached == "Healthy", "the Rollout says Healthy", f"phase {reached}"),
        pair.nothing_more(before, after, GREEN),
        replace(checks.given_back(before, after, services), claim="no Service was changed"),
    ]


def _of_green(after: Listing, expected: Expected) -> list[Check]:
    name = expected.workload
    return [
        replace(checks.all_ready(after, name), claim=f"all groups of {name} are ready"),
        replace(checks.images(after, expected), claim=f"every pod of {name} runs the right version"),
        replace(checks.held(after["LeaderWorkerSet"][name], expected.api_group), claim=f"{name} is held"),
    ]


def _waited(before: Listing, events: list[Event]) -> Check:
    """No group was made before both workloads had the new version."""
    old = {name: before["LeaderWorkerSet"][name]["spec"]["leaderWorkerTemplate"] for name in GREEN}
    lacking, early = set(GREEN), set[str]()
    for event in events:
        name = event.object["metadata"]["name"]
        if event.resource == LEADER_WORKER_SETS and name in lacking:
            lacking -= {name} if event.object["spec"]["leaderWorkerTemplate"] != old[name] else set()
        if event.resource == PODS and lacking and checks.label(event.object, LWS_NAME) in GREEN:
            early.add(name)
    said = ", ".join(sorted(early)) or "no pod was made until then"
    return Check(not early and not lacking, "nothing started before decode and prefill had the new version", said)


def _unmixed(before: Listing, events: list[Event]) -> Check:
    """Ready pods of decode and prefill on a side that has requests were of one version, and both had some."""
    sizes, mixed, looks = group_sizes(before), set[str](), 0
    weights = _weights(before["HTTPRoute"][ROUTE])
    for event, pods in moments(before, events):
        if event is not None and event.resource == HTTP_ROUTES:
            weights = _weights(event.object)
        for side in (each for each in (BLUE, GREEN) if weights.get(service(each[0]))):
            looks += 1
            ready = counted(pods, {name: sizes[name] for name in side})
            lacks = [name for name, (_, whole) in ready.items() if not whole]
            versions = _versions(pods.values(), side)
            if lacks:
                mixed.add(f"no group of {' and '.join(lacks)} was ready")
            elif len(versions) > 1:
                mixed.add(f"{' and '.join(side)} ran {' and '.join(versions)}")
    said = "; ".join(sorted(mixed)) or f"looked at {looks} times"
    return Check(not mixed, "no request met decode and prefill of two versions, or one without the other", said)


def _versions(pods: Iterable[Object], side: tuple[str, str]) -> list[str]:
    """The versions of ready pods of a side."""
    found = (pod for pod in pods if checks.label(pod, LWS_NAME) in side and checks.is_ready(pod))
    return sorted({pod["spec"]["containers"][0]["image"] for pod in found})


def _weights(route: Object) -> dict[str, int]:
    """By Service."""
    return {each["name"]: int(each.get("weight", 1)) for each in route["spec"]["rules"][0]["backendRefs"]}


def _counted(before: Listing, events: list[Event]) -> list[Check]:
    """As many groups of each role as at rest were ready all the time, and each was loaded once."""
    sizes, made = group_sizes(before), loads(before, events)
    ready = [counted(pods, sizes) for _, pods in moments(before, events)]
    fewest = [min(each[blue][1] + each[green][1] for each in ready) for blue, green in ROLES]
    loaded = [made[blue] + made[green] for blue, green in ROLES]
    asked = [GROUPS, PREFILLS]
    return [
        Check(
            all(least >= many for least, many in zip(fewest, asked, strict=True)),
            f"{_told(asked)} were ready at every moment",
            f"{_told(fewest)} at least",
        ),
        Check(loaded == asked, "each group was loaded once", f"{_told(loaded)} were made"),
    ]


def _told(numbers: list[int]) -> str:
    return f"{numbers[0]} groups of decode and {numbers[1]} of prefill"
