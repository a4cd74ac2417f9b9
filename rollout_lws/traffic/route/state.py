"""A Rollout's annotation entry on a route, and how its parts are found again after other writers edited the route.

Rules and backendRefs are plain lists without keys: users add, remove, reorder and rename rules while ours are among
them. So a rule is identified by its name, else by its matches, else by the weights that were written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from typing import Annotated

import msgspec

from rollout_lws.objects.meta import Struct
from rollout_lws.traffic.route.rules import matches_digest
from rollout_lws.traffic.route.status import Parent
from rollout_lws.traffic.split import Backend, Backends, Object


class RuleMark(Struct, frozen=True):
    """One rule of the user's in which weights were written, keyed by the text of a backendRef (see ``texts``).
    ``written`` also has the new version's; an original of None was absent.
    """

    matches: str
    original: dict[str, int | None]
    written: dict[str, int]
    name: str = ""


class RouteMark(Struct, frozen=True):
    """``weight`` in percent; ``added`` are digests of the matches of the appended rules.

    ``listed_at`` is since when the route names the new version's backend, as long as it has given it no requests since
    then. ``carried``: the route has given the new version requests in this release. Both are written with the weights
    themselves, so that a restart in between loses neither. Entries of controllers that did not know them carried.
    """

    stable: Backend
    canary: Backend
    weight: int = 0
    rules: tuple[RuleMark, ...] = ()
    added: tuple[str, ...] = ()
    parents: tuple[Parent, ...] = ()
    listed_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    carried: bool = True


def refers(reference: Object, backend: Backend, namespace: str) -> bool:
    """Whether a backendRef of a route in ``namespace`` names this backend, on any port."""
    return (
        reference.get("name") == backend.name
        and (reference.get("group") or "") == backend.group
        and (reference.get("kind") or "Service") == backend.kind
        and (reference.get("namespace") or namespace) == namespace
    )


def backend_text(backend: Backend) -> str:
    """A readable name of a backend, with its group where it is not core."""
    return f"{backend.kind}{'.' + backend.group if backend.group else ''}/{backend.name}"


def texts(references: Sequence[Object], namespace: str) -> list[str]:
    """A key for each backendRef of a rule: kind, name and port; repeated ones are numbered."""
    seen: Counter[str] = Counter()
    found = []
    for each in references:
        elsewhere = each.get("namespace") or namespace
        name = each.get("name", "") if elsewhere == namespace else f"{elsewhere}/{each.get('name', '')}"
        text = backend_text(Backend(name, each.get("group") or "", each.get("kind") or "Service"))
        text += f":{each['port']}" if each.get("port") is not None else ""
        seen[text] += 1
        found.append(text if seen[text] == 1 else f"{text}#{seen[text]}")
    return found


def names(key: str, backend: Backend) -> bool:
    """Whether one of ``texts`` refers to this backend."""
    return key.split("#")[0].split(":")[0] == backend_text(backend)


def rules_of(live: Object) -> list[Object]:
    """The rules of a route of the Gateway API."""
    return list(live["spec"].get("rules") or ())


def references(rule: Object) -> list[Object]:
    return list(rule.get("backendRefs") or ())


def weight_of(reference: Object) -> int:
    """A backendRef's weight in effect: 1 where none is stated."""
    weight = reference.get("weight")
    return 1 if weight is None else int(weight)


def weights(rule: Object, namespace: str) -> dict[str, int]:
    """The weights in effect, by the texts of the backendRefs."""
    live = references(rule)
    return {text: weight_of(each) for text, each in zip(texts(live, namespace), live, strict=True)}


def appended(rules: Sequence[Object], mark: RouteMark, namespace: str) -> list[int]:
    """Indices of the rules that this entry's Rollout appended (see ``appended_to``)."""
    # A user's rule whose stable backend was deleted by hand is not an appended one.
    known = paired(mark, rules, namespace)
    return appended_to(rules, Backends(mark.stable, mark.canary), mark.added, namespace, known)


def appended_to(
    rules: Sequence[Object], backends: Backends, added: Sequence[str], namespace: str, known: Container[int] = ()
) -> list[int]:
    """Indices of the rules that a release between these backends appended, by the digests of their matches. A rule
    whose matches another writer edited is recognised as one that sends all to the new version; at most as many as are
    missing, so that a user's own rule to it stays. ``known`` are indices of rules that are the user's in any case.
    """
    candidates = {
        index: matches_digest(rule)
        for index, rule in enumerate(rules)
        if any(refers(each, backends.canary, namespace) for each in references(rule))
        and not any(refers(each, backends.stable, namespace) for each in references(rule))
    }
    found = []
    missing = 0
    for digest in added:
        index = next((at for at, each in candidates.items() if each == digest), None)
        if index is None:
            missing += 1
        else:
            found.append(index)
            del candidates[index]
    edited = [
        at for at in candidates if all(refers(each, backends.canary, namespace) for each in references(rules[at]))
    ]
    return sorted(found + [at for at in edited if at not in known][:missing])


def changed(rules: Sequence[Object], ours: Sequence[int], added: Sequence[str]) -> list[str]:
    """Which of the rules that a release appended, now at indices ``ours``, another writer changed or removed, as
    text.
    """
    there = [matches_digest(rules[index]) for index in ours]
    return [f"appended rule {number} is changed or gone" for number, each in enumerate(added, 1) if each not in there]


def _named(mark: RuleMark, rule: Object, _: Mapping[str, int]) -> bool:
    return bool(mark.name) and rule.get("name") == mark.name


def _matching(mark: RuleMark, rule: Object, _: Mapping[str, int]) -> bool:
    return matches_digest(rule) == mark.matches


def _as_written(mark: RuleMark, _: Object, live: Mapping[str, int]) -> bool:
    return mark.written.items() <= live.items()


#: Ways to identify a rule, the most reliable first.
_WAYS = ((_named,), (_matching, _as_written), (_as_written,), (_matching,))


def paired(mark: RouteMark, rules: Sequence[Object], namespace: str) -> dict[int, RuleMark]:
    """The entry's rule for each of these rules, by the rule's index. Of several candidates, the one with most of the
    written weights wins, then the first; a rule that refers to neither version never matches.
    """
    live = [weights(rule, namespace) for rule in rules]
    known = [
        at
        for at, rule in enumerate(rules)
        if any(refers(ref, each, namespace) for ref in references(rule) for each in (mark.stable, mark.canary))
    ]
    found: dict[int, RuleMark] = {}
    left = list(mark.rules)
    for ways in _WAYS:
        for note in tuple(left):
            free = [at for at in known if at not in found and all(way(note, rules[at], live[at]) for way in ways)]
            if free:
                found[max(free, key=lambda at: (len(note.written.items() & live[at].items()), -at))] = note
                left.remove(note)
    return found
