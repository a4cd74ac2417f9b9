"""Uninstalled from a cluster whose controller runs: nothing of ours is left, and nothing rolls that was not told."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout_lws.workload.hold import HOLD
from tests.cli.uninstall.place import place

#: The examples, which are of every capacity and of every kind of route.
EXAMPLES = (
    *("quickstart", "gateway", "blue-green", "in-place", "surge", "ingress", "inference-pool"),
    *("grpc", "istio"),
)
EVERY = [pytest.param(each, marks=pytest.mark.long) for each in EXAMPLES]
#: One story is told whenever tests are.
SOON = [pytest.param(each, marks=() if each == "quickstart" else pytest.mark.long) for each in EXAMPLES]
#: Those whose groups of the new version are regular ones, which go back before the version rolls.
RENEWING = ("in-place",)


@pytest.mark.parametrize("example", EVERY)
async def test_at_rest_nothing_rolls_and_nothing_is_left(example: str, tmp_path: Path) -> None:
    async with place(tmp_path, example) as there:
        await there.install()
        own = there.manifested()
        await there.apply()
        before = there.leaders()
        assert there.strategy()["partition"] == HOLD
        told = await there.leaves()
        assert "ROLLS" not in "".join(told)
        assert there.leaders() == before
        assert (there.traces(), there.strategy()) == ([], own)


@pytest.mark.parametrize("example", EVERY)
async def test_after_a_release_the_new_version_runs_on(example: str, tmp_path: Path) -> None:
    async with place(tmp_path, example) as there:
        await there.install()
        own = there.manifested()
        await there.apply()
        await there.release("1.28")
        await there.does(f"rollout-lws promote {there.name} --full")
        await there.until(lambda: there.state() == "Healthy")
        before = there.leaders()
        assert there.tags() == {"1.28"}
        told = await there.leaves()
        assert "ROLLS" not in "".join(told)
        assert there.leaders() == before
        assert (there.traces(), there.strategy()) == ([], own)


@pytest.mark.parametrize("example", SOON)
async def test_a_release_that_waits_for_approval_goes_back_and_its_version_rolls_as_told(
    example: str, tmp_path: Path
) -> None:
    async with place(tmp_path, example) as there:
        await there.install()
        own = there.manifested()
        await there.apply()
        await there.release("1.28")
        planned = "".join(await there.uninstall("--dry-run"))
        assert "its release (AwaitingApproval) goes back to revision" in planned
        assert ("the groups that it has renewed are recreated for that" in planned) == (example in RENEWING)
        made = there.makes()
        assert "nginxinc/nginx-unprivileged:1.28) ROLLS in 4 groups, 1 at a time" in planned
        await there.leaves()
        await there.until(lambda: there.tags() == {"1.28"} and there.all_ready())
        assert (there.traces(), there.strategy()) == ([], own)
        # Each regular group is recreated once; one that was renewed has come back at the stable version before.
        back = 1 if example in RENEWING else 0
        assert sorted(made.values()) == [1] * (4 - back) + [2] * back


@pytest.mark.parametrize("example", EVERY)
async def test_a_promotion_is_finished_and_nothing_is_left(example: str, tmp_path: Path) -> None:
    async with place(tmp_path, example) as there:
        await there.install()
        own = there.manifested()
        await there.apply()
        await there.release("1.28")
        await there.does(f"rollout-lws promote {there.name} --full")
        await there.until(lambda: bool((there.rollout()["status"].get("finalising") or {}).get("reason")))
        told = await there.leaves()
        assert "ROLLS" not in "".join(told)
        assert (there.tags(), there.all_ready()) == ({"1.28"}, True)
        assert (there.traces(), there.strategy()) == ([], own)


@pytest.mark.parametrize("example", EVERY)
async def test_an_aborted_version_rolls_only_because_that_is_said(example: str, tmp_path: Path) -> None:
    async with place(tmp_path, example) as there:
        await there.install()
        own = there.manifested()
        await there.apply()
        await there.release("1.28")
        await there.does(f"rollout-lws abort {there.name} --reason 'answers are wrong'")
        await there.until(lambda: there.state() == "Aborted")
        before = there.leaders()
        planned = "".join(await there.uninstall("--dry-run"))
        assert "ROLLS in 4 groups, 1 at a time; its release was aborted: answers are wrong" in planned
        assert there.leaders() == before
        await there.leaves()
        await there.until(lambda: there.tags() == {"1.28"} and there.all_ready())
        assert (there.traces(), there.strategy()) == ([], own)


@pytest.mark.long
async def test_who_puts_the_stable_version_back_first_sees_nothing_roll(tmp_path: Path) -> None:
    async with place(tmp_path, "quickstart") as there:
        await there.install()
        await there.apply()
        before = there.leaders()
        await there.release("1.28")
        planned = await there.uninstall("--dry-run")
        (advice,) = [line for line in planned if "to keep what runs, first: " in line]
        await there.does(advice.partition("first: ")[2])
        await there.until(lambda: there.state() == "Healthy")
        told = await there.leaves()
        assert "ROLLS" not in "".join(told)
        assert (there.traces(), there.leaders()) == ([], before)
