"""A machine that cannot have real nodes is told why, in one line. Programs are stand-ins on a PATH of its own here."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import pytest

from tests.nodes import cgroups, needs


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that has all that is needed: a directory of programs, each of which succeeds, with one of networks beside."""
    programs, networks = tmp_path / "bin", tmp_path / "cni"
    for each in (program for package in needs.PACKAGES.values() for program in package):
        room, name = (networks if each.startswith("cni/") else programs), each.rpartition("/")[2]
        room.mkdir(exist_ok=True)
        stand_in(room / name, "exit 0")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(needs, "CNI_ROOMS", (tmp_path / "nowhere", networks))
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cgroups, "hierarchies", lambda: (Path("/sys/fs/cgroup/cpu"),))
    return tmp_path


def stand_in(path: Path, script: str) -> None:
    path.write_text(f"#!{shutil.which('sh', path=os.defpath)}\n{script}\n")
    path.chmod(0o755)


@pytest.mark.usefixtures("machine")
def test_a_machine_with_everything_lacks_nothing() -> None:
    assert needs.missing() == ""
    assert needs.missing_packages() == []


@pytest.mark.parametrize(
    ("program", "packages"),
    [
        ("bin/containerd", "containerd"),
        ("bin/ctr", "containerd"),
        ("bin/runc", "runc"),
        ("cni/bridge", "containernetworking-plugins"),
        ("cni/loopback", "containernetworking-plugins"),
        ("bin/nft", "nftables"),
        ("bin/ip", "iproute2"),
        ("bin/unshare", "util-linux"),
        ("bin/buildah", "buildah"),
        ("bin/mmdebstrap", "mmdebstrap"),
    ],
)
def test_a_program_that_is_not_there_is_named_with_its_package(machine: Path, program: str, packages: str) -> None:
    (machine / program).unlink()
    assert needs.missing_packages() == [packages]
    name = program.rpartition("/")[2]
    assert needs.missing() == f"there is no {name}: apt-get install --no-install-recommends {packages}"


def test_all_that_is_not_there_is_one_command(machine: Path) -> None:
    for program in ("bin/containerd", "bin/ctr", "bin/buildah"):
        (machine / program).unlink()
    assert needs.missing() == (
        "there is no containerd, ctr, buildah: apt-get install --no-install-recommends containerd buildah"
    )


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("module", "name", "answer", "told"),
    [
        (platform, "system", "Darwin", "its nodes need Linux, and this is Darwin"),
        (os, "geteuid", 1000, "its nodes need root: "),
        (cgroups, "hierarchies", (), "its nodes need control groups of version 1, or both: "),
    ],
)
def test_what_no_package_brings_is_said(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, answer: object, told: str
) -> None:
    monkeypatch.setattr(module, name, lambda: answer)
    assert needs.missing().startswith(told)
    assert "\n" not in needs.missing()


def test_a_kernel_that_refuses_is_quoted(machine: Path) -> None:
    stand_in(machine / "bin" / "unshare", "echo 'unshare: unshare failed:' >&2; echo 'not permitted' >&2; exit 1")
    assert needs.missing().endswith("(unshare: unshare failed: not permitted)")
