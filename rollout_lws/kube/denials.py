"""Which permissions the API server denies at present: each is logged when it is found missing and when it is back.

A release tells of its own in the Rollout's status. What no status can tell (the permission to write the status, a
label or an Event that is only a courtesy) would otherwise be missed for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rollout_lws.objects.permissions import Permission, allow, is_denied

log = logging.getLogger(__name__)

#: Whatever is still needed is asked for again within a minute and a half; what nobody has asked for since is nobody's
#: trouble.
_REMEMBERED_SECONDS = 300.0


@dataclass(slots=True)
class _Denied:
    message: str
    last: float


class Denials:
    """What ``note`` and ``allowed`` were told, by the loop's clock."""

    def __init__(self) -> None:
        self._known: dict[Permission, _Denied] = {}

    @property
    def current(self) -> Sequence[tuple[Permission, str]]:
        """Each with what the API server said, in the order in which they were found missing."""
        now = asyncio.get_running_loop().time()
        for permission in [each for each, denied in self._known.items() if now - denied.last > _REMEMBERED_SECONDS]:
            del self._known[permission]
        return [(permission, denied.message) for permission, denied in self._known.items()]

    def answered(self, permission: Permission, error: Exception | None) -> None:
        """The API server has answered a request that takes this permission, with this error if it has failed."""
        if error is not None and is_denied(error, permission.verb):
            known = {each for each, _ in self.current}
            self._known[permission] = _Denied(str(error), asyncio.get_running_loop().time())
            if permission not in known:
                log.warning("permission missing", extra=_fields(permission, error=str(error)))
        elif self._known and self._known.pop(permission, None) is not None:
            log.info("permission is there again", extra=_fields(permission))


def _fields(permission: Permission, **more: Any) -> dict[str, Any]:
    told = {"permission": str(permission), **more}
    return {"fields": told | ({"advice": allow(permission.verb, permission.what)} if more else {})}
