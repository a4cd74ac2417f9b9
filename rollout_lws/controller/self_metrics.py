"""Metrics of the controller itself, collected at each scrape: its queue, and how long its watches have been silent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from rollout_lws.kube.informer import Informer
from rollout_lws.kube.queue import KeyedQueue
from rollout_lws.measuring.rounds import Measuring
from rollout_lws.notifications.outbox import Notifications
from rollout_lws.objects.permissions import Permission

Informers = Callable[[], Iterable[Informer[Any]]]
Denied = Callable[[], Iterable[Permission]]


#: Watches are cut after 150 s of silence and restarted, and a watch that cannot start reports an error.
_STUCK_SECONDS = 900.0


def stuck(informers: Iterable[Informer[Any]]) -> str:
    """A line for each informer silent for too long to blame the server: that would be its ``trouble``."""
    silent = (each for each in informers if not each.trouble and not each.unserved)
    return "".join(
        f"watch {each.resource}: nothing for {each.silent_seconds:.0f}s\n"
        for each in silent
        if each.silent_seconds > _STUCK_SECONDS
    )


def unlisted(informers: Iterable[Informer[Any]]) -> str:
    """A line for each different reason why informers do not follow the cluster. Several informers can follow one
    resource: the trouble of one is told although another's list is still on its way.
    """
    waiting = (each for each in informers if each.denied or not each.is_synced)
    lines = (f"{each.resource}: {each.trouble or 'the first list is on its way'}\n" for each in waiting)
    return "".join(dict.fromkeys(lines))


def ages(informers: Iterable[Informer[Any]]) -> dict[str, float]:
    """By resource, seconds since the last traffic of its most silent informer; kinds that the server does not serve are
    left out.
    """
    found: dict[str, float] = {}
    for each in informers:
        if not each.unserved:
            name = str(each.resource)
            found[name] = max(found.get(name, 0.0), each.silent_seconds)
    return found


class SelfMetrics(Collector):
    """``always`` run as long as the controller, ``on_demand`` while some release needs them; ``unreadable`` counts
    Rollouts; ``denied`` are the missing permissions; ``measuring`` measures for gates and drains, ``notifications`` has
    the queues of those.
    """

    def __init__(
        self,
        queue: KeyedQueue[Any],
        always: Informers,
        on_demand: Informers,
        unreadable: Callable[[], int],
        denied: Denied,
        measuring: Measuring,
        notifications: Notifications,
    ) -> None:
        self._queue = queue
        self._unreadable = unreadable
        self._denied = denied
        self._measuring = measuring
        self._notifications = notifications
        self._always = always
        self._on_demand = on_demand

    def collect(self) -> Iterator[Metric]:
        queue, always = self._queue, list(self._always())
        yield GaugeMetricFamily("rollout_lws_queue_depth", "Rollouts that wait for a worker.", len(queue))
        yield GaugeMetricFamily(
            "rollout_lws_queue_oldest_seconds", "How long the first of them has waited.", queue.oldest_seconds
        )
        yield GaugeMetricFamily("rollout_lws_queue_failing", "Rollouts that wait for another try.", queue.failing)
        yield GaugeMetricFamily(
            "rollout_lws_unreadable", "Rollouts that cannot be read, and so are not looked after.", self._unreadable()
        )
        measured = GaugeMetricFamily(
            "rollout_lws_measured", "Rollouts that are measured for gates and drains, by what asks.", labels=["source"]
        )
        for source, count in self._measuring.measured().items():
            measured.add_metric([source], count)
        yield measured
        yield GaugeMetricFamily(
            "rollout_lws_unread_pods",
            "Pods of model servers that gates ask and that do not answer.",
            self._measuring.unread(),
        )
        yield from self._outboxes()
        denied = GaugeMetricFamily(
            "rollout_lws_permissions_missing",
            "Namespaces (the cluster counts as one) where the controller is denied a permission that it needs.",
            labels=["verb", "resource"],
        )
        for labels, places in Counter(_labels(each) for each in self._denied()).items():
            denied.add_metric(labels, places)
        yield denied
        age = GaugeMetricFamily(
            "rollout_lws_watch_age_seconds",
            "Since the API server said anything on the most silent watch of a resource, bookmarks included.",
            labels=["resource"],
        )
        for resource, seconds in ages((*always, *self._on_demand())).items():
            age.add_metric([resource], seconds)
        yield age
        restarts = CounterMetricFamily(
            "rollout_lws_watch_restarts", "How often watches have ended and were begun anew.", labels=["resource"]
        )
        counts: dict[str, int] = {}
        for each in always:
            counts[str(each.resource)] = counts.get(str(each.resource), 0) + each.restarts
        for resource, count in counts.items():
            restarts.add_metric([resource], count)
        yield restarts

    def _outboxes(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily(
            "rollout_lws_notifications_waiting", "Notifications that are not delivered yet.", labels=["destination"]
        )
        oldest = GaugeMetricFamily(
            "rollout_lws_notifications_oldest_seconds",
            "How long the first of them has waited.",
            labels=["destination"],
        )
        for each in self._notifications:
            waiting.add_metric([each.name], each.waiting)
            oldest.add_metric([each.name], each.oldest_seconds)
        yield from (waiting, oldest)


def _labels(permission: Permission) -> tuple[str, str]:
    subresource = f"/{permission.subresource}" if permission.subresource else ""
    return permission.verb, f"{permission.resource}{subresource}"
