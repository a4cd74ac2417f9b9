"""Prometheus' text format, of which only the families that are asked for are read.

A model server answers with thousands of lines, of which a gate wants a few dozen: the others are left out before
prometheus_client parses what remains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from prometheus_client.parser import text_string_to_metric_families

from rollout_lws.analysis.readings import Exposition, Sample

#: What a family's name is followed by in a line of a sample.
_ENDS = ("", "_bucket", "_sum", "_count", "_total")


class NotAnExposition(ValueError):
    """The text is none; the message says where it ends to be one."""


def parse(text: str, families: Collection[str]) -> Exposition:
    """The samples of ``families``, which are named without ``_bucket`` and the like. Raises NotAnExposition."""
    wanted = tuple(families)
    started = tuple(f"# TYPE {name} " for name in wanted) + wanted
    try:
        return _parsed("".join(f"{line}\n" for line in text.splitlines() if line.startswith(started)), wanted)
    except (ValueError, IndexError, KeyError) as error:
        raise NotAnExposition(f"not Prometheus' text format: {error}") from error


def _parsed(text: str, wanted: tuple[str, ...]) -> Exposition:
    names = {f"{family}{end}" for family in wanted for end in _ENDS}
    samples: dict[str, list[Sample]] = defaultdict(list)
    types = {}
    for family in text_string_to_metric_families(text):
        types[family.name] = family.type
        for each in family.samples:
            if each.name in names:
                samples[each.name].append(Sample(each.labels, each.value))
    return Exposition({name: tuple(found) for name, found in samples.items()}, types)
