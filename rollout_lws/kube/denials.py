"""Which permissions the API server denies at present: each is logged when it is found missing and when it is back.

A release tells of its own in the Rollout's status. What no status can tell (the permission to write the status, a
label or an Event that is only a courtesy) would otherwise be missed for ever.
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

#: What a proxy answers in the place of a server that is away, and a server that is not ready.
_AWAY = frozenset({502, 503, 504})

#: Whatever is still needed is asked for again within a minute and a half; what nobody has asked for since is nobody's
#: trouble.
_REMEMBERED_SECONDS = 300.0
#: A server that comes up answers requests a second or two before it has read its roles.
STARTING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Denied:
    message: str
    since: float
    last: float
    told: bool


def is_lasting(since: float, now: float, away: float | None) -> bool:
    """Whether what is denied ``since`` a moment is a missing permission; ``away`` is when the server was heard to be
    away last, None for never. All in seconds of one clock.
    """
    return away is None or since - away > STARTING_SECONDS or now - since >= STARTING_SECONDS


class Denials:
    """What ``note`` and ``allowed`` were told, by the loop's clock."""

    def __init__(self) -> None:
        self._known: dict[Permission, _Denied] = {}
        self._away: float | None = None
        #: When the server has allowed anything last.
        self._allowed = -math.inf

    @property
    def current(self) -> Sequence[tuple[Permission, str]]:
        """Each with what the API server said, in the order in which they were found missing."""
        now = asyncio.get_running_loop().time()
        for permission in [each for each, denied in self._known.items() if now - denied.last > _REMEMBERED_SECONDS]:
            del self._known[permission]
        return [(permission, denied.message) for permission, denied in self._known.items() if denied.told]

    def away(self) -> None:
        """The API server did not answer, or what stands before it said so, or a watch was cut: what it denied just
        before may be no more than how it comes up. Not so where it has allowed something since: then it was up, and
        connections that a proxy drops now and then say nothing of what is denied.
        """
        self._away = asyncio.get_running_loop().time()
        kept = {permission: each for permission, each in self._known.items() if each.told or each.since < self._allowed}
        self._known = kept

    def answered(self, permission: Permission, error: ApiError | None) -> None:
        """The API server has answered a request that takes this permission, with this error if it has failed. A denial
        that may pass by itself is marked as early, and told when it lasts.
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
