"""Every error that this package raises on purpose, in one tree.

RolloutLwsError
├── ApiError            the API server answered with a Status that is not a success
├── Unreachable         no answer: connection refused, cut, or no bytes within the deadline
│   └── NotLeading      a write that was not sent, since another controller may lead
├── Unreadable          an object of ours does not have the form that its CRD promises
└── UsageError          a person asked for something that cannot be done; the text says what to do
    └── NoCluster       nothing says which cluster is meant
"""

from __future__ import annotations


class RolloutLwsError(Exception):
    """Root of the tree; its text is one sentence fit for a person."""


class ApiError(RolloutLwsError):
    """An answer of the API server with a code of 400 or more.

    ``code`` is the HTTP code, ``reason`` Kubernetes' machine-readable word (``NotFound``, ``AlreadyExists``,
    ``Conflict``, ``Invalid``, ``Expired`` …), ``retry_after`` seconds from the Retry-After header or the Status'
    details, None when absent. ``is_early`` marks a denial by a server that was away a moment ago: until it has read its
    roles it denies everything to everybody.
    """

    is_early = False

    def __init__(self, code: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def is_unserved(self) -> bool:
        """Whether the API server itself has nothing at that path; a proxy's 404 says nothing of objects."""
        return self.code == 404 and (self.reason == "NotFound" or self.message.startswith("404 page not found"))


class Unreachable(RolloutLwsError):
    """The API server did not answer; the request may or may not have been carried out."""


class NotLeading(Unreachable):
    """A write was stopped before its bytes went out; whoever leads decides anew."""


class Unreadable(RolloutLwsError):
    """An object of our own kinds that cannot be one: another CRD than ours let it in."""


class UsageError(RolloutLwsError):
    """A request by a person that makes no sense now; nothing was changed."""


class NoCluster(UsageError):
    """There is no kubeconfig, or none of its contexts is current."""
