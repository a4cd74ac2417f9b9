"""What a shell offers: commands, options and the names of Rollouts, without ever failing or hanging."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rollout_lws.cli.completion import kubectl_complete
from rollout_lws.cli.main import COMMANDS
from tests.cli.conftest import World
from tests.cli.states import HEALTHY


def offers(world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """What kubectl would show; each without its description."""
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-rollout_lws", "--kubeconfig", str(world.kubeconfig), *words])
    kubectl_complete()
    *told, directive = capsys.readouterr().out.splitlines()
    assert directive == ":4", "no file names"
    return [line.partition("\t")[0] for line in told]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["prom"], ["promote"]),
        (["re"], ["release-hold", "restart", "resume", "retry"]),
        (["sta"], ["start", "status"]),
        (["promote", ""], ["llama"]),
        (["start", ""], ["llama"]),
        (["ho"], ["home"]),
        (["home", ""], ["llama"]),
        (["promote", "rollout/"], ["rollout/llama"]),
        (["promote", "mi"], []),
        (["-n", "prod", "promote", ""], []),
        (["promote", "-n", "prod", ""], []),
        (["get", "l"], ["llama"]),
        (["undo", ""], ["llama"]),
        (["status", "llama", "--for", ""], []),
        (["set", ""], ["image"]),
    ],
)
def test_what_is_offered(
    world: World,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    expected: list[str],
) -> None:
    world.release(**HEALTHY)
    assert offers(world, capsys, monkeypatch, *words) == expected


def test_every_command_is_offered_with_its_summary(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-rollout_lws", ""])
    kubectl_complete()
    told = dict(line.split("\t") for line in capsys.readouterr().out.splitlines()[:-1])
    assert told == {name: entry.summary for name, entry in COMMANDS.items()}


def test_without_a_cluster_no_name_is_offered_and_nothing_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "--kubeconfig", str(tmp_path / "none"), "promote", ""])
    kubectl_complete()
    assert capsys.readouterr() == (":4\n", "")


def test_without_a_package_on_the_way_to_the_cluster_no_name_is_offered_and_nothing_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "clusters: [{name: c, cluster: {server: 'http://api.invalid', proxy-url: 'socks5://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
    )
    monkeypatch.setitem(sys.modules, "python_socks", None)
    monkeypatch.setattr(sys, "argv", ["x", "--kubeconfig", str(config), "promote", ""])
    kubectl_complete()
    assert capsys.readouterr() == (":4\n", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_names_the_program(world: World, shell: str) -> None:
    told = world.run("completion", shell)
    assert told.exit_code == 0
    assert "_ROLLOUT_LWS_COMPLETE" in told.stdout and "rollout-lws" in told.stdout


def test_bash_itself_completes_with_it(world: World) -> None:
    world.release(**HEALTHY)
    program = Path(sys.executable).parent / "rollout-lws"
    typed = f"{program} --kubeconfig {world.kubeconfig} promote l"
    script = (
        f"source <({program} completion bash)\nCOMP_WORDS=({typed})\nCOMP_CWORD=4\n"
        f'_rollout_lws_completion {program}\necho "${{COMPREPLY[@]}}"\n'
    )
    shown = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout.strip() == "llama"
