"""Routes with weighted rules: writes a step's weight and matches into the user's object, and removes them again.

Each rule that sends requests to the stable version sends a part of those to the new one; the rule's other backends keep
their weight. Every write starts from the user's own route, computed from the live object and our annotation, so nothing
of an earlier step remains and no edit of the user's is lost.

Rules have the shape of the Gateway API: a list of objects with ``name``, ``matches``, ``filters`` and ``backendRefs``,
each of these with ``group``, ``kind``, ``name``, ``namespace``, ``port`` and ``weight``. A kind with another shape
supplies functions that read and write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rollout_lws.api.resources import Keys
from rollout_lws.api.rollout_spec import HttpMatch, RequestHeaderModifier
from rollout_lws.traffic import marks
from rollout_lws.traffic.registry import RouterSpec
from rollout_lws.traffic.route import status
from rollout_lws.traffic.route.model import AddedRule, Layout, Twins, UsersRule, put_together, taken_apart
from rollout_lws.traffic.route.rules import matches_digest, matches_of, replaces_prefix, rule_to, with_modifier
from rollout_lws.traffic.route.state import (
    RouteMark,
    appended,
    backend_text,
    changed,
    names,
    paired,
    references,
    refers,
    texts,
    weight_of,
    weights,
)
from rollout_lws.traffic.route.status import Parent
from rollout_lws.traffic.split import Backend, Backends, Object, Split


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one object of a kind: rules, matches of one rule and of all rules, and headers or query parameters of
    one match. ``of`` names the API that sets them.
    """

    of: str
    rules: int
    matches_a_rule: int
    matches: int
    conditions: int

    def exceeded(self, name: str, rules: Sequence[Object]) -> str:
        """Why these rules exceed the limits, as a sentence that says what to do; "" when they do not."""
        matches = [matches_of(rule) for rule in rules]
        conditions = [
            len(one.get(kind) or ()) for some in matches for one in some for kind in ("headers", "queryParams")
        ]
        for count, most, what in (
            (len(matches), self.rules, "rules"),
            (max(map(len, matches)), self.matches_a_rule, "matches in one rule"),
            (sum(map(len, matches)), self.matches, "matches"),
            (max(conditions), self.conditions, "headers or query parameters in one match"),
        ):
            if count > most:
                return (
                    f"the matches of a step would give {name} {count} {what}, more than the {most} that {self.of}"
                    " allows; use fewer matches, or a route with fewer rules"
                )
        return ""


#: What a step's match can want of a request.
CONDITIONS: Mapping[str, Callable[[HttpMatch], object]] = {
    "path": lambda match: match.path,
    "header": lambda match: match.headers,
    "query parameter": lambda match: match.query_params,
}


@dataclass(frozen=True, slots=True)
class WeightedRules:
    """A kind of routes: how its rules are ``read`` and written (``with_rules``), its ``limits`` (None: none), and which
    of ``CONDITIONS`` its matches ``lack``. ``normal`` gives a rule that a release makes as it is read once it is
    written. ``ordered``: of several rules that match a request the first one decides, not the most specific.
    ``defaulted``: the API server adds a weight of 1 where none is stated. ``reference`` is what the kind calls a
    reference to a backend.
    """

    spec: RouterSpec
    read: Callable[[Object], list[Object]]
    with_rules: Callable[[Object, list[Object]], Object]
    limits: Limits | None = None
    lacks: frozenset[str] = frozenset()
    normal: Callable[[Object], Object] = lambda rule: rule
    ordered: bool = False
    defaulted: bool = True
    reference: str = "backendRef"

    def route_of(self, rule: Object) -> Object:
        """A rule as the kind writes it."""
        (written,) = self.with_rules({"spec": {}}, [rule])["spec"][self.spec.members[0]]
        made: Object = written
        return made

    def routed(self, live: Object, by: str, keys: Keys, backends: Backends, split: Split) -> Object:
        """The route with this Rollout's split.

        The weight applies to the stable version's own part of a rule; where that is 0, the user's weights stay. A
        backend of the new version that is there stays with a weight of 0, and a split that only lists it adds it so
        (see ``rollout.routing.backend_listing``). For each match, one rule is appended per rule of the user's that
        serves the stable version.
        """
        known = marks_of(live, keys)
        namespace = namespace_of(live)
        layout = taken_apart(self.read(live), namespace, self._with_unmarked(live, by, keys, backends))
        twins = []
        added: dict[str, AddedRule] = {}
        for at, rule in enumerate(layout.rules):
            parts = {uid: found for uid, found in rule.twins.items() if uid != by}
            taken = {index for found in parts.values() for index in found}
            ours = [index for index in _sharing(rule, backends.stable, namespace) if index not in taken]
            # One that another writer took away is missed only when it is needed: a tool that keeps its own rules would
            # be answered without end.
            there = rule.twins.get(by, {})
            stays = ours if split.names_new else [index for index in ours if index in there]
            if stays:
                modifier = split.header_modifier
                parts[by] = {index: _twin(rule.refs[index], backends.canary, modifier) for index in stays}
            twins.append(parts)
            for each in self.matched(rule, ours, backends.canary, split):
                # Of two rules that match the same, gateways only ever use the first.
                added.setdefault(matches_digest(each), AddedRule(each, at))
        before = known.get(by)
        mark = RouteMark(
            stable=backends.stable,
            canary=backends.canary,
            weight=split.weight,
            added=tuple(added),
            parents=before.parents if before else self.accepting(live),
            listed_at=_listed_at(before, split, named=any(by in rule.twins for rule in layout.rules)),
            carried=split.reaches_new or carried(live, by, keys),
        )
        rules = tuple(
            replace(rule, marks={uid: each for uid, each in rule.marks.items() if uid != by}) for rule in layout.rules
        )
        layout = Layout(rules, {**layout.added, by: tuple(added.values())})
        return self.put_together(live, layout, {**known, by: mark}, twins, known, keys)

    def own(self, live: Object, by: str, keys: Keys, backends: Backends | None = None) -> Object:
        """The user's own route: without our references, rules and annotation entry, with the user's weights. Changes by
        other writers and by other Rollouts stay. Of an entry that another writer removed alone, ``backends`` tell the
        references.
        """
        known = marks_of(live, keys) if backends is None else self._with_unmarked(live, by, keys, backends)
        if by not in known:
            return marks.without(live, by, keys)
        namespace = namespace_of(live)
        layout = taken_apart(self.read(live), namespace, known)
        left = {uid: mark for uid, mark in known.items() if uid != by}
        twins = [{uid: found for uid, found in rule.twins.items() if uid != by} for rule in layout.rules]
        return marks.without(self.put_together(live, layout, left, twins, known, keys), by, keys)

    def drifted(self, live: Object, by: str, keys: Keys) -> tuple[str, ...]:
        """Our changes that another writer changed or removed, as text; () when all stand as written. A backend of the
        new version that is gone does no harm while it gets no requests (see ``unlisted``).
        """
        mark = marks_of(live, keys).get(by)
        if mark is None:
            return ()
        namespace, rules = namespace_of(live), self.read(live)
        ours = appended(rules, mark, namespace)
        users = [rule for index, rule in enumerate(rules) if index not in ours]
        found = []
        for index, note in sorted(paired(mark, users, namespace).items()):
            now = weights(users[index], namespace)
            ways = {key: weight for key, weight in note.written.items() if _is_of(key, mark)}
            where = f"rule {users[index].get('name') or index + 1}"
            found += [
                f"{where}: {key} is gone"
                for key, weight in ways.items()
                if key not in now and (weight or not names(key, mark.canary))
            ]
            found += [
                f"{where}: {key} has weight {now[key]}, not {weight}"
                for key, weight in ways.items()
                if key in now and now[key] != weight
            ]
        return (*found, *changed(rules, ours, mark.added))

    def unmarked(self, live: Object, by: str, keys: Keys, backends: Backends) -> bool:
        """Whether a rule names both versions' backends without our annotation entry: another writer removed that."""
        namespace = namespace_of(live)
        return marks.read(live, by, keys) is None and any(
            all(
                any(refers(ref, each, namespace) for ref in references(rule))
                for each in (backends.stable, backends.canary)
            )
            for rule in self.read(live)
        )

    def _with_unmarked(self, live: Object, by: str, keys: Keys, backends: Backends) -> dict[str, RouteMark]:
        """All entries, with an empty one of ours in place of one that was removed."""
        lacks = self.unmarked(live, by, keys, backends)
        return marks_of(live, keys) | ({by: RouteMark(backends.stable, backends.canary)} if lacks else {})

    def unlisted(self, live: Object, by: str, keys: Keys, backends: Backends) -> bool:
        """Whether no rule names the new version's backend, though one could give it requests."""
        namespace = namespace_of(live)
        if any(refers(ref, backends.canary, namespace) for rule in self.read(live) for ref in references(rule)):
            return False
        rules = taken_apart(self.read(live), namespace, marks_of(live, keys)).rules
        others = [{at for uid, found in rule.twins.items() if uid != by for at in found} for rule in rules]
        return any(
            at not in taken
            for rule, taken in zip(rules, others, strict=True)
            for at in _sharing(rule, backends.stable, namespace)
        )

    def route_problem(self, live: Object, backends: Backends, *, begun: bool = False) -> str:
        """Why this route cannot split requests between these backends, as a sentence that says what to do; "" when it
        can. ``live`` is the user's own route (see ``own``). Once a release has ``begun``, a recreated route may already
        contain the release's backends.
        """
        name, namespace, rules = self.text(live), namespace_of(live), self.read(live)
        stable, canary = backend_text(backends.stable), backend_text(backends.canary)
        every = [ref for rule in rules for ref in references(rule)]
        if not begun and any(refers(ref, backends.canary, namespace) for ref in every):
            return f"{name} already refers to {canary}, which a release adds by itself; remove it from the rules"
        ours = [ref for ref in every if refers(ref, backends.stable, namespace)]
        if not ours:
            there = ", ".join(sorted({text for rule in rules for text in texts(references(rule), namespace)}))
            return (
                f"{name} has no rule with a {self.reference} to {stable} (it refers to {there or 'nothing'});"
                " add one, or name the backend that the rules refer to in trafficRoutings"
            )
        if not any(map(weight_of, ours)):
            return f"{name} gives {stable} no requests: its weight is 0 in every rule; give it one of 1 or more"
        return ""

    def split_problem(self, live: Object, backends: Backends, split: Split) -> str:
        """Why the user's own route cannot express this split, as a sentence that says what to do; "" when it can."""
        namespace = namespace_of(live)
        rules = taken_apart(self.read(live), namespace, {}).rules
        return self.match_problem(
            live, [(rule, _sharing(rule, backends.stable, namespace)) for rule in rules], backends, split
        )

    def match_problem(
        self, live: Object, rules: Sequence[tuple[UsersRule, Sequence[int]]], backends: Backends, split: Split
    ) -> str:
        """Why no rules for the split's matches can be appended, as a sentence that says what to do; "" when they can.
        ``rules`` are the user's own, each with the indices of its references that ``matched`` needs.
        """
        name = self.text(live)
        for number, match in enumerate(split.matches, 1):
            lacking = next((each for each in CONDITIONS if each in self.lacks and CONDITIONS[each](match)), "")
            if lacking:
                return (
                    f"match {number} of a step matches a {lacking}, which no {self.spec.resource.kind} does; match"
                    f" {' or '.join(each for each in CONDITIONS if each not in self.lacks)}s"
                )
            one = Split(matches=(match,))
            if not any(True for rule, ours in rules for _ in self.matched(rule, ours, backends.canary, one)):
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
            matches_digest(each): each
            for rule, ours in rules
            for each in self.matched(rule, ours, backends.canary, split)
        }
        return self.limits.exceeded(name, (*self.read(live), *added.values())) if self.limits is not None else ""

    def accepting(self, live: Object) -> tuple[Parent, ...]:
        """Those of spec.parentRefs that accept the route, or accepted a generation of it that was just replaced."""
        attached = attached_to(live)
        return tuple(each for each in status.accepting(live, self.spec.conditions) if each in attached)

    def unused(self, live: Object) -> str:
        """Why no weight counts as routed, whatever is written, as a sentence that says what to do; "" when a Gateway
        accepts the route, and for a kind that does not report it.
        """
        if not self.spec.conditions or self.accepting(live):
            return ""
        return f"no Gateway accepts {self.text(live)} as it is: correct what its status.parents says"

    def unaccepted(self, live: Object, parents: Iterable[Parent]) -> str:
        """Why the live generation is not routed yet: the first of these parents, if still in spec.parentRefs, that has
        not accepted it, with its condition and message; "" when all have.
        """
        attached = attached_to(live)
        said = (status.complaint(live, each, self.spec.conditions) for each in parents if each in attached)
        return next((f"{self.text(live)}: {why}" for why in said if why), "")

    def text(self, live: Object) -> str:
        """Kind and name of the route, for sentences."""
        return f"{self.spec.resource.kind} {live['metadata']['name']}"

    def matched(self, rule: UsersRule, ours: Sequence[int], canary: Backend, split: Split) -> Iterable[Object]:
        """The rules that send to ``canary`` what fits both this rule and one of the split's matches; ``ours`` are
        indices of the references whose place it takes, or that are its own, () for none.
        """
        if not ours:
            return
        # The rule's own filter makes a step's header changes, only once.
        backends = [_twin(rule.refs[at], canary, None, rule.weight(at) if len(ours) > 1 else 1) for at in ours]
        for match in split.matches:
            made = rule_to(backends, rule.live, match, split.header_modifier)
            if made is not None:
                yield self.normal(made)

    def put_together(
        self,
        live: Object,
        layout: Layout,
        marked: Mapping[str, RouteMark],
        twins: Sequence[Mapping[str, Twins]],
        before: Mapping[str, RouteMark],
        keys: Keys,
    ) -> Object:
        """The route with the parts of these Rollouts (see ``model.put_together``), and with those of their entries that
        differ from the ones ``before``.
        """
        rules, new = put_together(
            layout, namespace_of(live), marked, twins, ordered=self.ordered, defaulted=self.defaulted
        )
        after = self.with_rules(live, rules)
        for uid, mark in new.items():
            if mark != before.get(uid):
                after = marks.put(after, uid, keys, mark)
        return after


def namespace_of(live: Object) -> str:
    return str(live["metadata"].get("namespace", ""))


def attached_to(live: Object) -> tuple[Parent, ...]:
    """The parents that the route names."""
    return tuple(status.parent(each, namespace_of(live)) for each in live["spec"].get("parentRefs") or ())


def parents(live: Object, by: str, keys: Keys) -> tuple[Parent, ...]:
    """The parents that accepted the route before this Rollout's first write; () without its annotation entry."""
    mark = marks_of(live, keys).get(by)
    return mark.parents if mark else ()


def reaches_new(live: Object, by: str, keys: Keys) -> bool:
    """Whether the route, as this Rollout has written it, sends any request to the new version."""
    mark = marks_of(live, keys).get(by)
    return mark is not None and bool(mark.weight or mark.added)


def weight(live: Object, by: str, keys: Keys) -> int:
    """Percentage of requests that this Rollout has given the new version, 0 to 100."""
    mark = marks_of(live, keys).get(by)
    return mark.weight if mark is not None else 0


def listed_at(live: Object, by: str, keys: Keys) -> datetime | None:
    """Since when the route names the new version's backend without having given it requests; None if it has, or does
    not name it.
    """
    mark = marks_of(live, keys).get(by)
    return mark.listed_at if mark is not None else None


def carried(live: Object, by: str, keys: Keys) -> bool:
    """Whether the route has given the new version requests in this release; also with an entry that is unreadable."""
    mark = marks_of(live, keys).get(by)
    return mark.carried if mark is not None else marks.read(live, by, keys) is not None


def _listed_at(before: RouteMark | None, split: Split, *, named: bool) -> datetime | None:
    if split.reaches_new:
        return None
    return before.listed_at if before is not None and (named or not split.only_lists) else split.listed_at


def marks_of(live: Object, keys: Keys) -> dict[str, RouteMark]:
    """The entries of all Rollouts whose backends of the new version are added to the route, by UID."""
    read = {uid: marks.read_as(RouteMark, live, uid, keys) for uid in marks.others(live, "", keys)}
    return {uid: mark for uid, mark in read.items() if mark is not None}


def _is_of(key: str, mark: RouteMark) -> bool:
    return names(key, mark.stable) or names(key, mark.canary)


def _twin(ref: Object, canary: Backend, modifier: RequestHeaderModifier | None, weight: int = 1) -> Object:
    filters = with_modifier(ref.get("filters") or (), modifier)
    rest = {member: value for member, value in ref.items() if member != "filters"}
    named = {"group": canary.group, "kind": canary.kind, "name": canary.name, "weight": weight}
    return rest | named | ({"filters": filters} if filters else {})


def _sharing(rule: UsersRule, stable: Backend, namespace: str) -> list[int]:
    return [at for at in rule.stable(stable, namespace) if rule.weight(at) > 0]
