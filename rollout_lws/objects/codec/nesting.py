"""JSON and YAML that are nested deeper than a reader goes.

API servers take 10,000 levels of JSON, in a ControllerRevision for one, and list that object with all others: one such
object in a namespace must not hide those of the cluster. libyaml's composer calls itself for each level, so a file of
mere brackets ends the process, which no exception tells of.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import yaml

T = TypeVar("T")

#: Levels that are read of JSON that is nested too deep, and that YAML may have; what people write has less than fifty.
MOST_NESTED = 250
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
#: What begins blocks in blocks of YAML: each level takes a character of a line at least.
_BLOCKS = re.compile(rf"^[ \t\-?:]{{{MOST_NESTED}}}", re.MULTILINE)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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


def check_yaml(text: str) -> None:
    """yaml.YAMLError for a text that is nested deeper than MOST_NESTED, and for some that are no YAML at all."""
    if text.count("[") + text.count("{") < MOST_NESTED and not _BLOCKS.search(text):
        return
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MOST_NESTED:
            raise yaml.YAMLError(f"it is nested more than {MOST_NESTED} levels deep")
