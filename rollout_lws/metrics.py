"""What a running controller tells Prometheus; every name starts with ``rollout_lws_``."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """One set of metrics a process, in its own registry, so that several controllers can live in one test run."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.reconciles = Counter(
            "rollout_lws_reconciles", "Rollouts decided and carried out, by result.", ["result"], registry=self.registry
        )
        self.errors = Counter(
            "rollout_lws_reconcile_errors",
            "Reconciles that failed, by kind of failure.",
            ["kind"],
            registry=self.registry,
        )
        self.writes = Counter(
            "rollout_lws_writes", "Writes the API server accepted.", ["verb", "resource"], registry=self.registry
        )
        self.duration = Histogram(
            "rollout_lws_reconcile_seconds",
            "From taking a key off the queue until its last write was answered.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30),
            registry=self.registry,
        )
        self.watch_restarts = Gauge(
            "rollout_lws_watch_restarts",
            "How often the watch has ended and was begun anew since the start.",
            ["namespace", "resource"],
            registry=self.registry,
        )
        self.leader = Gauge(
            "rollout_lws_leader",
            "1 while this controller leads, and where nobody elects; 0 while it waits for its turn.",
            registry=self.registry,
        )
        self.pending_since = Gauge(
            "rollout_lws_pending_since_timestamp_seconds",
            "Since when a held LWS waits with a version that is not being released; absent where none does.",
            ["namespace", "rollout"],
            registry=self.registry,
        )

    def text(self) -> bytes:
        """The exposition of all metrics, of type CONTENT_TYPE."""
        return generate_latest(self.registry)
