"""What is built is built once, whole or not at all; who cannot build is told what to do. Go is a stand-in here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.e2e import tools

#: Takes its orders from files beside it: ``broken`` names the program that does not compile, ``old`` says why,
#: ``offline`` why no module can be fetched. All modules have their sources in ``sources``.
GO = """\
here=$(dirname "$0")
if [ "$1" = list ]; then
    [ ! -e "$here/old" ] || { cat "$here/old" >&2; exit 1; }
    exit 0
fi
if [ "$1" = mod ]; then
    [ ! -e "$here/offline" ] || { cat "$here/offline" >&2; exit 1; }
    echo "{\\"Dir\\": \\"$here/sources\\"}"
    exit 0
fi
while [ "$1" != -o ]; do shift; done
echo "$3" >> "$here/built"
if grep -qs "/${2##*/}$" "$here/broken"; then echo "undefined: gophers" >&2; exit 1; fi
mkdir -p "$(dirname "$2")"
echo program > "$2"
"""


def publish(go: Path, bundle: tools.Bundle) -> None:
    """What the bundle takes from modules lies in their sources, as read-only as Go keeps it."""
    for _, path in bundle.files.values():
        file = go / "sources" / path if path.endswith(".yaml") else go / "sources" / path / "gateway.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(path)
        file.chmod(0o444)
        file.parent.chmod(0o555)


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with nothing on the PATH but a stand-in for Go, and an empty cache."""
    rooms = tmp_path / "bin", tmp_path / "cache"
    for room in rooms:
        room.mkdir()
    for name in ("dirname", "cat", "grep", "mkdir"):
        found = shutil.which(name)
        assert found is not None
        (rooms[0] / name).symlink_to(found)
    program = rooms[0] / "go"
    program.write_text(f"#!{shutil.which('sh')}\n{GO}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(rooms[0]))
    monkeypatch.setenv(tools.CACHE_VARIABLE, str(rooms[1]))
    return rooms[0]


def test_all_programs_are_built_and_only_once(go: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish(go, tools.ISTIO)
    assert "make e2e-tools" in tools.missing()
    assert tools.main() == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "building etcd (1 of 4) ..."
    assert told[-2:] == [str(tools.directory()), str(tools.directory(tools.ISTIO))]
    assert {path.name for path in tools.directory().iterdir()} == set(tools.PLANE.programs)
    assert tools.missing() == ""
    assert {path.name for path in tools.directory(tools.ISTIO).iterdir()} == set(tools.ISTIO.files)
    assert tools.main() == 0
    assert (go / "built").read_text().split() == list(tools.PLANE.programs.values())


def test_a_module_that_cannot_be_fetched_leaves_nothing_and_is_told(go: Path) -> None:
    (go / "offline").write_text("dial tcp: lookup proxy.example.com: no such host\n")
    with pytest.raises(tools.CannotBuild, match=r"go mod download -json istio\.io/api failed: dial tcp"):
        tools.build(print, tools.ISTIO)
    assert "make e2e-tools" in tools.missing(tools.ISTIO)


def test_files_of_modules_lie_beside_the_programs_and_can_be_removed(go: Path) -> None:
    publish(go, tools.GATEWAY)
    built = tools.build(print, tools.GATEWAY)
    assert {each.relative_to(built).as_posix() for each in built.rglob("*") if each.is_file()} == {
        *tools.GATEWAY.programs,
        "contour.yaml",
        "gateway-api/gateway.yaml",
    }
    assert all(each.stat().st_mode & 0o200 for each in built.rglob("*"))
    for each in (go / "sources").rglob("*"):
        each.chmod(0o755)


def test_bundles_do_not_share_a_directory() -> None:
    bundles = (tools.PLANE, tools.NODE, tools.DNS, tools.GATEWAY, tools.ISTIO)
    assert len({tools.directory(each) for each in bundles}) == len(bundles)


def test_a_build_that_fails_leaves_nothing_and_can_be_tried_again(go: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (go / "broken").write_text("/kube-scheduler\n")
    assert tools.main() == 1
    told = capsys.readouterr().err
    assert "kube-scheduler" in told
    assert "undefined: gophers" in told
    assert [path for path in tools.directory().parent.iterdir() if path.is_dir()] == []
    (go / "broken").unlink()
    publish(go, tools.ISTIO)
    assert tools.main() == 0


def test_without_go_it_is_said_how_to_get_it(go: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (go / "go").unlink()
    assert tools.main() == 1
    told = capsys.readouterr().err
    assert told.startswith("no control plane: there is no Go on the PATH")
    assert "install Go 1." in told
    assert "https://go.dev/doc/install" in told


def test_a_go_that_is_too_old_says_so_itself(go: Path) -> None:
    (go / "old").write_text("go: go.mod requires go >= 1.26.0 (running go 1.24.0; GOTOOLCHAIN=local)\n")
    assert "(running go 1.24.0; GOTOOLCHAIN=local)" in tools.missing()
    assert "install Go 1.26.0 or newer" in tools.missing()


def test_other_modules_are_other_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tools.directory()
    shutil.copytree(tools.MODULE, tmp_path / "module")
    monkeypatch.setattr(tools, "MODULE", tmp_path / "module")
    assert tools.directory() == before
    with (tmp_path / "module" / "go.sum").open("a") as sums:
        sums.write("example.org/another v1.0.0 h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n")
    assert tools.directory() != before
