"""Fault injection for tests: delays, refusals, lost responses and broken watches between a client and the API server.

Faults affect requests through a transport (HTTP or in memory), never the behaviours' in-process calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rollout_lws.errors import ApiError

READS = frozenset({"get", "list", "watch"})
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})

_REASONS = {
    409: ("Conflict", "the object has been modified; please apply your changes to the latest version and try again"),
    410: ("Expired", "too old resource version"),
    429: ("TooManyRequests", "too many requests, please try again later"),
    500: ("InternalError", "an error on the server has prevented the request from succeeding"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the server was unable to return a response in the time allotted"),
}


@dataclass(frozen=True, slots=True)
class Effect:
    """The fault of one request. Times are seconds of the event loop.

    ``delay`` comes first. ``refusal`` is returned instead of the server's response. ``lost`` drops the response;
    ``carried_out``: the server executed the request before that. The others affect watches: ``silent`` (open, but
    without events), each event ``copies`` times and ``event_delay`` late.
    """

    delay: float = 0.0
    refusal: ApiError | None = None
    lost: bool = False
    carried_out: bool = False
    silent: bool = False
    copies: int = 1
    event_delay: float = 0.0


NOTHING = Effect()


@dataclass(slots=True)
class Rule:
    """An effect on requests with ``verb`` and ``resource`` (the plural; ``*`` is any): ``count`` of them from the
    ``nth`` on (1 is the next), all later ones with ``count`` None.
    """

    effect: Effect
    verb: str = "*"
    resource: str = "*"
    nth: int = 1
    count: int | None = 1
    seen: int = field(default=0, init=False)

    def is_about(self, verb: str, resource: str) -> bool:
        return self.verb in ("*", verb) and self.resource in ("*", resource)

    def hits(self, verb: str, resource: str) -> bool:
        if not self.is_about(verb, resource):
            return False
        self.seen += 1
        return self.seen >= self.nth and (self.count is None or self.seen < self.nth + self.count)


class Faults:
    """The active rules; the first match wins. While the server is ``stopped`` no request gets an answer.

    For ``reinitializing`` seconds after each change of a CustomResourceDefinition, reads of its kind get 429 with a
    Retry-After of one second, as in Kubernetes 1.36; 0 means that the server is ready at once.
    """

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.reinitializing = 0.0
        self.stopped = False
        self._cuts: list[Callable[[], None]] = []

    def add(self, effect: Effect, verb: str = "*", resource: str = "*", *, nth: int = 1, count: int | None = 1) -> Rule:
        rule = Rule(effect, verb, resource, nth, count)
        self.rules.append(rule)
        return rule

    def refuse(
        self,
        code: int,
        verb: str = "*",
        resource: str = "*",
        *,
        retry_after: float | None = None,
        nth: int = 1,
        count: int | None = 1,
    ) -> Rule:
        """Respond with ``code`` (409, 410, 429, 500, 503 or 504); ``retry_after`` is in seconds and sets the header."""
        reason, message = _REASONS[code]
        return self.add(
            Effect(refusal=ApiError(code, reason, message, retry_after)), verb, resource, nth=nth, count=count
        )

    def restore(self) -> None:
        """Remove all faults."""
        self.rules.clear()
        self.reinitializing = 0.0
        self.stopped = False

    def on_cut(self, cut: Callable[[], None]) -> Callable[[], None]:
        """Register an open watch for ``cut_watches``; the returned function unregisters it."""
        self._cuts.append(cut)
        return lambda: self._cuts.remove(cut)

    def cut_watches(self) -> None:
        """End all open watches."""
        for cut in tuple(self._cuts):
            cut()

    def forbids(self, verb: str, resource: str) -> bool:
        """Whether such requests get 403 until the rule is removed, as of a user without the permission."""
        lasting = (each for each in self.rules if each.count is None and each.is_about(verb, resource))
        return any(each.effect.refusal is not None and each.effect.refusal.code == 403 for each in lasting)

    def consult(self, verb: str, resource: str) -> Effect:
        """The effect on the current request."""
        if self.stopped:
            return Effect(lost=True)
        hits = [rule.effect for rule in self.rules if rule.hits(verb, resource)]
        return hits[0] if hits else NOTHING
