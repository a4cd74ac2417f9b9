"""Names of the objects through which a Rollout routes requests."""

from __future__ import annotations

from rollout_lws.objects.meta import Struct

#: Versions whose groups a managed object can select.
STABLE, CANARY = "stable", "canary"


class ManagedRef(Struct, frozen=True):
    """A user's object that a release writes. ``version`` is the one whose groups the object selects, ``STABLE`` or
    ``CANARY``; "" for an object that routes requests to both.
    """

    kind: str
    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Names(Struct, frozen=True):
    """The objects in one namespace that a release routes requests with: ``service``, the stable version's, and
    ``refs``. They are stored in the annotation on the Service that the release pins first; only writers of that Service
    can change them.
    """

    service: str = ""
    refs: tuple[ManagedRef, ...] = ()

    @property
    def any_router(self) -> bool:
        """Whether any router is named in which weights can be written; False while the names are not all known."""
        return any(not ref.version for ref in self.refs)

    @property
    def stable_pool(self) -> str | None:
        """InferencePool of the stable version; None where requests arrive through its Service."""
        return self._selecting(STABLE)

    @property
    def canary_pool(self) -> str | None:
        """InferencePool of the new version; None where requests arrive through its Service."""
        return self._selecting(CANARY)

    def _selecting(self, version: str) -> str | None:
        return next((ref.name for ref in self.refs if ref.version == version), None)
