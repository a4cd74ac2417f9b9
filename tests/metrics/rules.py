"""Alerts as they are written, and tests of them for promtool, whose series were scraped at the end of a story."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.metrics.alarms import Alarm
from tests.metrics.tour import Scrape, parsed
from tests.scenarios.shell import ShellWorld

MONITORING = Path(__file__).parents[2] / "monitoring"
RULES, TESTS = MONITORING / "alerts.yaml", MONITORING / "alerts-test.yaml"

_METRIC = re.compile(r"\brollout_lws_\w+\b")
#: Minutes that the series of a test last; all alerts fire within them.
_MINUTES = 10


@dataclass(frozen=True, slots=True)
class Alert:
    name: str
    expr: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    waits: bool

    @property
    def metrics(self) -> frozenset[str]:
        return metrics_in(self.expr)


def alerts() -> dict[str, Alert]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    found = [rule for group in groups for rule in group["rules"]]
    return {
        rule["alert"]: Alert(rule["alert"], rule["expr"], rule["labels"], rule["annotations"], "for" in rule)
        for rule in found
    }


def metrics_in(expr: str) -> frozenset[str]:
    """Names of ours that a query asks for."""
    return frozenset(_METRIC.findall(expr))


def scraped(world: ShellWorld, alarm: Alarm) -> Scrape:
    """What Prometheus gets at the end of a story, as if that were its beginning of time: ages stay what they are."""
    if not world.running:
        return {}
    found = parsed(world.metrics.text().decode())
    now = world.now.timestamp()
    for name, series in found.items():
        if name.endswith("_timestamp_seconds"):
            found[name] = {labels: round(moment - now) for labels, moment in series.items()}
    found["rollout_lws_leader"] = {(("pod", f"controller-{n}"),): each for n, each in enumerate(alarm.leaders)}
    return found


def promtool_test(alert: Alert, alarm: Alarm, told: Scrape, *, fires: bool = True) -> dict[str, Any]:
    """One test: the alert fires at the end, and not before it has waited."""
    expected = []
    if fires:
        value = next(iter(told.get("rollout_lws_accelerators_waiting", {}).values()), 0)
        labels = {**alert.labels, **alarm.labels}
        annotations = {key: _expanded(text, alarm.labels, value) for key, text in alert.annotations.items()}
        expected = [{"exp_labels": labels, "exp_annotations": annotations}]
    checks = [{"eval_time": f"{_MINUTES}m", "alertname": alert.name, "exp_alerts": expected}]
    if alert.waits:
        checks.insert(0, {"eval_time": "0m", "alertname": alert.name, "exp_alerts": []})
    return {
        "name": f"{alert.name}: {alarm.story.__name__}" + ("" if fires else ", silent"),
        "interval": "1m",
        "input_series": _series(alert, alarm, told, fires),
        "alert_rule_test": checks,
    }


def _series(alert: Alert, alarm: Alarm, told: Scrape, fires: bool) -> list[dict[str, str]]:
    """Of those that the alert asks for; where one fires for each resource, of the one in question."""
    resource = alarm.labels.get("resource")
    found = []
    for name in sorted(alert.metrics & told.keys()):
        for labels, value in sorted(told[name].items()):
            if fires and resource is not None and dict(labels).get("resource") != resource:
                continue
            text = ",".join(f'{key}="{content}"' for key, content in labels)
            # A counter was 0 once.
            values = f"0 {value:g}+0x{_MINUTES - 1}" if name.endswith("_total") else f"{value:g}+0x{_MINUTES}"
            found.append({"series": f"{name}{{{text}}}", "values": values})
    # A test needs a series, and of a controller that is gone there is none.
    return found or [{"series": 'up{job="rollout-lws"}', "values": f"0+0x{_MINUTES}"}]


def _expanded(text: str, labels: Mapping[str, str], value: float) -> str:
    """An annotation as Prometheus expands it, as far as ours use its language."""

    def chosen(found: re.Match[str]) -> str:
        known = labels.get(found[1], "")
        return found[2].replace("{{ . }}", known) if known else found[3]

    text = re.sub(r"\{\{ with \$labels\.(\w+) \}\}(.*?)\{\{ else \}\}(.*?)\{\{ end \}\}", chosen, text)
    text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels.get(found[1], ""), text)
    return text.replace("{{ $value }}", f"{value:g}")
