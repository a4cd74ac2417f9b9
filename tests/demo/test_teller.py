"""How a demo is told: the share of requests whenever it changes, on a terminal and in a file."""

from __future__ import annotations

import io
from os import terminal_size

import pytest

from rollout_lws.cli.demo.teller import Teller
from rollout_lws.cli.get.caller import Caller
from rollout_lws.cli.releases import Release
from rollout_lws.cli.screen import Screen

SHARES = ["", "20%", "20%", "40%", "0%"]


def release(share: str) -> Release:
    summary = {"state": "Loading", "step": "1/3", "traffic": share}
    spec = {"workloadRef": {"name": "llama"}, "strategy": {"canary": {"steps": []}}}
    meta = {"name": "llama", "namespace": "default"}
    return Release({"metadata": meta, "spec": spec, "status": {"summary": summary}}, None, None)


def told(screen: Screen | None) -> None:
    teller = Teller(screen)
    for share in SHARES:
        teller.show(release(share), Caller())


def test_a_file_gets_a_line_for_each_change_of_the_share(capsys: pytest.CaptureFixture[str]) -> None:
    told(None)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-7] for line in lines if "traffic" in line] == ["20%", "40%", "0%"]


def test_a_terminal_keeps_each_change_above_the_picture() -> None:
    written = io.StringIO()
    told(Screen(str, written, lambda: terminal_size((60, 30))))
    lines = [line for line in written.getvalue().splitlines() if "of requests to the new version" in line]
    assert [line.split()[-7] for line in lines] == ["20%", "40%", "0%"]
    assert written.getvalue().rpartition("traffic")[2].count("LeaderWorkerSet/llama") == 1
