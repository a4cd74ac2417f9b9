"""The registry: counters and histograms of the controller, and the exposition text of these and of all Rollouts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from rollout_lws import __version__
from rollout_lws.api import GateResult
from rollout_lws.api.gate_spec import KINDS
from rollout_lws.metrics.glance import FOR_A_PERSON
from rollout_lws.metrics.rollouts import Fleet, exposition
from rollout_lws.objects.resources import Resource
from rollout_lws.rollout.decision import ReleaseEvent
from rollout_lws.rollout.reasons import Ending

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
#: Model loading, steps and releases: 30 s to 12 h.
_LONG = (30, *(n * _MINUTE for n in (1, 2, 5, 10, 20, 30)), *(n * _HOUR for n in (1, 2, 4, 8, 12)))
#: Human reaction times: a minute to a week.
_PATIENT = (*(n * _MINUTE for n in (1, 5, 15)), *(n * _HOUR for n in (1, 4, 12)), *(n * _DAY for n in (1, 3, 7)))
#: Why the API server did not carry out a write.
NOT_CARRIED_OUT = ("at_once", "back_off", "refused")


class Fate(StrEnum):
    """What became of a notification."""

    SENT = "sent"
    FAILED = "failed"
    """The receiver refused it, or was not there for too long."""
    DROPPED = "dropped"
    """Newer ones took its place in the queue, or the controller ended."""


#: One reconcile, and one request.
_SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30)


class Metrics:
    """The metrics of one process, in their own registry, so that several controllers can run in one test."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        #: Every Rollout; a controller sets this to its caches.
        self.fleet: Fleet = tuple
        self._followed: Collector | None = None
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._gauge("rollout_lws_build_info", "1: the version that runs.", "version").labels(__version__).set(1)
        self.leader = self._gauge(
            "rollout_lws_leader",
            "1 while this controller leads, and without leader election; 0 while it stands by.",
        )
        # Releases
        self.started = self._counter("rollout_lws_releases_started", "Releases begun.")
        self.ended = self._counter(
            "rollout_lws_releases_ended", "Releases that are over, by how they ended.", "outcome"
        )
        self.release = self._histogram(
            "rollout_lws_release_seconds", "From a release's begin to its end, pauses included.", _LONG, "outcome"
        )
        self.step = self._histogram("rollout_lws_step_seconds", "From a step's begin to its end.", _LONG)
        self.person = self._histogram(
            "rollout_lws_manual_wait_seconds", "How long a release waited for a person, by state.", _PATIENT, "state"
        )
        self.load = self._histogram(
            "rollout_lws_group_startup_seconds", "From a leader pod's creation until its group was ready.", _LONG
        )
        self.transitions = self._counter(
            "rollout_lws_transitions", "Times that a Rollout came into a state for a reason.", "state", "reason"
        )
        self.events = self._counter(
            "rollout_lws_events", "Events written for Rollouts, by type and reason.", "type", "reason"
        )
        self._notifications = self._counter(
            "rollout_lws_notifications",
            "Notifications by what became of them: sent, failed or dropped.",
            "destination",
            "outcome",
        )
        self._gate_results = self._counter(
            "rollout_lws_gate_results", "Results of gates, by kind of the gate.", "kind", "result"
        )
        self._gate = self._histogram(
            "rollout_lws_gate_seconds", "From a gate's begin to its result, by kind of the gate.", _LONG, "kind"
        )
        # The controller
        self.reconciles = self._counter(
            "rollout_lws_reconciles", "Rollouts decided and carried out, by result.", "result"
        )
        self.errors = self._counter(
            "rollout_lws_reconcile_errors", "Reconciles that failed, by kind of failure.", "kind"
        )
        # A series that starts with its first occurrence shows no increase for it.
        for result in ("ok", "failed"):
            self.reconciles.labels(result)
        for kind in (*NOT_CARRIED_OUT, "bug", "unreadable"):
            self.errors.labels(kind)
        for outcome in Ending:
            self.ended.labels(outcome)
            self.release.labels(outcome)
        for state in FOR_A_PERSON:
            self.person.labels(state)
        for kind in KINDS:
            self._gate.labels(kind)
            for each in GateResult:
                self._gate_results.labels(kind, each)
        self.writes = self._counter("rollout_lws_writes", "Writes the API server accepted.", "verb", "resource")
        self.failed_writes = self._counter(
            "rollout_lws_write_failures",
            "Writes the API server did not carry out: stale, not now (back_off), or refused.",
            "verb",
            "resource",
            "result",
        )
        self.duration = self._histogram(
            "rollout_lws_reconcile_seconds",
            "From taking a key off the queue until its last write was answered.",
            _SHORT,
        )
        self.lag = self._histogram(
            "rollout_lws_event_loop_lag_seconds",
            "How much later than it should the event loop came to something.",
            _SHORT,
        )
        self.requests = self._counter(
            "rollout_lws_api_requests",
            "Requests to the API server but watches; code 0 for those without an answer.",
            "verb",
            "resource",
            "code",
        )
        self.request = self._histogram("rollout_lws_api_request_seconds", "How long requests took.", _SHORT, "verb")

    def told(self, event: ReleaseEvent) -> None:
        """Count an Event that was written, and the results of gates of which it tells."""
        self.events.labels(event.type, event.reason).inc()
        for gate in event.gates:
            self._gate_results.labels(gate.kind, gate.result).inc()
            self._gate.labels(gate.kind).observe(gate.seconds)

    def notifies(self, destination: str) -> None:
        """Export a destination's series from now on, so that its first failure is an increase."""
        for each in Fate:
            self._notifications.labels(destination, each.value)

    def notified(self, destination: str, fate: Fate) -> None:
        """Count what became of a notification."""
        self._notifications.labels(destination, fate.value).inc()

    def requested(self, verb: str, resource: Resource, code: int, seconds: float) -> None:
        """Count a request; signature of ``Client.observe``."""
        self.requests.labels(verb, str(resource), str(code)).inc()
        self.request.labels(verb).observe(seconds)

    def wrote(self, verb: str, resource: Resource) -> None:
        """Count a write that the API server accepted. From now on the failures of such writes are exported too, so that
        the first of them is an increase.
        """
        self.writes.labels(verb, str(resource)).inc()
        for result in NOT_CARRIED_OUT:
            self.failed_writes.labels(verb, str(resource), result)

    def follow(self, collector: Collector) -> None:
        """Collect from ``collector`` at each scrape, in place of the previous one: a process runs one controller."""
        if self._followed is not None:
            self.registry.unregister(self._followed)
        self.registry.register(collector)
        self._followed = collector

    def text(self) -> bytes:
        """The exposition of all metrics, of type CONTENT_TYPE, in one step."""
        return b"".join((generate_latest(self.registry), *exposition(self.fleet)))

    async def exposition(self) -> bytes:
        """The same, but yields to the event loop in between, and observes how long that takes as the loop's lag."""
        loop, parts = asyncio.get_running_loop(), []
        for part in exposition(self.fleet):
            parts.append(part)
            asked = loop.time()
            await asyncio.sleep(0)
            self.lag.observe(loop.time() - asked)
        return b"".join((generate_latest(self.registry), *parts))

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: Iterable[float], *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=tuple(buckets), registry=self.registry)


class GuardMetrics:
    """Reviews by rule and outcome, and the expiry of the served certificate."""

    def __init__(self, registry: CollectorRegistry, until: Callable[[], datetime]) -> None:
        self._reviews = Counter(
            "rollout_lws_guard_reviews",
            "Edits that the guard was asked about, by rule and by what it said.",
            ("rule", "verdict"),
            registry=registry,
        )
        expiry = Gauge(
            "rollout_lws_guard_certificate_expiry_timestamp_seconds",
            "When the certificate expires that the guard shows.",
            registry=registry,
        )
        expiry.set_function(lambda: until().timestamp())

    def reviewed(self, rule: str, verdict: str) -> None:
        """Count a response."""
        self._reviews.labels(rule, verdict).inc()
