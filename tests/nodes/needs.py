"""What a machine needs for the lane with real nodes: `python -m tests.nodes.needs` prints the packages it lacks."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.nodes import cgroups

#: Debian's packages with the programs that are taken from each; what has a slash is looked for in CNI_ROOMS.
PACKAGES = {
    "containerd": ("containerd", "containerd-shim-runc-v2", "ctr"),
    "runc": ("runc",),
    "containernetworking-plugins": ("cni/bridge", "cni/host-local", "cni/loopback", "cni/portmap"),
    "nftables": ("nft",),
    "iproute2": ("ip",),
    "mount": ("mount",),
    "util-linux": ("nsenter", "unshare"),
    "buildah": ("buildah",),
    "mmdebstrap": ("mmdebstrap",),
}
CNI_ROOMS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
HOW_TO_GET_THEM = "apt-get install --no-install-recommends"
#: A bridge, a cable, tables and layers of a file system, in namespaces of their own.
_TRIAL = """\
set -e
ip link add trial type bridge
ip link add trial-a type veth peer name trial-b
nft add table inet trial
mount -t tmpfs tmpfs /tmp
mkdir /tmp/lower /tmp/upper /tmp/work /tmp/both
mount -t overlay -o lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work overlay /tmp/both
"""


def missing() -> str:
    """Why the lane cannot run here and what to do about it, in one line; empty when it can."""
    if platform.system() != "Linux":
        return f"its nodes need Linux, and this is {platform.system()}"
    if os.geteuid() != 0:
        return "its nodes need root: run it with sudo, or in a virtual machine"
    if lacking := missing_packages():
        programs = ", ".join(each for package in lacking for each in _lacking(PACKAGES[package]))
        return f"there is no {programs}: {HOW_TO_GET_THEM} {' '.join(lacking)}"
    if not cgroups.hierarchies():
        return "its nodes need control groups of version 1, or both: boot with systemd.unified_cgroup_hierarchy=0"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--", "sh", "-c", _TRIAL],
        capture_output=True,
        text=True,
    )
    if tried.returncode:
        why = " ".join(tried.stderr.split()) or f"exit code {tried.returncode}"
        return f"its nodes need namespaces, bridges, nftables and overlayfs: not in this kernel or container ({why})"
    return ""


def missing_packages() -> list[str]:
    """Those of PACKAGES of which a program is not here."""
    return [package for package, programs in PACKAGES.items() if any(_lacking(programs))]


def _lacking(programs: Iterable[str]) -> Iterator[str]:
    for each in programs:
        room, _, name = each.rpartition("/")
        if not (any((path / name).exists() for path in CNI_ROOMS) if room else shutil.which(name)):
            yield name


if __name__ == "__main__":
    print(*missing_packages())
