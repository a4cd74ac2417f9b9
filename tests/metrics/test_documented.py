"""docs/metrics.md lists what a controller exports: no more, no less, with its labels and its type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from rollout_lws.admission.review import Outcome, Rule
from rollout_lws.metrics import Metrics
from rollout_lws.metrics.registry import GuardMetrics
from tests.metrics.promtool import needs_promtool, promtool
from tests.metrics.rules import metrics_in
from tests.metrics.tour import FOREIGN, moments, shell
from tests.notifications.receiver import Receiver, directory, notifications
from tests.scenarios.failures import apply
from tests.scenarios.stories import at_rest
from tests.scenarios.world import NAME, ROLLOUTS

PAGE = Path(__file__).parents[2] / "docs/metrics.md"


@dataclass(frozen=True, slots=True)
class Family:
    type: str
    labels: frozenset[str]


def documented() -> dict[str, Family]:
    """By name; the labels of each Rollout are added."""
    found: dict[str, Family] = {}
    for section in PAGE.read_text().split("\n## "):
        own = {"namespace", "rollout"} if section.startswith("Of each Rollout") else set()
        for name, kind, labels in re.findall(r"^\| `(\w+)` \| (\w+) \|([^|]*)\|", section, re.MULTILINE):
            assert name not in found, name
            found[name] = Family(kind, frozenset(own | set(re.findall(r"`(\w+)`", labels))))
    return found


def exported(text: str) -> dict[str, Family]:
    found: dict[str, Family] = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith(FOREIGN) or family.name.endswith("_created"):
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for each in family.samples for label in each.labels} - {"le"}
        if family.samples:
            found[name] = Family(family.type, frozenset(labels))
    return found


def known_names() -> set[str]:
    """What a query may ask for."""
    names: set[str] = set()
    for name, family in documented().items():
        names |= {f"{name}_{part}" for part in ("bucket", "sum", "count")} if family.type == "histogram" else {name}
    return names


@pytest.mark.looptime
async def test_the_page_lists_what_a_story_exports_and_nothing_else(tmp_path: Path) -> None:
    found: dict[str, Family] = {}
    async with shell() as world:
        world.notifications = partial(notifications, directory(tmp_path / "hook"), Receiver())
        async for text in moments(world):
            for name, family in exported(text).items():
                before = found.get(name, family)
                found[name] = Family(family.type, family.labels | before.labels)
        GuardMetrics(world.metrics.registry, lambda: world.now).reviewed(Rule.HOLD, Outcome.ALLOWED)
        assert exported(world.metrics.text().decode()) | found == documented()
        world.delete(ROLLOUTS, NAME)
        await world.until(lambda: world.get(ROLLOUTS, NAME) is None)
        await world.rest()
        assert b'rollout="llama"' not in await world.metrics.exposition()


@needs_promtool
@pytest.mark.looptime
async def test_promtool_finds_nothing_to_complain_of() -> None:
    async with shell() as world:
        await at_rest(world)
        apply(world)
        await world.until_state("AwaitingApproval")
        await world.rest()
        promtool("check", "metrics", given=world.metrics.text().decode())


def questions() -> list[str]:
    """The queries that the page has for its readers, a line each."""
    blocks = re.findall(r"^```promql\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def examples() -> list[dict[str, Any]]:
    """What the page has in YAML."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [yaml.safe_load(block) for block in blocks]


def test_queries_on_the_page_ask_for_what_is_exported() -> None:
    assert len(questions()) >= 5
    for query in questions():
        if "vllm:" not in query:
            assert frozenset() < metrics_in(query) <= known_names(), query


@needs_promtool
def test_promtool_reads_the_queries_on_the_page(tmp_path: Path) -> None:
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(questions())]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "page", "rules": rules}]}))
    promtool("check", "rules", "--lint=none", str(path))


@needs_promtool
def test_promtool_reads_the_scrape_job_on_the_page(tmp_path: Path) -> None:
    [document] = (each for each in examples() if "scrape_configs" in each)
    [job] = document["scrape_configs"]
    assert job["honor_labels"]
    # Debian's promtool is built without the discovery of pods.
    assert job.pop("kubernetes_sd_configs")[0]["role"] == "pod"
    path = tmp_path / "prometheus.yaml"
    path.write_text(yaml.safe_dump(document))
    promtool("check", "config", str(path))


async def test_both_ways_to_the_text_lead_to_the_same_families() -> None:
    metrics = Metrics()
    whole, pieces = exported(metrics.text().decode()), exported((await metrics.exposition()).decode())
    assert whole == pieces != {}
