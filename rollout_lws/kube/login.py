"""Passes a kubeconfig's context to kubernetes-asyncio, and refreshes its login when the token expires.

Tokens of login programs and token files expire within the hour; kubernetes-asyncio reads them once, and refreshes them
only in a loop that wakes every minute. Here the next request that needs a token refreshes it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from rollout_lws.errors import UsageError
from rollout_lws.kubeconfig.context import Context
from rollout_lws.kubeconfig.login import exec_info, program_of
from rollout_lws.kubeconfig.urls import scrubbed

log = logging.getLogger(__name__)

#: A login is checked again after this time at the earliest; if not expired, it is kept.
_LOOK_SECONDS = 60.0
#: Sooner after a refusal; but a server that refuses everything must not cause a login program per request.
_REFUSED_SECONDS = 5.0
#: kubernetes-asyncio passes no cluster info to a login program: this wrapper does, and execs the program.
_INFO = "ROLLOUT_LWS_EXEC_INFO"
_TELL = f"""\
import os, sys
os.environ["KUBERNETES_EXEC_INFO"] = os.environ.pop("{_INFO}")
os.execvp(sys.argv[1], sys.argv[1:])
"""
#: A login program or provider that takes longer than this has failed.
_PROGRAM_SECONDS = 30.0


def configured(context: Context) -> dict[str, Any]:
    """``context`` as a kubeconfig with one unambiguous entry each, independent of kubernetes-asyncio's precedence.

    UsageError for an interactive login program, which a controller cannot answer.
    """
    user = {name: value for name, value in context.user.items() if value and name != "exec"}
    if user.get("tokenFile") and user.get("token"):
        # The file's token wins if the file exists.
        user.pop("token" if Path(user["tokenFile"]).is_file() else "tokenFile")
    if user.get("username"):
        user.setdefault("password", "")
    program = program_of(context.user)
    if program:
        user["exec"] = _program(program, context)
    cluster = {name: value for name, value in context.cluster.items() if value} | {"server": context.server}
    return {
        "current-context": context.name,
        "contexts": [{"name": context.name, "context": {"cluster": context.name, "user": context.name}}],
        "clusters": [{"name": context.name, "cluster": cluster}],
        "users": [{"name": context.name, "user": user}],
    }


def _program(program: Mapping[str, Any], context: Context) -> dict[str, Any]:
    command = [str(program["command"]), *map(str, program.get("args") or ())]
    if program.get("interactiveMode") == "Always":
        raise UsageError(f"the login program {command[0]!r} has to ask you something, which a controller cannot answer")
    env = {str(pair["name"]): str(pair["value"]) for pair in program.get("env") or ()}
    if program.get("provideClusterInfo"):
        command = [sys.executable, "-IS", "-c", _TELL, *command]
        env[_INFO] = exec_info(program, context, interactive=False)
    named = [{"name": name, "value": value} for name, value in env.items()]
    return {"apiVersion": program.get("apiVersion"), "command": command[0], "args": command[1:], "env": named}


def why(error: Exception, configuration: Any) -> str:
    """Message of ``error`` for a request under kubernetes-asyncio's ``configuration``, scrubbed: aiohttp includes a
    proxy's URL with its password, and the server's with its path.
    """
    known = [url for url in (configuration.host, configuration.proxy) if url]
    return scrubbed(str(error), *known) or type(error).__name__


class Login:
    """A login that ``load`` reads into a configuration again, as kubernetes-asyncio's ``load_kube_config_from_dict``
    does. ``loader`` is the result of the first ``load``; it reads only what has expired. ``by_program`` says whether a
    login program provides the token.
    """

    def __init__(self, load: Callable[..., Awaitable[Any]], loader: Any, *, by_program: bool) -> None:
        self._load = load
        self._loader = loader
        self._by_program = by_program
        self._looked = asyncio.get_running_loop().time()
        self._refused = False
        self._one = asyncio.Lock()

    def refused(self) -> None:
        """The server answered 401: the login is invalid, whatever its expiry says."""
        self._refused = True

    async def renew(self, configuration: Any) -> None:
        """Put a valid token into ``configuration``. A failure is logged and the old token kept: it may be valid."""
        if not self._due():
            return
        async with self._one:
            if not self._due():
                return
            refused, self._refused = self._refused, False
            self._looked = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(_PROGRAM_SECONDS):
                    if refused:
                        self._loader = await self._load(client_configuration=configuration)
                    elif not self._lasting():
                        await self._loader.load_and_set(configuration)
            except Exception as error:
                log.warning("login cannot be renewed", extra={"fields": {"error": why(error, configuration)}})

    def _due(self) -> bool:
        since = asyncio.get_running_loop().time() - self._looked
        return since >= (_REFUSED_SECONDS if self._refused else _LOOK_SECONDS)

    def _lasting(self) -> bool:
        """A login program that gave no expiry runs again only after the server refuses its token."""
        return self._by_program and getattr(self._loader, "exec_plugin_expiry", None) is None
