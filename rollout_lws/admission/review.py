"""AdmissionReview v1 and the guard's response to an edit: decodes requests and encodes responses."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from rollout_lws.objects.meta import Struct


class Rule(StrEnum):
    """The rule that judges an edit; also the last part of the webhook's URL path."""

    HOLD = "hold"
    PENDING = "pending"
    PLAN = "plan"


class Outcome(StrEnum):
    ALLOWED = "allowed"
    WARNED = "warned"
    REPAIRED = "repaired"
    DENIED = "denied"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Response:
    """``message`` says why an edit is denied and what to do instead. ``warnings`` are lines that kubectl prints; API
    servers cut them after 256 bytes. ``patch`` are JSON Patch operations on the new object.
    """

    outcome: Outcome = Outcome.ALLOWED
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: tuple[Mapping[str, Any], ...] = ()


#: Decides on the collected state. It shares no mutable state, so it may run in a thread.
Decide = Callable[[], Response]
#: Reads the caches, in the event loop.
Look = Callable[[], Decide]

ALLOWED = Response()


def denied(message: str) -> Response:
    return Response(Outcome.DENIED, message)


def warned(*warnings: str) -> Response:
    """Allowed, with warnings."""
    return Response(Outcome.WARNED, warnings=warnings) if warnings else ALLOWED


def failed(why: str) -> Response:
    """Allowed with a warning: a guard that cannot judge must not block edits of serving workloads."""
    return Response(Outcome.FAILED, warnings=(f"the guard of rollout-lws has not judged this: {why}",))


API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"
#: Limit of a review's bytes: two custom resources, stored as the JSON in which they are sent, and an envelope. etcd
#: takes 1.5 MiB in one request (its --max-request-bytes), so nothing larger can be stored. No schema keeps an object
#: below that: a Rollout's allows more, and managedFields are unbounded.
LARGEST = 3 * 2**20 + 2**18
#: Limits of JSON values in a review, which cost more than their bytes: a CRD bounds what is stored, but clients may
#: send objects that were never validated.
MOST_VALUES = {Rule.HOLD: 50_000, Rule.PENDING: 50_000, Rule.PLAN: 10_000}
#: API servers cut longer warnings, in bytes.
_LONGEST_WARNING = 256

_NOTHING = msgspec.Raw(b"null")


class User(Struct, frozen=True):
    username: str = ""


class Request(Struct, frozen=True):
    """The edit to review. ``object`` and ``old_object`` stay JSON, ``null`` when absent."""

    uid: str
    operation: str
    namespace: str = ""
    name: str = ""
    sub_resource: str = ""
    user_info: User = User()
    object: msgspec.Raw = _NOTHING
    old_object: msgspec.Raw = _NOTHING


class _Review(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    request: Request | None = None


# Made before there are threads: long reviews are read in one, others beside it, and msgspec may crash a process in
# which a thread uses a type while another one is the first to do so.
_reviews = msgspec.json.Decoder(_Review)


class BadReview(ValueError):
    """The body is not a valid AdmissionReview; the text says in one line what to send."""


def read(body: bytes) -> Request:
    """The request in a review. BadReview for anything else, including other API versions."""
    try:
        review = _reviews.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"no {KIND}: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise BadReview(f"{review.kind or 'it'} of {review.api_version or 'no version'}: send {KIND} of {API_VERSION}")
    if review.request is None or not review.request.uid:
        raise BadReview(f"the {KIND} has no request with a uid")
    return review.request


def crowded(rule: Rule, body: bytes) -> bool:
    """Whether a review has, or may have, more values than the limit; commas and brackets in strings count as well."""
    return sum(body.count(each) for each in (b",", b"[", b"{")) > MOST_VALUES[rule]


def answer(uid: str, response: Response) -> bytes:
    """The AdmissionReview that answers request ``uid``."""
    told: dict[str, Any] = {"uid": uid, "allowed": response.outcome is not Outcome.DENIED}
    if response.outcome is Outcome.DENIED:
        told["status"] = {"code": 403, "reason": "Forbidden", "message": response.message}
    if response.warnings:
        told["warnings"] = [_cut(each) for each in response.warnings]
    if response.patch:
        told["patchType"] = "JSONPatch"
        told["patch"] = base64.b64encode(msgspec.json.encode(response.patch)).decode()
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": told})


def _cut(warning: str) -> str:
    one_line = " ".join(warning.split())
    raw = one_line.encode()
    return one_line if len(raw) <= _LONGEST_WARNING else raw[: _LONGEST_WARNING - 3].decode(errors="ignore") + "..."
