"""Summarizes in one line what a new version changes: the images, or else the fields that differ. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollout_lws.cli.versions import containers
from rollout_lws.targets.table import format_of_members

Object = dict[str, Any]
#: Differences to print; further ones are counted.
_TOLD = 3


def changed(before: Object, after: Object) -> str:
    """``vllm-openai v0.18.1 -> v0.19.0 (leader, worker)``; versions are the members of a spec that have them. Pods of a
    kind that has only one role are told without it.
    """
    told: dict[str, list[str]] = {}
    for place, what in _differences(before, after):
        told.setdefault(what, []).append(place)
    parts = [what + _in_brackets(places) for what, places in told.items()]
    more = len(parts) - _TOLD
    return ", ".join(parts[:_TOLD]) + (f" and {more} more" if more > 0 else "")


def _in_brackets(places: list[str]) -> str:
    named = list(dict.fromkeys(filter(None, places)))
    return f" ({', '.join(named)})" if named else ""


def _differences(before: Object, after: Object) -> Iterator[tuple[str, str]]:
    """Pairs of a role (or "") and a difference in it."""
    old, new = (_by_role(version) for version in (before, after))
    kind = format_of_members(after)
    names = {role: role if len(kind.roles) > 1 else "" for role, _ in kind.roles}
    for role, named in names.items():
        was, now = old.get(role, {}), new.get(role, {})
        for name in [*now, *(name for name in was if name not in now)]:
            yield from ((named, what) for what in _of_container(name, was.get(name), now.get(name)))
    held = [dict(kind.held(version)) for version in (before, after)]
    for role, member in kind.roles:
        pods = [_without_containers(each.pop(member, None)) for each in held]
        for field in _fields(*pods):
            yield names[role], f"pod {field}"
    if kind.holder:
        for field in _fields(*held):
            values = [each.get(field) for each in held]
            plain = all(isinstance(value, int | str) for value in values)
            yield "", f"{field} {values[0]} -> {values[1]}" if plain else field
    for member in kind.members:
        is_told = member == kind.holder or member in dict(kind.roles).values()
        if not is_told and (before.get(member) or {}) != (after.get(member) or {}):
            yield "", member


def _by_role(version: Object) -> dict[str, dict[str, Object]]:
    found: dict[str, dict[str, Object]] = {}
    for role, each in containers(version):
        found.setdefault(role, {})[str(each.get("name"))] = each
    return found


def _of_container(name: str, was: Object | None, now: Object | None) -> Iterator[str]:
    if was is None or now is None:
        yield f"container {name} {'added' if was is None else 'removed'}"
        return
    if was.get("image") != now.get("image"):
        yield _image(str(was.get("image")), str(now.get("image")))
    fields = [field for field in _fields(was, now) if field != "image"]
    if fields:
        yield f"{name}: {', '.join(fields)}"


def _image(was: str, now: str) -> str:
    """Short when only the tag or digest differs, the usual case."""
    old, new = _split(was), _split(now)
    if old[0] != new[0]:
        return f"{was} -> {now}"
    return f"{new[0].rpartition('/')[2]} {old[1] or 'latest'} -> {new[1] or 'latest'}"


def _split(image: str) -> tuple[str, str]:
    name, at, digest = image.partition("@")
    if at:
        return name, digest[:19]
    name, colon, tag = image.rpartition(":")
    # A registry's port has a colon too, but a slash follows it.
    return (name, tag) if colon and "/" not in tag else (image, "")


def _without_containers(template: Object | None) -> Object:
    template = template or {}
    spec = {name: value for name, value in (template.get("spec") or {}).items() if not name.endswith("ontainers")}
    return {**(template.get("metadata") or {}), **spec}


def _fields(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in {*was, *now} if was.get(name) != now.get(name))
