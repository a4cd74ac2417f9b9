"""Replicas that make themselves trusted: by one bundle, whoever resets it, and with ever new certificates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rollout_lws.admission import bundle
from rollout_lws.admission.ca_bundle_controller import CaBundleController
from rollout_lws.admission.certificates import GRACE, LIFETIME, Identity
from rollout_lws.cli.install.manifests import objects
from rollout_lws.cli.install.options import Installation
from rollout_lws.errors import ApiError
from rollout_lws.kube.client import Client
from rollout_lws.kube.fence import Fence
from rollout_lws.objects.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from rollout_lws.sandbox.apiserver import ApiServer
from rollout_lws.sandbox.faults import Effect, Faults
from rollout_lws.sandbox.routes import Response
from rollout_lws.sandbox.transport import DirectTransport
from rollout_lws.settings import DEFAULT_GUARD

pytestmark = [pytest.mark.looptime, pytest.mark.rare(3)]

Object = dict[str, Any]
ORIGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
BOTH = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
ME = "system:serviceaccount:tools:rollout-lws-controller"
INSTALLED = {each["kind"]: each for each in objects(Installation("rollout-lws:1", extras=("guard",)))}


@dataclass
class Calendar:
    """What time it is for certificates; a day there need not take one here."""

    ahead: timedelta = timedelta()

    def now(self) -> datetime:
        return ORIGIN + self.ahead


@dataclass
class Replica:
    bundles: CaBundleController
    faults: Faults
    shown: list[Identity] = field(default_factory=list)


@asynccontextmanager
async def replica(server: ApiServer, calendar: Calendar, me: str = ME) -> AsyncIterator[Replica]:
    faults, shown = Faults(), []
    client = Client(DirectTransport(server, faults), field_manager=DEFAULT_GUARD, fence=Fence.none())
    bundles = CaBundleController(client, DEFAULT_GUARD, ["guard.tools.svc"], shown.append, calendar.now, me)
    running = asyncio.create_task(bundles.run())
    try:
        yield Replica(bundles, faults, shown)
    finally:
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()


def cluster(*, installed: bool = True) -> ApiServer:
    loop = asyncio.get_running_loop()
    server = ApiServer(lambda: ORIGIN.timestamp() + loop.time(), seed=1)
    if installed:
        install(server)
    return server


def install(server: ApiServer) -> None:
    for each in BOTH:
        server.create(each, INSTALLED[each.kind])


def bundles(server: ApiServer) -> list[str]:
    found = [server.get(each, "", DEFAULT_GUARD)["webhooks"] for each in BOTH]
    return [each["clientConfig"].get("caBundle", "") for some in found for each in some]


def trusts(server: ApiServer, *identities: Identity) -> bool:
    return all(bundle.has(each, one.authority) for each in bundles(server) for one in identities)


def version(server: ApiServer) -> list[str]:
    return [server.get(each, "", DEFAULT_GUARD)["metadata"]["resourceVersion"] for each in BOTH]


async def test_a_replica_is_ready_when_every_webhook_trusts_it() -> None:
    server = cluster()
    async with replica(server, Calendar()) as it:
        assert it.bundles.missing == (
            "guard: mutatingwebhookconfigurations.admissionregistration.k8s.io rollout-lws-guard: the first list is on"
            " its way\n"
            "guard: validatingwebhookconfigurations.admissionregistration.k8s.io rollout-lws-guard: the first list is"
            " on its way\n"
        )
        await asyncio.sleep(1)
        assert it.bundles.missing == ""
        assert len(bundles(server)) == 3
        assert trusts(server, *it.shown)
        assert it.bundles.until == ORIGIN + LIFETIME
        # Everything else is as it was installed, and what is trusted is not written again.
        before = version(server)
        await asyncio.sleep(7200)
        assert version(server) == before
    for each in BOTH:
        for webhook, wanted in zip(
            server.get(each, "", DEFAULT_GUARD)["webhooks"], INSTALLED[each.kind]["webhooks"], strict=True
        ):
            del webhook["clientConfig"]["caBundle"]
            assert webhook == wanted


async def test_two_replicas_do_not_push_each_other_out() -> None:
    server, calendar = cluster(), Calendar()
    async with replica(server, calendar) as one, replica(server, calendar) as other:
        await asyncio.sleep(1)
        assert trusts(server, *one.shown, *other.shown)
        assert one.bundles.missing + other.bundles.missing == ""
        before = version(server)
        await asyncio.sleep(7200)
        assert version(server) == before


@pytest.mark.parametrize("again", [False, True], ids=["emptied", "recreated"])
async def test_whoever_resets_a_bundle_finds_it_filled_again(again: bool) -> None:
    server, calendar = cluster(), Calendar()
    async with replica(server, calendar) as one, replica(server, calendar) as other:
        await asyncio.sleep(1)
        if again:
            for each in BOTH:
                server.delete(each, "", DEFAULT_GUARD)
            await asyncio.sleep(1)
            assert "does not exist: rollout-lws install --with guard makes it" in one.bundles.missing
            install(server)
        else:
            for each in BOTH:
                server.replace(each, INSTALLED[each.kind])
        assert bundles(server) == ["", "", ""]
        # Nobody puts back at once what somebody may take out again.
        await asyncio.sleep(10)
        assert trusts(server, *one.shown, *other.shown)
        assert one.bundles.missing + other.bundles.missing == ""


async def test_who_empties_a_bundle_each_time_is_answered_ever_more_seldom() -> None:
    server, calendar = cluster(), Calendar()
    async with replica(server, calendar) as it:
        await asyncio.sleep(1)
        filled = 0
        for _ in range(3600):
            if any(bundles(server)):
                filled += 1
                for each in BOTH:
                    server.replace(each, INSTALLED[each.kind])
            await asyncio.sleep(1)
        # 1 + 2 + 4 ... 256, then every five minutes; each of the two configurations for itself.
        assert 9 <= filled <= 45
        await asyncio.sleep(1000)
        assert trusts(server, *it.shown)


async def test_replicas_and_many_that_were_there_before_come_to_rest() -> None:
    server, calendar = cluster(), Calendar()
    async with replica(server, calendar) as one, replica(server, calendar) as other:
        await asyncio.sleep(1)
        calendar.ahead = timedelta(days=40)
        behind = Calendar(timedelta(days=1))
        for _ in range(bundle.LIMIT + 2):
            async with replica(server, behind):
                await asyncio.sleep(1)
        async with replica(server, Calendar(timedelta(days=80))) as skewed:
            await asyncio.sleep(3600)
            before = version(server)
            assert trusts(server, *one.shown[-1:], *other.shown[-1:], *skewed.shown[-1:])
            await asyncio.sleep(7200)
            assert version(server) == before


async def test_a_certificate_is_renewed_first_in_the_bundles_then_on_the_wire() -> None:
    server, calendar = cluster(), Calendar()
    async with replica(server, calendar) as it:
        await asyncio.sleep(1)
        (first,) = it.shown
        calendar.ahead = timedelta(days=20)
        await asyncio.sleep(3600)
        assert it.shown == [first]
        assert trusts(server, first)
        assert it.bundles.missing == ""
        calendar.ahead += GRACE
        await asyncio.sleep(3600)
        first, second = it.shown
        assert trusts(server, first, second)
        assert it.bundles.until == second.until == ORIGIN + timedelta(days=20) + LIFETIME
        calendar.ahead = timedelta(days=31)
        # The next write of anybody takes out what has expired.
        async with replica(server, calendar) as newcomer:
            await asyncio.sleep(1)
            assert trusts(server, second, *newcomer.shown)
            assert not any(bundle.has(each, first.authority) for each in bundles(server))


async def test_what_nobody_trusts_yet_is_not_shown() -> None:
    server, calendar = cluster(), Calendar()
    async with replica(server, calendar) as it:
        await asyncio.sleep(1)
        it.faults.add(Effect(refusal=ApiError(403, "Forbidden", "you may not")), "patch", count=None)
        calendar.ahead = timedelta(days=21)
        await asyncio.sleep(3700)
        assert len(it.shown) == 1
        # The one that it shows is good for nine days more, so API servers are to go on asking it.
        assert (it.bundles.missing, it.bundles.untold) == ("", "guard: you may not\n")
        it.faults.rules.clear()
        await asyncio.sleep(10)
        assert it.bundles.missing + it.bundles.untold == ""
        calendar.ahead += GRACE
        await asyncio.sleep(3600)
        assert len(it.shown) == 2
        assert trusts(server, *it.shown)


async def test_who_could_not_renew_until_the_end_is_asked_no_more() -> None:
    server, calendar = cluster(), Calendar()
    async with replica(server, calendar) as it:
        await asyncio.sleep(1)
        it.faults.add(Effect(refusal=ApiError(403, "Forbidden", "you may not")), "patch", count=None)
        calendar.ahead = LIFETIME
        await asyncio.sleep(3700)
        assert it.bundles.missing == "guard: the certificate that it shows has expired\nguard: you may not\n"
        assert it.bundles.untold == ""


async def test_a_right_to_look_that_is_lost_later_is_told_and_trust_stays() -> None:
    async with replica(cluster(), Calendar()) as it:
        await asyncio.sleep(1)
        denied = ApiError(403, "Forbidden", 'User "rollout-lws" cannot watch resource')
        it.faults.add(Effect(refusal=denied), "watch", count=None)
        it.faults.cut_watches()
        await asyncio.sleep(300)
        assert it.bundles.missing == ""
        assert it.bundles.untold.splitlines()[0].startswith(
            f"guard: {BOTH[0]} {DEFAULT_GUARD}: {denied.message}: allow "
        )
        it.faults.restore()
        await asyncio.sleep(300)
        assert it.bundles.untold == ""


async def test_somebody_quicker_is_no_trouble() -> None:
    server = cluster()
    async with replica(server, Calendar()) as it:
        it.faults.add(Effect(refusal=ApiError(409, "Conflict", "it has changed")), "patch", count=2)
        await asyncio.sleep(1)
        assert not trusts(server, *it.shown)
        assert "does not have this replica's authority yet" in it.bundles.missing
        await asyncio.sleep(5)
        assert trusts(server, *it.shown)
        assert it.bundles.missing == ""


async def test_without_configurations_it_says_how_they_are_made() -> None:
    server = cluster(installed=False)
    async with replica(server, Calendar()) as it:
        await asyncio.sleep(1)
        assert it.bundles.missing.count("does not exist: rollout-lws install --with guard makes it\n") == 2
        install(server)
        await asyncio.sleep(1)
        assert it.bundles.missing == ""


async def test_who_does_not_know_itself_is_not_ready() -> None:
    async with replica(cluster(), Calendar(), me="") as it:
        await asyncio.sleep(1)
        assert it.bundles.missing.splitlines()[0] == "guard: the API server has not identified this controller yet"
        assert "SelfSubjectReview is not served: the guard needs Kubernetes 1.28 or newer" in it.bundles.missing


async def test_a_right_that_is_missing_is_named() -> None:
    async with replica(cluster(), Calendar()) as it:
        it.faults.add(Effect(refusal=ApiError(403, "Forbidden", "you may not")), "list", count=None)
        await asyncio.sleep(1)
        for each in BOTH:
            assert (
                f"guard: {each} {DEFAULT_GUARD}: you may not: allow the controller's account to list and watch {each} "
            ) in it.bundles.missing


class Cut(DirectTransport):
    """Tells who asks in half an answer, and then in a whole one."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self.asked = 0

    async def request(self, method: str, path: str, **given: Any) -> Response:
        if not path.endswith("/selfsubjectreviews"):
            return await super().request(method, path, **given)
        self.asked += 1
        whole = b'{"status":{"userInfo":{"username":"system:serviceaccount:tools:me"}}}'
        return Response(201, whole if self.asked > 1 else whole[:40], {})


async def test_half_an_answer_to_who_it_is_ends_no_guard() -> None:
    transport = Cut(cluster())
    bundles = CaBundleController(Client(transport), DEFAULT_GUARD, ["guard.tools.svc"], lambda _: None, Calendar().now)
    running = asyncio.create_task(bundles.run())
    await asyncio.sleep(120)
    assert not running.done()
    assert bundles.me == "system:serviceaccount:tools:me"
    running.cancel()
    await asyncio.wait([running])
