"""HTTPRoutes of the Gateway API: a step's share and matches written into the user's own route, and taken out again.

Each rule that sends requests to the stable version sends a part of exactly those to the new one; whatever else the
rule does with other backends keeps its share. Every write starts from the user's own route as it is now, worked out
from the live one and our mark, so nothing of an earlier step is left and no edit of the user's is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rollout_lws.api.resources import Keys
from rollout_lws.api.rollout_spec import RequestHeaderModifier
from rollout_lws.traffic import acceptance, marks
from rollout_lws.traffic.acceptance import Parent
from rollout_lws.traffic.http_layout import Layout, UsersRule, namespace_of, put_together, rules_of, taken_apart
from rollout_lws.traffic.http_rules import matches_digest, matches_of, replaces_prefix, rule_to, with_modifier
from rollout_lws.traffic.registry import HTTP_ROUTE
from rollout_lws.traffic.route_marks import (
    RouteMark,
    appended,
    backend_text,
    names,
    paired,
    references,
    refers,
    texts,
    weight_of,
    weights,
)
from rollout_lws.traffic.split import Backend, Backends, Object, Split

_CONDITIONS = HTTP_ROUTE.conditions

#: Limits of the Gateway API's schema.
_MOST_RULES = 16
_MOST_MATCHES_A_RULE = 64
_MOST_MATCHES = 128
_MOST_CONDITIONS = 16


def routed(live: Object, by: str, keys: Keys, backends: Backends, split: Split) -> Object:
    """The route in which this Rollout's share of requests goes to the new version.

    The weight is of the stable version's own part of a rule; where the user, or the split, gives nothing away, weights
    stay as the user wrote them. For each match one rule is appended to each such rule.
    """
    known = _marks(live, keys)
    namespace = namespace_of(live)
    layout = taken_apart(live, known)
    twins = []
    added: dict[str, Object] = {}
    for rule in layout.rules:
        parts = {uid: found for uid, found in rule.twins.items() if uid != by}
        taken = {index for found in parts.values() for index in found}
        ours = [at for at in _sharing(rule, backends.stable, namespace) if at not in taken]
        if split.weight and ours:
            parts[by] = {at: _twin(rule.refs[at], backends.canary, split.header_modifier) for at in ours}
        twins.append(parts)
        for each in _matched(rule, ours, backends.canary, split):
            # Of two rules that match the same only the first is ever asked.
            added.setdefault(matches_digest(each), each)
    before = known.get(by)
    mark = RouteMark(
        stable=backends.stable,
        canary=backends.canary,
        weight=split.weight,
        added=tuple(added),
        parents=before.parents if before else accepting_parents(live),
    )
    rules = tuple(
        replace(rule, marks={uid: each for uid, each in rule.marks.items() if uid != by}) for rule in layout.rules
    )
    layout = Layout(rules, {**layout.added, by: tuple(added.values())})
    return _marked(*put_together(live, layout, {**known, by: mark}, twins), known, keys)


def own(live: Object, by: str, keys: Keys) -> Object:
    """The user's own route as it is now: without our references and rules, with the user's weights, without our mark.
    What others changed meanwhile and what other Rollouts wrote stays.
    """
    known = _marks(live, keys)
    if by not in known:
        return marks.without(live, by, keys)
    layout = taken_apart(live, known)
    left = {uid: mark for uid, mark in known.items() if uid != by}
    twins = [{uid: found for uid, found in rule.twins.items() if uid != by} for rule in layout.rules]
    return marks.without(_marked(*put_together(live, layout, left, twins), known, keys), by, keys)


def drifted(live: Object, by: str, keys: Keys) -> tuple[str, ...]:
    """What of ours somebody changed or removed, in words; () when all stands as written."""
    mark = _marks(live, keys).get(by)
    if mark is None:
        return ()
    namespace, rules = namespace_of(live), rules_of(live)
    ours = appended(rules, mark, namespace)
    users = [rule for index, rule in enumerate(rules) if index not in ours]
    found = []
    for index, note in sorted(paired(mark, users, namespace).items()):
        now = weights(users[index], namespace)
        ways = {key: weight for key, weight in note.written.items() if _is_of(key, mark)}
        where = f"rule {users[index].get('name') or index + 1}"
        found += [f"{where}: {key} is gone" for key in ways if key not in now]
        found += [
            f"{where}: {key} has weight {now[key]}, not {weight}"
            for key, weight in ways.items()
            if key in now and now[key] != weight
        ]
    there = [matches_digest(rules[index]) for index in ours]
    found += [
        f"appended rule {number} is changed or gone" for number, each in enumerate(mark.added, 1) if each not in there
    ]
    return tuple(found)


def parents(live: Object, by: str, keys: Keys) -> tuple[Parent, ...]:
    """The parents that accepted the route before this Rollout's first write; () without its mark."""
    mark = _marks(live, keys).get(by)
    return mark.parents if mark else ()


def reaches_new(live: Object, by: str, keys: Keys) -> bool:
    """Whether the route, as this Rollout has written it, sends any request to the new version."""
    mark = _marks(live, keys).get(by)
    return mark is not None and bool(mark.weight or mark.added)


def weight(live: Object, by: str, keys: Keys) -> int:
    """Percentage of requests that this Rollout has given the new version, 0 to 100."""
    mark = _marks(live, keys).get(by)
    return mark.weight if mark is not None else 0


def accepting_parents(live: Object) -> tuple[Parent, ...]:
    """Those of spec.parentRefs that accept the route, or accepted a generation of it that has just been replaced."""
    attached = _attached(live)
    return tuple(each for each in acceptance.accepting(live, _CONDITIONS) if each in attached)


def unaccepted(live: Object, parents: Iterable[Parent]) -> str:
    """Why the live generation is not routed yet: "" when each of these parents that still is in spec.parentRefs has
    accepted it; else the first that has not, with its condition and message.
    """
    attached = _attached(live)
    said = (acceptance.complaint(live, each, _CONDITIONS) for each in parents if each in attached)
    return next((f"HTTPRoute {live['metadata']['name']}: {why}" for why in said if why), "")


def route_problem(live: Object, backends: Backends, splits: Iterable[Split] = (), *, begun: bool = False) -> str:
    """Why this route cannot share requests between these backends, as a sentence that says what to do; "" when it can.

    ``live`` is the user's own route (see ``own``); ``splits`` are those that the steps will want. Where
    a release has ``begun``, its own backends may be in a route that somebody made anew.
    """
    name, namespace, rules = f"HTTPRoute {live['metadata']['name']}", namespace_of(live), rules_of(live)
    stable, canary = backend_text(backends.stable), backend_text(backends.canary)
    every = [ref for rule in rules for ref in references(rule)]
    if not begun and any(refers(ref, backends.canary, namespace) for ref in every):
        return f"{name} already refers to {canary}, which a release adds by itself; remove it from the rules"
    ours = [ref for ref in every if refers(ref, backends.stable, namespace)]
    if not ours:
        there = ", ".join(sorted({text for rule in rules for text in texts(references(rule), namespace)}))
        return (
            f"{name} has no rule with a backendRef to {stable} (it refers to {there or 'nothing'});"
            " add one, or name the backend that the rules refer to in trafficRoutings"
        )
    if not any(map(weight_of, ours)):
        return f"{name} gives {stable} no requests: its weight is 0 in every rule; give it one of 1 or more"
    return next(filter(None, (split_problem(live, backends, split) for split in splits)), "")


def _attached(live: Object) -> set[Parent]:
    return {acceptance.parent(each, namespace_of(live)) for each in live["spec"].get("parentRefs") or ()}


def _marks(live: Object, keys: Keys) -> dict[str, RouteMark]:
    read = {uid: marks.read_as(RouteMark, live, uid, keys) for uid in marks.others(live, "", keys)}
    return {uid: mark for uid, mark in read.items() if mark is not None}


def _marked(live: Object, new: Mapping[str, RouteMark], before: Mapping[str, RouteMark], keys: Keys) -> Object:
    for uid, mark in new.items():
        if mark != before.get(uid):
            live = marks.put(live, uid, keys, mark)
    return live


def _is_of(key: str, mark: RouteMark) -> bool:
    return names(key, mark.stable) or names(key, mark.canary)


def _twin(ref: Object, canary: Backend, modifier: RequestHeaderModifier | None, weight: int = 1) -> Object:
    filters = with_modifier(ref.get("filters") or (), modifier)
    rest = {member: value for member, value in ref.items() if member != "filters"}
    named = {"group": canary.group, "kind": canary.kind, "name": canary.name, "weight": weight}
    return rest | named | ({"filters": filters} if filters else {})


def _matched(rule: UsersRule, ours: list[int], canary: Backend, split: Split) -> Iterable[Object]:
    if not ours:
        return
    # A step's header changes are made once, by the rule's own filter.
    backends = [_twin(rule.refs[at], canary, None, rule.weight(at) if len(ours) > 1 else 1) for at in ours]
    for match in split.matches:
        made = rule_to(backends, rule.live, match, split.header_modifier)
        if made is not None:
            yield made


def _sharing(rule: UsersRule, stable: Backend, namespace: str) -> list[int]:
    return [at for at in rule.stable(stable, namespace) if rule.weight(at) > 0]


def split_problem(live: Object, backends: Backends, split: Split) -> str:
    """Why the user's own route cannot express this split, as a sentence that says what to do; "" when it can."""
    name, namespace = f"HTTPRoute {live['metadata']['name']}", namespace_of(live)
    rules = [(rule, _sharing(rule, backends.stable, namespace)) for rule in taken_apart(live, {}).rules]
    for number, match in enumerate(split.matches, 1):
        one = Split(matches=(match,))
        if not any(True for rule, ours in rules for _ in _matched(rule, ours, backends.canary, one)):
            return (
                f"match {number} of a step contradicts every rule of {name} that refers to"
                f" {backend_text(backends.stable)}: those want another value of the same header or query parameter;"
                " match another one"
            )
        if (
            match.path
            and match.path.type != "PathPrefix"
            and any(ours and replaces_prefix(r.live) for r, ours in rules)
        ):
            return (
                f"match {number} of a step matches a path by {match.path.type}, and a rule of {name} replaces"
                " the prefix of paths, which goes with PathPrefix only; match a PathPrefix or a header"
            )
    added = {
        matches_digest(each): each for rule, ours in rules for each in _matched(rule, ours, backends.canary, split)
    }
    matches = [matches_of(rule) for rule in (*rules_of(live), *added.values())]
    conditions = [len(each.get(kind) or ()) for some in matches for each in some for kind in ("headers", "queryParams")]
    for count, most, what in (
        (len(matches), _MOST_RULES, "rules"),
        (max(map(len, matches)), _MOST_MATCHES_A_RULE, "matches in one rule"),
        (sum(map(len, matches)), _MOST_MATCHES, "matches"),
        (max(conditions), _MOST_CONDITIONS, "headers or query parameters in one match"),
    ):
        if count > most:
            return (
                f"the matches of a step would give {name} {count} {what}, more than the {most} that the Gateway API"
                " allows; use fewer matches, or a route with fewer rules"
            )
    return ""
