"""Commands of ours that a person may type about a Rollout."""

from __future__ import annotations

from collections.abc import Iterable

from rollout_lws.api import GateRecord, GateResult, RolloutStatus
from rollout_lws.api.base import Metadata

#: Results of gates that nothing waits for any more.
_SETTLED = (None, GateResult.PASSED, GateResult.SKIPPED)


def command(meta: Metadata, verb: str, *arguments: str) -> str:
    """The command line for ``verb``, with the namespace unless it is "default"; ``arguments`` follow the name."""
    place = "" if meta.namespace == "default" else f" -n {meta.namespace}"
    return f"kubectl rollout-lws {' '.join((verb, meta.name, *arguments))}{place}"


def waiting(status: RolloutStatus) -> tuple[GateRecord, ...]:
    """The gates that have ended, and keep the release from going on."""
    return tuple(each for each in (*status.gates, *status.release_gates) if each.result not in _SETTLED)


def ways_on(meta: Metadata, status: RolloutStatus, verbs: Iterable[str]) -> tuple[str, ...]:
    """The command of each verb; of ``skip`` one for each gate that waits."""
    skips = [command(meta, "skip", each.name) for each in waiting(status)]
    return tuple(way for verb in verbs for way in (skips if verb == "skip" else [command(meta, verb)]))
