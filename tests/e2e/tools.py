"""The programs of a real control plane, its nodes and a gateway, and the definitions of kinds that routers have, built
and copied from the Go modules that ``e2e`` pins.

Kubernetes publishes no API server for most machines that people develop on, and a fetched binary would have to be
trusted; its modules build anywhere Go runs, with every source checked by a ``go.sum``. That takes minutes, so the
programs are kept outside the tree, under a key that changes when they would.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

MODULE = Path(__file__).parents[2] / "e2e"
#: Names the directory that holds the built programs, one directory inside it for each key.
CACHE_VARIABLE = "ROLLOUT_LWS_E2E_CACHE"
_PROGRESS_SECONDS = 5.0
_LAST_LINES = 20

Progress = Callable[[str], None]


class CannotBuild(Exception):
    """The programs are not there and cannot be built; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Programs that are built together, if any: each by its name, with its package in the Go module at ``folder`` of
    MODULE.

    ``files`` are files or directories that lie beside the programs: each by its name, with the module that has it and
    its path there. ``verb`` is the target of the Makefile that builds them.
    """

    name: str
    programs: Mapping[str, str]
    folder: str = "."
    files: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    verb: str = "e2e-nodes"

    @property
    def module(self) -> Path:
        return MODULE / self.folder


PLANE = Bundle(
    "control plane",
    {
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    },
    verb="e2e-tools",
)
NODE = Bundle("nodes", {"kubelet": "k8s.io/kubernetes/cmd/kubelet", "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy"})
DNS = Bundle("DNS of pods", {"coredns": "rollout-lws/e2e/coredns"}, "coredns")
_CONTOUR = "github.com/projectcontour/contour"
GATEWAY = Bundle(
    "gateway",
    {"contour": f"{_CONTOUR}/cmd/contour"},
    "contour",
    {
        "contour.yaml": (_CONTOUR, "examples/contour/01-crds.yaml"),
        "gateway-api": ("sigs.k8s.io/gateway-api", "config/crd/experimental"),
    },
)
ISTIO = Bundle(
    "definitions of Istio",
    {},
    "istio",
    {"istio.yaml": ("istio.io/api", "kubernetes/customresourcedefinitions.gen.yaml")},
    verb="e2e-tools",
)


def kubernetes_version() -> str:
    """Of the control plane and its nodes, as ``v1.36.3``."""
    return _pinned(PLANE, r"^\s*k8s\.io/kubernetes (v\S+)")


def module_version(bundle: Bundle, module: str) -> str:
    """The version of ``module`` that a bundle is built from, as ``v1.36.3``."""
    return _pinned(bundle, rf"\s{re.escape(module)} (v\S+)")


def directory(bundle: Bundle = PLANE) -> Path:
    """Where the programs of a bundle are, or will be once they are built."""
    recipe = hashlib.sha256()
    for part in sorted((*bundle.module.glob("go.*"), *bundle.module.glob("*.go"))):
        recipe.update(part.read_bytes())
    built = [
        _link_flags(),
        platform.system(),
        platform.machine(),
        sorted(bundle.programs),
        sorted(bundle.files.items()),
    ]
    recipe.update(" ".join(map(str, built)).encode())
    return cache() / recipe.hexdigest()[:16]


def missing(bundle: Bundle = PLANE) -> str:
    """Why the programs are not here and how to get them, in one line; empty when they are."""
    if directory(bundle).is_dir():
        return ""
    return _without_go(bundle) or f"its programs are not built yet: make {bundle.verb} (once, a few minutes)"


def build(progress: Progress, bundle: Bundle = PLANE) -> Path:
    """Build what is not there yet, and give the directory of the programs. CannotBuild when that fails.

    A build takes minutes and some 2.5 GB of memory; a second one at the same time waits for the first.
    """
    into = directory(bundle)
    if into.is_dir():
        return into
    if why := _without_go(bundle):
        raise CannotBuild(why)
    into.parent.mkdir(parents=True, exist_ok=True)
    with alone(into.with_suffix(".lock"), progress):
        if into.is_dir():
            return into
        with tempfile.TemporaryDirectory(prefix=f"{into.name}.", dir=into.parent) as unfinished:
            programs = Path(unfinished) / "programs"
            for number, name in enumerate(bundle.programs, 1):
                progress(f"building {name} ({number} of {len(bundle.programs)}) ...")
                _compile(bundle, name, programs / name, progress)
            for name, (module, path) in bundle.files.items():
                _copy(_source(bundle, module) / path, programs / name)
            programs.rename(into)
    return into


def cache() -> Path:
    """The directory of all that is built once and kept outside the tree."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rollout-lws" / "e2e"


def _without_go(bundle: Bundle) -> str:
    """Why ``go.mod`` cannot be built here; Go itself is asked, as it may fetch a newer one of itself."""
    wanted = _pinned(bundle, r"^go (\S+)")
    how = f"install Go {wanted} or newer: https://go.dev/doc/install"
    go = shutil.which("go")
    if go is None:
        return f"there is no Go on the PATH to build it with; {how}"
    asked = subprocess.run([go, "list", "-m"], cwd=bundle.module, env=_environment(), capture_output=True, text=True)
    return "" if asked.returncode == 0 else f"{go} cannot build it ({asked.stderr.strip()}); {how}"


def _pinned(bundle: Bundle, pattern: str) -> str:
    pins = bundle.module / "go.mod"
    found = re.search(pattern, pins.read_text(), re.MULTILINE)
    assert found is not None, f"{pins} has no line like {pattern}"
    return found[1]


def _environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}


def _link_flags() -> str:
    """Without a version linked in, the API server calls itself v0.0.0-master and kubectl refuses to compare itself."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    told = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    rooms = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(["-s -w", *(f"-X {room}.{name}={value}" for room in rooms for name, value in told.items())])


def _compile(bundle: Bundle, name: str, into: Path, progress: Progress) -> None:
    command = ["go", "build", "-v", "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", _link_flags()]
    started = said = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(
        [*command, "-o", str(into), bundle.programs[name]],
        cwd=bundle.module,
        env=_environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                lines.append(line)
                if time.monotonic() - said >= _PROGRESS_SECONDS:
                    said = time.monotonic()
                    progress(f"  {name}: {len(lines)} packages, {said - started:.0f} s")
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode != 0:
        last = "".join(lines[-_LAST_LINES:])
        raise CannotBuild(f"go build of {name} failed with exit code {process.returncode}; its last words:\n{last}")
    progress(f"  {name}: {into.stat().st_size / 1e6:.0f} MB, {time.monotonic() - started:.0f} s")


def _source(bundle: Bundle, module: str) -> Path:
    """Where Go has put the sources of ``module``, in the version that the bundle is built from; it fetches them if no
    program has needed them yet.
    """
    asked = ["go", "mod", "download", "-json", module]
    found = subprocess.run(asked, cwd=bundle.module, env=_environment(), capture_output=True, text=True)
    if found.returncode != 0:
        raise CannotBuild(f"{' '.join(asked)} failed: {found.stderr.strip() or found.stdout.strip()}")
    return Path(json.loads(found.stdout)["Dir"])


def _copy(source: Path, into: Path) -> None:
    """What Go keeps cannot be written, and copies that cannot be removed are nobody's wish."""
    for path in [source] if source.is_file() else [each for each in source.rglob("*") if each.is_file()]:
        copy = into / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())


@contextmanager
def alone(lock: Path, progress: Progress) -> Iterator[None]:
    """One process at a time has ``lock``; another one that comes says that it waits."""
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another build is under way; waiting for it ...")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def main() -> int:
    try:
        for bundle in (PLANE, ISTIO):
            print(build(functools.partial(print, flush=True), bundle))
    except CannotBuild as error:
        print(f"no control plane: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
