"""Opens the user's browser on a page that lets in one browser, without the token among any program's arguments.

All users of a machine see those. A file that only its user can read leads to the address instead.
"""

from __future__ import annotations

import asyncio
import html
import shutil
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rollout_lws.cli.dashboard.background import in_thread

#: Seconds that a browser has to start and come.
_PATIENCE = 60.0
_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>rollout-lws dashboard</title>
<p><a href="{address}">Releases</a></p>
"""


@dataclass(frozen=True, slots=True)
class Invitation:
    """An ``address`` that lets in one browser, until it is ``taken`` or revoked by ``revoke()``."""

    address: str
    taken: asyncio.Event
    revoke: Callable[[], object]


@asynccontextmanager
async def opened(invitation: Invitation, tell: Callable[[str], object]) -> AsyncIterator[None]:
    """Opens the browser while the block goes on; tells what to do if none comes."""
    task = asyncio.create_task(_open(invitation, tell))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _open(invitation: Invitation, tell: Callable[[str], object]) -> None:
    trouble = ""
    try:
        with leading_to(invitation.address) as file:
            if await in_thread(webbrowser.open, file):
                async with asyncio.timeout(_PATIENCE):
                    await invitation.taken.wait()
            else:
                trouble = "no browser could be opened here"
    except TimeoutError:
        trouble = f"no browser has come within {_PATIENCE:g} s"
    except OSError as error:
        trouble = f"no browser could be opened here ({error.strerror})"
    finally:
        invitation.revoke()
    # Nothing is left to do then.
    if trouble:
        tell(f"{trouble}: open the address above yourself")


@contextmanager
def leading_to(address: str) -> Iterator[str]:
    """The URL of a file that leads a browser to the address; only the user can read it, and it goes with the block."""
    place = _directory()
    try:
        page = place / "dashboard.html"
        page.touch(0o600)
        page.write_text(_PAGE.format(address=html.escape(address)))
        yield page.as_uri()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _directory() -> Path:
    """A new directory that only the user can enter. Browsers that are installed as snaps see nothing of /tmp and no
    hidden directory, but the rest of the user's home.
    """
    try:
        return Path(tempfile.mkdtemp(prefix="rollout-lws-", dir=Path.home()))
    except (OSError, RuntimeError):
        # The home is not known, or may not be written.
        return Path(tempfile.mkdtemp(prefix="rollout-lws-"))
