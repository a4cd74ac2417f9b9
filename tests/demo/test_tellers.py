"""How a demo is told: the share of requests whenever it changes, on a terminal and in a file."""

from __future__ import annotations

import io

from rich.console import Console

from rollout_lws.cli.demo.tellers import InPlace, Plain
from rollout_lws.cli.releases import Release

SHARES = ["", "20%", "20%", "40%", "0%"]


def release(share: str) -> Release:
    summary = {"state": "Loading", "step": "1/3", "traffic": share}
    rollout = {"metadata": {"name": "llama"}, "status": {"summary": summary}}
    return Release(rollout, None, None)


def test_a_file_gets_a_line_for_each_change_of_the_share() -> None:
    lines: list[str] = []
    told = Plain(lines.append)
    for share in SHARES:
        told.show(release(share))
    assert [line.split()[-7] for line in lines if "traffic" in line] == ["20%", "40%", "0%"]


def test_a_narrow_terminal_keeps_each_change_below_the_tree_and_the_latest_in_it() -> None:
    written = io.StringIO()
    with InPlace(Console(file=written, force_terminal=True, width=60, height=30)) as told:
        for share in SHARES:
            told.show(release(share))
    screen = written.getvalue().rpartition("llama")[2]
    assert screen.count("of requests to the new version") == 4
    assert [share for share in ("20%", "40%", "0%") if f"{share} of requests" in screen] == ["20%", "40%", "0%"]
