"""The control groups of a run's nodes, in every hierarchy that the kernel has, and how they go again.

Nodes need groups of their own at a path that is known beforehand: a kubelet refuses a root that is missing in one of
the hierarchies, systemd's included. Everything of a run is below one name, so that it can be found when the run was
killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

#: How a hierarchy's file system is called, by its version. Where both are mounted, a runtime makes groups in both.
ONE, TWO = "cgroup", "cgroup2"
_MOUNTS = Path("/proc/self/mounts")


def hierarchies(*versions: str) -> tuple[Path, ...]:
    """The mount points of the hierarchies of version 1, or of ``versions``; empty where there are none."""
    rows = (line.split() for line in _MOUNTS.read_text().splitlines())
    return tuple(Path(row[1]) for row in rows if row[2] in (versions or (ONE,)))


def make(name: str, node: str) -> None:
    """The groups that the kubelet of ``node`` is given as its root, below ``name``."""
    for hierarchy in hierarchies():
        group = hierarchy
        for part in (name, node):
            group /= part
            group.mkdir(exist_ok=True)
            for file in ("cpuset.cpus", "cpuset.mems"):
                # A new group has no processors until it is given some.
                if (group / file).exists():
                    (group / file).write_text((group.parent / file).read_text())


def left(prefix: str) -> list[Path]:
    """The groups at the top whose names begin so."""
    return sorted(group for each in hierarchies(ONE, TWO) for group in each.glob(f"{prefix}*") if group.is_dir())


def remove(name: str) -> None:
    """All groups below ``name`` and itself. OSError when a process still lives in one of them."""
    for hierarchy in hierarchies(ONE, TWO):
        top = hierarchy / name
        if top.is_dir():
            for group in _innermost_first(top):
                group.rmdir()


def _innermost_first(group: Path) -> Iterator[Path]:
    for each in sorted(group.iterdir()):
        if each.is_dir():
            yield from _innermost_first(each)
    yield group
