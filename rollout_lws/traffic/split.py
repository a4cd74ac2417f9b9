"""How requests are split between two versions, independent of the router, and the backends that a route refers to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rollout_lws.api.rollout_spec import HttpMatch, RequestHeaderModifier

#: A routing object as plain JSON; never changed in place.
Object: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Split:
    """``weight`` is the percentage of requests that go to the new version, 0 to 100. Requests that fit one of
    ``matches`` also go there, whatever the weight. ``header_modifier`` changes headers of the requests that go there.
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
    """The target of a route's backendRef: a Service or an InferencePool, in the route's namespace by default."""

    name: str
    group: str = ""
    kind: str = "Service"


@dataclass(frozen=True, slots=True)
class Backends:
    """The backends that serve the same requests, one for each version."""

    stable: Backend
    canary: Backend
