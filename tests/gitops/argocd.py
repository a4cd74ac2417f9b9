"""Argo CD's way with a ConfigMap's scripts: the libraries it loads, how it reads what they give, and its patches.

From its sources (util/lua, server/application): Lua 5.1, with the base library, ``package`` and ``table``, and of
``os`` time and date alone. An empty table comes back as a list, and is an object again where the object had one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from lupa import lua51

from rollout_lws.objects.json_patch import merge_patch
from tests.docs.pages import ROOT

Object = dict[str, Any]
CONFIG = ROOT / "examples" / "argocd" / "argocd-cm.yaml"
HEALTH = ("Healthy", "Progressing", "Suspended", "Degraded")
#: What Argo CD does not load unless it is told to, and what the Lua of these tests adds.
_ABSENT = ("string", "math", "io", "debug", "coroutine", "os", "python")
_STRIP = (
    "local time, date = os.time, os.date;"
    " package.loaded.os = nil; package.preload.os = function() return {time = time, date = date} end;"
    " getmetatable('').__index = nil;"
)


@dataclass(frozen=True, slots=True)
class Scripts:
    """The scripts of a ConfigMap for one kind: ``actions`` by their names."""

    health: str
    discovery: str = ""
    actions: Mapping[str, str] | None = None


def scripts(kind: str, config: Path = CONFIG) -> Scripts:
    """For the kind ``<group>_<Kind>``."""
    data = yaml.safe_load(config.read_text())["data"]
    actions = yaml.safe_load(data.get(f"resource.customizations.actions.{kind}") or "{}")
    return Scripts(
        data[f"resource.customizations.health.{kind}"],
        actions.get("discovery.lua", ""),
        {each["name"]: each["action.lua"] for each in actions.get("definitions", ())},
    )


def run(script: str, obj: Mapping[str, Any]) -> Any:
    """What the script gives for ``obj``, as JSON."""
    lua = lua51.LuaRuntime(register_eval=False, register_builtins=False, unpack_returned_tuples=True)
    lua.execute(_STRIP + "".join(f" {name} = nil; package.loaded.{name} = nil;" for name in _ABSENT))
    lua.globals().obj = _to_lua(lua, obj)
    return _to_json(lua.execute(script))


def health(script: str, obj: Mapping[str, Any]) -> tuple[str, str]:
    """Health and message."""
    answer = run(script, obj)
    assert set(answer) <= {"status", "message"}
    assert answer["status"] in HEALTH
    return answer["status"], answer.get("message", "")


def offered(script: str, obj: Mapping[str, Any]) -> set[str]:
    """The actions that can be clicked."""
    return {name for name, found in run(script, obj).items() if not found.get("disabled")}


def patch_of(script: str, obj: Mapping[str, Any]) -> Object:
    """The merge patch that a click sends."""
    return merge_patch(obj, _cleaned(run(script, obj), obj))


def _to_lua(lua: Any, value: Any) -> Any:
    if isinstance(value, Mapping):
        return lua.table_from({key: _to_lua(lua, each) for key, each in value.items() if each is not None})
    if isinstance(value, list):
        return lua.table_from([_to_lua(lua, each) for each in value])
    return value


def _to_json(value: Any) -> Any:
    if lua51.lua_type(value) != "table":
        return int(value) if isinstance(value, float) and value.is_integer() else value
    keys = list(value.keys())
    if all(isinstance(key, int) for key in keys):
        return [_to_json(value[number]) for number in range(1, len(keys) + 1)]
    return {key: _to_json(value[key]) for key in keys}


def _cleaned(new: Any, old: Any) -> Any:
    if isinstance(old, Mapping) and new == []:
        return {}
    if isinstance(old, Mapping) and isinstance(new, dict):
        return {key: _cleaned(value, old[key]) if key in old else value for key, value in new.items()}
    if isinstance(old, list) and isinstance(new, list):
        return [_cleaned(value, old[place]) if place < len(old) else value for place, value in enumerate(new)]
    return new
