"""The commands against a real API server over HTTP: what they print, what they write, and their exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.cli.demo import manifests
from rollout_lws.cli.main import COMMANDS, EXTRAS
from rollout_lws.cli.sandbox.local_cluster import Playground, playground
from rollout_lws.errors import UsageError
from rollout_lws.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, DEFAULT_API_GROUP
from rollout_lws.sandbox.behaviours.cluster import Options
from tests.cli.conftest import World
from tests.cli.states import AWAITING, HEALTHY, LOADING


def test_get_lists_every_rollout_with_its_state(world: World) -> None:
    world.release(**AWAITING)
    header, line = world.run("get").stdout.splitlines()
    assert header.split() == ["NAME", "STATUS", "STEP", "TRAFFIC", "NEW", "STABLE", "AGE"]
    assert line.split()[:5] == ["llama", "AwaitingApproval", "2/3", "2/2", "4/4"]


def test_get_of_a_paused_release_marks_the_step_and_names_the_next_command(world: World) -> None:
    world.release(**AWAITING)
    shown = world.run("get", "rollout/llama").stdout
    assert "v 1  1 group  > 2  2 groups    3  promote" in shown
    assert "rollout-lws promote llama" in shown


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, "   # stable untouched"),
        ({"finalising": {"reason": "Success", "task": "Promote"}}, "# groups that are renewed go back"),
        ({"capacity": "InPlace"}, "# groups that are renewed go back"),
        ({"capacity": "Surge"}, "   # stable untouched"),
        ({"finalising": {"reason": "Aborted", "task": "RollBackPromotion"}}, None),
        ({"summary": {"state": "HoldReleased"}}, None),
    ],
)
def test_get_says_of_an_abort_what_it_does_now(world: World, said: dict[str, Any], told: str | None) -> None:
    world.release(**LOADING | said)
    shown = world.run("get", "llama").stdout
    assert ("Next" in shown) == (told is not None)
    assert (told or "") in shown


def test_get_of_a_release_that_goes_on_tells_only_what_there_is_to_tell(world: World) -> None:
    world.release(**LOADING)
    world.later(
        0.3, lambda: world.server.patch(world.rollouts, "default", "llama", {"status": HEALTHY}, subresource="status")
    )
    last = world.run("get", "llama", "-w").stdout.splitlines()[-1]
    assert last.split()[1:] == ["Healthy", "step", "2/3", "stable", "4/4"]


def test_a_missing_controller_is_named(world: World) -> None:
    world.release(observedGeneration=0, **HEALTHY)
    result = world.run("status", "llama", "--timeout", "0")
    assert result.exit_code == 4
    assert "no controller has seen this version yet" in result.stderr


def test_get_can_print_what_the_server_holds(world: World) -> None:
    world.release(**HEALTHY)
    assert json.loads(world.run("get", "llama", "-o", "json").stdout)["status"]["phase"] == "Healthy"
    assert world.run("get", "-o", "name").stdout == "rollout.rollouts.kruise.io/llama\n"


def test_our_kinds_are_found_under_another_group(elsewhere: World) -> None:
    elsewhere.release(**HEALTHY)
    assert elsewhere.run("get", "-o", "name").stdout == "rollout.rollouts.example.org/llama\n"


def test_a_rollout_that_does_not_exist_is_told_with_its_namespace(world: World) -> None:
    result = world.run("get", "mistral", "-n", "prod")
    assert result.exit_code == 1
    assert "no Rollout 'mistral' in namespace 'prod'" in str(result.exception)


@pytest.mark.parametrize(
    ("status", "arguments", "code"),
    [
        (HEALTHY, [], 0),
        ({"phase": "Aborted"}, [], 3),
        ({"phase": "Aborted"}, ["--for", "aborted"], 0),
        (AWAITING, [], 5),
        (AWAITING, ["--for", "paused"], 0),
        (AWAITING, ["--for", "step=2"], 0),
        (LOADING, ["--timeout", "0"], 4),
        (HEALTHY | {"observedTemplateHash": "other", "observedWorkloadGeneration": 2}, [], 6),
        (HEALTHY, ["--for", "sunny"], 2),
    ],
)
def test_status_ends_with_the_code_of_what_it_found(
    world: World, status: dict[str, Any], arguments: list[str], code: int
) -> None:
    world.release(**status)
    assert world.run("status", "llama", *arguments).exit_code == code


def test_status_follows_changes_and_ends_with_a_line_for_machines(world: World) -> None:
    world.release(**LOADING)
    world.later(
        0.3, lambda: world.server.patch(world.rollouts, "default", "llama", {"status": HEALTHY}, subresource="status")
    )
    result = world.run("status", "llama", "--timeout", "10s")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[1] for line in lines[:-1]] == ["Loading", "Healthy"]
    assert lines[-1] == "result=healthy rollout=default/llama release=- exit=0"


@pytest.mark.parametrize("code", [429, 500, 503])
@pytest.mark.parametrize("verb", ["watch", "get"])
def test_status_outlives_a_server_that_is_busy_or_being_upgraded(
    world: World, verb: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollout_lws.cli.watch.stream.RECONNECT", 0.05)
    world.release(**LOADING)
    faults = world.http.gate.faults
    rule = faults.refuse(code, verb, "rollouts", nth=1 if verb == "watch" else 2)

    def heal() -> None:
        world.server.patch(world.rollouts, "default", "llama", {"status": HEALTHY}, subresource="status")
        faults.cut_watches()

    world.later(0.3, faults.cut_watches)
    world.later(0.4, heal)
    result = world.run("status", "llama", "--timeout", "10s")
    assert result.exit_code == 0
    assert rule.seen >= rule.nth


def test_a_command_right_after_a_change_of_definitions_waits_until_they_are_served(world: World) -> None:
    world.release(**HEALTHY)
    gate = world.http.gate
    gate.faults.reinitializing = 0.5
    name = str(world.rollouts)
    definition = world.do(lambda: world.server.get(CUSTOM_RESOURCE_DEFINITIONS, "", name))
    listed = {"spec": {"names": {**definition["spec"]["names"], "categories": ["releases"]}}}
    world.do(lambda: world.server.patch(CUSTOM_RESOURCE_DEFINITIONS, "", name, listed))
    result = world.run("status", "llama")
    assert result.exit_code == 0, result.exception


def test_outside_of_a_pod_the_place_of_the_lease_has_to_be_named(world: World) -> None:
    result = world.run("controller", "--leader-elect")
    assert isinstance(result.exception, UsageError)
    assert "name its namespace with --leader-elect-resource-namespace" in str(result.exception)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--leader-elect-renew-deadline", "20s"), "each must be above 0 and shorter than the next"),
        (("--leader-elect-retry-period", "0"), "each must be above 0 and shorter than the next"),
        (("--leader-elect-lease-duration", "15500ms"), "a lease lasts whole seconds"),
        (("--leader-elect-resource-namespace", "Team A"), "is no namespace name"),
        (("--leader-elect-resource-name", "the lease"), "is no name of an object"),
    ],
)
def test_an_election_that_cannot_be_held_is_refused(world: World, flags: tuple[str, ...], told: str) -> None:
    result = world.run("controller", "--leader-elect", *flags)
    assert result.exit_code == 2
    assert told in result.stderr


def test_help_loads_neither_the_controller_nor_its_libraries() -> None:
    heavy = ["pydantic", "aiohttp", "kubernetes_asyncio", "msgspec", "yaml"]
    code = f"import sys, rollout_lws.cli.main; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"[]"


def test_a_controller_without_a_guard_loads_nothing_that_makes_certificates() -> None:
    code = "import sys, rollout_lws.controller.process; print([each for each in sys.modules if 'cryptography' in each])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"[]"


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("celpy", "sandbox", ["demo"]),
        ("python_socks", "proxy", ["get", "--kubeconfig", "config"]),
        pytest.param(
            "cryptography",
            "admission",
            ["controller", "--kubeconfig", "config", "--guard", "--guard-host", "localhost"],
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_package_that_only_some_need_is_asked_for_by_the_extra_that_has_it(
    tmp_path: Path, package: str, extra: str, arguments: list[str]
) -> None:
    cluster = {"server": "http://api.invalid"} | ({"proxy-url": "socks5://127.0.0.1:1"} if extra == "proxy" else {})
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    code = f"import sys; sys.modules[{package!r}] = None; from rollout_lws.cli.main import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.splitlines()[-1] == (
        f"rollout-lws: this needs the Python package {package}, which is not installed: install rollout-lws with its"
        f" extra {extra} (pip install '.[{extra}]' in a clone)"
    )


def test_every_extra_has_the_packages_that_messages_say() -> None:
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    distributions = {"celpy": "cel-python", "python_socks": "python-socks"}
    for package, extra in EXTRAS.items():
        assert distributions.get(package, package) in {re.split(r"[<>=]", each)[0] for each in extras[extra]}


@pytest.mark.parametrize(
    ("modules", "also"),
    [
        ("rollout_lws.cli.get.command", ["msgspec", "shutil", "subprocess", "rollout_lws.capacity"]),
        ("rollout_lws.cli.get.command, rollout_lws.cli.get.watch", []),
    ],
    ids=["list", "watch"],
)
def test_get_loads_neither_the_controller_nor_its_libraries(modules: str, also: list[str]) -> None:
    heavy = ["pydantic", "aiohttp", "kubernetes_asyncio", *also]
    code = f"import sys, {modules}; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"[]"


def test_every_command_that_a_text_names_is_there() -> None:
    root = Path(__file__).parents[2]
    patterns = ("rollout_lws/**/*.py", "*.md", "docs/*.md", "examples/**/*")
    texts = [each for pattern in patterns for each in root.glob(pattern) if each.is_file()]
    named = {
        name for text in texts for name in re.findall(r"(?:`|kubectl )rollout-lws ([a-z][a-z-]*)", text.read_text())
    }
    assert {"promote", "status"} <= named <= set(COMMANDS)


def test_a_sandbox_renews_its_own_kubeconfig_and_nobody_elses(world: World, tmp_path: Path) -> None:
    cluster, theirs = Playground(world.server, world.http), tmp_path / "theirs"
    cluster.write_kubeconfig(tmp_path / "ours")
    cluster.write_kubeconfig(tmp_path / "ours")
    theirs.write_text("clusters: [{name: prod, cluster: {server: https://prod.example.com}}]\n")
    with pytest.raises(UsageError, match="theirs is there and no sandbox wrote it"):
        cluster.write_kubeconfig(theirs)
    assert "prod.example.com" in theirs.read_text()


@pytest.mark.parametrize(("version", "stored"), [("0.10", None), ("1.0", "Hash")])
async def test_a_sandbox_plays_the_leader_worker_set_it_is_told(version: str, stored: str | None) -> None:
    lws = manifests.workload()
    lws["spec"]["groupIdentity"] = "Hash"
    async with playground(Options(), DEFAULT_API_GROUP, lws=version) as cluster:
        assert cluster.apply(lws)["spec"].get("groupIdentity") == stored


def test_a_reader_who_goes_away_in_mid_release_gets_no_traceback() -> None:
    main = [sys.executable, "-c", "from rollout_lws.cli.main import main; main()"]
    with subprocess.Popen([*main, "demo", "--fast"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as told:
        assert told.stdout is not None and told.stderr is not None
        told.stdout.read(1)
        told.stdout.close()
        assert told.stderr.read() == b""
        assert told.wait() == 141
