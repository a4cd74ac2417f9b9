"""Reads manifests the way ``kubectl apply -f`` does: YAML or JSON, lists, directories, standard input."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rollout_lws.errors import UsageError
from rollout_lws.objects.codec.yaml_nodes import Mark, NotPlain, Reader, composed

Object = dict[str, Any]
_SUFFIXES = (".yaml", ".yml", ".json")
#: Three dashes, with the directives that a document may have above them.
_SEPARATOR = re.compile(r"^(?:%.*\n){0,3}---(?=\s|$)", re.MULTILINE)
_BYTE_ORDER = re.compile("^\ufeff", re.MULTILINE)
#: JSON's escapes of half a character, in pairs or alone, and of the backslash, after which nothing is escaped.
_ESCAPE = re.compile(
    r"\\\\|\\u(?P<high>d[89ab][0-9a-f]{2})\\u(?P<low>d[c-f][0-9a-f]{2})|\\u(?P<lone>d[89a-f][0-9a-f]{2})", re.IGNORECASE
)
_NOT_BLANK = re.compile(r"\S")
_JSON = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Source:
    """A file's display name and its text, which is not UTF-8 from byte ``broken`` on."""

    name: str
    text: str
    broken: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A YAML document or a JSON object of a text, with the number of lines before it in the text and of characters
    before it in its first line.
    """

    text: str
    above: int = 0
    left: int = 0

    def mark(self, found: Mark) -> Mark:
        """A position of the part as one of the text."""
        return Mark(found.line + self.above, found.column + (self.left if found.line == 1 else 0))


class Unreadable(ValueError):
    """A part that is no manifest; ``mark`` is a position of the part."""

    def __init__(self, why: str, mark: Mark) -> None:
        super().__init__(why)
        self.mark = mark


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


def parts(text: str) -> Iterator[Part]:
    """What kubectl reads one after the other: documents between separators, and JSON objects, which need none."""
    # Concatenated files may contain byte order marks in the middle.
    text = _BYTE_ORDER.sub("", text)
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text))]
    above = 0
    for before, start, end in zip([0, *starts], starts, [*starts[1:], len(text)], strict=False):
        above, part = above + text.count("\n", before, start), text[start:end]
        if part.removeprefix("---").lstrip()[:1] in ("{", "["):
            yield from _json(part, above)
        else:
            yield Part(part, above)


def _json(text: str, above: int) -> Iterator[Part]:
    """JSON objects as a YAML reader takes them: JSON may be indented by tabs, has none within its strings, and writes
    rare characters as two escapes.
    """
    text = _ESCAPE.sub(_character, text.replace("\t", " "))
    done, start = 0, len(text) - len(text.removeprefix("---").lstrip())
    while start < len(text):
        try:
            _, end = _JSON.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = len(text)
        above += text.count("\n", done, start)
        yield Part(text[start:end], above, start - text.rfind("\n", 0, start) - 1)
        rest = _NOT_BLANK.search(text, end)
        done, start = start, rest.start() if rest else len(text)


def _character(escape: re.Match[str]) -> str:
    """Half a character alone is replaced, as servers do."""
    if not escape["high"]:
        return "\ufffd" if escape["lone"] else escape[0]
    return (bytes.fromhex(escape["high"]) + bytes.fromhex(escape["low"])).decode("utf-16-be")


def read_part(part: Part, *, unique: bool = False) -> list[tuple[yaml.Node, Any]]:
    """The non-empty documents of a part, as nodes with positions and as plain values; Unreadable for an invalid one.
    ``unique`` is Reader's.
    """
    try:
        return [(root, Reader(unique=unique).value(root)) for root in composed(part.text)]
    except NotPlain as error:
        raise Unreadable(f"not a manifest: {error}", error.mark) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = _inside(part.text, mark.line, mark.column) if mark else (0, 0)
        why = " ".join(str(each) for each in (error.context, error.problem) if each)
        raise Unreadable(f"not YAML: {why or 'it cannot be read'}", Mark(line + 1, column + 1)) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise Unreadable(f"not YAML: {str(error).splitlines()[0]}", Mark(1, 1)) from error


def _inside(text: str, line: int, column: int) -> tuple[int, int]:
    """Move a position after the last line to the end of that line."""
    lines = text.rstrip().splitlines() or [""]
    return (line, column) if line < len(lines) else (len(lines) - 1, len(lines[-1]))


def read_manifests(files: Iterable[str]) -> list[Object]:
    """All objects in these YAML or JSON files, or directories of them, in order; UsageError names an invalid file."""
    found: list[Object] = []
    for name in files:
        read = [*sources([name])]
        if not read:
            raise UsageError(f"{name} holds no .yaml, .yml or .json file")
        for source in read:
            found += [_checked(each, source.name) for each in _objects(source)]
    return found


def _objects(source: Source) -> Iterator[Any]:
    if source.broken is not None:
        raise UsageError(f"{source.name} is no text: give a manifest in YAML or JSON")
    for part in parts(source.text):
        try:
            documents = read_part(part)
        except Unreadable as error:
            raise UsageError(f"{source.name}, line {part.mark(error.mark).line}: {error}") from error
        for _, document in documents:
            is_list = isinstance(document, dict) and document.get("kind") == "List"
            items = document.get("items") or [] if is_list else [document]
            yield from items if isinstance(items, list) else [document]


def _checked(manifest: Any, file: str) -> Object:
    meta = manifest.get("metadata") if isinstance(manifest, dict) else None
    if not isinstance(meta, dict) or not all(
        isinstance(each, str) and each for each in (manifest.get("apiVersion"), manifest.get("kind"), meta.get("name"))
    ):
        raise UsageError(
            f"{file} holds something that is no Kubernetes object: it needs texts as apiVersion, kind, metadata.name"
        )
    # The API server treats a null field as unset.
    said = {name: value for name, value in meta.items() if value is not None}
    return {**manifest, "metadata": said}
