"""Value checks of structural schemas: compiles each keyword to a closure with kube-apiserver's error messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

#: Returns the violations of one value at one path.
Check: TypeAlias = Callable[[Any, str], Iterable[str]]

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


#: Returns the check of a whole schema with its children, for schemas inside allOf, anyOf, oneOf and not.
Compile: TypeAlias = Callable[[Mapping[str, Any]], Check]


def compile_checks(schema: Mapping[str, Any], whole: Compile) -> tuple[Check, ...]:
    """The checks of one schema without its children; the type check comes first and, if it fails, is the only one."""
    checks: list[Check] = []
    if schema.get("x-kubernetes-int-or-string"):
        checks.append(_int_or_string)
    elif schema.get("type"):
        checks.append(_typed(schema["type"]))
    if schema.get("required"):
        checks.append(_required(tuple(schema["required"])))
    if "enum" in schema:
        checks.append(_one_of(schema["enum"]))
    checks += [make(schema[word]) for word, make in _SIZES.items() if word in schema]
    checks += _bounds(schema)
    if "pattern" in schema:
        checks.append(_pattern(schema["pattern"]))
    if schema.get("format") in ("date-time",):
        checks.append(_date_time)
    if schema.get("x-kubernetes-list-type") in ("map", "set"):
        checks.append(_unique(tuple(schema.get("x-kubernetes-list-map-keys") or ())))
    if not schema.get("x-kubernetes-int-or-string"):
        checks += _combined(schema, whole)
    return tuple(checks)


def _shown(value: Any) -> str:
    return str(msgspec.json.encode(value), "utf-8")


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    for name, types in _TYPES.items():
        if isinstance(value, types) and (name == "boolean") == isinstance(value, bool):
            return name
    return type(value).__name__


def _wrong_type(path: str, expected: str, actual: str) -> str:
    return f'{path}: Invalid value: "{actual}": {path} in body must be of type {expected}: "{actual}"'


def _typed(expected: str) -> Check:
    types = _TYPES[expected]

    def check(value: Any, path: str) -> Iterable[str]:
        right = isinstance(value, types) and (expected == "boolean" or not isinstance(value, bool))
        if not right and expected == "integer" and isinstance(value, float) and value.is_integer():
            # Like kube-apiserver: from 2**53 on a float does not identify one integer.
            right = abs(value) < 2**53
        return () if right else (_wrong_type(path, expected, _type_name(value)),)

    return check


def _int_or_string(value: Any, path: str) -> Iterable[str]:
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        return ()
    return (_wrong_type(path, "integer,string", _type_name(value)),)


def _required(names: tuple[str, ...]) -> Check:
    def check(value: Any, path: str) -> Iterable[str]:
        if not isinstance(value, dict):
            return ()
        return [f"{path}.{name}: Required value".lstrip(".") for name in names if name not in value]

    return check


def _one_of(allowed: list[Any]) -> Check:
    listed = ", ".join(_shown(entry) for entry in allowed)

    def check(value: Any, path: str) -> Iterable[str]:
        if value in allowed:
            return ()
        return (f"{path}: Unsupported value: {_shown(value)}: supported values: {listed}",)

    return check


def _bounds(schema: Mapping[str, Any]) -> list[Check]:
    checks: list[Check] = []
    for word, exclusive, sign, text in (
        ("minimum", "exclusiveMinimum", 1, "greater than"),
        ("maximum", "exclusiveMaximum", -1, "less than"),
    ):
        if word in schema:
            strict = bool(schema.get(exclusive))
            checks.append(_bound(schema[word], sign, strict, text if strict else f"{text} or equal to"))
    if factor := schema.get("multipleOf"):
        checks.append(_measured((int, float), lambda value: value % factor == 0, f"should be a multiple of {factor}"))
    return checks


def _bound(limit: float, sign: int, strict: bool, text: str) -> Check:
    def within(value: float) -> bool:
        return (value - limit) * sign > 0 if strict else (value - limit) * sign >= 0

    return _measured((int, float), within, f"should be {text} {limit}")


def _measured(types: tuple[type[Any], ...], fine: Callable[[Any], bool], text: str) -> Check:
    def check(value: Any, path: str) -> Iterable[str]:
        if not isinstance(value, types) or fine(value):
            return ()
        shown = _shown(value) if isinstance(value, (str, int, float)) else len(value)
        return (f"{path}: Invalid value: {shown}: {path} in body {text}",)

    return check


def _too(types: tuple[type[Any], ...], limit: int, text: str) -> Check:
    def check(value: Any, path: str) -> Iterable[str]:
        if not isinstance(value, types) or len(value) <= limit:
            return ()
        return (f"{path}: {text.format(limit=limit, size=len(value))}",)

    return check


_SIZES: dict[str, Callable[[Any], Check]] = {
    "minLength": lambda n: _measured((str,), lambda value: len(value) >= n, f"should be at least {n} chars long"),
    "maxLength": lambda n: _too((str,), n, "Too long: may not be more than {limit} bytes"),
    "minItems": lambda n: _measured((list,), lambda value: len(value) >= n, f"should have at least {n} items"),
    "maxItems": lambda n: _too((list,), n, "Too many: {size}: must have at most {limit} items"),
    "minProperties": lambda n: _measured(
        (dict,), lambda value: len(value) >= n, f"should have at least {n} properties"
    ),
    "maxProperties": lambda n: _too((dict,), n, "Too many: {size}: must have at most {limit} items"),
}


def _pattern(pattern: str) -> Check:
    expression = re.compile(pattern)
    return _measured((str,), lambda value: expression.search(value) is not None, f"should match '{pattern}'")


def _date_time(value: Any, path: str) -> Iterable[str]:
    try:
        if isinstance(value, str):
            datetime.fromisoformat(value)
    except ValueError:
        return (f"{path}: Invalid value: {_shown(value)}: {path} in body must be of type date-time: {_shown(value)}",)
    return ()


def _unique(keys: tuple[str, ...]) -> Check:
    def check(value: Any, path: str) -> Iterable[str]:
        seen: list[Any] = []
        if not isinstance(value, list):
            return
        for at, entry in enumerate(value):
            identity = {key: entry[key] for key in keys if key in entry} if keys and isinstance(entry, dict) else entry
            if identity in seen:
                yield f"{path}[{at}]: Duplicate value: {_shown(identity)}"
            seen.append(identity)

    return check


def _combined(schema: Mapping[str, Any], whole: Compile) -> list[Check]:
    """allOf, anyOf, oneOf and not."""
    checks = [whole(part) for part in schema.get("allOf") or ()]
    for word, text in (("anyOf", "must validate at least one schema (anyOf)"), ("oneOf", "")):
        if schema.get(word):
            checks.append(_counted([whole(part) for part in schema[word]], text))
    if schema.get("not"):
        forbidden = whole(schema["not"])
        checks.append(
            lambda value, path: (
                ()
                if any(True for _ in forbidden(value, path))
                else (f'{path}: Invalid value: "": {path} in body must not validate the schema (not)',)
            )
        )
    return checks


def _counted(parts: list[Check], any_text: str) -> Check:
    def check(value: Any, path: str) -> Iterable[str]:
        valid = sum(not any(True for _ in part(value, path)) for part in parts)
        if valid == 1 or (any_text and valid):
            return ()
        text = any_text or f"must validate one and only one schema (oneOf). Found {'some' if valid else 'none'} valid"
        return (f'{path}: Invalid value: "": {path} in body {text}',)

    return check
