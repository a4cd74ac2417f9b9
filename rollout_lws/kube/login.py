"""Keeps a kubeconfig's login good for longer than its first token.

A login program, an OIDC or cloud provider and a token file give tokens that end within the hour; kubernetes-asyncio
reads them once, and renews them only in a loop that wakes every minute. Here the next request that needs it renews
them.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from rollout_lws.kubeconfig.urls import scrubbed

log = logging.getLogger(__name__)

#: A login is looked at again after this time at the earliest; what has not expired then is kept.
_LOOK_SECONDS = 60.0
#: After a refusal, sooner; but a server that refuses everything must not run a login program for each request.
_REFUSED_SECONDS = 5.0
#: A login program or provider that takes longer than this has failed.
_PROGRAM_SECONDS = 30.0


def why(error: Exception, configuration: Any) -> str:
    """What ``error`` says of a request by kubernetes-asyncio's ``configuration``: aiohttp names the URL of a proxy
    with its password, and the server's with its path.
    """
    known = [url for url in (configuration.host, configuration.proxy) if url]
    return scrubbed(str(error), *known) or type(error).__name__


class Login:
    """The login of ``loader``, a kubernetes-asyncio KubeConfigLoader that has been loaded once."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._looked = asyncio.get_running_loop().time()
        self._refused = False
        self._one = asyncio.Lock()

    def refused(self) -> None:
        """The server answered 401: the login is no good, whatever its expiry says."""
        self._refused = True

    async def renew(self, configuration: Any) -> None:
        """Put a good token into ``configuration``. A failure is logged, and the old token kept: it may be good yet."""
        if not self._due():
            return
        async with self._one:
            if not self._due():
                return
            refused, self._refused = self._refused, False
            self._looked = asyncio.get_running_loop().time()
            if not refused and self._lasting():
                return
            if refused and hasattr(self._loader, "exec_plugin_expiry"):
                del self._loader.exec_plugin_expiry
            try:
                async with asyncio.timeout(_PROGRAM_SECONDS):
                    await self._loader.load_and_set(configuration)
            except Exception as error:
                log.warning("login cannot be renewed", extra={"fields": {"error": why(error, configuration)}})

    def _due(self) -> bool:
        since = asyncio.get_running_loop().time() - self._looked
        return since >= (_REFUSED_SECONDS if self._refused else _LOOK_SECONDS)

    def _lasting(self) -> bool:
        """A login program that named no expiry is not to be run again before the server refuses what it gave."""
        user = self._loader._user
        return user is not None and "exec" in user and not hasattr(self._loader, "exec_plugin_expiry")
