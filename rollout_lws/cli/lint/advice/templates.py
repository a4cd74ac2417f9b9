"""Template content that is right for the stable LWS only, and fields that work against the hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.paths import Path
from rollout_lws.objects.resources import LEADER_WORKER_SETS

_PARTITION: Path = ("spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition")


def advice(files: FileSnapshot) -> Iterator[Finding]:
    for lws in files.of_kind(LEADER_WORKER_SETS.kind):
        if files.is_held(lws.manifest.name):
            yield from _partition(lws, f"{files.group}/original")
        yield from _addresses(lws, files.other_side(lws.manifest.name))


def _partition(lws: Shaped, mark: str) -> Iterator[Finding]:
    strategy = lws.manifest.body["spec"].get("rolloutStrategy") or {}
    stated = (strategy.get("rollingUpdateConfiguration") or {}).get("partition") is not None
    # A manifest dumped from a cluster contains the hold and the annotation that identifies it.
    if stated and mark not in (lws.body["metadata"].get("annotations") or {}):
        yield lws.manifest.found(
            "LWS305",
            _PARTITION,
            "a Rollout holds the LeaderWorkerSet by its partition, and every apply of this manifest resets it, which"
            " lets a new template roll at once, until it is put back: remove partition from the manifest",
        )


def _addresses(lws: Shaped, other_side: str) -> Iterator[Finding]:
    misled = "its other groups" if other_side else "the groups of a canary, which would join the old version"
    yield from _leaders_of(lws, lws.manifest.name, f"this very LeaderWorkerSet, also to {misled}")
    if other_side:
        # The template of one side is mostly a copy of the other's.
        yield from _leaders_of(lws, other_side, f"{other_side}, the other side of the pair, also to this one's groups")


def _leaders_of(lws: Shaped, name: str, whose: str) -> Iterator[Finding]:
    found = _address_of(name)
    groups = lws.body["spec"]["leaderWorkerTemplate"]
    for role in ("leaderTemplate", "workerTemplate"):
        spec = (groups.get(role) or {}).get("spec") or {}
        for path, told in _texts(("spec", "leaderWorkerTemplate", role, "spec"), spec):
            match = found.search(told)
            if match:
                yield lws.manifest.found(
                    "LWS304",
                    path,
                    f"{match[0]} is a leader of {whose}: write $(LWS_LEADER_ADDRESS), which names each group's own"
                    " leader",
                )


def _address_of(name: str) -> re.Pattern[str]:
    """``<name>-0.<name>`` for any group, and ``<name>-0`` alone; model names such as llama-3.1-8b do not match."""
    own = re.escape(name)
    return re.compile(rf"(?<![\w.-])(?:{own}-\d+\.{own}(?:-\d+)?(?![\w-])|{own}-0(?=[:,;\s'\"]|$))")


def _texts(at: Path, spec: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Commands, arguments and environment values of containers."""
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            inside = (*at, kind, index)
            for member in ("command", "args"):
                yield from (((*inside, member, n), told) for n, told in enumerate(container.get(member) or ()))
            for n, variable in enumerate(container.get("env") or ()):
                if isinstance(variable.get("value"), str):
                    yield (*inside, "env", n, "value"), variable["value"]
