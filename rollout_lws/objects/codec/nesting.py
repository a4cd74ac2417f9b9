"""Reads JSON and YAML that is nested deeper than the decoders can handle.

API servers accept 10,000 levels of JSON, for example in a ControllerRevision, and return that object in lists: one such
object in a namespace must not hide all others of the cluster. libyaml's composer recurses for each level, so a file of
brackets alone crashes the process, without an exception.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import yaml

T = TypeVar("T")

#: Levels kept of JSON that is nested too deep, and allowed in YAML; real manifests have less than fifty.
MOST_NESTED = 250
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
#: Start of nested YAML blocks: each level takes at least one character of a line.
_BLOCKS = re.compile(rf"^[ \t\-?:]{{{MOST_NESTED}}}", re.MULTILINE)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(decode: Callable[[bytes], T], text: bytes) -> T:
    """The decoded JSON; if it is nested too deep, the JSON without the levels beyond the limit."""
    try:
        return decode(text)
    except RecursionError:
        return decode(pruned(text))


def pruned(text: bytes, levels: int = MOST_NESTED) -> bytes:
    """The JSON with ``null`` for each array and object that is nested inside so many others."""
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
    """yaml.YAMLError for a text that is nested deeper than MOST_NESTED, and for some that is no YAML at all."""
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
