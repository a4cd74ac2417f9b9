"""A kubeconfig's login, in virtual time: when it is renewed, and when it is left alone."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from rollout_lws.kube.login import Login

pytestmark = pytest.mark.looptime


class Loader:
    """Stands for kubernetes-asyncio's loader; each load gives the next token. One that ``expires`` keeps its token."""

    def __init__(self, *, expires: bool = False) -> None:
        self.loads = 0
        self.fails = False
        if expires:
            self.exec_plugin_expiry = object()

    def login(self, *, by_program: bool = False) -> Login:
        async def load(client_configuration: Any) -> Loader:
            anew = Loader()
            anew.loads = self.loads
            await anew.load_and_set(client_configuration)
            self.loads = anew.loads
            return self

        return Login(load, self, by_program=by_program)

    async def load_and_set(self, configuration: Any) -> None:
        await asyncio.sleep(0)
        if hasattr(self, "exec_plugin_expiry"):
            return
        self.loads += 1
        if self.fails:
            raise RuntimeError("program ended with 1")
        configuration.token = f"token-{self.loads}"


@pytest.fixture
def configuration() -> Any:
    return SimpleNamespace(token="first", host="https://api.invalid/SECRET", proxy=None)


async def test_a_login_is_looked_at_once_a_minute_however_many_requests_there_are(configuration: Any) -> None:
    loader = Loader()
    login = loader.login()
    for _ in range(1300):
        await asyncio.sleep(0.1)
        await login.renew(configuration)
    assert loader.loads == 2
    assert configuration.token == "token-2"


async def test_requests_at_one_moment_renew_it_once(configuration: Any) -> None:
    loader = Loader()
    login = loader.login()
    await asyncio.sleep(61)
    await asyncio.gather(*[login.renew(configuration) for _ in range(20)])
    assert loader.loads == 1


async def test_a_program_that_names_no_expiry_runs_again_only_after_a_refusal(configuration: Any) -> None:
    loader = Loader()
    login = loader.login(by_program=True)
    await asyncio.sleep(3600)
    await login.renew(configuration)
    assert loader.loads == 0
    login.refused()
    await asyncio.sleep(5)
    await login.renew(configuration)
    assert configuration.token == "token-1"


async def test_a_refused_token_is_renewed_before_its_expiry(configuration: Any) -> None:
    loader = Loader(expires=True)
    login = loader.login(by_program=True)
    await asyncio.sleep(5)
    login.refused()
    await login.renew(configuration)
    assert loader.loads == 1
    assert configuration.token == "token-1", "the program's old expiry would have kept the old token"


async def test_a_server_that_refuses_everything_does_not_run_the_program_for_every_request(configuration: Any) -> None:
    loader = Loader()
    login = loader.login(by_program=True)
    for _ in range(600):
        await asyncio.sleep(0.1)
        login.refused()
        await login.renew(configuration)
    assert 10 <= loader.loads <= 12


async def test_a_login_that_fails_keeps_the_old_token_and_says_so(
    configuration: Any, caplog: pytest.LogCaptureFixture
) -> None:
    loader = Loader()
    loader.fails = True
    login = loader.login()
    await asyncio.sleep(61)
    with caplog.at_level(logging.WARNING):
        await login.renew(configuration)
    assert configuration.token == "first"
    assert [each.message for each in caplog.records] == ["login cannot be renewed"]
