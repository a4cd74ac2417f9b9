"""What scripts may do, and that nothing else is to be had from them: each ends within a second, and is named."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.scripting import runner as runner_module
from rollout_lws.scripting.runner import DEADLINE_SECONDS, Runner
from rollout_lws.traffic.custom.scripts import Failure, Output


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.close()


def output(runner: Runner, script: str, given: Any = None) -> Any:
    found = runner.run(script, given if given is not None else {})
    assert isinstance(found, Output), found
    return json.loads(found.body)


HARMLESS = {
    "the input": (
        "return obj.data",
        {"data": {"spec": {"a": [1, 2.5, "x", True]}}},
        {"spec": {"a": [1, 2.5, "x", True]}},
    ),
    "whole numbers stay whole": ("return {n = obj.w - 20, part = obj.w / 8}", {"w": 100}, {"n": 80, "part": 12.5}),
    "a number as text has no point": (
        "return {t = tostring(obj.w), c = 'w' .. obj.w}",
        {"w": 20},
        {"t": "20", "c": "w20"},
    ),
    "a member that is null is not there": ("return {gone = obj.a == nil}", {"a": None}, {"gone": True}),
    "an empty table has no meaning": ("return {a = {}, b = 1}", {}, {"a": None, "b": 1}),
    "tables": (
        "local t = {3, 1} table.insert(t, 2) table.sort(t) return {t = t, n = #t, s = table.concat(t, ',')}",
        {},
        {"t": [1, 2, 3], "n": 3, "s": "1,2,3"},
    ),
    "text": (
        "local a, b = string.match('x.y', '([^.]+)%.(.+)') return {a = a, b = b, c = ('A'):lower()}",
        {},
        {"a": "x", "b": "y", "c": "a"},
    ),
    "numbers": ("return {a = math.floor(2.9), b = math.max(1, 4), c = tonumber('12')}", {}, {"a": 2, "b": 4, "c": 12}),
    "protected calls": (
        "local done, why = pcall(error, 'no') return {done = done, why = why}",
        {},
        {"done": False, "why": "no"},
    ),
    "unpack": ("local a, b = unpack({1, 2}) return {a = a, b = b}", {}, {"a": 1, "b": 2}),
    "JSON": (
        'local v = json.decode(\'{"a": [1, {"b": "\\\\u00e9\\\\n"}], "c": false}\')'
        " return {v = v, t = json.encode(v.a)}",
        {},
        {"v": {"a": [1, {"b": "é\n"}], "c": False}, "t": '[1,{"b":"é\\n"}]'},
    ),
    "JSON that is none": (
        "local v, why = json.decode('{') local t, no = json.encode({1, x = 2}) return {why = why ~= nil, no = no}",
        {},
        {"why": True, "no": "cannot encode mixed or invalid key types"},
    ),
    "nothing is printed": ("print('x') return {a = 1}", {}, {"a": 1}),
    "where a table is says nothing": ("return {a = tostring({}) == tostring({1})}", {}, {"a": True}),
}


@pytest.mark.parametrize(("script", "given", "wanted"), HARMLESS.values(), ids=HARMLESS)
def test_what_scripts_may_do(runner: Runner, script: str, given: Any, wanted: Any) -> None:
    assert output(runner, script, given) == wanted


#: Script, and what its failure says.
HOSTILE = {
    "a loop": ("while true do end", "line 1: runs for more than 20000000 instructions"),
    "a loop that calls protect": (
        "while true do\n  pcall(function() while true do end end)\nend",
        "line 2: runs for more than 20000000 instructions",
    ),
    "recursion": ("local function f() return 1 + f() end\nreturn f()", "line 1: stack overflow"),
    "recursion through Lua's own functions": (
        "local function f(x) return (x:gsub('.', f)) end\nreturn {f('aa')}",
        "line 1: C stack overflow",
    ),
    "a handler of errors that loops": (
        "xpcall(function() while true do end end, function() while true do end end)\nwhile true do end",
        "runs for more than",
    ),
    "an index that never ends": (
        "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end})\nreturn {t[1]}",
        "line 1: C stack overflow",
    ),
    "a text without end": ("local s = 'x'\nwhile true do s = s .. s end", "not enough memory: it may use 32 MiB"),
    "a text of a gigabyte": (
        "local s = ('x'):rep(1e9)\nreturn {s = s}",
        "line 1: not enough memory: it may use 32 MiB",
    ),
    "a table without end": ("local t, i = {}, 0\nwhile true do i = i + 1 t[i] = {i} end", "not enough memory"),
    "a pattern that backtracks": (
        "local s = ('a'):rep(200)\nreturn {x = s:find(('.-'):rep(30) .. 'b')}",
        "line 2: it runs for more than a second",
    ),
    "a pattern that is deep": (
        "return {x = ('a'):find(('a?'):rep(100000))}",
        "line 1: pattern of more than 1000 characters",
    ),
    "too many values": ("return {unpack({}, 1, 1e8)}", "line 1: too many results to unpack"),
    "an order that is none": (
        "local t = {} for i = 1, 1e5 do t[i] = i end table.sort(t, function() return true end)",
        "invalid order function for sorting",
    ),
    "os": ("return {x = os.execute('ls')}", "line 1: attempt to index global 'os' (a nil value)"),
    "io": ("return {x = io.open('/etc/passwd')}", "line 1: attempt to index global 'io' (a nil value)"),
    "require": ("require('os')", "line 1: attempt to call global 'require' (a nil value)"),
    "package": ("return package.loaded", "line 1: attempt to index global 'package' (a nil value)"),
    "load": ("return load('x')", "line 1: attempt to call global 'load' (a nil value)"),
    "loadstring": ("return loadstring('x')", "line 1: attempt to call global 'loadstring' (a nil value)"),
    "loadfile": ("return loadfile('/etc/passwd')", "line 1: attempt to call global 'loadfile' (a nil value)"),
    "dofile": ("return dofile('/etc/passwd')", "line 1: attempt to call global 'dofile' (a nil value)"),
    "debug": ("return debug.getinfo(1)", "line 1: attempt to index global 'debug' (a nil value)"),
    "collectgarbage": ("collectgarbage('stop')", "line 1: attempt to call global 'collectgarbage' (a nil value)"),
    "coroutine": ("coroutine.wrap(function() end)()", "line 1: attempt to index global 'coroutine' (a nil value)"),
    "getfenv": ("return getfenv(0)", "line 1: attempt to call global 'getfenv' (a nil value)"),
    "newproxy": ("return newproxy(true)", "line 1: attempt to call global 'newproxy' (a nil value)"),
    "python": ("return python.eval('1')", "line 1: attempt to index global 'python' (a nil value)"),
    "bytecode": ("return string.dump(function() end)", "line 1: attempt to call field 'dump' (a nil value)"),
    "the metatable of texts": ("getmetatable('').__index = nil", "line 1: attempt to index a string value"),
    "chance": ("return {x = math.random()}", "line 1: attempt to call field 'random' (a nil value)"),
    "no Lua": ("\nreturn (", "line 2: unexpected symbol near '<eof>'"),
    "an error of its own": ("\n\nerror('no stable route')", "line 3: no stable route"),
    "an error without a text": ("error({})", "it calls error() without a text"),
    "a function in the result": ("return {f = function() end}", "result.f is a function: return only tables"),
    "a result that contains itself": ("local t = {} t.t = t return t", "nested more than 64 deep, or contains itself"),
    "a result of shared tables": (
        "local t = {a = 1} for i = 1, 60 do t = {t, t} end return t",
        "the result has more than 50000 values",
    ),
    "a deep result": ("local t = {} for i = 1, 1000 do t = {t} end return t", "nested more than 64 deep"),
    "not a number": ("return {x = {0 / 0}}", "result.x[1] is nan, which is no number of JSON"),
    "an infinite number": ("return {x = 1 / 0}", "result.x is inf, which is no number of JSON"),
    "a large result": ("return {x = ('x'):rep(600000)}", "the result has more than 512 KiB"),
    "a list with gaps": ("return {[1] = 1, [3] = 3}", "result is neither a list nor an object"),
    "a list with names": ("return {1, a = 2}", "result is neither a list nor an object"),
    "a key that is a table": ("return {[{}] = 1}", "result has a key that is neither text nor a whole number"),
    "bytes that are no text": ("return {x = '\\255'}", "can't decode byte"),
}


@pytest.mark.parametrize(("script", "said"), HOSTILE.values(), ids=HOSTILE)
def test_each_script_that_goes_too_far_is_ended_within_a_second_and_named(
    runner: Runner, script: str, said: str
) -> None:
    began = time.monotonic()
    found = runner.run(script, {})
    # Starting a process comes on top, and this machine may have other things to do.
    assert time.monotonic() - began < 2 * DEADLINE_SECONDS + 1
    assert isinstance(found, Failure)
    assert said in found.message


def test_a_script_that_runs_too_long_in_one_call_is_run_again_later_and_others_are_not(runner: Runner) -> None:
    assert runner.run(HOSTILE["a pattern that backtracks"][0], {}) == Failure(
        "line 2: it runs for more than a second", lasts=False
    )
    loop = runner.run(HOSTILE["a loop"][0], {})
    assert isinstance(loop, Failure) and loop.lasts


def test_one_script_leaves_nothing_to_the_next_one(runner: Runner) -> None:
    assert output(runner, "mine = obj.a string.find = nil json = nil return {a = mine}", {"a": 1}) == {"a": 1}
    assert output(runner, "return {a = mine == nil, f = string.find ~= nil, j = json ~= nil}") == {
        "a": True,
        "f": True,
        "j": True,
    }


def test_the_process_has_neither_environment_nor_files_nor_rights_to_open_any(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SECRET", "token")
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        child = runner_module._start()
        try:
            assert child.stdout is not None and child.stdout.readline() == b"\n"
            proc = Path(f"/proc/{child.pid}")
            assert proc.joinpath("environ").read_bytes() == b""
            assert proc.joinpath("cwd").readlink() == Path("/")
            assert sorted(each.name for each in proc.joinpath("fd").iterdir()) == ["0", "1", "2"]
            limits = {
                line[:25].strip(): line[26:].split()[:2] for line in proc.joinpath("limits").read_text().splitlines()
            }
            assert limits["Max open files"] == limits["Max file size"] == limits["Max core file size"] == ["0", "0"]
            assert limits["Max cpu time"] == ["1", "2"]
            assert int(limits["Max address space"][0]) < 2**29
        finally:
            runner_module._end(child)


def test_a_process_that_is_killed_is_told_and_the_next_script_gets_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = Runner()
    monkeypatch.setattr(runner_module, "DEADLINE_SECONDS", 0.05)
    found = runner.run(HOSTILE["a pattern that backtracks"][0], {})
    assert found == Failure("its process was ended by signal 9, as it takes too long or too much memory", lasts=False)
    monkeypatch.undo()
    assert output(runner, "return {a = 1}") == {"a": 1}
    runner.close()


def test_a_process_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "child.py"
    broken.write_text("raise SystemExit('no room')")
    monkeypatch.setattr(runner_module, "_CHILD", broken)
    runner = Runner()
    assert runner.run("return {}", {}) == Failure("the process for scripts does not start: no room", lasts=False)
    runner.close()


def test_no_process_is_left() -> None:
    own = Runner()
    own.run("return {}", {})
    spare = own._spare
    assert spare is not None
    own.close()
    assert spare.poll() is not None
