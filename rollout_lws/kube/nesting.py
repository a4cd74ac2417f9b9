"""JSON that is nested deeper than a reader goes. API servers take 10,000 levels of it, in a ControllerRevision for one,
and list that object with all others: whoever may make one in a namespace must not hide those of the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Levels that are read of what is nested too deep; what has a meaning here has less than fifty.
MOST_NESTED = 250
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


def read(decode: Callable[[bytes], T], text: bytes) -> T:
    """What ``decode`` makes of the JSON, or of what is left of it without what it cannot reach."""
    try:
        return decode(text)
    except RecursionError:
        return decode(pruned(text))


def pruned(text: bytes, levels: int = MOST_NESTED) -> bytes:
    """The JSON with ``null`` for each array and object that has so many others around it."""
    kept, depth, begin = [], 0, 0
    for token in _TOKENS.finditer(text):
        match token[0]:
            case b"[" | b"{":
                if depth == levels:
                    kept += [text[begin : token.start()], b"null"]
                depth += 1
            case b"]" | b"}":
                depth -= 1
                if depth == levels:
                    begin = token.end()
    return b"".join((*kept, text[begin:]))
