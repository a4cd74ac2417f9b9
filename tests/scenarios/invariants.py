"""What must hold at every write of every story; each is a check that a world runs on each change of its store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rollout_lws.objects.resources import (
    CONTROLLER_REVISIONS,
    INFERENCE_POOLS,
    INGRESSES,
    PODS,
    SERVICES,
    Resource,
)
from rollout_lws.traffic.copies import ingress
from rollout_lws.traffic.route.kinds import RULES
from rollout_lws.traffic.route.state import references, weight_of
from tests.scenarios.count import Count
from tests.scenarios.kinds import pinned
from tests.scenarios.resets import Resets
from tests.scenarios.world import KEYS, NAME, NAMESPACE, ROLLOUTS, World

Check = Callable[[World], None]


def never_two_canaries(world: World) -> None:
    """Invariant 8: one stable LWS and one canary at most."""
    names = [obj["metadata"]["name"] for obj in world.server.list(world.kind.resource, NAMESPACE)]
    assert len(names) <= 2, names


def stable_untouched_before_promotion(world: World) -> Check:
    """Invariant 2 and the main promise: no group of the stable LWS restarts before its promotion begins."""
    before = world.leader_uids()

    def check(seen: World) -> None:
        ending = seen.status_of(NAME).get("finalising") or {}
        if seen.get(seen.kind.resource, NAME) is None or ending.get("task") == "Promote":
            seen.checks.remove(check)
            return
        now = seen.leader_uids()
        changed = {name for name, uid in before.items() if name in now and now[name] != uid}
        assert not changed, f"restarted before promotion: {changed}"

    return check


def nothing_unapproved_starts() -> Check:
    """The main promise against everybody else: no group of the stable LWS comes up at a version that was not approved,
    unless the break-glass annotation asks for it, a tool has insisted, or the hold was reset a moment ago. For styles
    whose steps leave the stable LWS alone.
    """
    resets, known = Resets(), set[str]()

    def check(seen: World) -> None:
        lws = seen.get(seen.kind.resource, NAME)
        if lws is None:
            return
        now, count = seen.now.timestamp(), Count(seen)
        resets.changed(lws, now)
        stable = count.stable(seen.rollout)
        uids = seen.leader_uids()
        fresh = [name for name, uid in uids.items() if uid not in known]
        known.update(uids.values())
        if not stable or count.task()[1] == "Promote":
            return
        strange = [each.ordinal for each in count.groups() if each.revision != stable["revision"]]
        strange = [ordinal for ordinal in strange if f"{NAME}-{ordinal}" in fresh]
        assert not strange or resets.excuse(now), f"nobody has approved what group {strange} starts"

    return check


def at_most_down(groups: int) -> Check:
    """Invariant 3: of the stable LWS's regular groups no more than ``groups`` are away or not ready at once."""

    def check(seen: World) -> None:
        if seen.get(seen.kind.resource, NAME) is None:
            return
        standing = seen.groups()
        ready = sum(
            1 for ordinal, told in standing.items() if ordinal < seen.lws["spec"]["replicas"] and "!" not in told
        )
        assert seen.lws["spec"]["replicas"] - ready <= groups, f"{ready} ready of {standing}"

    return check


def always_serving(world: World) -> None:
    """Invariant 2: some group of some version is ready."""
    listed = [world.groups(obj["metadata"]["name"]) for obj in world.server.list(world.kind.resource, NAMESPACE)]
    assert any("!" not in told for groups in listed for told in groups.values()), f"nobody serves: {listed}"


def share_only_for_who_serves() -> Check:
    """Invariant 1: whoever gets a share, or more of one, has a ready group; nobody ever sees all weights at 0. While no
    group of either version is whole, ready endpoints are enough for who is alone in having some.
    """
    given: dict[tuple[int, str], float] = {}

    def check(seen: World) -> None:
        count, now = Count(seen), dict[tuple[int, str], float]()
        if seen.get(seen.kind.resource, NAME) is None:
            return
        for rule, weights in enumerate(_weights(seen)):
            assert sum(weights.values()) > 0, weights
            shares = {name: weight / sum(weights.values()) for name, weight in weights.items()}
            for name, share in shares.items():
                new = name.endswith("-canary")
                # Of workers that have just gone nobody can know before their StatefulSet says so.
                ready = not new or count.ready_new() or (not count.ready_old() and alone_answers(seen, name))
                assert ready or share <= given.get((rule, name), 0), f"{weights} without a ready group"
                now[rule, name] = share
        given.clear()
        given.update(now)

    return check


def _weights(world: World) -> Iterator[dict[str, int]]:
    """Weight by backend: in each rule of a route of any kind, and by a canary Ingress."""
    for resource, rules in RULES.items():
        live = world.get(resource, NAME)
        for rule in rules.read(live) if live else ():
            yield {ref["name"]: weight_of(ref) for ref in references(rule)}
    main, copy = world.get(INGRESSES, NAME), world.get(INGRESSES, f"{NAME}-canary")
    if main is not None:
        new = ingress.weight(copy) if copy is not None else 0
        stable = main["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"]
        yield {stable: 100 - new, f"{stable}-canary": new}


def alone_answers(world: World, new: str) -> bool:
    """Whether only the new version's backend has ready endpoints, and not the stable one."""
    return bool(_answering(world, new)) and not _answering(world, new.removesuffix("-canary"))


def _answering(world: World, backend: str) -> Sequence[str]:
    """Pods that answer behind a Service or a pool."""
    pool = world.get(INFERENCE_POOLS, backend)
    if pool is None:
        return world.ready_endpoints(backend)
    selected = pool["spec"]["selector"]["matchLabels"].items()
    found = [pod for pod in world.server.list(PODS, NAMESPACE) if selected <= pod["metadata"]["labels"].items()]
    return [pod["metadata"]["name"] for pod in found if _reachable(pod, SERVICES)]


def pinned_while_reachable(world: World) -> None:
    """A selector without pins matches no pod of a version that leaves for as long as that could get requests by it: by
    a Service until it terminates, by a pool while it is ready.
    """
    leaving = _leaving(world)
    for resource, path in ((SERVICES, ("selector",)), (INFERENCE_POOLS, ("selector", "matchLabels"))):
        for each in world.server.list(resource, NAMESPACE) if leaving else ():
            meta, selected = each["metadata"], each["spec"]
            if selected.get("clusterIP") == "None":
                # By it pods find each other.
                continue
            for member in path:
                selected = (selected or {}).get(member)
            if not selected or KEYS.original in (meta.get("annotations") or {}) or pinned(selected):
                continue
            found = [pod for pod in leaving if selected.items() <= pod["metadata"]["labels"].items()]
            reached = [pod["metadata"]["name"] for pod in found if _reachable(pod, resource)]
            assert not reached, f"{resource.kind} {meta['name']} leads to {reached}, which are leaving"


def one_version_selected(world: World) -> None:
    """No Service or pool leads to groups of both LWSs, whatever became of the Rollout that had pinned it."""
    names = [NAME, f"{NAME}-canary"]
    pods = [world.kind.pods(world.server.store, name) for name in names]
    for resource, path in ((SERVICES, ("selector",)), (INFERENCE_POOLS, ("selector", "matchLabels"))):
        for each in world.server.list(resource, NAMESPACE) if all(pods) else ():
            selected = each["spec"] if each["spec"].get("clusterIP") != "None" else {}
            for member in path:
                selected = (selected or {}).get(member)
            reached = [
                name
                for name, members in zip(names, pods, strict=True)
                if selected
                and any(
                    selected.items() <= pod["metadata"]["labels"].items() and _reachable(pod, resource)
                    for pod in members
                )
            ]
            assert len(reached) < 2, f"{resource.kind} {each['metadata']['name']} leads to both versions"


def _leaving(world: World) -> list[dict[str, Any]]:
    """Pods of a canary that is being removed, or has been, or of the LWS that it stands for; and of an aborted version
    beside the stable one, where requests are shared at all.
    """
    store, name = world.server.store, f"{NAME}-canary"
    rollout = store.get(ROLLOUTS, NAMESPACE, NAME)
    strategy = rollout["spec"]["strategy"] if rollout is not None else {}
    if not (strategy.get("canary") or strategy.get("blueGreen") or {}).get("trafficRoutings"):
        return []
    canary = store.get(world.kind.resource, NAMESPACE, name)
    if canary is not None and KEYS.stands_for in (canary["metadata"].get("labels") or {}):
        name = NAME
        canary = store.get(world.kind.resource, NAMESPACE, name)
    gone = canary is None or not canary["spec"]["replicas"] or "deletionTimestamp" in canary["metadata"]
    found = world.kind.pods(store, name) if gone else []
    status = world.status_of(NAME)
    aborted, stable = (status.get("aborted") or {}).get("revision"), (status.get("stable") or {}).get("revision")
    if aborted not in (None, stable):
        own = world.kind.pods(store, NAME)
        found += [pod for pod in own if world.kind.revision(pod) == aborted]
    return found


def _reachable(pod: dict[str, Any], by: Resource) -> bool:
    conditions = {each["type"]: each["status"] for each in (pod.get("status") or {}).get("conditions") or ()}
    ready = conditions.get("Ready") == "True"
    return ready and (by == INFERENCE_POOLS or "deletionTimestamp" not in pod["metadata"])


def kept_by_lws(world: World) -> list[str]:
    """The revisions of which LWS has a record, the oldest first; several of one are several."""
    uid = world.lws["metadata"]["uid"]
    found = world.server.list(CONTROLLER_REVISIONS, NAMESPACE)
    records = [each for each in found if any(owner["uid"] == uid for owner in each["metadata"]["ownerReferences"])]
    return [world.kind.revision_of_record(each) for each in sorted(records, key=lambda each: each["revision"])]
