"""Matches and filters of a route's rule: compares them with defaults filled in, and combines them with a step's.

Everything written here carries the defaults that the API server would add. Otherwise the live rule would always differ
from the written one, and each reconcile would write it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rollout_lws.api.rollout_spec import HeaderMatch, HttpMatch, RequestHeaderModifier
from rollout_lws.targets.version import short_hash
from rollout_lws.traffic.split import Object

_HEADER_MODIFIER = "RequestHeaderModifier"
#: Members of a rule that are not copied unchanged into one derived from it; names are unique in a route.
_OWN = frozenset({"name", "matches", "filters", "backendRefs"})


def matches_of(rule: Object) -> list[Object]:
    """The rule's matches with their defaults; a rule without any matches every request."""
    return [_full(match) for match in rule.get("matches") or [{}]]


def matches_digest(rule: Object) -> str:
    """Equal for two rules exactly when they match the same requests."""
    return short_hash(msgspec.json.encode(matches_of(rule), order="sorted").decode(), 10)


def combined(users: Object, ours: HttpMatch) -> Object | None:
    """A match for requests that fit both; our path replaces the user's. None when no request can fit both, as far as
    can be determined: the API allows one condition per header, and neither of two different ones may be dropped.
    """
    both = dict(_full(users))
    if ours.path is not None:
        both["path"] = {"type": ours.path.type, "value": ours.path.value}
    for member, extra in (("headers", ours.headers), ("queryParams", ours.query_params)):
        # Header names are case-insensitive, query parameter names are not.
        conditions = {_named(item["name"], member): item for item in both.get(member) or ()}
        for item in map(_condition, extra):
            if _differ(conditions.setdefault(_named(item["name"], member), item), item):
                return None
        if conditions:
            both[member] = list(conditions.values())
    return both


def rule_to(
    backends: Sequence[Object], rule: Object, ours: HttpMatch, modifier: RequestHeaderModifier | None
) -> Object | None:
    """A rule for the requests of ``rule`` that also fit our match: same filters and other members, other backends. None
    when no request can fit both.
    """
    matches: list[Object] = []
    for users in matches_of(rule):
        match = combined(users, ours)
        if match is not None and match not in matches:
            matches.append(match)
    if not matches:
        return None
    made: dict[str, Any] = {member: value for member, value in rule.items() if member not in _OWN}
    filters = with_modifier(rule.get("filters") or (), modifier)
    return {**made, "matches": matches, "backendRefs": list(backends)} | ({"filters": filters} if filters else {})


def with_modifier(filters: Iterable[Object], modifier: RequestHeaderModifier | None) -> list[Object]:
    """The filters with our header changes. A rule may have only one filter of that type, so ours is merged into the
    user's; our change wins for a header that both name.
    """
    kept = list(filters)
    if modifier is None or not (modifier.set or modifier.add or modifier.remove):
        return kept
    ours: dict[str, list[Any]] = {
        "set": [{"name": each.name, "value": each.value} for each in modifier.set],
        "add": [{"name": each.name, "value": each.value} for each in modifier.add],
        "remove": list(modifier.remove),
    }
    named = {_header(item) for items in ours.values() for item in items}
    at = next((index for index, each in enumerate(kept) if each.get("type") == _HEADER_MODIFIER), len(kept))
    users = (kept[at].get("requestHeaderModifier") or {}) if at < len(kept) else {}
    merged = {
        member: [item for item in users.get(member) or () if _header(item) not in named] + items
        for member, items in ours.items()
    }
    changes = {member: items for member, items in merged.items() if items}
    kept[at : at + 1] = [{"type": _HEADER_MODIFIER, "requestHeaderModifier": changes}]
    return kept


def replaces_prefix(rule: Object) -> bool:
    """Whether a filter of the rule replaces the matched prefix; such a rule may match only prefixes."""
    changes = (each.get(kind) or {} for each in rule.get("filters") or () for kind in ("urlRewrite", "requestRedirect"))
    return any((change.get("path") or {}).get("type") == "ReplacePrefixMatch" for change in changes)


def _full(match: Object | None) -> Object:
    stated = _stated(match)
    full = {member: value for member, value in stated.items() if member not in ("headers", "queryParams")}
    full["path"] = {"type": "PathPrefix", "value": "/"} | _stated(stated.get("path"))
    for member in ("headers", "queryParams"):
        if stated.get(member):
            full[member] = [{"type": "Exact"} | _stated(item) for item in stated[member]]
    return full


def _stated(value: Object | None) -> dict[str, Any]:
    """The value without null members: the API server fills in defaults for null as for absent."""
    return {member: each for member, each in (value or {}).items() if each is not None}


def _condition(ours: HeaderMatch) -> dict[str, str]:
    return {"type": ours.type, "name": ours.name, "value": ours.value}


def _named(name: str, member: str) -> str:
    return name.lower() if member == "headers" else name


def _differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (one["type"], one["value"]) != (other["type"], other["value"])


def _header(item: Any) -> str:
    return str(item["name"] if isinstance(item, Mapping) else item).lower()
