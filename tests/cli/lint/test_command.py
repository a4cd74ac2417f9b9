"""The command on files: which it reads, what it prints, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rollout_lws.cli.completion import kubectl_complete
from rollout_lws.cli.lint.findings import CODES
from rollout_lws.cli.main import program
from tests.cli.lint.manifests import LWS, PLAIN_ROLLOUT, SERVICE, WHOLE, edited, joined
from tests.docs.pages import ROOT

BROKEN = edited(PLAIN_ROLLOUT, "duration: 600", "duration: 10m")
DOUBTFUL = edited(PLAIN_ROLLOUT, "- replicas: 50%", "- replicas: 75%")


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(program, ["lint", *arguments], input=stdin)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_every_example_is_fine() -> None:
    names = sorted(str(path) for path in (ROOT / "examples").iterdir() if (path / "rollout.yaml").is_file())
    assert len(names) > 5
    for name in names:
        result = run("-f", name, "--strict")
        # Of a pair's route there is always something to mind.
        told = [line for line in result.stdout.splitlines() if "[LWS407]" not in line]
        assert (result.exit_code, told) == (0, []), name


def test_a_finding_is_a_line_and_the_counts_come_last(folder: Path) -> None:
    put(folder, rollout_yaml=BROKEN, lws_yaml=LWS)
    result = run("-f", "rollout.yaml", "-f", "lws.yaml")
    assert result.stdout == (
        "rollout.yaml:1:1: note: Rollout chat has errors: what the controller would refuse was not checked; correct"
        " them first [LWS404]\n"
        "rollout.yaml:17:13: error: spec.strategy.canary.steps[1].pause.duration: must be of type integer:"
        ' "string"; write whole seconds, 600 [LWS102]\n'
    )
    assert result.stderr == "2 objects in 2 files: 1 error, 1 note\n"
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("text", "flags", "code", "counted"),
    [
        (joined(*WHOLE), (), 0, "4 objects in 1 file: nothing found"),
        (joined(*WHOLE), ("--strict",), 0, "nothing found"),
        (joined(DOUBTFUL, LWS), (), 0, "2 objects in 1 file: 1 warning"),
        (joined(DOUBTFUL, LWS), ("--strict",), 1, "1 warning"),
        (PLAIN_ROLLOUT, ("--strict",), 0, "1 object in 1 file: 1 note"),
        ("kind: ConfigMap", ("--allow-empty",), 0, "0 objects in 1 file: nothing found"),
        (joined(BROKEN, LWS), (), 1, "1 error"),
        ("kind: Rollout\na: [", (), 1, "0 objects in 1 file: 1 error"),
        ("a: !Sub [", ("--allow-empty",), 0, "0 objects in 1 file: nothing found"),
    ],
)
def test_the_exit_code_says_whether_it_may_be_applied(
    folder: Path, text: str, flags: tuple[str, ...], code: int, counted: str
) -> None:
    put(folder, all_yaml=text)
    result = run("-f", "all.yaml", *flags)
    assert (result.exit_code, counted in result.stderr) == (code, True), result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "nothing to lint is named: add -f FILE, -f DIRECTORY, or -f - for standard input"),
        (("-f", "away.yaml"), "away.yaml cannot be read: No such file or directory"),
        (("-f", "empty"), "nothing to look at: no file was found"),
        (("-f", "empty.yaml"), "nothing to look at: the file has no Rollout"),
        (("-f", "empty.yaml", "-f", "map.yaml"), "nothing to look at: 2 files have no Rollout"),
        (("-f", "map.yaml"), "nothing to look at: the file has no Rollout"),
        (("-f", "deep"), "nothing to look at: no file was found"),
        (("-f", "map.yaml", "-o", "xml"), "Invalid value for '-o'"),
        (("-f", "map.yaml", "--api-group", "x"), "--api-group 'x' is no API group"),
    ],
)
def test_what_cannot_be_looked_at_is_told_in_a_line_and_is_no_success(
    folder: Path, arguments: tuple[str, ...], told: str
) -> None:
    put(folder, empty_yaml="# nothing\n---\n", map_yaml="kind: ConfigMap\n", deep__er__lws_yaml=LWS)
    (folder / "empty").mkdir()
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""


def test_directories_are_read_by_suffix_and_further_down_only_when_asked(folder: Path) -> None:
    put(folder, a_yaml=PLAIN_ROLLOUT, b_yml=LWS, notes_txt="a: [", deep__c_yaml="{kind: Rollout, a: [")
    (folder / ".git").mkdir()
    (folder / ".git" / "d.yaml").write_text("{kind: Rollout, a: [")
    assert run("-f", ".").exit_code == 0
    (line,) = run("-f", ".", "-R").stdout.splitlines()
    assert line.startswith("deep/c.yaml:1:21: error: not YAML")


def test_a_file_that_is_named_twice_is_read_once(folder: Path) -> None:
    put(folder, a_yaml=joined(PLAIN_ROLLOUT, LWS))
    assert "2 objects in 1 file: nothing found" in run("-f", ".", "-f", "./a.yaml", "a.yaml").stderr


def test_files_are_looked_at_in_the_order_in_which_they_are_named(folder: Path) -> None:
    put(folder, b_yaml=joined(BROKEN, LWS), a_yaml="kind: Rollout\na: [")
    told = run("b.yaml", "a.yaml").stdout.splitlines()
    assert list(dict.fromkeys(line.partition(":")[0] for line in told)) == ["b.yaml", "a.yaml"]


def test_standard_input_has_a_name() -> None:
    result = run("-f", "-", stdin=joined(BROKEN, LWS))
    assert "\n<stdin>:17:13: error: " in result.stdout


def test_a_file_that_is_no_text_is_told_and_the_others_are_looked_at(folder: Path) -> None:
    (folder / "a.yaml").write_bytes(b"kind: Rollout # \xff\xfe")
    (folder / "latin.yaml").write_bytes(b"kind: Chart # \xff")
    put(folder, b_yaml=joined(BROKEN, LWS))
    told = run("-f", ".").stdout.splitlines()
    assert told[0] == "a.yaml:1:17: error: not UTF-8 text: save it as UTF-8 [LWS001]"
    assert told[-1].startswith("b.yaml:17:13: error: ")


def test_json_has_positions_too(folder: Path) -> None:
    body = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Service", "spec": {}}]}
    put(folder, list_json=json.dumps(body, indent="\t"))
    assert run("-f", "list.json").stdout == (
        "list.json:5:3: error: Service without a name: give it a metadata.name [LWS106]\n"
    )


def test_a_program_reads_one_document(folder: Path) -> None:
    put(folder, all_yaml=joined(DOUBTFUL, LWS))
    result = run("-f", "all.yaml", "-o", "json")
    document = json.loads(result.stdout)
    (finding,) = document.pop("findings")
    assert document == {
        "version": 1,
        "summary": {"files": 1, "objects": 2, "errors": 0, "warnings": 1, "notes": 0},
    }
    message = finding.pop("message")
    assert message.startswith("step 2 takes 3 groups beside the workload's 4")
    assert finding == {
        "severity": "warning",
        "file": "all.yaml",
        "line": 15,
        "column": 11,
        "code": "LWS309",
        "about": "Rollout/chat",
        "path": "spec.strategy.canary.steps[1].replicas",
    }


def test_github_gets_commands(folder: Path) -> None:
    (folder / "a,b.yaml").write_text(joined(edited(BROKEN, "pause: {}", "pause: {duration: 100%}"), LWS))
    lines = run("-f", "a,b.yaml", "-o", "github").stdout.splitlines()
    assert lines[1].startswith(
        "::error file=a%2Cb.yaml,line=14,col=19,title=LWS102::spec.strategy.canary.steps[0].pause"
    )
    assert all(
        re.fullmatch(r"::(error|warning|notice) file=\S+,line=\d+,col=\d+,title=LWS\d{3}::.+", each) for each in lines
    )


@pytest.mark.parametrize("form", ["text", "github"])
def test_what_a_manifest_says_is_no_command_to_who_reads_of_it(folder: Path, form: str) -> None:
    text = edited(PLAIN_ROLLOUT, "    canary:", '    "x\\n::error::pwned\\e[31m\\u2028": 1\n    canary:')
    (folder / "a\n::b.yaml").write_text(joined(text, LWS))
    (line,) = run("-f", ".", "-o", form).stdout.splitlines()
    assert "x\\n::error::pwned\\x1b[31m\\u2028" in line
    assert "\x1b" not in line


@pytest.mark.parametrize(("group", "found"), [("rollouts.example.org", 1), (None, 1), ("rollouts.other.org", 0)])
def test_our_kinds_are_those_of_the_group_that_is_named(folder: Path, group: str | None, found: int) -> None:
    put(folder, all_yaml=joined(edited(BROKEN, "rollouts.kruise.io", "rollouts.example.org"), LWS))
    result = run("-f", "all.yaml", *(("--api-group", group) if group else ()))
    assert result.stdout.count(" error: ") == found


def test_a_rollout_for_a_deployment_is_refused_where_the_group_is_named(folder: Path) -> None:
    ref = "    apiVersion: leaderworkerset.x-k8s.io/v1\n    kind: LeaderWorkerSet"
    text = edited(PLAIN_ROLLOUT, ref, "    apiVersion: apps/v1\n    kind: Deployment")
    put(folder, all_yaml=joined(text, LWS))
    assert "note: Rollout chat is one of OpenKruise Rollouts" in run("-f", "all.yaml").stdout
    result = run("-f", "all.yaml", "--api-group", "rollouts.kruise.io")
    assert "error: spec.workloadRef names apps/v1 Deployment" in result.stdout


@pytest.mark.parametrize(
    "other",
    [
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: a}\nspec: {replicas: x}\n",
        "apiVersion: foo.io/v1beta1\nkind: Rollout\nmetadata: {name: a}\nspec: {workloadRef: {kind: Foo}, steps: []}\n",
        "apiVersion: foo.io/v1beta1\nkind: Rollout\nmetadata: {name: a}\nspec: {workloadRef: {kind: Deployment}}\n",
    ],
)
def test_rollouts_of_other_projects_are_left_alone(folder: Path, other: str) -> None:
    put(folder, all_yaml=joined(other, LWS))
    assert "1 object in 1 file: nothing found" in run("-f", "all.yaml").stderr


def test_objects_find_each_other_in_their_namespace(folder: Path) -> None:
    there = edited(LWS, "  name: chat\nspec", "  name: chat\n  namespace: prod\nspec")
    put(folder, all_yaml=joined(PLAIN_ROLLOUT, there))
    assert "LeaderWorkerSet chat is not among the files (namespace default)" in run("-f", "all.yaml").stdout
    assert run("-n", "prod", "-f", "all.yaml").stdout == ""


def test_colours_are_for_terminals(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, all_yaml=BROKEN)
    assert "\x1b" not in run("-f", "all.yaml").stdout
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as context:
            context.setenv("TERM", "xterm")
            context.delenv("NO_COLOR", raising=False)
            assert "\x1b[1;31merror:\x1b[0m " in run("-f", "all.yaml").stdout
            context.setenv(name, value)
            assert "\x1b" not in run("-f", "all.yaml").stdout


def test_no_cluster_is_asked(folder: Path) -> None:
    put(folder, all_yaml=joined(*WHOLE, SERVICE.replace("chat-api", "chat-more").replace("app: chat", "app: other")))
    command = [sys.executable, "-c", "from rollout_lws.cli.main import main; main()", "lint", "-f", "all.yaml"]
    away = {**os.environ, "KUBECONFIG": str(folder / "away"), "HOME": str(folder)}
    done = subprocess.run(command, env=away, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "5 objects in 1 file: nothing found\n")


@pytest.mark.parametrize(
    ("words", "directive"), [(("lint", "-f", ""), ":0"), (("lint", "a"), ":0"), (("lint", "-"), ":4")]
)
def test_kubectl_leaves_names_of_files_to_the_shell(
    words: tuple[str, ...], directive: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-rollout_lws", *words])
    kubectl_complete()
    *told, last = capsys.readouterr().out.splitlines()
    assert last == directive
    assert bool(told) == (directive == ":4")


def modules(*imported: str) -> set[str]:
    told = f"import sys, {', '.join(imported)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_its_help_and_completion_load_no_rules() -> None:
    assert modules("rollout_lws.cli.lint.command") & {"pydantic", "rollout_lws.api"} == set()


def test_it_loads_no_client_and_no_evaluator_of_rules() -> None:
    """Each would take longer than all that is looked at."""
    loaded = modules("rollout_lws.cli.lint.command", "rollout_lws.cli.lint.linter")
    heavy = {
        "aiohttp",
        "celpy",
        "kubernetes_asyncio",
        "rich",
        "rollout_lws.kube.client",
        "rollout_lws.sandbox.apiserver",
    }
    assert loaded & heavy == set()


def test_the_list_of_codes_is_the_documented_one() -> None:
    rows = re.findall(r"^\| `(LWS\d{3})` \| (\w+) \| (.+?) \|", (ROOT / "docs/lint.md").read_text(), re.MULTILINE)
    assert rows == [(code, str(each.severity), each.summary) for code, each in CODES.items()]
