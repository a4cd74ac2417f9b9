"""Reads manifests the way ``kubectl apply -f`` does: YAML or JSON, lists, directories, standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.errors import UsageError
from rollout_lws.objects.codec.yaml_nodes import NotPlain, values

Object = dict[str, Any]


def read(path: str) -> list[Object]:
    """All objects of a file, a directory, or standard input ("-"), in order; UsageError names invalid input."""
    return read_manifests([path])


def read_manifests(files: Iterable[str]) -> list[Object]:
    """All objects in these YAML or JSON files, or directories of them, in order; UsageError names an invalid file."""
    found: list[Object] = []
    for name, text in (each for given in files for each in _texts(given)):
        try:
            documents = values(text)
        except NotPlain as error:
            raise UsageError(f"{name} is no manifest: line {error.mark.line}: {error}") from error
        except (yaml.YAMLError, RecursionError) as error:
            raise UsageError(f"{name} is no YAML: {' '.join(str(error).split())}") from error
        for document in documents:
            items = (
                document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else [document]
            )
            found += [_checked(item, name) for item in items or ()]
    return found


def _texts(given: str) -> Iterable[tuple[str, str]]:
    if given == "-":
        yield "standard input", sys.stdin.read()
        return
    for file in _files(Path(given)):
        try:
            yield str(file), file.read_text()
        except OSError as error:
            raise UsageError(f"{file} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{file} is no text: give a manifest in YAML or JSON") from error


def _files(given: Path) -> list[Path]:
    """The manifests that ``kubectl apply -f`` would read from a directory; any other path is returned as it is."""
    if not given.is_dir():
        return [given]
    found = sorted(each for each in given.iterdir() if each.suffix in (".yaml", ".yml", ".json"))
    if not found:
        raise UsageError(f"{given} holds no .yaml, .yml or .json file")
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
