"""The CustomResourceDefinitions that the sandbox comes with, which are YAML files in this directory."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml


def definitions(name: str) -> list[dict[str, Any]]:
    """The definitions in the file ``name``, each time as new objects."""
    made: list[dict[str, Any]] = msgspec.json.decode(_read(name))
    return made


@cache
def _read(name: str) -> bytes:
    """``definitions`` of a file as JSON; its member ``shared`` only holds the anchors."""
    text = (Path(__file__).parent / name).read_bytes()
    return msgspec.json.encode(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))["definitions"])
