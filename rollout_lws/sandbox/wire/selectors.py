"""Label and field selectors as predicates, parsed once for each text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rollout_lws.errors import ApiError

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*(?:,|$)")
_EQUALITY = re.compile(rf"({_KEY})\s*(==|=|!=)\s*([-A-Za-z0-9_.]*)\s*(?:,|$)")
_EXISTS = re.compile(rf"(!?)\s*({_KEY})\s*(?:,|$)")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement: ``operator`` is in, notin, exists or absent."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.operator == "in":
            return labels.get(self.key) in self.values
        if self.operator == "notin":
            return labels.get(self.key) not in self.values
        return (self.key in labels) == (self.operator == "exists")


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """``equal`` are labels with exactly one allowed value: an index can find them, and they compare fast."""

    equal: Mapping[str, str]
    others: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        if not self.equal.items() <= labels.items():
            return False
        return not self.others or all(requirement.matches(labels) for requirement in self.others)


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> LabelSelector:
    """A labelSelector parameter; ApiError 400 when it cannot be parsed."""
    requirements: list[Requirement] = []
    rest = text.strip()
    while rest:
        if found := _SET.match(rest):
            values = frozenset(value.strip() for value in found[3].split(","))
            requirements.append(Requirement(found[1], found[2], values))
        elif found := _EQUALITY.match(rest):
            operator = "notin" if found[2] == "!=" else "in"
            requirements.append(Requirement(found[1], operator, frozenset([found[3]])))
        elif found := _EXISTS.match(rest):
            requirements.append(Requirement(found[2], "absent" if found[1] else "exists"))
        else:
            raise ApiError(400, "BadRequest", f'unable to parse requirement: cannot read "{rest}"')
        rest = rest[found.end() :].strip()
    equal: dict[str, str] = {}
    others: list[Requirement] = []
    for each in requirements:
        only = next(iter(each.values)) if each.operator == "in" and len(each.values) == 1 else None
        if only is None or equal.setdefault(each.key, only) != only:
            others.append(each)
    return LabelSelector(equal, tuple(others))


def format_labels(selector: Mapping[str, Any] | None) -> str:
    """A LabelSelector object (matchLabels, matchExpressions) as text; empty when it selects everything."""
    terms = [f"{key}={value}" for key, value in sorted(((selector or {}).get("matchLabels") or {}).items())]
    for term in (selector or {}).get("matchExpressions") or ():
        operator, key = term["operator"], term["key"]
        if operator in ("In", "NotIn"):
            terms.append(f"{key} {operator.lower()} ({','.join(sorted(term['values']))})")
        else:
            terms.append(key if operator == "Exists" else f"!{key}")
    return ",".join(terms)


def field(obj: Mapping[str, Any], path: str) -> str:
    """The value at a dotted path as a field selector compares it; empty when absent."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:
            return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


@lru_cache(maxsize=256)
def parse_fields(text: str, supported: frozenset[str]) -> Callable[[Mapping[str, Any]], bool]:
    """A fieldSelector parameter as a predicate; ApiError 400 for a field that the kind cannot select by."""
    terms: list[tuple[str, str, bool]] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = re.fullmatch(r"([A-Za-z0-9.]+)(==|=|!=)(.*)", part)
        if not found:
            raise ApiError(400, "BadRequest", f"invalid selector: '{text}'; can't understand '{part}'")
        if found[1] not in supported:
            raise ApiError(400, "BadRequest", f"field label not supported: {found[1]}")
        terms.append((found[1], found[3], found[2] != "!="))
    return lambda obj: all((field(obj, path) == value) == wanted for path, value, wanted in terms)
