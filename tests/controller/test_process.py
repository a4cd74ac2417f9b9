"""The controller as a process: how it ends, whenever it is asked to."""

from __future__ import annotations

import ctypes
import signal
import time
from pathlib import Path

import pytest
import yaml

from rollout_lws.controller import process
from rollout_lws.errors import ApiError
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Effect, Faults
from rollout_lws.sandbox.http import Server
from tests.kubectl.programs import ROLLOUT_LWS, Program

FORBIDDEN = Effect(refusal=ApiError(403, "Forbidden", "this account may not list anything"))
NO_SERVERS = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_controller_whose_caches_never_fill_ends_when_asked(number: signal.Signals, tmp_path: Path) -> None:
    faults = Faults()
    faults.add(FORBIDDEN, "list", count=None)
    server = Server(ApiServer(time.time), faults=faults)
    await server.start()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(server.kubeconfig()))
    program = await Program.start(ROLLOUT_LWS, "controller", "--kubeconfig", str(kubeconfig), *NO_SERVERS)
    try:
        await program.says("this account may not list anything")
        program.signal(number)
        assert await program.end(10) == 0
    finally:
        await program.kill()
        await server.stop()


async def test_a_guard_outside_of_a_pod_has_to_be_told_how_it_is_reached(tmp_path: Path) -> None:
    server = Server(ApiServer(time.time))
    await server.start()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(server.kubeconfig()))
    program = await Program.start(
        ROLLOUT_LWS, "controller", "--guard", "--guard-bind-address=:0", "--kubeconfig", str(kubeconfig), *NO_SERVERS
    )
    try:
        assert await program.end(20) == 1
        assert program.lines[-1] == (
            "rollout-lws: --guard: outside of a pod nothing says how API servers reach it: name it with --guard-host"
        )
    finally:
        await program.kill()
        await server.stop()


def test_with_another_c_library_than_glibc_memory_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    monkeypatch.setattr(ctypes, "CDLL", asked.append)
    process._give_back()
    assert asked == [None]
