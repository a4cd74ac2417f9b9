"""The browser is opened by a file of the user's alone, and the address in it is good for that browser alone."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from rollout_lws.cli.dashboard import opening
from rollout_lws.cli.dashboard.opening import opened
from rollout_lws.cli.dashboard.serving import Place, serving
from tests.cli.conftest import World
from tests.cli.dashboard.pages import PATIENCE, browser, eventually, page_of


class Opening:
    """Stands in for the browser: what it was opened with, and what was told. ``does`` is what it does with that."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.pages: list[str] = []
        self.modes: list[tuple[int, int]] = []
        self.comes = True
        self.told = asyncio.Queue[str]()

    def open(self, url: str) -> bool:
        file = path_of(url)
        self.asked.append(url)
        self.pages.append(file.read_text())
        self.modes.append((stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)))
        return self.comes

    async def trouble(self) -> str:
        return await asyncio.wait_for(self.told.get(), PATIENCE)


def path_of(url: str) -> Path:
    parts = urlsplit(url)
    assert parts.scheme == "file"
    return Path(unquote(parts.path))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture
def user(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opening]:
    found = Opening()
    monkeypatch.setattr(opening.webbrowser, "open", found.open)
    yield found
    assert not list(home.iterdir())


async def test_the_browser_is_given_a_file_that_only_the_user_reads_until_it_has_come(
    world: World, user: Opening, home: Path
) -> None:
    async with serving(page_of(world), Place()) as served:
        secret = served.invitation.address.rpartition("=")[2]
        async with opened(served.invitation, user.told.put_nowait):
            await eventually(lambda: bool(user.asked))
            assert secret not in user.asked[0] and path_of(user.asked[0]).is_relative_to(home)
            # Browsers that are snaps see no hidden directories.
            assert not any(part.startswith(".") for part in path_of(user.asked[0]).relative_to(home).parts)
            assert user.modes == [(0o600, 0o700)]
            assert f'content="0; url={served.invitation.address}"' in user.pages[0]
            async with browser(served.invitation.address):
                await eventually(lambda: not path_of(user.asked[0]).exists())
            with pytest.raises(AssertionError, match="has not been let in"):
                async with browser(served.invitation.address):
                    pass
        assert user.told.empty()
        async with browser(served.url), browser(served.url):
            pass


@pytest.mark.parametrize(
    ("comes", "words"),
    [
        (False, "no browser could be opened here: open the address above yourself"),
        (True, "no browser has come within 0.2 s: open the address above yourself"),
    ],
    ids=["none", "late"],
)
async def test_where_no_browser_comes_that_is_told_and_the_address_in_the_file_is_worth_nothing(
    world: World, user: Opening, monkeypatch: pytest.MonkeyPatch, comes: bool, words: str
) -> None:
    monkeypatch.setattr(opening, "_PATIENCE", 0.2)
    user.comes = comes
    async with serving(page_of(world), Place()) as served, opened(served.invitation, user.told.put_nowait):
        assert await user.trouble() == words
        assert not path_of(user.asked[0]).exists()
        with pytest.raises(AssertionError, match="has not been let in"):
            async with browser(served.invitation.address):
                pass
        async with browser(served.url):
            pass


async def test_the_file_goes_with_the_server(world: World, user: Opening) -> None:
    async with serving(page_of(world), Place()) as served, opened(served.invitation, user.told.put_nowait):
        await eventually(lambda: bool(user.asked))
    assert not path_of(user.asked[0]).exists()


async def test_a_user_without_a_home_has_the_file_among_those_that_are_temporary(
    world: World, user: Opening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nothing"))
    monkeypatch.setattr(opening.tempfile, "tempdir", str(tmp_path))
    async with serving(page_of(world), Place()) as served, opened(served.invitation, user.told.put_nowait):
        await eventually(lambda: bool(user.asked))
        assert path_of(user.asked[0]).parent.parent == tmp_path
    assert user.modes == [(0o600, 0o700)]
