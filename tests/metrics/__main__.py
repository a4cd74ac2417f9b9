"""Writes monitoring/alerts-test.yaml: ``python -m tests.metrics``. Its series were scraped at the end of stories."""

from __future__ import annotations

from typing import Any

import looptime
import yaml

from tests.metrics.alarms import ALARMS, HEALTHY, NEARLY, told
from tests.metrics.rules import RULES, TESTS, alerts, promtool_test, scraped

HEAD = """\
# promtool test rules monitoring/alerts-test.yaml
# The series were scraped from a controller at the end of a story (tests/metrics/alarms.py); `python -m tests.metrics`
# writes this file.
"""


async def _every() -> list[dict[str, Any]]:
    known, found = alerts(), []
    for ways, fires in ((ALARMS, True), (NEARLY, False)):
        for name, alarm in ((name, alarm) for name, alarms in ways.items() for alarm in alarms):
            async with told(alarm) as world:
                found.append(promtool_test(known[name], alarm, scraped(world, alarm), fires=fires))
    async with told(HEALTHY) as world:
        scrape = scraped(world, HEALTHY)
        found += [promtool_test(alert, HEALTHY, scrape, fires=False) for alert in known.values()]
    return found


def main() -> None:
    loop = looptime.new_event_loop()
    document = {
        "rule_files": [RULES.name],
        "evaluation_interval": "1m",
        "tests": loop.run_until_complete(_every()),
    }
    TESTS.write_text(HEAD + yaml.safe_dump(document, sort_keys=False, width=1000))


if __name__ == "__main__":
    main()
