"""The receiver of docs/notifications.md: it takes what was signed, once, and nothing else. The page shows an event."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rollout_lws.clock import WallClock
from rollout_lws.notifications import signing
from rollout_lws.notifications.cloudevents import CONTENT_TYPE, cloud_event
from rollout_lws.notifications.delivery import Answered, Reply
from rollout_lws.notifications.destination import Destination, Format
from rollout_lws.notifications.post import HttpPost
from rollout_lws.notifications.transition import notification
from tests.docs.pages import ROOT
from tests.kubectl.programs import ROLLOUT_LWS, Program
from tests.notifications.receiver import KEY, directory
from tests.notifications.samples import transition

RECEIVER = ROOT / "examples/notifications/receiver.py"
PAGE = ROOT / "docs/notifications.md"
OTHER = "whsec_" + "A" * 32


@asynccontextmanager
async def receiving(keys: Path) -> AsyncIterator[tuple[Program, str]]:
    """The receiver in a process of its own, and its URL."""
    program = await Program.start(sys.executable, str(RECEIVER), str(keys), "0")
    try:
        yield program, (await program.says("listening on ")).split()[-1]
    finally:
        await program.kill()


async def sent(url: str, key: str, note: str, at: datetime | None = None) -> Reply:
    told = notification(transition(note=note))
    body = cloud_event(told)
    post = HttpPost(WallClock())
    signed = signing.headers([signing.key(key)], told.id, at or datetime.now(UTC), body)
    try:
        to = Destination("hook", Format.CLOUDEVENTS, url)
        return await post.send(to, signed | {"content-type": CONTENT_TYPE}, body)
    finally:
        await post.close()


async def test_the_receiver_takes_what_was_signed_and_tells_it_once(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{OTHER}\n{KEY}\n")
    async with receiving(tmp_path / "keys") as (program, url):
        assert await sent(url, KEY, "first") == Answered(204)
        assert await sent(url, KEY, "first") == Answered(204)
        assert await sent(url, OTHER, "second") == Answered(204)
        assert await sent(url, "whsec_" + "B" * 32, "forged") == Answered(401)
        assert await sent(url, KEY, "late", datetime.now(UTC) - timedelta(minutes=6)) == Answered(401)
        await program.says("second")
        told = [line for line in program.lines if line.startswith("io.rollout-lws.")]
    assert [line.split()[-1] for line in told] == ["first", "second"]


@pytest.mark.long
async def test_a_controller_tells_it_what_happens(tmp_path: Path) -> None:
    """The commands of the page, on other ports."""
    where = Path(directory(tmp_path / "hook"))
    async with receiving(where / "signing-keys") as (receiver, url):
        (where / "url").write_text(url)
        flags = ["--controller", "--notify", str(where), "-f", str(ROOT / "examples/quickstart")]
        sandbox = await Program.start(ROLLOUT_LWS, "sandbox", "--kubeconfig", str(tmp_path / "kubeconfig"), *flags)
        try:
            await receiver.says("io.rollout-lws.Adopted")
        finally:
            await sandbox.kill()


def shown() -> dict[str, Any]:
    (block,) = re.findall(r"<!-- event -->\n```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    decoded: dict[str, Any] = json.loads(block)
    return decoded


def test_the_page_shows_an_event_as_it_is_sent() -> None:
    assert shown() == json.loads(cloud_event(notification(transition(cluster="prod-eu"))))


def test_the_page_names_each_member_of_the_data() -> None:
    text = PAGE.read_text()
    assert [name for name in shown()["data"] if f"`{name}`" not in text and name not in ("rollout", "workload")] == []


def test_the_page_tries_what_is_there() -> None:
    text = PAGE.read_text()
    assert str(RECEIVER.relative_to(ROOT)) in text
    assert "--notify hook -f examples/quickstart" in text
