"""Alerts: each speaks of what is exported, has its section, and fires in a story that leads to it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollout_lws.cli.main import COMMANDS
from tests.docs.pages import anchors
from tests.metrics.alarms import ALARMS, HEALTHY, NEARLY, Alarm, told
from tests.metrics.promtool import needs_promtool, promtool
from tests.metrics.rules import RULES, TESTS, Alert, alerts, promtool_test, scraped
from tests.metrics.test_documented import known_names

ROOT = RULES.parents[1]
#: Ways to an alert, and ways that lead nearly there.
WAYS = [
    pytest.param(name, alarm, ways is ALARMS, id=f"{name}: {alarm.story.__name__}")
    for ways in (ALARMS, NEARLY)
    for name, alarms in ways.items()
    for alarm in alarms
]
#: Seconds by which a story may differ from one told before: back-off and the ages of watches are left to chance.
TOLERANCE = 150


def test_every_alert_has_stories() -> None:
    assert set(ALARMS) == set(alerts())


@pytest.mark.parametrize("alert", alerts().values(), ids=lambda alert: alert.name)
def test_an_alert_speaks_of_what_is_exported_and_says_what_to_do(alert: Alert) -> None:
    assert alert.metrics
    assert alert.metrics <= known_names()
    assert set(alert.annotations) == {"summary", "description", "command", "runbook_url"}
    page, _, anchor = alert.annotations["runbook_url"].partition("#")
    assert anchor == alert.name.lower()
    assert anchor in anchors(Path(page))
    assert alert.labels["severity"] in {"info", "warning", "critical"}
    if alert.name.startswith("RolloutLws"):
        assert alert.annotations["command"].startswith("kubectl ")
    else:
        assert "{{ $labels.namespace }}/{{ $labels.rollout }}" in alert.annotations["summary"]
        [verb] = re.findall(r"^kubectl rollout-lws (\w+) ", alert.annotations["command"])
        assert verb in COMMANDS


def test_no_section_is_about_an_alert_that_does_not_exist() -> None:
    headings = re.findall(r"^### (\w+)$", (ROOT / "docs/operations.md").read_text(), re.MULTILINE)
    assert headings == list(alerts())


@needs_promtool
def test_promtool_reads_the_rules() -> None:
    promtool("check", "rules", str(RULES))


@needs_promtool
def test_alerts_fire_where_they_should_and_nowhere_else() -> None:
    promtool("test", "rules", str(TESTS))


def stored() -> dict[str, dict[str, Any]]:
    """The tests that promtool runs, by name."""
    return {each["name"]: each for each in yaml.safe_load(TESTS.read_text())["tests"]}


def test_promtool_is_given_a_test_for_each_story() -> None:
    ways = {f"{name}: {alarm.story.__name__}" for name, alarms in ALARMS.items() for alarm in alarms}
    nearly = {f"{name}: {alarm.story.__name__}, silent" for name, alarms in NEARLY.items() for alarm in alarms}
    assert set(stored()) == ways | nearly | {f"{name}: healthy, silent" for name in ALARMS}


@pytest.mark.long
@pytest.mark.looptime
@pytest.mark.parametrize(("name", "alarm", "fires"), WAYS)
async def test_the_series_of_an_alert_are_those_of_its_story(name: str, alarm: Alarm, fires: bool) -> None:
    async with told(alarm) as world:
        _same(promtool_test(alerts()[name], alarm, scraped(world, alarm), fires=fires))


@pytest.mark.long
@pytest.mark.looptime
async def test_the_series_of_peace_are_those_of_its_story() -> None:
    async with told(HEALTHY) as world:
        scrape = scraped(world, HEALTHY)
        for alert in alerts().values():
            _same(promtool_test(alert, HEALTHY, scrape, fires=False))


def _same(fresh: dict[str, Any]) -> None:
    before = stored()[fresh["name"]]
    again = "they have changed: python -m tests.metrics"
    assert before["alert_rule_test"] == fresh["alert_rule_test"], again
    series = [
        {each["series"]: float(each["values"].partition("+")[0].split()[-1]) for each in told["input_series"]}
        for told in (before, fresh)
    ]
    assert series[0].keys() == series[1].keys(), again
    for name, value in series[0].items():
        assert value == pytest.approx(series[1][name], abs=TOLERANCE if "seconds" in name else 0), again
