"""Images are made once for what they are made of, whole or not at all. Who makes them is played by stand-ins here."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import shutil
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.e2e import tools
from tests.e2e.tools import CannotBuild
from tests.nodes import images, reaching

#: Runs its command in no namespace, and so without the mounts of a shell before it. A containerd has nothing to do.
UNSHARE = """\
while [ "$1" != -- ]; do shift; done
shift
for last; do :; done
case "$*" in
    *"images import"*) echo import >> "$here/ran"; cp "$6" "$here/imported.tar"; echo done > "$last"; exit;;
esac
if [ "$1" = sh ]; then shift 3; fi
exec "$@"
"""
MMDEBSTRAP = """\
for last; do :; done
echo mmdebstrap >> "$here/ran"
cp "$here/root.tar" "$last"
"""
#: Takes its orders from a file beside it: ``broken`` names a verb that fails.
BUILDAH = """\
while [ "${1#--}" != "$1" ]; do shift; shift; done
echo "buildah $1" >> "$here/ran"
if [ "$1" = "$(cat "$here/broken")" ]; then echo "no space left" >&2; exit 125; fi
for last; do :; done
into=${last#docker-archive:}
if [ "$1" = push ]; then cp "$here/built.tar" "${into%:registry.local/*}"; fi
"""
EVERYTHING = ["mmdebstrap", "buildah pull", "buildah bud", "buildah push", "import"]


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with stand-ins on the PATH and little else, an empty cache, and a copy of what images are made of."""
    rooms = programs, cache, tree = tmp_path / "bin", tmp_path / "cache", tmp_path / "tree"
    for room in rooms:
        room.mkdir()
    for name in ("sh", "cat", "cp", "dirname", "setpriv"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    for name, script in (("unshare", UNSHARE), ("mmdebstrap", MMDEBSTRAP), ("buildah", BUILDAH)):
        (programs / name).write_text(f'#!{shutil.which("sh")}\nhere=$(dirname "$0")\n{script}')
        (programs / name).chmod(0o755)
    (programs / "broken").write_text("nothing")
    base = tar({"bin/python3": b"python"})
    (programs / "root.tar").write_bytes(base)
    (programs / "built.tar").write_bytes(saved(base, tar({"opt/rollout-lws/bin/rollout-lws": b"program"})))
    for name in ("Containerfile", ".containerignore", "pyproject.toml", "README.md", "LICENSE", "requirements"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tree / name)
    (tree / "rollout_lws").mkdir()
    (tree / "rollout_lws" / "one.py").write_text("one = 1\n")
    shutil.copy(images.MODEL_SERVER, tree)
    monkeypatch.setattr(images, "ROOT", tree)
    monkeypatch.setattr(images, "MODEL_SERVER", tree / images.MODEL_SERVER.name)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv(tools.CACHE_VARIABLE, str(cache))
    tools.directory(tools.DNS).mkdir()
    (tools.directory(tools.DNS) / "coredns").write_bytes(b"coredns")
    return programs


def tar(files: dict[str, bytes]) -> bytes:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return into.getvalue()


def saved(*layers: bytes) -> bytes:
    """An archive as buildah writes it of an image of these layers."""
    config = {"rootfs": {"diff_ids": [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in layers]}}
    names = [f"{hashlib.sha256(each).hexdigest()}.tar" for each in layers]
    manifest = [{"Config": "config.json", "RepoTags": [images.PRODUCT], "Layers": names}]
    files = dict(zip(names, layers, strict=True))
    return tar({**files, "config.json": json.dumps(config).encode(), "manifest.json": json.dumps(manifest).encode()})


def ran(builder: Path) -> list[str]:
    return (builder / "ran").read_text().splitlines()


def kept() -> Counter[str]:
    """How many things of each recipe are in the cache."""
    return Counter(each.name.partition("-")[0] for each in (tools.cache() / "images").iterdir() if each.is_dir())


def test_all_are_made_and_only_once(builder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert images.main() == 0
    assert capsys.readouterr().out.splitlines()[0] == "making base for nodes ..."
    assert kept() == {"base": 1, "product": 1, "images": 1}
    assert ran(builder) == EVERYTHING
    assert images.main() == 0
    assert ran(builder) == EVERYTHING
    assert capsys.readouterr().out == ""


def test_an_archive_has_every_image_and_each_layer_once(builder: Path) -> None:
    images.build(print)
    with tarfile.open(builder / "imported.tar") as archive:
        files = {each.name: archive.extractfile(each).read() for each in archive.getmembers()}  # type: ignore[union-attr]
        assert len(files) == len(archive.getnames())
    found = {}
    for image in json.loads(files["manifest.json"]):
        for name in image["RepoTags"]:
            found[name] = image["Layers"]
        told = json.loads(files[image["Config"]])["rootfs"]["diff_ids"]
        assert told == [f"sha256:{hashlib.sha256(files[each]).hexdigest()}" for each in image["Layers"]]
    assert set(found) == {images.PAUSE, *images.MODEL_SERVERS, images.DNS, images.PRODUCT, images.PRODUCT_NEXT}
    (base,) = found[images.PAUSE]
    assert files[base] == (builder / "root.tar").read_bytes()
    assert {name for name, layers in found.items() if layers[0] == base} == set(found) - {images.DNS}
    assert found[images.PRODUCT] == found[images.PRODUCT_NEXT]


def test_a_build_that_fails_leaves_nothing_and_can_be_tried_again(builder: Path) -> None:
    (builder / "broken").write_text("bud")
    with pytest.raises(CannotBuild, match=r"(?s)^buildah failed with exit code 125; its last words:.*no space left"):
        images.build(print)
    assert kept() == {"base": 1}
    (builder / "broken").write_text("nothing")
    images.build(print)
    assert kept() == {"base": 1, "product": 1, "images": 1}
    assert ran(builder).count("mmdebstrap") == 1


def test_a_base_that_fails_says_so(builder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (builder / "mmdebstrap").write_text("#!/bin/sh\necho 'E: no such suite' >&2\nexit 25\n")
    assert images.main() == 1
    assert capsys.readouterr().err.startswith("no images: mmdebstrap failed with exit code 25; its last words:\n")
    assert kept() == {}


@pytest.mark.usefixtures("builder")
def test_what_a_killed_build_has_left_goes() -> None:
    left = tools.cache() / "images" / "unfinished-1" / "scratch"
    left.mkdir(parents=True)
    images.build(print)
    assert not left.parent.exists()


def test_what_changes_is_made_again_and_no_more(builder: Path) -> None:
    images.build(print)
    images.MODEL_SERVER.write_text("print('another')\n")
    images.build(print)
    assert ran(builder) == [*EVERYTHING, "import"]
    (images.ROOT / "rollout_lws" / "two.py").write_text("two = 2\n")
    images.build(print)
    assert ran(builder) == [*EVERYTHING, "import", *EVERYTHING[1:]]
    assert kept() == {"base": 1, "product": 2, "images": 2}
    assert images.store().parent.is_dir()


@pytest.mark.usefixtures("builder")
@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("rollout_lws/one.py", True),
        ("rollout_lws/two.py", True),
        ("requirements/controller.txt", True),
        ("Containerfile", True),
        ("requirements/dev.txt", False),
        ("rollout_lws/__pycache__/one.cpython-311.pyc", False),
        ("rollout_lws/tls.key", False),
        ("tests/test_one.py", False),
    ],
)
def test_other_images_are_for_other_files_that_a_builder_is_sent(file: str, changes: bool) -> None:
    before = images.store()
    path = images.ROOT / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((path.read_bytes() if path.exists() else b"") + b"# more\n")
    assert (images.store() != before) is changes


def test_a_store_is_of_one_containerd(builder: Path) -> None:
    before = images.store()
    (builder / "containerd").write_text(f"#!{shutil.which('sh')}\necho containerd 2.3.6\n")
    (builder / "containerd").chmod(0o755)
    assert images.store() != before


@pytest.mark.skipif(platform.system() != "Linux", reason="its cp makes no links")
def test_a_copy_of_a_store_shares_what_is_never_written(tmp_path: Path) -> None:
    store, into = tmp_path / "store", tmp_path / "node"
    (store / "metadata").mkdir(parents=True)
    (store / "metadata" / "meta.db").write_bytes(b"database")
    (store / "layer").write_bytes(b"layer")
    (store / "link").symlink_to("layer")
    into.mkdir()
    images.copy(store, into)
    assert (into / "layer").samefile(store / "layer")
    assert (into / "link").is_symlink()
    assert (into / "metadata" / "meta.db").read_bytes() == b"database"
    assert not (into / "metadata" / "meta.db").samefile(store / "metadata" / "meta.db")


@pytest.mark.parametrize(
    ("told", "settings"),
    [
        ("", {"global": {}}),
        ("global.timeout='60'\n", {"global": {"timeout": "60"}}),
        (":env:.timeout='180'\nglobal.timeout='60'\n", {"global": {"timeout": "180"}}),
        (
            ":env:.index-url='https://a.example/'\ninstall.index-url='https://b.example/'\ninstall.retries='9'\n",
            {"install": {"retries": "9"}, "global": {"index-url": "https://a.example/"}},
        ),
        ("global.require-virtualenv='1'\n:env:.config-file='/dev/null'\n", {"global": {}}),
        ("global.find-links='\\n/one\\n/two'\n", {"global": {"find-links": "\n  /one\n  /two"}}),
    ],
)
def test_variables_go_before_files_as_they_do_for_pip(told: str, settings: dict[str, dict[str, str]]) -> None:
    assert reaching.pip_settings(told) == settings


def test_certificates_and_folders_that_pip_is_told_of_are_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in os.environ if each.startswith("PIP_")]:
        monkeypatch.delenv(name)
    bundle, wheels = tmp_path / "authorities.crt", tmp_path / "wheels"
    bundle.touch()
    wheels.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_CERT", str(bundle))
    monkeypatch.setenv("PIP_FIND_LINKS", f"{wheels} {tmp_path / 'nowhere'}")
    assert reaching.mounts(tmp_path) == [
        (str(bundle), "/etc/ssl/certs/ca-certificates.crt"),
        (str(tmp_path / "pip.conf"), "/etc/pip.conf"),
        (str(wheels), str(wheels)),
    ]
    assert str(bundle) not in (tmp_path / "pip.conf").read_text()
