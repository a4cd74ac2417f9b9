"""Boards: every query speaks of what is exported, and finds something in a story."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.metrics.promtool import needs_promtool, promtool
from tests.metrics.rules import MONITORING, metrics_in
from tests.metrics.test_documented import known_names
from tests.metrics.tour import Scrape, moments, parsed, shell

BOARDS = sorted((MONITORING / "boards").glob("*.json"))
#: What a reader of a board has chosen.
CHOSEN = {"$namespace": "default", "$rollout": "llama", "$__rate_interval": "5m", "$__range": "1h"}


def panels(board: Path) -> list[dict[str, Any]]:
    return [each for each in json.loads(board.read_text())["panels"] if each["type"] != "row"]


def queries(board: Path) -> dict[str, str]:
    """By panel, or by what else asks."""
    document = json.loads(board.read_text())
    found = {
        f"{each['title']} {target['refId']}": target["expr"] for each in panels(board) for target in each["targets"]
    }
    found |= {f"annotation {each['name']}": each["expr"] for each in document["annotations"]["list"]}
    asking = (each for each in document["templating"]["list"] if each["type"] == "query")
    return found | {f"variable {each['name']}": each["query"] for each in asking}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.stem)
def test_a_board_asks_for_what_is_exported(board: Path) -> None:
    assert len(queries(board)) > 10
    assert {name: metrics_in(query) - known_names() for name, query in queries(board).items()} == dict.fromkeys(
        queries(board), frozenset()
    )
    assert all(metrics_in(query) for query in queries(board).values())


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.stem)
def test_panels_do_not_lie_upon_each_other(board: Path) -> None:
    taken: dict[tuple[int, int], str] = {}
    for each in panels(board):
        place = each["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), each["title"]) == each["title"]


async def _everything() -> Scrape:
    """A release with requests, seen at some of its moments, as if they were one; only its last state is told."""
    found: Scrape = {"rollout_lws_leader": {(): 1.0}}
    async with shell() as world:
        async for text in moments(world):
            for name, series in parsed(text).items():
                found[name] = series if name == "rollout_lws_state" else found.get(name, {}) | series
    return found


def filled_in(query: str) -> str:
    return re.sub("|".join(map(re.escape, CHOSEN)), lambda found: CHOSEN[found[0]], query)


def check(path: Path, series: dict[str, str], *asked: dict[str, Any]) -> None:
    """Have promtool compare what queries find in ``series``, which have a sample each minute."""
    told = [{"series": name, "values": values} for name, values in series.items()]
    path.write_text(yaml.safe_dump({"tests": [{"interval": "1m", "input_series": told, "promql_expr_test": [*asked]}]}))
    promtool("test", "rules", str(path))


def holds(expr: str) -> dict[str, Any]:
    return {"expr": expr, "eval_time": "90m", "exp_samples": [{"labels": "{}", "value": 1}]}


@needs_promtool
@pytest.mark.looptime
async def test_every_panel_finds_something_and_tells_its_series_apart(tmp_path: Path) -> None:
    """Two replicas of the controller are scraped; in the time that a panel shows, each has led."""
    series = {
        f"{name}{{{','.join(f'{key}={json.dumps(text)}' for key, text in (*labels, ('pod', pod)))}}}": f"{value:g}+0x90"
        for name, told in (await _everything()).items()
        for labels, value in told.items()
        for pod in ("controller-0", "controller-1")
    }
    asked = []
    for panel in (panel for board in BOARDS for panel in panels(board)):
        # A table shows all labels, but those of a target.
        table = panel["type"] == "table"
        for target in panel["targets"]:
            text, legend = filled_in(target["expr"]), re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            apart = "without (pod)" if table else f"by ({', '.join(legend)})"
            asked += [holds(f"count({text}) > bool 0"), holds(f"count({text}) == bool count(group {apart} ({text}))")]
    check(tmp_path / "boards.yaml", series, *asked)


@needs_promtool
def test_marks_on_the_axis_of_time_are_made_when_something_has_changed(tmp_path: Path) -> None:
    """Another replica leads from minute 5 on. A release that ends as the one before did is marked as well."""
    rollout = 'namespace="default",rollout="llama"'
    state, ended = "rollout_lws_state", "rollout_lws_last_release_timestamp_seconds"
    series = {
        f'{state}{{{rollout},state="Healthy",reason="Ready",pod="a"}}': "1x4 stale",
        f'{state}{{{rollout},state="Healthy",reason="Ready",pod="b"}}': "_x5 1x5 stale",
        f'{state}{{{rollout},state="Loading",reason="Loading",pod="b"}}': "_x11 1x9",
        f'{ended}{{{rollout},outcome="Success",pod="a"}}': "-60x4 stale",
        f'{ended}{{{rollout},outcome="Success",pod="b"}}': "_x5 -60x8 800x6",
    }
    board = queries(MONITORING / "boards/rollout.json")
    changed, over = (filled_in(board[f"annotation {name}"]) for name in ("changes of state", "release ended"))
    loading = [{"labels": '{state="Loading", reason="Loading"}', "value": 1}]
    success = [{"labels": '{outcome="Success"}', "value": 800}]
    found = {changed: {11: loading}, over: {14: success}}
    check(
        tmp_path / "marks.yaml",
        series,
        *(
            {"expr": expr, "eval_time": f"{minute}m", "exp_samples": at.get(minute, [])}
            for expr, at in found.items()
            for minute in range(1, 19)
        ),
    )
