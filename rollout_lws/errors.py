"""The exceptions that this package raises on purpose, in one tree.

RolloutLwsError
├── ApiError            the API server answered with an error
├── Unreachable         no answer: connection refused, cut, or no bytes within the deadline
│   └── NotLeading      a write was not sent, since another replica may lead
├── Unreadable          an object of our own kinds does not match its CRD
└── UsageError          the user's request cannot be done; the text says what to do
    └── NoCluster       no cluster is configured
"""

from __future__ import annotations


class RolloutLwsError(Exception):
    """Root of the tree; its text is one sentence for the user."""


class ApiError(RolloutLwsError):
    """An answer of the API server with a code of 400 or more.

    ``code`` is the HTTP code, ``reason`` Kubernetes' machine-readable reason (``NotFound``, ``AlreadyExists``,
    ``Conflict``, ``Invalid``, ``Expired`` …), ``retry_after`` seconds from the Retry-After header or the Status'
    details, None when absent. ``is_early`` flags a denial by a server that was unreachable a moment ago: until it has
    read its roles it denies every request.
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
        """Whether the API server itself serves nothing at that path; a proxy's 404 says nothing about objects."""
        return self.code == 404 and (self.reason == "NotFound" or self.message.startswith("404 page not found"))


class Unreachable(RolloutLwsError):
    """The API server did not answer; the request may or may not have succeeded."""


class NotLeading(Unreachable):
    """A write was stopped before its bytes were sent; the current leader makes a new decision."""


class Unreadable(RolloutLwsError):
    """An object of our own kinds with an invalid form: a CRD other than ours accepted it."""


class UsageError(RolloutLwsError):
    """A request by the user that is not possible now; nothing was changed."""


class NoCluster(UsageError):
    """There is no kubeconfig, or none of its contexts is current."""
