"""Pairs with companions from files: which workloads the Rollout names, with how many groups, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from rollout_lws.cli.main import program
from rollout_lws.errors import RolloutLwsError
from tests.cli.init.test_pair import OWNED
from tests.cli.lint.manifests import (
    GREEN,
    GREEN_PREFILL,
    GREEN_SERVICE,
    LWS,
    PAIR_ROUTE,
    PREFILL,
    SERVICE,
    edited,
    joined,
)


def sized(text: str, replicas: int) -> str:
    return text.replace("spec:\n  lead", f"spec:\n  replicas: {replicas}\n  lead", 1)


PARKED = edited(GREEN, "  replicas: 4", "  replicas: 0")
SETS = (LWS, PARKED, SERVICE, GREEN_SERVICE, PAIR_ROUTE)
#: Both options that make a pair with a companion.
PAIR = ("--counterpart", "lws/chat-green", "--companion", "prefill=prefill-green")


def proposed(path: Path, *arguments: str, own: int = 2, other: int = 0, sets: tuple[str, ...] = SETS) -> Result:
    (path / "all.yaml").write_text(joined(*sets, sized(PREFILL, own), sized(GREEN_PREFILL, other)))
    return CliRunner().invoke(program, ["init", "lws/chat", *arguments, "-f", str(path / "all.yaml")])


def companions(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = yaml.safe_load(result.stdout)["spec"].get("companions")
    return found


@pytest.mark.parametrize(
    ("own", "asked", "replicas"),
    [
        (2, "", "50%"),
        (4, "", "100%"),
        (6, "", "150%"),
        (3, "", "75%"),
        (2, ":3", 3),
        (2, ":25%", "25%"),
        (0, ":3", 3),
    ],
)
def test_a_companion_has_as_many_groups_as_it_has_now(
    tmp_path: Path, own: int, asked: str, replicas: int | str
) -> None:
    result = proposed(tmp_path, *PAIR[:3], PAIR[3] + asked, own=own)
    assert companions(result) == [{"name": "prefill", "counterpart": "prefill-green", "replicas": replicas}]


def test_a_share_that_is_no_whole_percentage_is_a_count(tmp_path: Path) -> None:
    three = (edited(LWS, "  replicas: 4", "  replicas: 3"), *SETS[1:])
    assert companions(proposed(tmp_path, *PAIR, sets=three))[0]["replicas"] == 2


def test_the_number_is_that_of_the_side_that_serves(tmp_path: Path) -> None:
    turned = PAIR_ROUTE.replace("weight: 100", "weight: X").replace("weight: 0", "weight: 100").replace("X", "0")
    sets = (edited(LWS, "  replicas: 4", "  replicas: 0"), GREEN, SERVICE, GREEN_SERVICE, turned)
    assert companions(proposed(tmp_path, *PAIR, own=0, other=1, sets=sets))[0]["replicas"] == "25%"


def test_with_touch_their_owner_scales_them(tmp_path: Path) -> None:
    result = proposed(tmp_path, *PAIR, "--touch", "RouteOnly")
    assert companions(result) == [{"name": "prefill", "counterpart": "prefill-green"}]


def test_groups_of_the_other_sides_companion_go(tmp_path: Path) -> None:
    result = proposed(tmp_path, *PAIR, other=2)
    assert yaml.safe_load(result.stdout)["spec"]["activeSide"] == "chat"
    assert "scales LeaderWorkerSet prefill-green to 0 when it is applied" in result.stderr


def test_an_owner_of_a_companion_has_the_route_alone_written(tmp_path: Path) -> None:
    text = OWNED.replace("  name: chat\n", "  name: prefill\n", 1).replace("app: chat", "app: prefill")
    (tmp_path / "all.yaml").write_text(joined(*SETS, text, sized(GREEN_PREFILL, 0)))
    result = CliRunner().invoke(program, ["init", "lws/chat", *PAIR, "-f", str(tmp_path / "all.yaml")])
    assert yaml.safe_load(result.stdout)["spec"]["touch"] == "RouteOnly"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((*PAIR[:2], "--companion", "prefill"), "write NAME=COUNTERPART, or NAME=COUNTERPART:REPLICAS"),
        ((*PAIR[:2], "--companion", "lws/prefill=x"), "write NAME=COUNTERPART"),
        ((*PAIR[:2], "--companion", "prefill=prefill-green:0"), "'0' is no number of groups: write a count"),
        ((*PAIR[:2], "--companion", "prefill=prefill-green:half"), "'half' is no number of groups"),
        ((*PAIR[:2], "--companion", "prefill=chat"), "names chat once more"),
        ((*PAIR, "--companion", "prefill=other"), "names prefill once more"),
        ((*PAIR[:2], *(f"--companion=a{at}=b{at}" for at in range(5))), "4 companions at most: leave out 1"),
        ((*PAIR[:2], "--companion", "absent=prefill-green"), "there is no LeaderWorkerSet 'absent'"),
        ((*PAIR[2:],), "--companion is of a pair: name its other workload with --counterpart"),
        ((*PAIR, "--shift"), "leave out --shift, or --companion"),
        ((*PAIR[:3], PAIR[3] + ":2", "--touch", "RouteOnly"), "leave out :2"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_write(tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    result = proposed(tmp_path, *arguments)
    assert result.exit_code != 0 and not result.stdout.startswith("#")
    told = str(result.exception) if isinstance(result.exception, RolloutLwsError) else result.output
    assert why in " ".join(told.split())


def test_a_number_that_nothing_says_has_to_be_given(tmp_path: Path) -> None:
    result = proposed(tmp_path, *PAIR, own=0)
    assert "LeaderWorkerSet prefill has 0 groups now" in str(result.exception)
    assert str(result.exception).endswith("write --companion prefill=prefill-green:REPLICAS")
