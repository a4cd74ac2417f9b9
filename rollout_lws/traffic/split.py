"""How requests are split between two versions, independent of the router, and the backends that a route refers to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
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
    listed_at: datetime | None = None
    """Now, if routes are to name the new version's backend although no request is to reach it yet; a weight or a match
    names it anyway. Routes that name it already do so from an earlier moment on.
    """

    @property
    def reaches_new(self) -> bool:
        """Whether any request can reach the new version."""
        return self.weight > 0 or bool(self.matches)

    @property
    def only_lists(self) -> bool:
        """Whether routes are to name the new version's backend without giving it requests."""
        return self.listed_at is not None and not self.reaches_new

    @property
    def names_new(self) -> bool:
        """Whether routes that do not name the new version's backend have to."""
        return self.reaches_new or self.only_lists


#: Everything to the stable version. A backend of the new version that routes name stays there, without requests.
ALL_STABLE = Split()


def listed(now: datetime) -> Split:
    """Everything to the stable version, with the new version's backend in the routes."""
    return Split(listed_at=now)


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
