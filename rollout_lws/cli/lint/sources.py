"""Reads the files, directories and standard input that `-f` names."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rollout_lws.cli.lint.documents import Source
from rollout_lws.errors import UsageError

_SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"


def sources(names: Iterable[str], *, recursive: bool) -> Iterator[Source]:
    """Each file once, in the order of ``names``, sorted within a directory. UsageError for an unreadable path."""
    seen: set[Path] = set()
    for name in names:
        if name == STDIN:
            yield _source("<stdin>", sys.stdin.buffer.read())
            continue
        for path in _files(Path(name), recursive=recursive):
            if (real := path.resolve()) not in seen:
                seen.add(real)
                yield _source(str(path), _bytes(path))


def _files(path: Path, *, recursive: bool) -> list[Path]:
    try:
        return _below(path, recursive=recursive) if path.is_dir() else [path]
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def _below(path: Path, *, recursive: bool) -> list[Path]:
    below = path.rglob("*") if recursive else path.iterdir()
    found = sorted(each for each in below if each.suffix in _SUFFIXES and each.is_file() and not _hidden(each, path))
    if not found and not recursive and any(each.is_dir() for each in path.iterdir()):
        raise UsageError(f"{path} has no *.yaml, *.yml or *.json: add -R to look into its directories as well")
    return found


def _hidden(file: Path, above: Path) -> bool:
    """Whether the file is hidden or in a hidden directory, such as .git or .terraform."""
    return any(part.startswith(".") for part in file.relative_to(above).parts)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error


def _source(name: str, data: bytes) -> Source:
    try:
        return Source(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return Source(name, data.decode(errors="replace"), error.start)
