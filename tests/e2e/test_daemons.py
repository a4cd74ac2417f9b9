"""No process outlives its block, nor whoever started it; its port stays its own, and its last words are told."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.bench.processes import Failed
from tests.e2e.daemons import daemon, data_directory, kill, reserved_port
from tests.e2e.plane import control_plane
from tests.e2e.tools import PLANE
from tests.kubectl.programs import held_port

#: Starts a daemon, tells its process id and its data, and waits to be killed.
STARTER = """
import asyncio, sys
from pathlib import Path
from tests.e2e.daemons import daemon, data_directory
from tests.kubectl.programs import held_port

async def main():
    async with data_directory() as data, daemon(Path(sys.argv[1]), "600", logs=Path(sys.argv[2])) as running:
        print(running.process.pid, data, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
GONE_SECONDS = 10


def sleep() -> Path:
    found = shutil.which("sleep")
    assert found is not None
    return Path(found)


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_daemon_ends_with_its_block_also_when_that_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with daemon(sleep(), "600", logs=tmp_path) as running:
            assert exists(running.process.pid)
            raise ZeroDivisionError
    assert not exists(running.process.pid)


async def test_what_a_killed_daemon_said_is_kept_when_it_is_started_again(tmp_path: Path) -> None:
    program = tmp_path / "talker"
    program.write_text("#!/bin/sh\necho $1 >&2\n")
    program.chmod(0o755)
    for word in ("one", "two"):
        async with daemon(program, word, logs=tmp_path) as running:
            await running.process.wait()
            await kill(running)
    assert (tmp_path / "talker.log").read_text() == "one\ntwo\n"


@pytest.mark.skipif(not shutil.which("setpriv"), reason="only Linux with setpriv (util-linux) can promise it")
async def test_neither_daemon_nor_data_outlives_a_starter_that_is_killed(tmp_path: Path) -> None:
    starter = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STARTER, str(sleep()), str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert starter.stdout is not None
    pid, data = (await starter.stdout.readline()).decode().split()
    left = os.pidfd_open(int(pid))
    try:
        starter.send_signal(signal.SIGKILL)
        await starter.wait()
        ended, _, _ = await asyncio.to_thread(select.select, [left], [], [], GONE_SECONDS)
        assert ended
        # Who removes the data has inherited this pipe, and is the last one to close it.
        await asyncio.wait_for(starter.stdout.read(), GONE_SECONDS)
        assert not is_there(data)
    finally:
        os.close(left)


async def test_data_go_with_their_block_also_when_that_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        async with data_directory() as data:
            fill(data)
            raise ZeroDivisionError
    assert not is_there(data)


def is_there(path: str | Path) -> bool:
    return Path(path).exists()


def fill(directory: Path) -> None:
    (directory / "member").mkdir()
    (directory / "member" / "wal").write_text("all that was ever written")


def test_a_reserved_port_is_only_for_who_shares_it() -> None:
    with reserved_port() as port:
        with socket.socket() as somebody, pytest.raises(OSError, match="in use"):
            somebody.bind(("127.0.0.1", port))
        for _started_again in range(2):
            with socket.socket() as server, socket.socket() as client:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                server.bind(("127.0.0.1", port))
                server.listen()
                client.connect(("127.0.0.1", port))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a port for a server that comes")
@pytest.mark.parametrize("host", ["127.0.0.1", ""])
def test_a_held_port_is_only_for_the_server_that_is_told_of_it(host: str) -> None:
    port = held_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    for _started_again in range(2):
        with socket.create_server((host, port)), socket.create_connection(("127.0.0.1", port)):
            pass
    assert port not in {held_port() for _ in range(100)}


async def test_a_plane_that_does_not_come_up_says_why(tmp_path: Path) -> None:
    for name in PLANE.programs:
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho the disk is full >&2\nexit 3\n")
        program.chmod(0o755)
    with pytest.raises(Failed, match=r"ended with 3; see .*\nthe disk is full"):
        async with control_plane(tmp_path, tmp_path):
            pass
