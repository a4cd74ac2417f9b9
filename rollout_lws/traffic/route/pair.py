"""Routes whose rules name the backends of two workloads of the user: a release moves weight from one to the other.

Both backendRefs are the user's, and a release changes nothing of them but their weights. So there is no original to
restore: the weights stay as a release leaves them, and the workload that has them all is the active one. Only rules for
a step's matches are appended, and removed again.

The weights are the user's for other Rollouts too, which share the route by entries of another form (``RouteMark``):
what those have added is taken apart before weights are moved, and put together again behind.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

import msgspec

from rollout_lws.api.resources import Keys
from rollout_lws.objects.meta import Struct
from rollout_lws.traffic import marks
from rollout_lws.traffic.route.model import AddedRule, Layout, UsersRule, taken_apart
from rollout_lws.traffic.route.rules import matches_digest
from rollout_lws.traffic.route.state import (
    appended_to,
    backend_text,
    changed,
    references,
    refers,
    texts,
    weight_of,
)
from rollout_lws.traffic.route.status import Parent
from rollout_lws.traffic.route.weighted import WeightedRules, marks_of, namespace_of
from rollout_lws.traffic.route.weights import moved
from rollout_lws.traffic.split import ALL_STABLE, Backends, Object, Split


class PairMark(Struct, frozen=True):
    """A Rollout's annotation entry. ``active`` is the workload that the stable version's backend leads to, ``share``
    the percentage of requests that the release has given the other one, 0 to 100.

    ``added`` are digests of the matches of the appended rules. ``backends`` are those between which the release moves
    requests, None before it has moved any and at rest; ``parents`` accepted the route before, () at rest. ``carried``:
    the route has given the new version requests in this release. ``rested_at`` is when the other side last lost its
    requests at rest, or an entry was written where none said whether it had any; None if a release had drained it.
    """

    active: str
    share: int = 0
    added: tuple[str, ...] = ()
    backends: Backends | None = None
    parents: tuple[Parent, ...] = ()
    carried: bool = False
    rested_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None

    @property
    def gives(self) -> bool:
        """Whether the route, as it was written, sends the new version any request."""
        return self.share > 0 or bool(self.added)

    @property
    def begun(self) -> bool:
        """Whether a release has given the new version requests since the route was last at rest."""
        return self.carried or self.gives


@dataclass(frozen=True, slots=True)
class PairRules:
    """Rules of a ``kind`` of routes that name two workloads' backends. In ``backends``, ``stable`` is the active
    workload's.
    """

    kind: WeightedRules

    def routed(
        self,
        live: Object,
        by: str,
        keys: Keys,
        backends: Backends,
        active: str,
        split: Split,
        *,
        appending: Sequence[Split] = (),
    ) -> Object:
        """The route with this split. In each rule that names each backend once, they share the sum of their weights
        anew; all else of their references stays, and other backends keep their share. For each match, one rule is
        appended per such rule. Where the entry was lost, rules that a split of ``appending`` adds are taken for ours.
        """
        before = mark_of(live, by, keys)
        if not (split.reaches_new or (before is not None and before.begun)):
            return self.rested(live, by, keys, backends, active, appending=appending)
        # Until anything is given, each write may be the last before the release's first.
        parents = before.parents if before is not None and before.begun else self.kind.accepting(live)
        carried = split.reaches_new or (before is not None and before.carried)
        mark = PairMark(active=active, share=split.weight, parents=parents, carried=carried)
        return self._written(live, by, keys, backends, split, mark, appending)

    def rested(
        self,
        live: Object,
        by: str,
        keys: Keys,
        backends: Backends,
        active: str,
        *,
        appending: Sequence[Split] = (),
        now: datetime | None = None,
    ) -> Object:
        """The route outside a release: everything to the active workload, and an entry that says no more than that,
        with ``now`` if this write takes requests from the other one, or no entry said that it had none. ``appending``
        as in ``routed``.
        """
        before = mark_of(live, by, keys)
        mark = PairMark(active=active, rested_at=before.rested_at if before is not None else None)
        after = self._written(live, by, keys, backends, ALL_STABLE, mark, appending)
        if now is not None and (
            before is None or (self.reaches_new(live, backends) and not self.reaches_new(after, backends))
        ):
            mark = PairMark(active=active, rested_at=now)
            after = self._written(live, by, keys, backends, ALL_STABLE, mark, appending)
        return after

    def without_lost(self, live: Object, by: str, keys: Keys, backends: Backends, appending: Sequence[Split]) -> Object:
        """The route without appended rules whose entry was lost, as a split of ``appending`` adds them."""
        if mark_of(live, by, keys) is not None:
            return live
        namespace, rules = namespace_of(live), self.kind.read(live)
        users = taken_apart(rules, namespace, {}).rules
        lost = {digest for each in appending for digest in self._added(users, backends, each, namespace)}
        ours = _left(rules, lost, backends, namespace)
        return self.kind.with_rules(live, [rule for at, rule in enumerate(rules) if at not in ours]) if ours else live

    def own(self, live: Object, by: str, keys: Keys) -> Object:
        """The user's own route: without our appended rules and annotation entry, and without what an unfinished release
        has moved; other weights stay as they stand. An entry of the other form (``RouteMark``) is restored as well.
        """
        mark = mark_of(live, by, keys)
        if mark is not None and mark.backends is not None:
            # One that has moved all of them has no share left to give up.
            split = Split(100) if mark.share == 100 else ALL_STABLE
            live = self._written(live, by, keys, mark.backends, split, PairMark(active=mark.active))
        return self.kind.own(live, by, keys)

    def drifted(self, live: Object, by: str, keys: Keys, backends: Backends) -> tuple[str, ...]:
        """Our changes that another writer changed or removed, as text; () when all stand as written. Of weights only
        the ratio counts.
        """
        mark = mark_of(live, by, keys)
        if mark is None:
            return ()
        namespace = namespace_of(live)
        lives, rules = self._taken_apart(live, keys)
        ours = _ours(lives, mark, namespace)
        users = [rule for at, rule in enumerate(rules) if at not in ours]
        found = []
        for number, rule in enumerate(users, 1):
            pair = _pair(rule.refs, backends, namespace)
            if pair is None or _same_ratio(rule, pair, mark.share):
                continue
            stable, canary = (texts(rule.refs, namespace)[at] for at in pair)
            kept, given = (rule.weight(at) for at in pair)
            found.append(
                f"rule {rule.live.get('name') or number}: {stable} and {canary} have weights {kept} and {given}, not"
                f" {100 - mark.share} to {mark.share}"
            )
        return (*found, *changed(lives, ours, mark.added))

    def route_problem(self, live: Object, backends: Backends, *, begun: bool = False) -> str:
        """Why a release cannot move weight in this route, as a sentence that says what to do; "" when it can. ``live``
        is the user's own route (see ``own``). Once a release has ``begun``, it may contain appended rules of which the
        entry is lost.
        """
        name, namespace, rules = self.kind.text(live), namespace_of(live), self.kind.read(live)
        stable, canary = backend_text(backends.stable), backend_text(backends.canary)
        for number, rule in enumerate(rules, 1):
            what = f"rule {rule.get('name') or number} of {name}"
            counts = {
                backend_text(each): sum(refers(ref, each, namespace) for ref in references(rule))
                for each in (backends.stable, backends.canary)
            }
            often = next((text for text, count in counts.items() if count > 1), "")
            if often:
                return f"{what} names {often} {counts[often]} times: leave one backendRef to it in the rule"
            there = [text for text, count in counts.items() if count]
            if len(there) == 1 and not (begun and there == [canary]):
                lacks = canary if there == [stable] else stable
                return (
                    f"{what} names {there[0]} but not {lacks}: add a backendRef to it with weight 0, so that a release"
                    " can move the rule's requests"
                )
        if not any(_pair(references(rule), backends, namespace) for rule in rules):
            every = sorted({text for rule in rules for text in texts(references(rule), namespace)})
            return (
                f"{name} has no rule with backendRefs to {stable} and {canary} (it refers to"
                f" {', '.join(every) or 'nothing'}); add both to one, all weight to the active one and 0 to the other,"
                " or name the backends that the rules refer to in trafficRoutings"
            )
        return ""

    def split_problem(self, live: Object, backends: Backends, split: Split) -> str:
        """Why the user's own route cannot express this split, as a sentence that says what to do; "" when it can."""
        namespace = namespace_of(live)
        rules = taken_apart(self.kind.read(live), namespace, {}).rules
        return self.kind.match_problem(
            live, [(rule, _canary(rule, backends, namespace)) for rule in rules], backends, split
        )

    def percent(self, live: Object, backends: Backends) -> int:
        """The percentage of both backends' live weights that the new version has, rounded; 0 where both have none."""
        kept, given = self.weights(live, backends)
        return round(given * 100 / (kept + given)) if given else 0

    def weights(self, live: Object, backends: Backends) -> tuple[int, int]:
        """The sums of the live weights of the stable and the new version's backend, over the rules that name each
        once.
        """
        namespace = namespace_of(live)
        found = [
            [weight_of(references(rule)[at]) for at in pair]
            for rule in self.kind.read(live)
            if (pair := _pair(references(rule), backends, namespace)) is not None
        ]
        return sum(kept for kept, _ in found), sum(given for _, given in found)

    def reaches_new(self, live: Object, backends: Backends) -> bool:
        """Whether any rule, of the user's or not, sends the new version requests."""
        namespace = namespace_of(live)
        return any(
            refers(ref, backends.canary, namespace) and weight_of(ref) > 0
            for rule in self.kind.read(live)
            for ref in references(rule)
        )

    def _taken_apart(self, live: Object, keys: Keys) -> tuple[list[Object], tuple[UsersRule, ...]]:
        """The rules without what other Rollouts have added, as they stand and as the user wants them."""
        rules = taken_apart(self.kind.read(live), namespace_of(live), marks_of(live, keys)).rules
        return [rule.live for rule in rules], rules

    def _written(
        self,
        live: Object,
        by: str,
        keys: Keys,
        backends: Backends,
        split: Split,
        mark: PairMark,
        appending: Sequence[Split] = (),
    ) -> Object:
        """The route with the split, and with ``mark`` completed by the appended rules as its entry."""
        before = mark_of(live, by, keys)
        if before is None:
            live = self.kind.own(live, by, keys)
        namespace, known = namespace_of(live), marks_of(live, keys)
        layout = taken_apart(self.kind.read(live), namespace, known)
        added = self._added(layout.rules, backends, split, namespace)
        lives = [rule.live for rule in layout.rules]
        # Where another writer removed the entry alone, the rules are still there.
        every = (split, *appending)
        lost = {digest for each in every for digest in self._added(layout.rules, backends, each, namespace)}
        ours = _ours(lives, before, namespace) if before is not None else _left(lives, lost, backends, namespace)
        rules = [_shared(rule, backends, namespace, split.weight) for rule in layout.rules]
        new = [(each.before, _users(each.rule)) for each in added.values()]
        placed = _placed(rules, ours, new, ordered=self.kind.ordered)
        made = tuple(rule for _, rule in placed)
        after = live
        if made != layout.rules:
            # Else what other Rollouts have there is theirs to look after.
            moved = Layout(made, _moved(layout.added, [at for at, _ in placed]))
            after = self.kind.put_together(live, moved, known, [rule.twins for rule in made], known, keys)
        said = msgspec.structs.replace(mark, added=tuple(added))
        said = msgspec.structs.replace(said, backends=backends if said.begun else None)
        return marks.put(after, by, keys, said)

    def _added(
        self, rules: Sequence[UsersRule], backends: Backends, split: Split, namespace: str
    ) -> dict[str, AddedRule]:
        """The rules that a split adds, by the digests of their matches."""
        found: dict[str, AddedRule] = {}
        for at, rule in enumerate(rules):
            for each in self.kind.matched(rule, _canary(rule, backends, namespace), backends.canary, split):
                # Of two rules that match the same, gateways only ever use the first.
                found.setdefault(matches_digest(each), AddedRule(each, at))
        return found


def mark_of(live: Object, by: str, keys: Keys) -> PairMark | None:
    """The Rollout's entry on the route; None without one, or when it has another form."""
    return marks.read_as(PairMark, live, by, keys)


def active_on_record(live: Object, by: str, keys: Keys) -> str:
    """Name of the workload that was the active one at the last write; "" without an entry."""
    mark = mark_of(live, by, keys)
    return mark.active if mark is not None else ""


def _pair(refs: Sequence[Object], backends: Backends, namespace: str) -> tuple[int, int] | None:
    """Indices of the references to the stable and the new version's backend; None unless there is one of each."""
    stable, canary = (
        [at for at, ref in enumerate(refs) if refers(ref, each, namespace)]
        for each in (backends.stable, backends.canary)
    )
    return (stable[0], canary[0]) if len(stable) == len(canary) == 1 else None


def _canary(rule: UsersRule, backends: Backends, namespace: str) -> tuple[int, ...]:
    """Index of the reference that an appended rule sends to; () for a rule that names not both backends."""
    pair = _pair(rule.refs, backends, namespace)
    return (pair[1],) if pair is not None else ()


def _ours(rules: Sequence[Object], mark: PairMark | None, namespace: str) -> list[int]:
    """Indices of the rules that the entry's Rollout appended."""
    if mark is None or mark.backends is None:
        return []
    return appended_to(rules, mark.backends, mark.added, namespace)


def _left(rules: Sequence[Object], added: Container[str], backends: Backends, namespace: str) -> list[int]:
    """Indices of rules that send all to the new version and match what an appended one would."""
    return [
        at
        for at, rule in enumerate(rules)
        if matches_digest(rule) in added and all(refers(ref, backends.canary, namespace) for ref in references(rule))
    ]


def _shared(rule: UsersRule, backends: Backends, namespace: str, percent: int) -> UsersRule:
    """The rule with the weights that the user is to have once the new version has this percentage of both."""
    pair = _pair(rule.refs, backends, namespace)
    weights = [rule.weight(at) for at in range(len(rule.refs))]
    if pair is None or _elsewhere(weights, pair):
        return rule
    after = moved(weights, *pair, percent)
    # A weight that is not stated is one of 1.
    stated = (
        None if before is None and weight == 1 else weight for before, weight in zip(rule.weights, after, strict=True)
    )
    return replace(rule, weights=tuple(stated))


def _same_ratio(rule: UsersRule, pair: tuple[int, int], percent: int) -> bool:
    """Whether the two weights of the pair are in the ratio that moving this percentage gives them."""
    weights = [rule.weight(at) for at in range(len(rule.refs))]
    if _elsewhere(weights, pair):
        return True
    after = moved(weights, *pair, percent)
    stable, canary = pair
    any_weight = weights[stable] + weights[canary] > 0
    return any_weight and weights[stable] * after[canary] == weights[canary] * after[stable]


def _elsewhere(weights: Sequence[int], pair: tuple[int, int]) -> bool:
    """Whether the user sends all of a rule's requests to backends beside the pair's."""
    return sum(weights) > 0 and not any(weights[at] for at in pair)


def _users(rule: Object) -> UsersRule:
    """An appended rule as others see it: one of the user's, in which no Rollout has a part."""
    refs = tuple(references(rule))
    return UsersRule(live=rule, refs=refs, weights=tuple(ref.get("weight") for ref in refs), twins={}, marks={})


def _placed(
    rules: Sequence[UsersRule], ours: Sequence[int], new: Sequence[tuple[int, UsersRule]], *, ordered: bool
) -> list[tuple[int | None, UsersRule]]:
    """The rules with ``new`` ones in place of ``ours``, each with its index before, None for a new one.

    Where the order of rules decides (``ordered``), each new one comes directly before the rule at the index that it has
    here. Elsewhere they come where ours are, so that Rollouts that share a route do not reorder it in turns, or else
    behind all others.
    """
    if not ordered and len(ours) == len(new):
        there = dict(zip(ours, (rule for _, rule in new), strict=True))
        return [(at, there.get(at, rule)) for at, rule in enumerate(rules)]
    placed: list[tuple[int | None, UsersRule]] = []
    for at, rule in enumerate(rules):
        placed += [(None, each) for before, each in new if ordered and before == at]
        if at not in ours:
            placed.append((at, rule))
    return placed + [(None, each) for _, each in new if not ordered]


def _moved(added: Mapping[str, Sequence[AddedRule]], indices: Sequence[int | None]) -> dict[str, tuple[AddedRule, ...]]:
    """Other Rollouts' added rules once the user's have moved: ``indices`` has where each of these was before."""

    def moved(before: int) -> int:
        return next((at for at, each in enumerate(indices) if each is not None and each >= before), len(indices))

    return {uid: tuple(AddedRule(each.rule, moved(each.before)) for each in rules) for uid, rules in added.items()}
