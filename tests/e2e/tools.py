"""The programs of a real control plane, built from the Go modules that ``e2e/go.mod`` pins.

Kubernetes publishes no API server for most machines that people develop on, and a fetched binary would have to be
trusted; its modules build anywhere Go runs, with every source checked by ``e2e/go.sum``. That takes minutes, so the
programs are kept outside the tree, under a key that changes when they would.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

MODULE = Path(__file__).parents[2] / "e2e"
#: Names the directory that holds the built programs, one directory inside it for each key.
CACHE_VARIABLE = "ROLLOUT_LWS_E2E_CACHE"
PROGRAMS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
_PROGRESS_SECONDS = 5.0
_LAST_LINES = 20

Progress = Callable[[str], None]


class CannotBuild(Exception):
    """The programs are not there and cannot be built; the text says why and what to do."""


def kubernetes_version() -> str:
    """Of the control plane, as ``v1.36.3``."""
    return _pinned(r"^\s*k8s\.io/kubernetes (v\S+)")


def directory() -> Path:
    """Where the programs of this ``go.mod`` are, or will be once they are built."""
    recipe = hashlib.sha256()
    for part in (MODULE / "go.mod", MODULE / "go.sum"):
        recipe.update(part.read_bytes())
    recipe.update(f"{_link_flags()} {platform.system()} {platform.machine()}".encode())
    return _cache() / recipe.hexdigest()[:16]


def missing() -> str:
    """Why there is no control plane here and how to get one, in one line; empty when there is one."""
    if directory().is_dir():
        return ""
    return _without_go() or "its programs are not built yet: make e2e-tools (once, a few minutes)"


def build(progress: Progress) -> Path:
    """Build what is not there yet, and give the directory of the programs. CannotBuild when that fails.

    A build takes minutes and some 2.5 GB of memory; a second one at the same time waits for the first.
    """
    into = directory()
    if into.is_dir():
        return into
    if why := _without_go():
        raise CannotBuild(why)
    into.parent.mkdir(parents=True, exist_ok=True)
    with _alone(into.with_suffix(".lock"), progress):
        if into.is_dir():
            return into
        with tempfile.TemporaryDirectory(prefix=f"{into.name}.", dir=into.parent) as unfinished:
            programs = Path(unfinished) / "programs"
            for number, name in enumerate(PROGRAMS, 1):
                progress(f"building {name} ({number} of {len(PROGRAMS)}) ...")
                _compile(name, programs / name, progress)
            programs.rename(into)
    return into


def _cache() -> Path:
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rollout-lws" / "e2e"


def _without_go() -> str:
    """Why ``go.mod`` cannot be built here; Go itself is asked, as it may fetch a newer one of itself."""
    wanted = _pinned(r"^go (\S+)")
    how = f"install Go {wanted} or newer: https://go.dev/doc/install"
    go = shutil.which("go")
    if go is None:
        return f"there is no Go on the PATH to build it with; {how}"
    asked = subprocess.run([go, "list", "-m"], cwd=MODULE, env=_environment(), capture_output=True, text=True)
    return "" if asked.returncode == 0 else f"{go} cannot build it ({asked.stderr.strip()}); {how}"


def _pinned(pattern: str) -> str:
    found = re.search(pattern, (MODULE / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, f"{MODULE / 'go.mod'} has no line like {pattern}"
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


def _compile(name: str, into: Path, progress: Progress) -> None:
    command = ["go", "build", "-v", "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", _link_flags()]
    started = said = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(
        [*command, "-o", str(into), PROGRAMS[name]],
        cwd=MODULE,
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


@contextmanager
def _alone(lock: Path, progress: Progress) -> Iterator[None]:
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another build is under way; waiting for it ...")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def main() -> int:
    try:
        print(build(functools.partial(print, flush=True)))
    except CannotBuild as error:
        print(f"no control plane: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
