"""Which items of two versions of a list are the same one: lists of foreign objects have no keys that hold for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

#: Longest lists whose changed items are paired; of longer ones only equal items are.
_MOST_COMPARED = 200


def paired(one: Sequence[Any], other: Sequence[Any]) -> dict[int, int]:
    """Index in ``other`` for each index in ``one`` that has a counterpart: the equal items first, in order, then the
    most similar ones. Two items are similar by the members that have the same value in both.
    """
    texts = [[msgspec.json.encode(each, order="sorted") for each in items] for items in (one, other)]
    found: dict[int, int] = {}
    free: dict[bytes, list[int]] = {}
    for index, text in enumerate(texts[1]):
        free.setdefault(text, []).append(index)
    for index, text in enumerate(texts[0]):
        if free.get(text):
            found[index] = free[text].pop(0)
    left = [index for index in range(len(one)) if index not in found]
    taken = set(found.values())
    open_ones = [index for index in range(len(other)) if index not in taken]
    if max(len(left), len(open_ones)) > _MOST_COMPARED:
        return found
    leaves = {index: frozenset(_leaves(other[index])) for index in open_ones}
    ranked = sorted(
        (-len(own & leaves[there]) / len(own | leaves[there]), abs(index - there), index, there)
        for index in left
        if (own := frozenset(_leaves(one[index])))
        for there in open_ones
        if own & leaves[there]
    )
    for _, _, index, there in ranked:
        if index not in found and there not in taken:
            found[index] = there
            taken.add(there)
    return found


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The scalars of an item with the members that lead to them; a scalar that is an item itself is similar to none."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _leaves(member, (*path, key))
    elif isinstance(value, list):
        for member in value:
            yield from _leaves(member, (*path, "[]"))
    elif path:
        yield path, repr(value)
