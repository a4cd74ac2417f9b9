"""What a run could leave on the machine that it has run on, read before and after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.nodes import cgroups, enclosure

#: What a kubelet or a kube-proxy sets for the whole machine if it may.
_SETTINGS = (
    *("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"),
    *("kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"),
    *("net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet", "net/bridge/bridge-nf-call-iptables"),
    *("net/netfilter/nf_conntrack_max", "net/netfilter/nf_conntrack_tcp_timeout_established"),
)
#: Where programs of nodes put things unless they are told otherwise.
_PLACES = (
    *("/etc/cni", "/opt/cni", "/opt/containerd", "/usr/libexec/kubernetes"),
    *("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods", "/var/log/containers"),
    *("/run/containerd", "/run/netns", "/run/flannel", "/var/lib/containers"),
)


def seen() -> frozenset[str]:
    """A line for each thing that there is: processes, mounts, control groups, links, files, and settings' values."""
    return frozenset((*_processes(), *_mounts(), *_groups(), *_links(), *_files(), *_settings()))


def _processes() -> Iterator[str]:
    """Those of any run, by what they have been told or the group that they live in."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "cmdline").read_bytes() + (process / "cgroup").read_bytes()
        except OSError:
            # It has ended meanwhile.
            continue
        if enclosure.PREFIX.encode() in told:
            command = told.replace(bytes(1), b" ").splitlines()[0].decode(errors="replace")
            yield f"process {process.name}: {command}"


def _mounts() -> Iterator[str]:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        yield f"mount {line.split()[1]}"


def _groups() -> Iterator[str]:
    yield from (f"control group {group}" for group in cgroups.left(enclosure.PREFIX))


def _links() -> Iterator[str]:
    for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
        yield f"network link {line.split(':')[0].strip()}"


def _files() -> Iterator[str]:
    found = [Path(each) for each in _PLACES if Path(each).exists()]
    for folder in (enclosure.rooms(), Path("/dev/shm")):
        found += folder.glob("rollout-lws-*")
    yield from (f"file {path}" for path in found)


def _settings() -> Iterator[str]:
    for name in _SETTINGS:
        path = Path("/proc/sys", name)
        if path.exists():
            yield f"setting {name.replace('/', '.')} = {path.read_text().strip()}"
