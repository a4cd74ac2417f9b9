"""Reads manifests the way ``kubectl apply -f`` does: YAML or JSON, lists, directories, standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.errors import UsageError
from rollout_lws.objects.codec.yaml_nodes import NotPlain, values

Object = dict[str, Any]
_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Source:
    """A file's display name and its text, which is not UTF-8 from byte ``broken`` on."""

    name: str
    text: str
    broken: int | None = None


def sources(names: Iterable[str], *, recursive: bool = False) -> Iterator[Source]:
    """Each file once, in the order of ``names``, sorted within a directory; "-" is standard input. UsageError for an
    unreadable path.
    """
    seen: set[Path] = set()
    for name in names:
        if name == "-":
            yield _source("<stdin>", sys.stdin.buffer.read())
            continue
        given = Path(name)
        try:
            for path in _below(given, recursive=recursive) if given.is_dir() else [given]:
                if (real := path.resolve()) not in seen:
                    seen.add(real)
                    yield _source(str(path), path.read_bytes())
        except OSError as error:
            raise UsageError(f"{error.filename or name} cannot be read: {error.strerror}") from error


def _below(path: Path, *, recursive: bool) -> list[Path]:
    """The manifests that ``kubectl apply -f`` would read from a directory, without hidden ones such as in .git."""
    below = (each for each in (path.rglob("*") if recursive else path.iterdir()) if each.suffix in _SUFFIXES)
    return sorted(
        each
        for each in below
        if each.is_file() and not any(part.startswith(".") for part in each.relative_to(path).parts)
    )


def _source(name: str, data: bytes) -> Source:
    try:
        return Source(name, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return Source(name, data.decode(errors="replace"), error.start)


def read_manifests(files: Sequence[str]) -> list[Object]:
    """All objects in these YAML or JSON files, or directories of them, in order; UsageError names an invalid file."""
    found: list[Object] = []
    read = [*sources(files)]
    if files and not read:
        raise UsageError(f"{', '.join(files)} holds no .yaml, .yml or .json file")
    for source in read:
        if source.broken is not None:
            raise UsageError(f"{source.name} is no text: give a manifest in YAML or JSON")
        try:
            documents = values(source.text)
        except NotPlain as error:
            raise UsageError(f"{source.name} is no manifest: line {error.mark.line}: {error}") from error
        except (yaml.YAMLError, RecursionError) as error:
            raise UsageError(f"{source.name} is no YAML: {' '.join(str(error).split())}") from error
        for document in documents:
            items = (
                document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else [document]
            )
            found += [_checked(item, source.name) for item in items or ()]
    return found


def _checked(manifest: Any, file: str) -> Object:
    named = isinstance(manifest, dict) and all(isinstance(manifest.get(key), str) for key in ("apiVersion", "kind"))
    if not named or not isinstance(manifest.get("metadata"), dict) or not manifest["metadata"].get("name"):
        raise UsageError(
            f"{file} holds something that is no Kubernetes object: it needs apiVersion, kind, metadata.name"
        )
    # The API server treats a null field as unset.
    said = {name: value for name, value in manifest["metadata"].items() if value is not None}
    return {**manifest, "metadata": said}
