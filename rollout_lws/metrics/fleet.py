"""The series of all Rollouts in Prometheus' text format, computed when it is asked for, a piece at a time.

With thousands of Rollouts a scrape takes longer than a release may be kept waiting, so it lets others go on between
pieces. The client library writes whole families in one go, and takes eight times as long; it still writes all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from rollout_lws.metrics.glance import glance
from rollout_lws.metrics.rollouts import HELP, samples
from rollout_lws.objects.workloads import LeaderWorkerSet

#: Every Rollout's JSON, with its LWS where there is one.
Fleet: TypeAlias = Callable[[], Iterable[tuple[bytes, LeaderWorkerSet | None]]]

#: Rollouts that are looked at before others get their turn: about 2 ms.
_PIECE = 100


def exposition(fleet: Fleet) -> Iterator[bytes]:
    """The text, in parts to be joined; each takes a few milliseconds, and most are empty: families have to be whole."""
    families: dict[str, list[str]] = {name: [] for name in HELP}
    for number, (body, lws) in enumerate(fleet()):
        if number % _PIECE == _PIECE - 1:
            yield b""
        _add(families, body, lws)
    for name, lines in families.items():
        if lines:
            yield f"# HELP {name} {HELP[name]}\n# TYPE {name} gauge\n{''.join(lines)}".encode()


def _add(families: dict[str, list[str]], body: bytes, lws: LeaderWorkerSet | None) -> None:
    rollout = glance(body)
    if rollout is None:
        return
    meta = rollout.metadata
    own = f'{{namespace="{meta.namespace}",rollout="{meta.name}"'
    try:
        told = list(samples(rollout, lws))
    except ValueError:
        # Somebody wrote a status that is none of ours; its reconcile puts it right.
        return
    for each in told:
        labels = "".join(f',{name}="{_escaped(value)}"' for name, value in each.labels)
        families[each.name].append(f"{each.name}{own}{labels}}} {each.value!r}\n")


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
