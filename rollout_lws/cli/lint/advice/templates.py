"""Template content that is right for the stable workload only, and fields that work against the hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rollout_lws.capacity.table import strategy_of_plan
from rollout_lws.cli.lint.advice.releases import releases
from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped, workload
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.cli.lint.paths import Path, value_at
from rollout_lws.targets.target import ON_DELETE, ROLLING_UPDATE
from rollout_lws.workload.canary import name_of_canary


def advice(files: FileSnapshot) -> Iterator[Finding]:
    styles = [(each, strategy_of_plan(each.plan)) for each in releases(files)]
    copied = {
        (each.kind, name)
        for each, capacity in styles
        for name in each.workloads
        if not (capacity.one_workload or capacity.paired)
    }
    for each in files.workloads:
        if files.is_held(each):
            yield from _partition(each, f"{files.group}/original")
        if each.kind.labels.leader is not None:
            yield from _addresses(each, files.other_side(each))
        else:
            is_copied = (each.manifest.resource, each.manifest.name) in copied
            yield from _pod_names(each, files.other_side(each), is_copied=is_copied)


def _partition(lws: Shaped, mark: str) -> Iterator[Finding]:
    # A manifest dumped from a cluster contains the hold and the annotation that identifies it.
    if mark in (lws.body["metadata"].get("annotations") or {}):
        return
    path: Path = (*lws.kind.strategy_path, "partition")
    by_hand: Path = (*lws.kind.strategy_path[:-1], "type")
    if value_at(lws.manifest.body, by_hand) == ON_DELETE:
        yield lws.manifest.found(
            "LWS305",
            by_hand,
            f"a Rollout holds the {lws.manifest.resource.kind} by a partition, for which its type is {ROLLING_UPDATE},"
            f" and every apply of this manifest sets {ON_DELETE} until it is put back: a pod that is made meanwhile is"
            " of the new template. Remove type from the manifest",
        )
    if value_at(lws.manifest.body, path) is not None:
        yield lws.manifest.found(
            "LWS305",
            path,
            f"a Rollout holds the {lws.manifest.resource.kind} by its partition, and every apply of this manifest"
            " resets it, which lets a new template roll at once, until it is put back: remove partition from the"
            " manifest",
        )


def _addresses(lws: Shaped, other_side: str) -> Iterator[Finding]:
    misled = "its other groups" if other_side else "the groups of a canary, which would join the old version"
    yield from _leaders_of(lws, lws.manifest.name, f"this very {lws.manifest.resource.kind}, also to {misled}")
    if other_side:
        # The template of one side is mostly a copy of the other's.
        yield from _leaders_of(lws, other_side, f"{other_side}, the other side of the pair, also to this one's groups")


def _leaders_of(lws: Shaped, name: str, whose: str) -> Iterator[Finding]:
    for path, match in _matching(lws, _address_of(name, rf"{re.escape(name)}(?:-\d+)?")):
        yield lws.manifest.found(
            "LWS304",
            path,
            f"{match} is a leader of {whose}: write $(LWS_LEADER_ADDRESS), which names each group's own leader",
        )


def _pod_names(found: Shaped, other_side: str, *, is_copied: bool) -> Iterator[Finding]:
    """Names of pods of a kind whose groups are single pods: a workload with the same template has others."""
    name, service = found.manifest.name, workload(found).discovery_service
    of_service = re.escape(service) if service else r"[a-z0-9-]+"
    told = []
    if is_copied:
        made = name_of_canary(name)
        whose = f"{name}, also in {made}, which a release makes with this template and whose pods are {made}-0 and on"
        told.append((name, whose))
    if other_side:
        told.append((other_side, f"{other_side}, the other side of the pair, also to the pods of {name}"))
    for each, whose in told:
        for path, match in _matching(found, _address_of(each, of_service)):
            yield found.manifest.found(
                "LWS335",
                path,
                f"{match} is a pod of {whose}: unless all of them are to ask that very pod, have each tell its own"
                " name, by a variable from metadata.name (fieldRef)",
            )


def _matching(found: Shaped, address: re.Pattern[str]) -> Iterator[tuple[Path, str]]:
    """Each text of the pods' templates in which an address stands, and the address."""
    for _, template in found.kind.format.paths:
        at: Path = ("spec", *template, "spec")
        for path, told in _texts(at, value_at(found.body, at) or {}):
            match = address.search(told)
            if match:
                yield path, match[0]


def _address_of(name: str, service: str) -> re.Pattern[str]:
    """``<name>-0.<service>`` for any group, and ``<name>-0`` alone; model names such as llama-3.1-8b do not match.
    ``service`` is a pattern.
    """
    own = re.escape(name)
    return re.compile(rf"(?<![\w.-])(?:{own}-\d+\.{service}(?![\w-])|{own}-0(?=[:,;\s'\"]|$))")


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
