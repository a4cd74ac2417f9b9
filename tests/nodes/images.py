"""The images of a cluster with real nodes, made on this machine without a registry: `python -m tests.nodes.images`.

A base of Debian's packages is made first; on it are the project's own image, by its Containerfile, the model servers
of releases, and what holds the namespaces of a pod. All are in one archive, which has what they share once, and a
containerd has imported that into a store which nodes copy: a copy takes a second, an import on two nodes twenty.
Each is made once for what it is made of, and kept beside the programs of tests.e2e.tools.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rollout_lws import __version__
from tests.docs.pages import ROOT
from tests.e2e import tools
from tests.e2e.tools import CannotBuild, Progress
from tests.image.containerfile import copied, sent, stages
from tests.kubectl.programs import tied_to_us
from tests.nodes import archives, reaching

REGISTRY = "registry.local"
#: One image by several names, so that a release has another one to change to.
MODEL_SERVERS = tuple(f"{REGISTRY}/model-server:v{number}" for number in (1, 2, 3))
PAUSE = f"{REGISTRY}/pause:1"
DNS = f"{REGISTRY}/coredns:1"
#: The project's own, and the same by another name, for upgrades.
_MINOR, _, _PATCH = __version__.rpartition(".")
PRODUCT, PRODUCT_NEXT = (f"{REGISTRY}/rollout-lws:{_MINOR}.{each}" for each in (_PATCH, int(_PATCH) + 1))
MODEL_SERVER = Path(__file__).with_name("model_server.py")

#: The environment variable that tells a run where its ``store`` is, however the tree has changed since it was made.
STORE = "ROLLOUT_LWS_NODES_IMAGES"
#: What the Containerfile calls its base.
_BASE = "docker.io/library/python:3.11-slim"
_PACKAGES = "base-files,base-passwd,coreutils,dash,python3,python3-venv,python3-pip,python-is-python3"
#: Packages are unpacked and not installed, which takes a quarter of the time: their scripts do not run.
_MERGED = 'cd "$1" && for each in bin sbin lib lib64; do mkdir -p usr/$each && ln -s usr/$each $each; done'
#: What the scripts would have done, as far as it is needed; then what nobody needs. Nothing can be written where it
#: runs, so Python's own library is compiled here, or each start would do it again.
_TRIMMED = " && ".join(
    (
        'cd "$1"',
        "cp usr/share/base-passwd/passwd.master etc/passwd",
        "cp usr/share/base-passwd/group.master etc/group",
        "cat usr/share/ca-certificates/mozilla/*.crt > etc/ssl/certs/ca-certificates.crt",
        "rm -rf usr/share/doc usr/share/man usr/share/locale usr/share/info usr/share/ca-certificates usr/lib/*/gconv",
        "rm -rf usr/lib/python3.11/test usr/lib/python3.11/lib2to3 usr/lib/python3.11/pydoc_data",
        "rm -rf var/lib/dpkg etc/resolv.conf etc/hostname",
        "chroot . python3 -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3.11",
    )
)
_DEBOOTSTRAP = (
    *("mmdebstrap", "--variant=extract", f"--include={_PACKAGES}", "--skip=output/dev"),
    # Its user for downloads may not look into our directory.
    *('--aptopt=APT::Sandbox::User "root"', f"--setup-hook={_MERGED}", f"--extract-hook={_TRIMMED}", "bookworm"),
)
#: The times of all files, before which no archive holds any.
_EPOCH = "315532800"
_BUILD = ("--pull-never", "--format", "docker", "--isolation", "chroot", "--timestamp", _EPOCH)
_POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'
#: Mounts of a builder that is killed end with it.
_ENCLOSED = ("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--")
#: Builders remember in the machine's own storage what they have copied, wherever theirs is.
_HIDDEN = 'mkdir -p /var/lib/containers && mount -t tmpfs tmpfs /var/lib/containers && exec "$0" "$@"'
#: Imports the archive $2 with a containerd that is configured by $1 and ends afterwards. Then $3 is there.
_IMPORT = """\
mount -t tmpfs tmpfs /run
sh -c 'echo $$ > /run/pid && exec containerd --config "$0"' "$1" 2>&1 | while read -r line; do
    echo "$line"
    case $line in *"containerd successfully booted"*)
        ctr --namespace k8s.io images import "$2" 2>&1 && touch "$3"
        kill "$(cat /run/pid)"
    esac
done
[ -e "$3" ]
"""
_CONTAINERD = """\
version = 2
root = "{root}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{opt}"
[plugins."io.containerd.grpc.v1.cri"]
  disable_apparmor = true
  restrict_oom_score_adj = true
"""
_NOBODY = "65532:65532"
#: So many things made by one recipe are kept, those that were used last.
_KEPT = 2
_UNFINISHED = "unfinished-"
_LAST_LINES = 20


def store() -> Path:
    """A containerd's directory with all images in it, there when ``build`` has been called for the tree as it is."""
    return _room("images", _images_key(_context())) / "containerd"


def copy(store: Path, into: Path) -> None:
    """Make ``into``, which may be an empty directory, a store of one containerd's own; by hard links where that can be.

    What is shared then is never written: containers have a layer of their own, and files are replaced as a whole. Only
    databases are written in place.
    """
    into.mkdir(parents=True, exist_ok=True)
    if into.stat().st_dev != store.stat().st_dev:
        subprocess.run(["cp", "--archive", f"{store}/.", into], check=True)
        return
    subprocess.run(["cp", "--archive", "--link", f"{store}/.", into], check=True)
    for database in store.glob("*/*.db"):
        shared = into / database.relative_to(store)
        shared.unlink()
        shutil.copy2(database, shared)


def build(progress: Progress) -> None:
    """Make what is not there yet. CannotBuild when that fails.

    It takes two minutes, a package index and Debian's archive; a second build at the same time waits.
    """
    context = _context()
    programs = tools.build(progress, tools.DNS)
    _rooms().mkdir(parents=True, exist_ok=True)
    with tools.alone(_rooms() / "lock", progress):
        for left in _rooms().glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left)
        base = _layers(_made("base", _base_key(), _make_base, progress))
        make = functools.partial(_make_product, base, context)
        product = _made("product", _product_key(context), make, progress)
        make = functools.partial(_make_images, base, product, programs / "coredns")
        _made("images", _images_key(context), make, progress)


def _context() -> dict[str, bytes]:
    """What a builder of the project's image is sent, by path from the root of the tree, and the recipe of it."""
    build, _ = stages()
    found = {name: (ROOT / name).read_bytes() for name in ("Containerfile", ".containerignore")}
    for name in (name for names, _ in copied(build) for name in names):
        place = ROOT / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            inside = path.relative_to(ROOT).as_posix()
            if sent(inside) and path.is_file():
                found[inside] = path.read_bytes()
    return found


def _base_key() -> str:
    return _key(*_DEBOOTSTRAP, _EPOCH, platform.machine())


def _product_key(context: Mapping[str, bytes]) -> str:
    return _key(_base_key(), *_BUILD, PRODUCT, *(part for item in sorted(context.items()) for part in item))


def _images_key(context: Mapping[str, bytes]) -> str:
    # A store is for the containerd that has written it, or a newer one.
    asked = ["containerd", "--version"]
    containerd = subprocess.run(asked, capture_output=True).stdout if shutil.which(asked[0]) else b""
    made_by = [Path(each).read_bytes() for each in (__file__, archives.__file__)]
    parts = tools.directory(tools.DNS).name, MODEL_SERVER.read_bytes(), containerd, *made_by
    return _key(_product_key(context), *parts)


def _key(*parts: str | bytes) -> str:
    """Of all parts, each with its length, so that what goes from one to the next is seen."""
    recipe = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        recipe.update(b"%d " % len(raw) + raw)
    return recipe.hexdigest()[:16]


def _rooms() -> Path:
    return tools.cache() / "images"


def _room(recipe: str, key: str) -> Path:
    return _rooms() / f"{recipe}-{key}"


def _made(recipe: str, key: str, make: Callable[[Path, Path], None], progress: Progress) -> Path:
    """The directory of what ``make`` makes in an empty one, with another one for what it needs meanwhile.

    What is made of the same recipe and has not been used for long goes then.
    """
    into = _room(recipe, key)
    if not into.is_dir():
        progress(f"making {recipe} for nodes ...")
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=_rooms()) as unfinished:
            made, scratch = Path(unfinished) / "made", Path(unfinished) / "scratch"
            made.mkdir()
            scratch.mkdir()
            make(made, scratch)
            made.rename(into)
        size = sum(each.stat().st_size for each in into.iterdir() if each.is_file())
        progress(f"  {recipe}: {size / 1e6:.0f} MB, {time.monotonic() - started:.0f} s")
    into.touch()
    used = sorted(_rooms().glob(f"{recipe}-*"), key=lambda each: each.stat().st_mtime_ns)
    for old in used[:-_KEPT]:
        shutil.rmtree(old)
    return into


def _layers(room: Path) -> tuple[archives.Layer, ...]:
    """Those that ``room`` holds, the lowest first."""
    return tuple(archives.Layer(each.stem.partition("-")[2], each) for each in sorted(room.glob("*-*.tar")))


def _keep(layer: Path, number: int, room: Path) -> None:
    with layer.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    shutil.move(layer, room / f"{number}-{digest}.tar")


def _make_base(into: Path, scratch: Path) -> None:
    layer = scratch / "root.tar"
    _run(*_DEBOOTSTRAP, str(layer), scratch=scratch)
    _keep(layer, 0, into)


def _make_product(base: Sequence[archives.Layer], context: Mapping[str, bytes], into: Path, scratch: Path) -> None:
    """The layers of the project's image that are its own, and its configuration."""
    tree = scratch / "tree"
    for name, content in context.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)
    first, built = scratch / "base.tar", scratch / "built.tar"
    archives.write(first, [archives.Image([_BASE], base, archives.config(base, Cmd=["python3"]))])
    (scratch / "policy.json").write_text(_POLICY)
    buildah = functools.partial(_buildah, scratch)
    buildah("pull", "--quiet", f"docker-archive:{first}")
    first.unlink()
    volumes = (f"--volume={source}:{target}:ro" for source, target in reaching.mounts(scratch))
    build = (*_BUILD, *volumes, "--build-arg", f"VERSION={__version__}", "--tag", PRODUCT)
    buildah("bud", *build, "--file", str(tree / "Containerfile"), str(tree))
    buildah("push", "--quiet", PRODUCT, f"docker-archive:{built}:{PRODUCT}")
    with tarfile.open(built) as archive:
        ((image),) = json.loads(archives.member(archive, "manifest.json"))
        config = archives.member(archive, image["Config"])
        names = json.loads(config)["rootfs"]["diff_ids"]
        assert names[: len(base)] == [f"sha256:{each.digest}" for each in base], "the image has another base"
        for number, name in list(enumerate(image["Layers"]))[len(base) :]:
            archive.extract(name, scratch, filter="data")
            _keep(scratch / name, number, into)
    (into / "config.json").write_bytes(config)


def _make_images(base: Sequence[archives.Layer], product: Path, coredns: Path, into: Path, scratch: Path) -> None:
    server = (*base, archives.layer(scratch / "server.tar", {MODEL_SERVER.name: (MODEL_SERVER.read_bytes(), 0o644)}))
    dns = (archives.layer(scratch / "dns.tar", {"coredns": (coredns.read_bytes(), 0o755)}),)
    started = ["python3", f"/{MODEL_SERVER.name}"]
    images = [
        archives.Image([PAUSE], base, archives.config(base, Entrypoint=["sleep", "infinity"], User=_NOBODY)),
        archives.Image(MODEL_SERVERS, server, archives.config(server, Entrypoint=started, User=_NOBODY)),
        archives.Image([DNS], dns, archives.config(dns, Entrypoint=["/coredns"])),
        archives.Image([PRODUCT, PRODUCT_NEXT], (*base, *_layers(product)), (product / "config.json").read_bytes()),
    ]
    archive, store, configuration = scratch / "images.tar", into / "containerd", scratch / "containerd.toml"
    archives.write(archive, images)
    configuration.write_text(_CONTAINERD.format(root=store, opt=scratch / "opt"))
    _run(
        "sh", "-c", _IMPORT, "containerd", str(configuration), str(archive), str(scratch / "imported"), scratch=scratch
    )


def _buildah(scratch: Path, verb: str, *arguments: str) -> None:
    """With a storage of its own, and none of the machine's."""
    storage = ("--root", str(scratch / "storage"), "--runroot", str(scratch / "run"))
    policy = ("--signature-policy", str(scratch / "policy.json"))
    _run("sh", "-c", _HIDDEN, "buildah", *storage, verb, *policy, *arguments, scratch=scratch)


def _run(*command: str, scratch: Path) -> None:
    """CannotBuild, with its last words, when it fails; a shell's name is the word after its script."""
    environment = {**os.environ, "TMPDIR": str(scratch), "SOURCE_DATE_EPOCH": _EPOCH}
    with subprocess.Popen(
        [*tied_to_us(), *_ENCLOSED, *command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            told, _ = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        last = "\n".join(told.splitlines()[-_LAST_LINES:])
        name = command[3] if command[0] == "sh" else command[0]
        raise CannotBuild(f"{name} failed with exit code {process.returncode}; its last words:\n{last}")


def main() -> int:
    try:
        build(functools.partial(print, flush=True))
    except CannotBuild as error:
        print(f"no images: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
