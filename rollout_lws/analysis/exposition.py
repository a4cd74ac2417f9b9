"""Prometheus' text format, of which only the families that are asked for are read.

A model server answers with thousands of lines, of which a gate wants a few dozen. Answers are of pods, which may send
anything: what is read of one is bounded before it is looked at more closely, so that no answer takes the controller's
event loop for longer than some 50 ms.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable

from rollout_lws.analysis.readings import Exposition, Sample

#: Lines of an answer; vLLM's has some 2,000.
MOST_LINES = 40_000
#: Lines of the families that are asked for, and their characters: those of 32 engines behind one server, all signals.
MOST_WANTED = 5_000
MOST_CHARACTERS = 512 * 1024

_NAMED = re.compile(r"(# TYPE )?([A-Za-z_:][\w:]*+)")
_LABEL = r'([A-Za-z_]\w*+)[ \t]*+=[ \t]*+"((?:[^"\\]++|\\.)*+)"'
_LABELS = re.compile(_LABEL)
#: What follows a sample's name: labels, a value, and maybe a time and an exemplar.
_REST = re.compile(
    rf"(?:[ \t]*+\{{(?P<labels>(?:[ \t]*+{_LABEL}[ \t]*+,?+)*+)[ \t]*+\}})?"
    r"[ \t]*+(?P<value>[^\s{]\S*+)(?:[ \t]++-?[\d.]++)?(?:[ \t]++#.*)?[ \t\r]*+"
)


class NotAnExposition(ValueError):
    """The text is none, or has more than is read of one; the message says which."""


def parse(text: str, families: Collection[str]) -> Exposition:
    """The samples of ``families``, which are named without ``_bucket``; labels as they are written, with their escapes.
    Raises NotAnExposition.
    """
    if text.count("\n") > MOST_LINES:
        raise NotAnExposition(f"the answer has more than {MOST_LINES:,} lines")
    started = ("# TYPE ", *families)
    lines = [line for line in text.split("\n") if line.startswith(started)]
    if len(lines) > MOST_WANTED or sum(map(len, lines)) > MOST_CHARACTERS:
        most = f"{MOST_WANTED:,} lines, or {MOST_CHARACTERS // 1024} KiB"
        raise NotAnExposition(f"the answer has more than {most}, of what gates read")
    return _parsed(lines, {*families, *(f"{name}_bucket" for name in families)})


def _parsed(lines: Iterable[str], names: Collection[str]) -> Exposition:
    samples: dict[str, list[Sample]] = defaultdict(list)
    types: dict[str, str] = {}
    for line in lines:
        named = _NAMED.match(line)
        if named is None or named[2] not in names:
            continue
        if named[1]:
            types[named[2]] = line[named.end() :].strip()
        else:
            samples[named[2]].append(_sample(named[2], _REST.fullmatch(line, named.end())))
    return Exposition({name: tuple(found) for name, found in samples.items()}, types)


def _sample(name: str, rest: re.Match[str] | None) -> Sample:
    try:
        if rest is None:
            raise ValueError("neither labels nor a value")
        return Sample(dict(_LABELS.findall(rest["labels"] or "")), float(rest["value"]))
    except ValueError as error:
        raise NotAnExposition(f"not Prometheus' text format: a line of {name}") from error
