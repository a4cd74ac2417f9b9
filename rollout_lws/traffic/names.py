"""Names of the objects through which a Rollout routes requests."""

from __future__ import annotations

import msgspec

from rollout_lws.objects.meta import Struct

#: Versions whose groups a managed object can select.
STABLE, CANARY = "stable", "canary"
#: In place of a version: an object that says how requests are sent, of which a release makes a copy.
POLICY = "policy"
_OTHER = {STABLE: CANARY, CANARY: STABLE}


class ManagedRef(Struct, frozen=True):
    """A user's object that a release writes. ``version`` is the one whose groups the object selects, ``STABLE`` or
    ``CANARY``; "" for an object that routes requests to both, ``POLICY`` for one that only says how they are sent.
    ``api_version`` is that of an object which a script of an administrator changes; "" for the kinds of ``registry``.
    """

    kind: str
    name: str
    version: str = ""
    api_version: str = ""

    @property
    def custom_kind(self) -> tuple[str, str]:
        """API version and kind of an object that a script changes."""
        return self.api_version, self.kind

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Names(Struct, frozen=True):
    """The objects in one namespace that a release routes requests with: ``service``, the stable version's, and
    ``refs``. They are stored in the annotation on the Service that the release pins first; only writers of that Service
    can change them.

    ``canary_service`` is the user's own Service of the new version; "" where a release makes a copy of ``service``, or
    where pools lead to the versions. ``active`` is the name of the workload that the stable version's backend leads to,
    where the user owns the backends of both (a pair); "" otherwise.
    """

    service: str = ""
    refs: tuple[ManagedRef, ...] = ()
    canary_service: str = ""
    active: str = ""

    @property
    def is_pair(self) -> bool:
        """Whether the user owns the backends of both versions, so that a release only moves weight between them."""
        return bool(self.active)

    @property
    def any_router(self) -> bool:
        """Whether any router is named in which weights can be written; False while the names are not all known."""
        return any(not ref.version for ref in self.refs)

    @property
    def custom(self) -> tuple[ManagedRef, ...]:
        """The objects that scripts change."""
        return tuple(ref for ref in self.refs if ref.api_version)

    @property
    def stable_pool(self) -> str | None:
        """InferencePool of the stable version; None where requests arrive through its Service."""
        return self._selecting(STABLE)

    @property
    def canary_pool(self) -> str | None:
        """InferencePool of the new version; None where requests arrive through its Service."""
        return self._selecting(CANARY)

    def turned(self, active: str) -> Names:
        """The same names with the backends of both versions exchanged: the stable version's now leads to workload
        ``active``. A Service without a counterpart leads to neither version, and stays.
        """
        services = (self.service, self.canary_service)
        if all(services):
            services = (self.canary_service, self.service)
        refs = tuple(
            msgspec.structs.replace(ref, version=_OTHER[ref.version]) if ref.version in _OTHER else ref
            for ref in self.refs
        )
        return Names(service=services[0], canary_service=services[1], refs=refs, active=active)

    def policy(self, kind: str) -> str:
        """Name of the object of this kind that says how requests are sent; "" without one."""
        return next((ref.name for ref in self.refs if (ref.version, ref.kind) == (POLICY, kind)), "")

    def _selecting(self, version: str) -> str | None:
        return next((ref.name for ref in self.refs if ref.version == version), None)


def of_sides(names: Names, first: str, active: str) -> Names:
    """The names in the spec of a pair whose workloadRef names ``first``, with the backend of workload ``active`` as the
    stable version's.
    """
    oriented = msgspec.structs.replace(names, active=first)
    return oriented if active == first else oriented.turned(active)
