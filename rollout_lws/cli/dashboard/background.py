"""Blocking calls in threads that end with the process: it does not wait for a server that does not answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def in_thread(call: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
    """What the call returns or raises. If the task is cancelled, the call goes on, and its outcome is dropped.

    Unlike ``asyncio.to_thread``, whose threads the interpreter waits for at its exit.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[_T] = loop.create_future()

    def settle(act: Callable[[], None]) -> None:
        if not answer.done():
            act()

    def run() -> None:
        try:
            result = call(*arguments, **named)
        except Exception as error:
            raised = error
            act = lambda: answer.set_exception(raised)  # noqa: E731
        else:
            act = lambda: answer.set_result(result)  # noqa: E731
        # The loop may have ended meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, act)

    threading.Thread(target=run, name=getattr(call, "__name__", "call"), daemon=True).start()
    return await answer
