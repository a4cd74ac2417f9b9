"""Publishes the guard's CA in the webhooks' caBundle and rotates its certificate.

Every replica writes here, leader or not: it writes only its own CA, which concerns no release, and repeated writes have
the same result. So these writes do not pass the leader election fence.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from rollout_lws.admission import bundle
from rollout_lws.admission.bundle import Backoff
from rollout_lws.admission.certificates import Identity, Rotation, issue
from rollout_lws.errors import ApiError, Unreachable
from rollout_lws.kube.client import Client, understood
from rollout_lws.kube.informer import Informer
from rollout_lws.objects.meta import Meta, Struct
from rollout_lws.objects.resources import MUTATING_WEBHOOKS, SELF_SUBJECT_REVIEWS, VALIDATING_WEBHOOKS, Resource
from rollout_lws.objects.writes import Create, Patch

log = logging.getLogger(__name__)

#: A rejected write is retried after this many seconds; a change meanwhile wakes earlier.
_AGAIN_SECONDS = 5.0
#: Longest wait for a date: the system clock may be set, or the machine may have slept.
_LOOK_SECONDS = 3600.0


class _ClientConfig(Struct, frozen=True):
    ca_bundle: str = ""


class _Webhook(Struct, frozen=True):
    client_config: _ClientConfig = _ClientConfig()


class Configuration(Struct, frozen=True):
    """The cached part of a webhook configuration."""

    metadata: Meta
    webhooks: tuple[_Webhook, ...] = ()


class _UserInfo(Struct, frozen=True):
    username: str = ""


class _Reviewed(Struct, frozen=True):
    user_info: _UserInfo = _UserInfo()


class _Subject(Struct, frozen=True):
    status: _Reviewed = _Reviewed()


_subjects = msgspec.json.Decoder(_Subject)


class CaBundleController:
    """Manages the webhook configurations called ``name``, for a server reachable as ``hosts`` that ``show`` gives the
    certificate to use. ``client`` must not be fenced.

    ``me`` is this account's name as API servers know it, "" until they have reported it.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        hosts: Sequence[str],
        show: Callable[[Identity], None],
        now: Callable[[], datetime],
        me: str = "",
    ) -> None:
        self.me = me
        self._client = client
        self._name = name
        self._hosts = hosts
        self._show = show
        self._now = now
        self._trouble = ""
        self._news = asyncio.Event()
        self._rotation = Rotation(issue(hosts, now()))
        show(self._rotation.serving)
        self.informers = [
            Informer(client, each, msgspec.json.Decoder(Configuration).decode, field_selector=f"metadata.name={name}")
            for each in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
        ]
        for each in self.informers:
            each.on_change(lambda _before, _after: self._news.set())
            each.on_news(self._news.set)
        #: By resource: the back-off for missing CAs, and the CAs that have been in all of its bundles.
        self._backoff = dict.fromkeys((each.resource for each in self.informers), Backoff())
        self._known: dict[Resource, set[bytes]] = {each.resource: set() for each in self.informers}

    @property
    def until(self) -> datetime:
        """When the served certificate expires."""
        return self._rotation.serving.until

    @property
    def missing(self) -> str:
        """Why API servers do not call this replica, or it could not answer, as lines; "" when all is well."""
        lines = [] if self.me else ["guard: the API server has not identified this controller yet"]
        for each in self.informers:
            found = each.get("", self._name)
            if found is None:
                why = each.trouble or "the first list is on its way"
                none = "does not exist: rollout-lws install --with guard makes it"
                lines.append(f"guard: {each.resource} {self._name}: {none if each.is_synced else why}")
            elif not _trusts(found, (self._rotation.serving.authority,)):
                lines.append(f"guard: {each.resource} {self._name} does not have this replica's authority yet")
        if self._rotation.serving.until <= self._now():
            lines.append("guard: the certificate that it shows has expired")
        if lines and self._trouble:
            lines.append(f"guard: {self._trouble}")
        return _text(lines)

    @property
    def untold(self) -> str:
        """Missing permissions although API servers call and trust this replica, as lines: rotation, ten days before the
        served certificate expires, will need them.
        """
        if self.missing:
            return ""
        lines = [f"guard: {each.resource} {self._name}: {each.trouble}" for each in self.informers if each.denied]
        return _text([*lines, f"guard: {self._trouble}"] if self._trouble else lines)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for each in self.informers:
                tasks.create_task(each.run(), name=f"watch {each.resource}")
            tasks.create_task(self._keep(), name="keep the guard trusted")

    async def _keep(self) -> None:
        while True:
            self._news.clear()
            self._turn()
            wait = _LOOK_SECONDS
            try:
                await self._introduce()
                wait = min(wait, await self._publish())
                self._trouble = ""
            except (ApiError, Unreachable) as error:
                if str(error) != self._trouble:
                    log.warning("guard not trusted", extra={"fields": {"error": str(error)}})
                self._trouble, wait = str(error), _AGAIN_SECONDS
            self._turn()
            due = self._rotation.wake_at
            if due is not None:
                wait = min(wait, max(0.0, (due - self._now()).total_seconds()))
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._news.wait()

    def _turn(self) -> None:
        """Rotate the certificate if it is due."""
        now, before = self._now(), self._rotation
        if before.needs_next(now):
            log.info("guard renews its certificate", extra={"fields": {"until": before.serving.until.isoformat()}})
            self._rotation = replace(before, next=issue(self._hosts, now))
        found = [each.get("", self._name) for each in self.informers]
        if all(each is not None and _trusts(each, self._rotation.authorities) for each in found):
            self._rotation = self._rotation.trusted(now)
        self._rotation = self._rotation.turned(now)
        if self._rotation.serving is not before.serving:
            self._show(self._rotation.serving)

    async def _introduce(self) -> None:
        """Read the name of this account from the API server: the guard does not judge its own writes."""
        if self.me:
            return
        asked = {
            "apiVersion": SELF_SUBJECT_REVIEWS.api_version,
            "kind": SELF_SUBJECT_REVIEWS.kind,
            "metadata": {"name": ""},
        }
        review = Create(SELF_SUBJECT_REVIEWS, asked, "the guard lets our own writes pass")
        try:
            said = await self._client.send(review)
        except ApiError as error:
            if error.is_unserved:
                raise ApiError(
                    error.code,
                    error.reason,
                    "SelfSubjectReview is not served: the guard needs Kubernetes 1.28 or newer",
                ) from error
            raise
        self.me = understood(_subjects.decode, said, review).status.user_info.username

    async def _publish(self) -> float:
        """Seconds until the next check; ApiError or Unreachable when a bundle cannot be written."""
        wait, failure = _LOOK_SECONDS, None
        for each in self.informers:
            found = each.get("", self._name)
            if found is None:
                continue
            pause = self._pause(each.resource, found)
            changes = self._changes(each.resource, found) if pause <= 0 else {}
            if not changes:
                wait = min(wait, pause) if pause > 0 else wait
                continue
            meta = found.metadata
            # Other writers own the list of webhooks; a position in it is valid only while the list is unchanged.
            patch = Patch(
                each.resource,
                "",
                self._name,
                {"webhooks": changes},
                "lets API servers verify the guard's certificate",
                uid=meta.uid,
                generation=meta.generation,
            )
            try:
                each.absorb(await self._client.send(patch))
                self._known[each.resource] |= {*self._rotation.authorities}
                self._backoff[each.resource] = self._backoff[each.resource].put_back(_seconds())
            except ApiError as error:
                # Another writer was faster, or has deleted it: the watch will show it.
                wait, failure = min(wait, _AGAIN_SECONDS), failure if error.code in (404, 409) else error
        if failure is not None:
            raise failure
        return wait

    def _pause(self, resource: Resource, found: Configuration) -> float:
        """Seconds to wait before writing a bundle: more than 0 only if all missing CAs have been there before."""
        authorities, known = self._rotation.authorities, self._known[resource]
        known &= {*authorities}
        known |= {one for one in authorities if _trusts(found, (one,))}
        lacking = {one for one in authorities if not _trusts(found, (one,))}
        if not lacking:
            self._backoff[resource] = self._backoff[resource].there()
        if not lacking or not lacking <= known:
            return 0.0
        waits = self._backoff[resource].vanished(_seconds(), random.random())
        self._backoff[resource] = waits
        return 0.0 if waits.due is None else waits.due - _seconds()

    def _changes(self, resource: Resource, found: Configuration) -> dict[str, Any]:
        now, authorities, known = self._now(), self._rotation.authorities, self._known[resource]
        wanted = [bundle.merged(each.client_config.ca_bundle, authorities, now, known) for each in found.webhooks]
        return {
            str(number): {"clientConfig": {"caBundle": text}}
            for number, (text, each) in enumerate(zip(wanted, found.webhooks, strict=True))
            if text != each.client_config.ca_bundle
        }


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _seconds() -> float:
    return asyncio.get_running_loop().time()


def _trusts(found: Configuration, authorities: Sequence[bytes]) -> bool:
    return all(bundle.has(each.client_config.ca_bundle, one) for each in found.webhooks for one in authorities)
