"""Names that are too long for the labels derived from them."""

from __future__ import annotations

from collections.abc import Iterator

from rollout_lws.cli.lint.file_snapshot import FileSnapshot, Shaped, workload
from rollout_lws.cli.lint.findings import Finding
from rollout_lws.targets.target import Target
from rollout_lws.workload.canary import NAME_BUDGET

#: Longest label value, and the length that a StatefulSet's revision label adds to its name.
_LABEL, _HASH = 63, 11


def advice(files: FileSnapshot) -> Iterator[Finding]:
    for each in files.workloads:
        yield from _workers(each, workload(each))
        if not each.kind.labels.record:
            yield from _pods(each)


def _pods(each: Shaped) -> Iterator[Finding]:
    """The pods of a kind that labels them with the name of a ControllerRevision."""
    name = each.manifest.name
    if len(name) > _LABEL - _HASH:
        yield each.manifest.found(
            "LWS307",
            ("metadata", "name"),
            f"the name has {len(name)} characters, and a label of every pod is made of it and a hash, {_LABEL} in all"
            f" at most: none of its pods can be made. Use a name of at most {_LABEL - _HASH}",
        )


def _workers(each: Shaped, lws: Target) -> Iterator[Finding]:
    name = lws.metadata.name
    if len(name) <= NAME_BUDGET or lws.version.size < 2:
        return
    room = _LABEL - _HASH - len(name) - 1
    highest = f"only its first {10**room} groups get workers" if room > 0 else "none of its groups gets workers"
    yield each.manifest.found(
        "LWS307",
        ("metadata", "name"),
        f"the name has {len(name)} characters, and a label of every worker is made of it, its group's number and a"
        f" hash, {_LABEL} in all at most: {highest}. Use a name of at most {NAME_BUDGET}",
    )
