"""Services and pools of both versions: whether they select the right pods, and list them as endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rollout_lws.cli.doctor.case import Case
from rollout_lws.cli.doctor.checks import pair, taken_out
from rollout_lws.cli.doctor.links import Link, Name, State, ok
from rollout_lws.objects.resources import ENDPOINT_SLICES, PODS, SERVICES
from rollout_lws.objects.workloads import Pod
from rollout_lws.rollout.routing.selector_pinning import target
from rollout_lws.rollout.routing.versions import VersionEndpoints, new_endpoints, stable_endpoints
from rollout_lws.rollout.routing.weights import settings, wanted_split
from rollout_lws.traffic import marks
from rollout_lws.traffic.facts import RoutingFacts
from rollout_lws.traffic.pinned_selectors import Selector, of_new, of_stable
from rollout_lws.traffic.router import does_not_exist
from rollout_lws.traffic.services import SELECTING
from rollout_lws.traffic.split import Object
from rollout_lws.workload.facts import Facts as Workload

#: Seconds within which EndpointSlices follow a pod that became ready, or a changed Service.
_FOLLOWED_SECONDS = 10


def links(case: Case) -> Iterator[Link]:
    """Links for each Service and pool: whether it selects what it should, and whether those pods are endpoints."""
    facts, stable = case.facts.observation.routing, case.facts.observation.stable
    if facts is None or stable is None or settings(case.d) is None:
        return
    about = f"Service/{facts.names.service}"
    found = case.unread(Name.SERVICE, about, SERVICES, PODS) or _refused(case, about)
    if found is not None:
        yield found
        return
    if case.d.paired:
        for each, side, workload in pair.selectors(case, facts):
            if workload is not None:
                yield _of_side(case, each, side, workload)
        yield from _endpoints(case, facts)
        return
    for each in of_stable(facts):
        yield _service(case, each, stable_endpoints(case.d), stable)
    if case.is_on and not case.is_leaving and wanted_split(case.d).reaches_new:
        side, canary = new_endpoints(case.d), case.facts.observation.canary or stable
        for each in (Selector(facts, SELECTING, facts.canary_service_name), *of_new(facts)):
            unmade = each.live is None and not side.exists
            if unmade and each.selecting.resource not in case.facts.refused:
                yield ok(Name.SERVICE, _about(each), "not made yet: there is no group of the new version")
            else:
                yield _service(case, each, side, canary)
    yield from _endpoints(case, facts)


def _refused(case: Case, about: str) -> Link | None:
    return case.complained(Name.SERVICE, about, (case.kubectl(f"get {about.lower()} -o yaml"),))


def _of_side(case: Case, selector: Selector, side: VersionEndpoints, workload: Workload) -> Link:
    """The Service or pool of one workload of a pair, which has nothing to select while that has no groups, or a release
    has taken all of them out of it.
    """
    if selector.live is not None and not workload.workload.replicas:
        return ok(Name.SERVICE, _about(selector), f"selects nothing now: {workload.name} has 0 groups")
    if selector.live is not None and taken_out.is_emptied(case, workload):
        return ok(Name.SERVICE, _about(selector), f"selects nothing now: all groups of {workload.name} are about to go")
    return _service(case, selector, side, workload)


def _service(case: Case, selector: Selector, side: VersionEndpoints, workload: Workload) -> Link:
    live, about = selector.live, _about(selector)
    unread = case.unread(Name.SERVICE, about, selector.selecting.resource)
    if unread is not None:
        return unread
    steps = (case.kubectl(f"get {selector.selecting.resource} {selector.name} -o jsonpath='{{.spec.selector}}'"),)
    if live is None:
        text = does_not_exist(selector.facts, selector.selecting.resource, selector.ref)
        return Link(Name.SERVICE, State.BROKEN, about, text, "nothing, until it is recreated", steps)
    if selector.drifted:
        text = f"another client has changed the selector that the release wrote: {selector.ignore}"
        return Link(Name.SERVICE, State.BROKEN, about, text, "the controller puts it back", steps)
    # While groups of one version terminate, pods of the other one may answer for it, so consider both.
    known = [pod for each in case.facts.members for pod in (*each.leaders, *each.pods)]
    reached = [pod for pod in known if selector.selecting.selects(live, pod.metadata.labels)]
    if not reached:
        # Without any pods yet, there is nothing to select.
        state = State.BROKEN if known and workload.workload.replicas else State.WAITING
        by_itself = "the controller points it to groups that serve" if selector.given else "nothing"
        text = _reaches_nothing(case, selector, side)
        return Link(Name.SERVICE, state, about, text, by_itself, steps)
    leader = workload.workload.labels.leader
    workers = sorted(pod.metadata.name for pod in reached if not pod.is_leader)
    if leader is not None and workers and target(case.d) == "AsSelected":
        return Link(
            Name.SERVICE,
            State.BROKEN,
            about,
            f"{selector.ref} selects workers besides leaders (pod {workers[0]} for one), and workers mostly answer no"
            f' requests: add "{leader[0]}: \\"{leader[1]}\\"" to its selector, or say trafficRoutings[].target AllPods'
            " if they do",
            "nothing",
            steps,
        )
    count = len({pod.metadata.name for pod in reached})
    return ok(Name.SERVICE, about, f"selects {count} pods of {side.name}")


def _reaches_nothing(case: Case, selector: Selector, side: VersionEndpoints) -> str:
    live = selector.live or {}
    selected = ",".join(f"{key}={value}" for key, value in sorted(selector.selecting.selector(live).items()))
    if marks.read(live, case.d.uid, case.d.keys) is not None:
        return f"{selector.ref} is pinned to a version that has no pods ({selected}); {side.name} was meant"
    return f"{selector.ref} selects no pod of {side.name} ({selected or 'it has no selector'}): correct its selector"


def _about(selector: Selector) -> str:
    return f"{selector.selecting.resource.kind}/{selector.name}"


# Endpoints


def _endpoints(case: Case, facts: RoutingFacts) -> Iterator[Link]:
    about = f"Service/{facts.names.service}"
    unread = case.unread(Name.ENDPOINTS, about, ENDPOINT_SLICES)
    if unread is not None:
        yield unread
        return
    pods: dict[str, Pod] = {}
    for workload in case.facts.members:
        pods |= {pod.metadata.name: pod for pod in (*workload.leaders, *workload.pods)}
    empty = _without_groups(case, facts)
    for name in filter(None, (facts.names.service, facts.canary_service_name)):
        live = facts.find(SERVICES, name)
        if live is not None and name not in empty:
            selected = [pod for pod in pods.values() if SELECTING.selects(live, pod.metadata.labels)]
            yield _listed(case, facts, live, selected)


def _without_groups(case: Case, facts: RoutingFacts) -> frozenset[str]:
    """Services of workloads of a pair that do not exist, are to have 0 groups, or whose groups are all about to go."""
    if not case.d.paired:
        return frozenset()
    every = pair.selectors(case, facts)
    empty = (
        each
        for each, _, side in every
        if side is None or not side.workload.replicas or taken_out.is_emptied(case, side)
    )
    return frozenset(each.name for each in empty if each.resource == SERVICES)


def _listed(case: Case, facts: RoutingFacts, live: Object, selected: Iterable[Pod]) -> Link:
    name = live["metadata"]["name"]
    about, listed = f"Service/{name}", facts.endpoints.get(name, frozenset())
    ready = {pod.metadata.name: pod.ready_since for pod in selected if pod.ready_since is not None}
    missing = sorted(name for name in ready if name not in listed)
    steps = (case.kubectl(f"get endpointslices -l kubernetes.io/service-name={name}"),)
    if not ready:
        # The consequence of an earlier link.
        text = f"Service {name} has no ready endpoint: no pod that it selects is ready"
        return Link(
            Name.ENDPOINTS, State.WAITING, about, text, "requests are answered as soon as a group is ready", steps
        )
    if not missing:
        return ok(Name.ENDPOINTS, about, f"{len(ready)} ready")
    late = not case.facts.is_fresh(live, _FOLLOWED_SECONDS) and any(
        (case.now - ready[each]).total_seconds() > _FOLLOWED_SECONDS for each in missing
    )
    part = "list none of them" if len(missing) == len(ready) else f"do not list {', '.join(missing[:5])}"
    return Link(
        Name.ENDPOINTS,
        State.BROKEN if late else State.WAITING,
        about,
        f"Service {name} selects {len(ready)} ready pods, and its EndpointSlices {part}",
        "the EndpointSlice controller lists them when it acts: is kube-controller-manager running?",
        steps,
    )
