"""Separates the rules of a route into the user's part and the parts that Rollouts added, and assembles them again.

Several Rollouts may share a route, even a rule. Weights of one rule only mean something together, so they are computed
for all Rollouts at once from the user's own. The result does not depend on the order of writes, and a Rollout that ends
removes nothing that another one needs.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from rollout_lws.traffic.route.rules import matches_digest
from rollout_lws.traffic.route.state import (
    RouteMark,
    RuleMark,
    appended,
    paired,
    references,
    refers,
    texts,
    weight_of,
    weights,
)
from rollout_lws.traffic.route.weights import shared
from rollout_lws.traffic.split import Backend, Object

#: Index of a backendRef of the stable version → the canary reference that belongs to it.
Twins: TypeAlias = Mapping[int, Object]


@dataclass(frozen=True, slots=True)
class UsersRule:
    """A rule of the user's: its own backendRefs, the user's weights for them (None: not stated), and by UID the
    references that Rollouts added and the entries they stored about the rule.
    """

    live: Object
    refs: tuple[Object, ...]
    weights: tuple[int | None, ...]
    twins: Mapping[str, Twins]
    marks: Mapping[str, RuleMark]

    def stable(self, backend: Backend, namespace: str) -> list[int]:
        """Indices of the references to this backend."""
        return [index for index, ref in enumerate(self.refs) if refers(ref, backend, namespace)]

    def weight(self, index: int) -> int:
        """The weight in effect that the user wants."""
        weight = self.weights[index]
        return 1 if weight is None else weight


@dataclass(frozen=True, slots=True)
class AddedRule:
    """A rule that a Rollout added. Where the order of rules decides, it stands directly before the user's rule at index
    ``before``; as many as there are: behind all.
    """

    rule: Object
    before: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The user's rules in order, and by UID the rules that Rollouts added."""

    rules: tuple[UsersRule, ...]
    added: Mapping[str, tuple[AddedRule, ...]]


def taken_apart(rules: list[Object], namespace: str, marks: Mapping[str, RouteMark]) -> Layout:
    """The rules of a route in ``namespace``, separated with the help of these entries."""
    left = list(enumerate(rules))
    found: dict[str, list[tuple[int, Object]]] = {}
    for uid, mark in sorted(marks.items()):
        ours = appended([rule for _, rule in left], mark, namespace)
        found[uid] = [left[index] for index in ours]
        left = [each for index, each in enumerate(left) if index not in ours]
    places = [place for place, _ in left]
    added = {uid: tuple(AddedRule(rule, bisect(places, at)) for at, rule in each) for uid, each in found.items()}
    rules = [rule for _, rule in left]
    notes = {uid: paired(mark, rules, namespace) for uid, mark in marks.items()}
    return Layout(
        tuple(
            _users(rule, marks, {uid: found[index] for uid, found in notes.items() if index in found}, namespace)
            for index, rule in enumerate(rules)
        ),
        added,
    )


def put_together(
    layout: Layout,
    namespace: str,
    marks: Mapping[str, RouteMark],
    twins: Sequence[Mapping[str, Twins]],
    *,
    ordered: bool,
    defaulted: bool,
) -> tuple[list[Object], dict[str, RouteMark]]:
    """The rules with each of these Rollouts' parts, and the updated entries.

    ``twins`` has for each of the user's rules, by UID, the canary references to add to the stable ones; each Rollout's
    weight comes from its entry. Added rules follow all of the user's, in the order of UIDs, unless the order of rules
    decides (``ordered``). Where the API server adds the default weight (``defaulted``), one that the user has not
    stated may stay as it stands.
    """
    notes: dict[str, list[RuleMark]] = {uid: [] for uid in marks}
    added = [each for uid in sorted(marks) for each in layout.added.get(uid, ())]
    rules = []
    for at, (rule, parts) in enumerate(zip(layout.rules, twins, strict=True)):
        body, found = _written(rule, marks, parts, namespace, defaulted=defaulted)
        rules += [each.rule for each in added if ordered and each.before == at]
        rules.append(body)
        for uid, note in found.items():
            notes[uid].append(note)
    rules += [each.rule for each in added if not ordered or each.before >= len(layout.rules)]
    return rules, {uid: msgspec.structs.replace(mark, rules=tuple(notes[uid])) for uid, mark in marks.items()}


def _users(rule: Object, marks: Mapping[str, RouteMark], notes: Mapping[str, RuleMark], namespace: str) -> UsersRule:
    live = references(rule)
    refs: list[Object] = []
    theirs: dict[str, list[tuple[int, Object]]] = {
        uid: []
        for uid, mark in marks.items()
        if uid in notes or any(refers(ref, mark.stable, namespace) for ref in live)
    }
    for ref in live:
        uid = next((uid for uid in theirs if refers(ref, marks[uid].canary, namespace)), None)
        if uid is None:
            refs.append(ref)
        else:
            theirs[uid].append((len(refs) - 1, ref))
    if live and not refs:
        # Another writer deleted the stable reference and left ours: without either, requests would have no backend.
        refs = [_renamed(ref, marks[uid].stable) for uid, found in theirs.items() for _, ref in found]
        theirs = {}
    twins = {uid: _beside(refs, found, marks[uid].stable, namespace) for uid, found in theirs.items()}
    return UsersRule(
        live=rule,
        refs=tuple(refs),
        weights=_users_weights(rule, refs, twins, notes.values(), namespace),
        twins={uid: found for uid, found in twins.items() if found},
        marks=notes,
    )


def _beside(refs: Sequence[Object], twins: Iterable[tuple[int, Object]], stable: Backend, namespace: str) -> Twins:
    """By index of the stable reference: the canary reference behind it, or a moved one of the same port."""
    alone = [index for index, ref in enumerate(refs) if refers(ref, stable, namespace)]
    found: dict[int, Object] = {}
    for before, twin in sorted(twins, key=lambda each: each[0] not in alone):
        fitting = [at for at in alone if at not in found and refs[at].get("port") == twin.get("port")]
        if fitting:
            found[before if before in fitting else fitting[0]] = twin
    return found


def _users_weights(
    rule: Object,
    refs: Sequence[Object],
    twins: Mapping[str, Twins],
    notes: Iterable[RuleMark],
    namespace: str,
) -> tuple[int | None, ...]:
    """The weights that the user wants: the originals while all weights are as written. Otherwise those that stand
    there, since a user who saw our weights and set another one meant it in their scale.
    """
    live = weights(rule, namespace)
    stated = tuple(ref.get("weight") for ref in refs)
    original: dict[str, int | None] = {}
    written: dict[str, int] = {}
    for note in notes:
        original |= note.original
        written |= note.written
    keys = texts(refs, namespace)
    if not written:
        return stated
    if all(key in original and live.get(key) == written.get(key) for key in keys):
        return tuple(original[key] for key in keys)
    if not any(key in live for key in written.keys() - original.keys()):
        return stated
    given = {index: weight_of(twin) for found in twins.values() for index, twin in found.items()}
    mixed: list[int | None] = []
    for index, (key, weight) in enumerate(zip(keys, stated, strict=True)):
        if key not in original or live.get(key) != written.get(key):
            mixed.append(weight)
            continue
        whole = written[key] + given.get(index, 0)
        before = original[key]
        mixed.append(before if whole == (1 if before is None else before) else whole)
    return tuple(mixed)


def _written(
    rule: UsersRule, marks: Mapping[str, RouteMark], parts: Mapping[str, Twins], namespace: str, *, defaulted: bool
) -> tuple[Object, dict[str, RuleMark]]:
    whose = {index: uid for uid, found in parts.items() for index in found}
    percents = {index: marks[uid].weight for index, uid in whose.items()}
    users = [rule.weight(index) for index in range(len(rule.refs))]
    pairs = shared(users, percents) if percents else [(weight, 0) for weight in users]
    refs: list[Object] = []
    theirs: dict[int, str] = {}
    for index, (ref, (kept, given)) in enumerate(zip(rule.refs, pairs, strict=True)):
        refs.append(_weighted(ref, kept, rule.weights[index], defaulted=defaulted))
        if index in whose:
            theirs[len(refs)] = whose[index]
            refs.append({**parts[whose[index]][index], "weight": given})
    keys = texts(refs, namespace)
    mine = [key for at, key in enumerate(keys) if at not in theirs]
    written = {key: kept for key, (kept, _) in zip(mine, pairs, strict=True)}
    notes = {}
    for uid in sorted(marks):
        if uid not in parts and uid not in rule.marks:
            continue
        twins = {keys[at]: weight_of(refs[at]) for at, owner in theirs.items() if owner == uid}
        if not twins and uid in rule.marks:
            # Another writer removed this Rollout's reference: the entry must still show that it is missing.
            before = rule.marks[uid]
            twins = {key: weight for key, weight in before.written.items() if key not in before.original}
        notes[uid] = RuleMark(
            name=str(rule.live.get("name") or ""),
            matches=matches_digest(rule.live),
            original=dict(zip(mine, rule.weights, strict=True)),
            written=written | twins,
        )
    return (rule.live if refs == references(rule.live) else {**rule.live, "backendRefs": refs}), notes


def _weighted(ref: Object, weight: int, users: int | None, *, defaulted: bool) -> Object:
    if weight_of(ref) == weight and (defaulted or users is not None):
        return ref
    rest = {member: value for member, value in ref.items() if member != "weight"}
    return rest if users is None and weight == 1 else {**rest, "weight": weight}


def _renamed(ref: Object, backend: Backend) -> Object:
    rest = {member: value for member, value in ref.items() if member not in ("weight", "filters")}
    return rest | {"group": backend.group, "kind": backend.kind, "name": backend.name}
