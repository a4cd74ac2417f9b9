"""What no line of the program does, whatever names and templates it is given."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.docs.pages import ROOT

PACKAGE = ROOT / "rollout_lws"
_STARTS = {
    "os.system",
    "os.popen",
    "os.execv",
    "os.execvp",
    "os.spawnv",
    "pty.spawn",
    "asyncio.create_subprocess_shell",
}
_UNSAFE = {"eval", "exec", "compile", "__import__", "pickle.loads", "pickle.load", "marshal.loads", "yaml.unsafe_load"}


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


@cache
def _calls(path: Path) -> tuple[tuple[str, ast.Call], ...]:
    return tuple((ast.unparse(node.func), node) for node in _nodes(path) if isinstance(node, ast.Call))


def test_nothing_is_run_as_code() -> None:
    found = [(path.name, name) for path in PACKAGE.rglob("*.py") for name, _ in _calls(path) if name in _UNSAFE]
    assert found == []


def test_only_login_programs_and_our_own_process_for_scripts_are_started_and_without_a_shell() -> None:
    started = [
        (path.relative_to(PACKAGE), call)
        for path in PACKAGE.rglob("*.py")
        for name, call in _calls(path)
        if name.startswith(("subprocess.", "asyncio.create_subprocess")) or name in _STARTS
    ]
    assert {str(path) for path, _ in started} == {"kubeconfig/login.py", "scripting/runner.py"}
    for _, call in started:
        assert not [each for each in call.keywords if each.arg == "shell"]
        assert not isinstance(call.args[0], ast.JoinedStr | ast.Constant)


def test_yaml_is_loaded_by_safe_loaders_alone() -> None:
    loaded = [
        (path, call)
        for path in PACKAGE.rglob("*.py")
        for name, call in _calls(path)
        if name in ("yaml.load", "yaml.load_all")
    ]
    assert loaded
    for path, call in loaded:
        text = path.read_text()
        loader = ast.unparse(call.args[1] if len(call.args) > 1 else call.keywords[0].value)
        assert loader == "_LOADER" or "SafeLoader" in loader, path
        assert "SafeLoader" in text, path


def test_paths_of_requests_are_made_in_one_place() -> None:
    """So that quoting in that place is quoting everywhere: others only name a version, or what a server has told."""
    made = [
        (str(path.relative_to(PACKAGE)), ast.unparse(node))
        for path in PACKAGE.rglob("*.py")
        if "sandbox" not in path.parts
        for node in _nodes(path)
        if isinstance(node, ast.JoinedStr) and ast.unparse(node)[2:].startswith(("/api/", "/apis/"))
    ]
    assert {text for _, text in made} <= {
        "f'/apis/{resource.api_version}'",
        "f'/apis/{group}/{VERSION}'",
        "f\"/apis/{each['name']}/{version}\"",
    }
