"""The whole demo as a user runs it, but for loads of a moment: sandbox, controller and person over real HTTP."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from rollout_lws.cli.demo import command, manifests, play, requests
from rollout_lws.cli.main import program


@pytest.mark.parametrize(
    ("what", "told", "shares"),
    [
        pytest.param(
            *("canary", "stable was not touched before its promotion", ["10", "40", "0"]), marks=pytest.mark.long
        ),
        pytest.param(
            *("blue-green", "stable was not touched before its promotion", ["100", "0"]), marks=pytest.mark.long
        ),
        pytest.param(
            *("in-place", "before the promotion as many groups were renewed", ["10", "25", "33", "40", "0"]),
            marks=pytest.mark.long,
        ),
        pytest.param(*("surge", "no second LeaderWorkerSet ever existed", ["10", "40", "0"]), marks=pytest.mark.long),
        ("abort", "every pod from before", []),
    ],
    ids=["canary", "blue-green", "in-place", "surge", "abort"],
)
def test_a_release_is_told_and_its_end_state_proven(what: str, told: str, shares: list[str]) -> None:
    result = CliRunner().invoke(program, ["demo", what, "--fast"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert f"ok    {told}" in result.stdout
    assert "FAIL" not in result.stdout
    assert "\x1b" not in result.stdout
    assert re.findall(r"traffic +(\d+)% of requests to the new version", result.stdout) == shares
    assert "ok    what was changed is as before: Service llama-api, HTTPRoute llama\n" in result.stdout
    found = re.search(r"ok    no request was lost: over \d+ s: old version (\d+)%, new version (\d+)%", result.stdout)
    assert found is not None, result.stdout
    assert (int(found[2]) > 10) is bool(shares)


@pytest.mark.long
def test_the_demo_of_a_pair_that_shifts_proves_its_end_state() -> None:
    result = CliRunner().invoke(program, ["demo", "shift", "--fast"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "FAIL" not in result.stdout
    assert "ok    both sides together had at most 5 groups: 5 at most" in result.stdout
    assert "ok    4 groups were ready at every moment: 4 at least\n" in result.stdout
    assert "ok    each group was loaded once: 4 loads of 4 groups\n" in result.stdout
    assert "ok    the old side is parked: 0 groups of llama-blue\n" in result.stdout
    assert "ok    no Service was changed: Service llama-blue-api, Service llama-green-api\n" in result.stdout
    assert "ok    no request was lost" in result.stdout
    assert re.findall(r"traffic +(\d+)% of requests to the new version", result.stdout)[:2] == ["25", "50"]


@pytest.mark.long
def test_the_demo_of_prefill_and_decode_proves_that_versions_never_met() -> None:
    result = CliRunner().invoke(program, ["demo", "prefill-decode", "--fast"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "FAIL" not in result.stdout
    assert "llama-prefill-green has none); to release what there is: kubectl rollout-lws start llama\n" in result.stdout
    assert (
        "you           the same for llama-prefill-green: leaderworkerset/llama-prefill-green patched" in result.stdout
    )
    assert "ok    nothing started before decode and prefill had the new version" in result.stdout
    assert "ok    no request met decode and prefill of two versions, or one without the other" in result.stdout
    assert "ok    each group was loaded once: 4 groups of decode and 2 of prefill were made\n" in result.stdout
    assert "ok    llama-prefill-blue is parked: 0 groups of llama-prefill-blue\n" in result.stdout
    assert "ok    no request was lost" in result.stdout
    assert re.findall(r"traffic +(\d+)% of requests to the new version", result.stdout)[:2] == ["10", "40"]


@pytest.mark.parametrize("what", ["shift", "prefill-decode"])
def test_a_demo_of_several_workloads_takes_no_manifests(what: str, tmp_path: Path) -> None:
    (tmp_path / "lws.yaml").write_text(yaml.safe_dump(manifests.workload()))
    result = CliRunner().invoke(program, ["demo", what, "-f", str(tmp_path)])
    assert str(result.exception) == f"{what} plays its own manifests, of several LeaderWorkerSets: leave -f out"


@pytest.mark.parametrize(
    ("capacity", "told"),
    [
        ("InPlace", "only groups that the step had renewed were made again"),
        pytest.param("Surge", "every pod from before", marks=pytest.mark.long),
    ],
)
def test_an_abort_in_one_workload_is_judged_by_what_its_step_renews(capacity: str, told: str, tmp_path: Path) -> None:
    lws = manifests.workload()
    rollout = manifests.rollout("rollouts.kruise.io/v1beta1", lws["metadata"], routed=True, capacity=capacity)
    (tmp_path / "release.yaml").write_text(yaml.safe_dump_all([lws, *manifests.traffic(), rollout]))
    result = CliRunner().invoke(program, ["demo", "abort", "--fast", "-f", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert f"ok    {told}" in result.stdout


@pytest.mark.long
def test_a_slow_version_is_found_at_a_tenth_of_the_requests_and_goes_back_by_itself() -> None:
    result = CliRunner().invoke(program, ["demo", "bad-version", "--fast"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "FAIL" not in result.stdout
    assert re.findall(r"traffic +(\d+)% of requests to the new version", result.stdout) == ["10", "0"]
    found = re.search(
        r"event +GateFailed: (gate first-token: p95 of the time to first token .+, at most 1s: .+)\n", result.stdout
    )
    assert found is not None, result.stdout
    assert f"ok    a gate that failed has aborted the release: {found[1]}\n" in result.stdout
    assert "ok    every pod from before still runs: 8 pods, same UIDs\n" in result.stdout
    assert "ok    all requests go to the old version: 100% of them\n" in result.stdout
    counted = re.search(
        r"ok    the bad version was found at 10% of the requests: at most 10% at any moment; (\d+) of ([\d,]+) went to"
        r" the new version, none lost\n",
        result.stdout,
    )
    assert counted is not None, result.stdout
    assert 100 <= int(counted[1]) <= int(counted[2].replace(",", "")) / 10


def test_a_bad_version_that_no_gate_finds_fails_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "SLOW_FIRST_TOKEN", manifests.FIRST_TOKEN)
    monkeypatch.setattr(play, "_PATIENCE", 3.0)
    result = CliRunner().invoke(program, ["demo", "bad-version", "--fast"])
    assert isinstance(result.exception, ExceptionGroup)
    (error,) = result.exception.exceptions
    assert isinstance(error, play.DemoFailed)
    assert str(error).startswith(
        "waited 3.3 s in vain until the release is aborted; the Rollout says: step 1 is measured"
    )


@pytest.mark.long
def test_a_demo_in_which_requests_are_lost_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods that end at once lose what data planes still send them that hear of the way back too late."""
    monkeypatch.setattr(command, "_FAST", (0.05, 0.05, 0.001))
    monkeypatch.setattr(requests, "LAG", 2.0)
    monkeypatch.setattr(manifests, "SHORT_WAIT", 0)
    monkeypatch.setattr(manifests, "SHORT_GRACE", 0)
    result = CliRunner().invoke(program, ["demo", "bad-version", "--fast"], catch_exceptions=False)
    assert result.exit_code == 1
    assert re.findall("FAIL  (.+?):", result.stdout)[0] == "no request was lost"


def test_without_a_route_there_is_nothing_to_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_FAST", (0.05, 0.05, 0.02))
    monkeypatch.setattr(manifests, "SHORT_WAIT", 0)
    (tmp_path / "lws.yaml").write_text(yaml.safe_dump(manifests.workload()))
    result = CliRunner().invoke(program, ["demo", "--fast", "-f", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "request" not in result.stdout


def test_a_manifest_that_the_cluster_refuses_is_one_line(tmp_path: Path) -> None:
    lws = manifests.workload()
    (tmp_path / "lws.yaml").write_text(yaml.safe_dump(lws | {"metadata": {"name": "Not_A_Name"}}))
    arguments = [sys.executable, "-c", "from rollout_lws.cli.main import main; main()", "demo", "-f", str(tmp_path)]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("rollout-lws: LeaderWorkerSet Not_A_Name is refused")


def test_no_manifests_in_the_files_is_not_taken_for_no_files(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("# nothing yet\n")
    result = CliRunner().invoke(program, ["demo", "-f", str(tmp_path)])
    assert "-f gives no manifests" in str(result.exception)
