"""Metrics of the guard, where it is enabled."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge


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
