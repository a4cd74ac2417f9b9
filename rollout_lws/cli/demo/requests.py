"""Measures requests during a demo: the share of each version, and lost requests.

No request is sent. The sandbox's traffic meter computes the shares from route, Services and endpoints, as data planes
would, so even a momentary loss shows. How many requests they are shares of is PER_SECOND's to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rollout_lws.cli.demo.checks import Check, Listing, Object, label, leaders
from rollout_lws.cli.rollouts import style
from rollout_lws.objects.resources import INGRESSES, LWS_REVISION
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.meter import NOWHERE, Client, Cut, Failure, TrafficMeter
from rollout_lws.sandbox.meter.client import entering
from rollout_lws.traffic.names import ManagedRef, Names
from rollout_lws.traffic.registry import named_in
from rollout_lws.traffic.route.kinds import RULES
from rollout_lws.traffic.route.state import references, refers
from rollout_lws.traffic.route.weighted import WeightedRules
from rollout_lws.traffic.services import backends

#: Maximum delay in seconds until data planes see a change; deleted pods of a demo serve for longer than that.
LAG = 0.2
#: Requests of all users in a second: a tenth of them is enough for a gate's verdict within its window.
PER_SECOND = 200.0
_CLIENT = "users"


@dataclass(frozen=True, slots=True)
class Routing:
    """The Rollout's routing objects by name; ``drain`` is in seconds, ``ingress_class`` the Ingress's classType."""

    drain: float
    names: Names
    ingress_class: str = ""

    @property
    def entry(self) -> ManagedRef:
        """The object that requests are measured through: the first that shares them, a route even beside an Ingress."""
        return next(ref for ref in self.names.refs if not ref.version)

    @property
    def managed(self) -> list[tuple[str, str]]:
        """All objects that a release changes and has to give back, by kind and name."""
        return [("Service", self.names.service), *((ref.kind, ref.name) for ref in self.names.refs)]


@dataclass(frozen=True, slots=True)
class Measured:
    """Shares of requests during ``seconds``, at their end, and the largest at any moment, by version: "old", "new" and
    "lost" (no pod).
    """

    seconds: float
    over: Mapping[str, float]
    end: Mapping[str, float]
    most: Mapping[str, float]
    failures: tuple[Failure, ...]
    cuts: tuple[Cut, ...]

    @property
    def requests(self) -> float:
        """All requests."""
        return PER_SECOND * self.seconds

    @property
    def lost(self) -> float:
        """Requests that no pod has answered."""
        return PER_SECOND * sum(each.share * (each.end - each.start) for each in self.failures)

    @property
    def told(self) -> str:
        """How many requests there were, how many of them the new version got, and how many were lost."""
        new = self.requests * self.over["new"]
        lost = f"{self.lost:,.0f} lost" if self.failures else "none lost"
        return f"{new:,.0f} of {self.requests:,.0f} went to the new version, {lost}"


def routing_of(rollout: Object) -> Routing | None:
    """The routing of a Rollout, None without traffic routing or with an invalid one, which the API server refuses."""
    for each in style(rollout).get("trafficRoutings") or ():
        names = named_in(each)
        if names.service and names.any_router:
            ingress_class = str((each.get("ingress") or {}).get("classType") or "")
            return Routing(float(each.get("drainSeconds", 30)), names, ingress_class)
    return None


def client_of(listing: Listing, routing: Routing) -> Client | None:
    """A client whose requests use the Rollout's route. None when the route implies no example request: no rule leads to
    the old version, or that rule matches by regular expressions.
    """
    entry = routing.entry
    live = listing[entry.kind][entry.name]
    for resource, rules in RULES.items():
        if resource.kind == entry.kind:
            return _client_of_rules(live, rules, routing)
    return _client_of_ingress(live, routing)


def _client_of_ingress(live: Object, routing: Routing) -> Client | None:
    metadata = live["metadata"]
    for rule in live["spec"].get("rules") or ():
        for place in (rule.get("http") or {}).get("paths") or ():
            if (place["backend"].get("service") or {}).get("name") == routing.names.service:
                entry = {**entering(INGRESSES, metadata["name"]), "ingress_class": routing.ingress_class}
                host, path = rule.get("host") or "", place.get("path") or "/"
                return Client(_CLIENT, namespace=metadata["namespace"], host=host, path=path, **entry)
    return None


def _client_of_rules(live: Object, rules: WeightedRules, routing: Routing) -> Client | None:
    stable, namespace = backends(routing.names).stable, live["metadata"]["namespace"]
    for rule in rules.read(live):
        if any(refers(ref, stable, namespace) for ref in references(rule)):
            entry = entering(rules.spec.resource, live["metadata"]["name"])
            return _client_of_match(next(iter(rule.get("matches") or ()), {}), namespace, entry)
    return None


def _client_of_match(match: Mapping[str, Any], namespace: str, entry: Mapping[str, Any]) -> Client | None:
    path, headers, query = match.get("path") or {}, match.get("headers") or (), match.get("queryParams") or ()
    method = match.get("method") or "POST"
    rpc = method if isinstance(method, Mapping) else {}
    if any(each.get("type") == "RegularExpression" for each in (path, *headers, *query, rpc)):
        return None
    called = f"/{rpc.get('service') or 'any'}/{rpc.get('method') or 'any'}" if rpc else ""
    return Client(
        _CLIENT,
        namespace=namespace,
        path=called or path.get("value") or "/",
        method="POST" if rpc else str(method),
        headers={each["name"]: each["value"] for each in headers},
        query={each["name"]: each["value"] for each in query},
        **entry,
    )


def answered(server: ApiServer, client: Client) -> bool:
    """Whether all requests of the client currently reach a pod."""
    meter = TrafficMeter(server, [client], lag=0)
    meter.start()
    shares = meter.now(client.name)
    meter.stop()
    return NOWHERE not in shares


class Requests:
    """Measures one client from now on; pods with a revision in ``before`` count as the old version."""

    def __init__(self, server: ApiServer, client: Client, drain: float, before: Listing, workload: str) -> None:
        self._server = server
        self._old = {label(pod, LWS_REVISION) for pod in leaders(before, workload).values()}
        self._meter = TrafficMeter(server, [replace(client, per_second=PER_SECOND)], drain=drain, lag=LAG)
        self._since = server.clock()
        self._meter.start()

    def given(self, uid: str) -> float:
        """How many requests a pod has got so far."""
        return self._meter.requests(uid)

    def stop(self) -> Measured:
        """End measuring, with what was measured."""
        self._meter.stop()
        return self.so_far()

    def so_far(self) -> Measured:
        """What was measured until now."""
        end = self._server.clock()
        return Measured(
            end - self._since,
            self._versions(self._meter.shares(_CLIENT, self._since, end, by="revision")),
            self._versions(self._meter.now(_CLIENT, by="revision")),
            self._versions(self._meter.peaks(_CLIENT, self._since, end, by="revision")),
            tuple(self._meter.failures),
            tuple(self._meter.cuts),
        )

    def _versions(self, shares: Mapping[str, float]) -> dict[str, float]:
        found = {"old": 0.0, "new": 0.0, "lost": 0.0}
        for revision, share in shares.items():
            found["lost" if revision == NOWHERE else "old" if revision in self._old else "new"] += share
        return found


def bad_version_checks(measured: Measured, most: float) -> list[Check]:
    """All checks of the requests where the new version is bad, and must never get more than the share ``most``."""
    found = measured.most["new"]
    return [
        *requests_checks(measured, expected="old"),
        Check(
            0 < found <= most,
            f"the bad version was found at {most:.0%} of the requests",
            f"at most {found:.0%} at any moment; {measured.told}",
        ),
    ]


def requests_checks(measured: Measured, *, expected: str) -> list[Check]:
    """Checks of the requests; ``expected`` is the version that must get all of them in the end: "old" or "new"."""
    over = ", ".join(f"{version} version {measured.over[version]:.0%}" for version in ("old", "new"))
    # Ignore cuts that LWS causes in any update: it updates groups, and drops surge groups as regular ones get ready.
    native = {"renewed"} | ({"surge dropped"} if expected == "new" else set())
    cut = [each for each in measured.cuts if each.cause not in native]
    dropped = any(each.cause == "surge dropped" for each in measured.cuts)
    ours = "none was cut" if not dropped else "none was cut, those of surge groups that LWS drops apart"
    return [
        Check(
            not measured.failures,
            "no request was lost",
            f"over {measured.seconds:.0f} s: {over}" if not measured.failures else _lost(measured.failures),
        ),
        Check(
            measured.end[expected] > 0.999,
            f"all requests go to the {expected} version",
            f"{measured.end[expected]:.0%} of them",
        ),
        Check(
            not cut,
            "the new version's streams could end",
            ours if not cut else ", ".join(sorted({f"{each.pod} cut {each.share:.0%}: {each.cause}" for each in cut})),
        ),
    ]


def _lost(failures: Iterable[Failure]) -> str:
    """The worst failure, and the number of others."""
    found = sorted(failures, key=lambda each: each.share * (each.end - each.start), reverse=True)
    worst = found[0]
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    what = f"{worst.pod}: {worst.reason}" if worst.pod else worst.reason
    return f"{worst.share:.0%} of them for {worst.end - worst.start:.2f} s ({what}){more}"
