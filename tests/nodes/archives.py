"""Archives of images as `docker save` writes them: layers, and what is started in them and as whom."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_ENVIRONMENT = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]


@dataclass(frozen=True, slots=True)
class Layer:
    """A tar file, and the SHA-256 of it in hexadecimal digits, by which images name it."""

    digest: str
    path: Path


@dataclass(frozen=True, slots=True)
class Image:
    """By its names, layers from the lowest to the highest, and configuration as Docker has it, JSON."""

    names: Sequence[str]
    layers: Sequence[Layer]
    config: bytes


def config(layers: Iterable[Layer], **runs: Any) -> bytes:
    """The configuration of an image of ``layers``; ``runs`` says what is started in it, and as whom."""
    told = {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Env": _ENVIRONMENT, "WorkingDir": "/", **runs},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each.digest}" for each in layers]},
    }
    return json.dumps(told).encode()


def layer(into: Path, files: Mapping[str, tuple[bytes, int]]) -> Layer:
    """One of ``files``, each with its content and mode, written to ``into``."""
    with tarfile.open(into, "w") as archive:
        for name, (content, mode) in files.items():
            _add(archive, name, content, mode)
    return Layer(hashlib.sha256(into.read_bytes()).hexdigest(), into)


def write(into: Path, images: Sequence[Image]) -> None:
    """What `docker save` would write of ``images``, each layer once."""
    with tarfile.open(into, "w") as archive:
        for each in {each.digest: each for image in images for each in image.layers}.values():
            archive.add(each.path, f"{each.digest}.tar", filter=_nobodys)
        manifest = []
        for image in images:
            name = f"{hashlib.sha256(image.config).hexdigest()}.json"
            _add(archive, name, image.config)
            layers = [f"{each.digest}.tar" for each in image.layers]
            manifest.append({"Config": name, "RepoTags": list(image.names), "Layers": layers})
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))


def member(archive: tarfile.TarFile, name: str) -> bytes:
    """The content of a file in an archive."""
    file = archive.extractfile(name)
    assert file is not None, name
    return file.read()
