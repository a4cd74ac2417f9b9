"""The demo's release on the page that `rollout-lws dashboard` serves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rollout_lws.cli.access.transport import Transport
from rollout_lws.cli.dashboard.opening import opened
from rollout_lws.cli.dashboard.server import Page
from rollout_lws.cli.dashboard.serving import Place, serving
from rollout_lws.cli.demo.plan import Plan
from rollout_lws.cli.demo.teller import Teller
from rollout_lws.cli.get.caller import Caller
from rollout_lws.kubeconfig.target import Target
from rollout_lws.objects.resources import Resource

#: Seconds that a step waits for a click.
HESITATION = 600.0


@dataclass(frozen=True, slots=True)
class Showing:
    """``opens``: a browser is opened. ``attended``: a person is there, who approves on the page and ends the demo."""

    opens: bool
    attended: bool


@asynccontextmanager
async def shown(
    showing: Showing, plan: Plan, rollouts: Resource, kubeconfig: Path, teller: Teller
) -> AsyncIterator[None]:
    """The page for the duration of the block."""

    def caller(namespace: str) -> Caller:
        return Caller(flags=("--kubeconfig", str(kubeconfig), "--namespace", namespace))

    with Transport.to(Target(kubeconfig=str(kubeconfig))) as transport:
        page = Page(transport, rollouts, "", None, read_only=False, caller=caller)
        async with serving(page, Place(), f"{plan.namespace}/{plan.name}") as served:
            teller.say("page", served.url)
            tell = partial(teller.say, "page")
            async with opened(served.invitation, tell) if showing.opens else nullcontext():
                yield


async def until_interrupted(teller: Teller) -> None:
    """The page stays, so that the person can look at what there is in the end."""
    teller.say("page", "it stays until Ctrl-C")
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
