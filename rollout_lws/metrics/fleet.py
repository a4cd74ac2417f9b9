"""The series of all Rollouts in Prometheus' text format, computed on each scrape, in chunks.

With thousands of Rollouts a scrape takes longer than a release may wait, so other tasks run between chunks. The client
library writes whole families at a time, and takes eight times as long; it still writes all other metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from rollout_lws.metrics.glance import glance
from rollout_lws.metrics.rollouts import HELP, samples
from rollout_lws.targets.target import Target

#: Every Rollout's JSON, with its LWS if it exists.
Fleet: TypeAlias = Callable[[], Iterable[tuple[bytes, Target | None]]]

#: Rollouts per chunk: about 2 ms.
_PIECE = 100


def exposition(fleet: Fleet) -> Iterator[bytes]:
    """The text, in parts to be joined, a few milliseconds each; most are empty, as families must be contiguous."""
    families: dict[str, list[str]] = {name: [] for name in HELP}
    for number, (body, lws) in enumerate(fleet()):
        if number % _PIECE == _PIECE - 1:
            yield b""
        _add(families, body, lws)
    for name, lines in families.items():
        if lines:
            yield f"# HELP {name} {HELP[name]}\n# TYPE {name} gauge\n{''.join(lines)}".encode()


def _add(families: dict[str, list[str]], body: bytes, lws: Target | None) -> None:
    rollout = glance(body)
    if rollout is None:
        return
    meta = rollout.metadata
    own = f'{{namespace="{meta.namespace}",rollout="{meta.name}"'
    try:
        told = list(samples(rollout, lws))
    except ValueError:
        # Another writer has written an invalid status; the Rollout's reconcile fixes it.
        return
    for each in told:
        labels = "".join(f',{name}="{_escaped(value)}"' for name, value in each.labels)
        families[each.name].append(f"{each.name}{own}{labels}}} {each.value!r}\n")


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
