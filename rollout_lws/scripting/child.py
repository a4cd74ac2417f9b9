"""The child process: runs one Lua script on one input, and ends.

It is started as a file by a Python without a site (see ``runner``), with lupa's folder as its only argument, so it
imports nothing of this package. First it gives up all rights that a process can give up by itself, and says by an empty
line on its standard output that it is ready. Then it reads ``{"script": text, "input": value}`` from its input, and
writes one of ``{"output": value}``, ``{"error": text, "line": number}``, and the latter with ``"late": true``.
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

#: Instructions of Lua: about a quarter of a second.
_INSTRUCTIONS = 20_000_000
#: Memory of Lua, and of the process beyond what it has at its start, in bytes.
_LUA_BYTES = 32 * 2**20
_PROCESS_BYTES = 96 * 2**20
#: Seconds of the processor, and by the clock, both before the parent ends the process after a second.
_CPU_SECONDS = 1
_SECONDS = 0.8
#: Largest result, in bytes, and how deep it may be nested.
_OUTPUT_BYTES = 2**19
_DEPTH = 64
#: Values in a result: a table that is in it twice counts twice.
_VALUES = 50_000

_TOO_LONG = "it runs for more than a second"
#: Where in the prelude an error was noticed.
_OURS = re.compile(r'\[string "<python>"\]:\d+: ')


class _Refused(Exception):
    """What a script returns is no object."""


class _Line:
    """The line of the script that last called a function of Lua's own; nothing of it can be reached from Lua."""

    def __init__(self) -> None:
        self.number = 0

    def at(self, number: float) -> None:
        self.number = int(number)


def main() -> None:
    sys.path.append(sys.argv[1])
    from lupa import lua51

    line = _Line()
    lua = lua51.LuaRuntime(
        register_eval=False,
        register_builtins=False,
        attribute_filter=_no_attribute,
        unpack_returned_tuples=True,
        max_memory=_LUA_BYTES,
    )
    prelude = Path(__file__).with_name("prelude.lua").read_text()
    run = lua.execute(prelude, _INSTRUCTIONS, line.at)
    _lock_in()
    sys.stdout.write("\n")
    sys.stdout.flush()
    asked = json.loads(sys.stdin.buffer.read())
    late = threading.Timer(_SECONDS, lambda: _answer({"error": _TOO_LONG, "line": line.number, "late": True}))
    late.daemon = True
    late.start()
    try:
        lua.globals()["obj"] = _to_lua(lua, asked["input"], "obj")
        result = run(asked["script"])
        output = _Reader(lua51.lua_type).read(result)
    except _Refused as error:
        _answer({"error": str(error), "line": 0})
    except (lua51.LuaMemoryError, MemoryError):
        _answer({"error": f"not enough memory: it may use {_LUA_BYTES >> 20} MiB", "line": line.number})
    except RecursionError:
        _answer({"error": "it is nested too deeply", "line": line.number})
    except (lua51.LuaError, UnicodeDecodeError) as error:
        text = _OURS.sub("", str(error).split("\nstack traceback")[0])[:2000]
        _answer({"error": text or "it calls error() without a text", "line": line.number})
    _answer({"output": output})


def _lock_in() -> None:
    """No new file, socket or process from here on, no core dump, and bounds on memory and processor."""
    held = Path("/proc/self/statm")
    if held.exists():
        # Elsewhere than on Linux address space is no measure of memory; Lua's own bound holds there, too.
        most = int(held.read_text().split()[0]) * resource.getpagesize() + _PROCESS_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
        resource.setrlimit(limit, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS + 1))


def _no_attribute(owner: object, name: object, setting: bool) -> NoReturn:  # noqa: ARG001 - lupa gives all three
    raise AttributeError("no attributes")


def _to_lua(lua: Any, value: Any, path: str) -> Any:
    if isinstance(value, dict):
        table = lua.table()
        for key, member in value.items():
            if member is not None:
                table[key] = _to_lua(lua, member, f"{path}.{key}")
        return table
    if isinstance(value, list):
        table = lua.table()
        for index, member in enumerate(value, 1):
            if member is None:
                raise _Refused(f"{path}[{index}] of the object is null, which no list of Lua can have")
            table[index] = _to_lua(lua, member, f"{path}[{index}]")
        return table
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


class _Reader:
    """Reads a result as JSON has it; an empty table is None, as there is nothing to tell a list from an object by."""

    def __init__(self, lua_type: Callable[[Any], str | None]) -> None:
        self._lua_type = lua_type
        self._left = _VALUES

    def read(self, value: Any, path: tuple[str | int, ...] = ()) -> Any:
        """_Refused for what JSON has no word for."""
        self._left -= 1
        if self._left < 0:
            raise _Refused(f"the result has more than {_VALUES} values")
        kind = self._lua_type(value)
        if kind == "table":
            if len(path) > _DEPTH:
                raise _Refused(f"the result is nested more than {_DEPTH} deep, or contains itself")
            return self._table(value, path)
        if kind is not None:
            raise _Refused(f"result{_text(path)} is a {kind}: return only tables, strings, numbers and booleans")
        if isinstance(value, float):
            if not math.isfinite(value):
                raise _Refused(f"result{_text(path)} is {value}, which is no number of JSON")
            return int(value) if value.is_integer() and abs(value) < 2**53 else value
        return value

    def _table(self, table: Any, path: tuple[str | int, ...]) -> Any:
        found: dict[Any, Any] = {}
        for key, member in table.items():
            if isinstance(key, float) and key.is_integer():
                key = int(key)
            if isinstance(key, bool) or not isinstance(key, str | int):
                raise _Refused(f"result{_text(path)} has a key that is neither text nor a whole number")
            found[key] = self.read(member, (*path, key))
        if not found:
            return None
        if all(isinstance(key, str) for key in found):
            return found
        if any(index not in found for index in range(1, len(found) + 1)):
            raise _Refused(f"result{_text(path)} is neither a list nor an object: its keys have gaps or are mixed")
        return [found[index] for index in range(1, len(found) + 1)]


def _text(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)


def _answer(answer: dict[str, Any]) -> NoReturn:
    """Writes the answer and ends at once: a script that still runs in another thread is not waited for."""
    body = json.dumps(answer).encode()
    if len(body) > _OUTPUT_BYTES:
        body = json.dumps({"error": f"the result has more than {_OUTPUT_BYTES >> 10} KiB", "line": 0}).encode()
    os.write(1, body)
    os._exit(0)


if __name__ == "__main__":
    main()
