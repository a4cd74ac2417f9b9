"""How deep a YAML text may be nested: libyaml's composer calls itself for each level, and a file of mere brackets
ends the process, which no exception tells of.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

#: Levels; what people write has less than fifty.
MOST_NESTED = 250
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: What begins blocks in blocks: each level takes a character of a line at least.
_BLOCKS = re.compile(rf"^[ \t\-?:]{{{MOST_NESTED}}}", re.MULTILINE)


def check_nesting(text: str) -> None:
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
