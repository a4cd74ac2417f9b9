"""How requests are to be shared between two versions, whatever routes them, and what a route calls their backends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rollout_lws.api.rollout_spec import HttpMatch, RequestHeaderModifier

#: A routing object as plain JSON; never changed in place.
Object: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Split:
    """``weight`` is the percentage of requests that go to the new version, 0 to 100; requests that fit one of
    ``matches`` go there besides, whatever the weight. ``header_modifier`` changes headers of those that go there.
    """

    weight: int = 0
    matches: tuple[HttpMatch, ...] = ()
    header_modifier: RequestHeaderModifier | None = None

    @property
    def reaches_new(self) -> bool:
        """Whether any request can reach the new version."""
        return self.weight > 0 or bool(self.matches)


#: Everything to the stable version.
ALL_STABLE = Split()


@dataclass(frozen=True, slots=True)
class Backend:
    """What a route's backendRef names: a Service, or an InferencePool; in the route's namespace unless it says so."""

    name: str
    group: str = ""
    kind: str = "Service"


@dataclass(frozen=True, slots=True)
class Backends:
    """The same requests, served by the one version or the other."""

    stable: Backend
    canary: Backend
