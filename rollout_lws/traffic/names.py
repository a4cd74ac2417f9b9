"""What a Rollout shares requests by, by name."""

from __future__ import annotations

from rollout_lws.objects.meta import Struct

#: Versions of whose groups a managed object can be.
STABLE, CANARY = "stable", "canary"


class ManagedRef(Struct, frozen=True):
    """An object of the user's that a release writes. ``version`` is the one whose groups it selects, ``STABLE`` or
    ``CANARY``; "" for an object that routes requests to both.
    """

    kind: str
    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Names(Struct, frozen=True):
    """The objects of one namespace by which a release shares requests: ``service``, the stable version's, and ``refs``
    besides. They are kept in the note on the Service that it has pinned first, which nobody can write who may not write
    that Service.
    """

    service: str = ""
    refs: tuple[ManagedRef, ...] = ()

    @property
    def any_router(self) -> bool:
        """Whether anything is named in which shares can be written: where names are not all known, nothing is."""
        return any(not ref.version for ref in self.refs)

    @property
    def stable_pool(self) -> str | None:
        """InferencePool of the stable version, None where requests come by its Service."""
        return self._selecting(STABLE)

    @property
    def canary_pool(self) -> str | None:
        """InferencePool of the new version, None where requests come by its Service."""
        return self._selecting(CANARY)

    def _selecting(self, version: str) -> str | None:
        return next((ref.name for ref in self.refs if ref.version == version), None)
