"""Tracks the permissions that the API server denies; logs when each is found missing and when it is back.

The Rollout's status reports permissions missing for a release. Others, which no status can report (writing the status,
or best-effort labels and Events), would otherwise stay unnoticed.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rollout_lws.errors import ApiError
from rollout_lws.objects.permissions import Permission, allow, is_denied

log = logging.getLogger(__name__)

#: Answers of a proxy whose server is down, and of a server that is not ready.
_AWAY = frozenset({502, 503, 504})

#: A permission still in use is requested again within a minute and a half; one not requested since is not in use.
_REMEMBERED_SECONDS = 300.0
#: A starting server answers requests a second or two before it has read its roles.
STARTING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Denied:
    message: str
    since: float
    last: float
    told: bool


def is_lasting(since: float, now: float, away: float | None) -> bool:
    """Whether a denial since ``since`` is a missing permission; ``away`` is when the server was last unreachable, None
    for never. All in seconds of one clock.
    """
    return away is None or since - away > STARTING_SECONDS or now - since >= STARTING_SECONDS


class Denials:
    """The denials that ``away`` and ``answered`` have recorded, by the loop's clock."""

    def __init__(self) -> None:
        self._known: dict[Permission, _Denied] = {}
        self._away: float | None = None
        #: When the server last allowed anything.
        self._allowed = -math.inf

    @property
    def current(self) -> Sequence[tuple[Permission, str]]:
        """Each missing permission with the API server's message, in the order of discovery."""
        now = asyncio.get_running_loop().time()
        for permission in [each for each, denied in self._known.items() if now - denied.last > _REMEMBERED_SECONDS]:
            del self._known[permission]
        return [(permission, denied.message) for permission, denied in self._known.items() if denied.told]

    def away(self) -> None:
        """The API server did not answer, a proxy reported it down, or a watch was cut: recent denials may be due to its
        start-up. If it has allowed something since a denial, it was up, and dropped proxy connections say nothing about
        that denial.
        """
        self._away = asyncio.get_running_loop().time()
        kept = {permission: each for permission, each in self._known.items() if each.told or each.since < self._allowed}
        self._known = kept

    def answered(self, permission: Permission, error: ApiError | None) -> None:
        """The API server answered a request that needs this permission, with ``error`` if it failed. A denial that may
        pass by itself is flagged as early, and reported if it lasts.
        """
        if error is not None and error.code in _AWAY:
            self.away()
        if error is None:
            self._allowed = asyncio.get_running_loop().time()
        if error is not None and is_denied(error, permission.verb):
            now = asyncio.get_running_loop().time()
            before = self._known.get(permission)
            if before is None or now - before.last > _REMEMBERED_SECONDS:
                before = _Denied("", now, now, told=False)
            lasts = before.told or is_lasting(before.since, now, self._away)
            self._known[permission] = _Denied(str(error), before.since, now, lasts)
            error.is_early = not lasts
            if lasts and not before.told:
                log.warning("permission missing", extra=_fields(permission, error=str(error)))
        elif self._known:
            denied = self._known.pop(permission, None)
            if denied is not None and denied.told:
                log.info("permission is there again", extra=_fields(permission))


def _fields(permission: Permission, **more: Any) -> dict[str, Any]:
    told = {"permission": str(permission), **more}
    return {"fields": told | ({"advice": allow(permission.verb, permission.what)} if more else {})}
