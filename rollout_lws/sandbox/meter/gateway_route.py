"""Selects a rule of an HTTPRoute or GRPCRoute for a request: the most specific match, then the first rule in the list.

Where Gateway API leaves the order to implementations, a RegularExpression path or method ranks after Exact and before
others. Hostnames are not evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from rollout_lws.sandbox.meter.client import Client

Rule: TypeAlias = Mapping[str, Any]

_PATH_RANK = {"Exact": 2, "RegularExpression": 1, "PathPrefix": 0}


def rule_for(rules: Sequence[Rule], client: Client) -> Rule | None:
    """The rule for the client's requests; None when none matches."""
    best: tuple[int, ...] | None = None
    found: Rule | None = None
    for rule in rules:
        for match in rule.get("matches") or [{}]:
            rank = _rank(match, client)
            if rank is not None and (best is None or rank > best):
                best, found = rank, rule
    return found


def under(prefix: str, path: str) -> bool:
    """Whether ``path`` begins with all path elements of ``prefix``."""
    whole = prefix.rstrip("/")
    return path == whole or path.startswith(f"{whole}/")


def holds(find: Callable[[str, str], object], pattern: str, text: str) -> bool:
    """Whether ``find`` (re.search, re.fullmatch) finds the pattern; an invalid pattern never matches."""
    try:
        return find(pattern, text) is not None
    except re.error:
        return False


def _rank(match: Mapping[str, Any], client: Client) -> tuple[int, ...] | None:
    """The precedence of a match, comparable with others; None if it does not match."""
    path, method = match.get("path") or {"type": "PathPrefix", "value": "/"}, match.get("method")
    headers, query = match.get("headers") or (), match.get("queryParams") or ()
    fits = (
        _path_fits(path, client.path)
        and _method_fits(method, client)
        and all(_fits(each, client.header(each["name"])) for each in headers)
        and all(_fits(each, client.query.get(each["name"])) for each in query)
    )
    if not fits:
        return None
    return _PATH_RANK[path["type"]], len(path["value"]), *_method_rank(method), len(headers), len(query)


def _method_fits(method: str | Mapping[str, str] | None, client: Client) -> bool:
    """Whether an HTTP method, or a gRPC one as an object, is the client's."""
    if not isinstance(method, Mapping):
        return method in (None, client.method)
    _, service, name = ("", *client.path.strip("/").split("/"), "", "")[:3]
    kind = method["type"]
    return all(
        _fits({"type": kind, "value": method[member]}, said)
        for member, said in (("service", service), ("method", name))
        if method.get(member)
    )


def _method_rank(method: str | Mapping[str, str] | None) -> tuple[int, int, int]:
    if not isinstance(method, Mapping):
        return int(method is not None), 0, 0
    exact = int(method["type"] == "Exact")
    return exact, len(method.get("service") or ""), len(method.get("method") or "")


def _path_fits(path: Mapping[str, str], wanted: str) -> bool:
    if path["type"] == "Exact":
        return path["value"] == wanted
    if path["type"] == "PathPrefix":
        return under(path["value"], wanted)
    return holds(re.fullmatch, path["value"], wanted)


def _fits(wanted: Mapping[str, str], value: str | None) -> bool:
    if value is None:
        return False
    if wanted["type"] == "Exact":
        return value == wanted["value"]
    return holds(re.fullmatch, wanted["value"], value)
